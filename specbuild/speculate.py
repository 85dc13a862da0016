"""The race: runs the Tree's work in bounded slots until the first leaf verifies, then cancels everything else.

It moves data between the Tree, the scheduler and a sandbox backend, and decides nothing: what runs next is the
scheduler's answer, what a result means is the Tree's. What failures bring into a race is in `specbuild.hedging`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, assert_never

import anyio
from anyio.abc import TaskGroup

from specbuild.breadth import Breadth
from specbuild.chronicle import Chronicle
from specbuild.durations import Durations
from specbuild.errors import SandboxError, SpecBuildError, TransientError
from specbuild.events import Reporter
from specbuild.execution import Execution, Mends, Workshop
from specbuild.forks import Forks
from specbuild.hedging import Hedging
from specbuild.outcome import Outcome
from specbuild.recipe import BaseRef, Check, Step
from specbuild.sandbox.contract import Backend, Limits
from specbuild.scheduler import choose
from specbuild.tree import Edge, Entry, RecipeState, Tree
from specbuild.trouble import Trouble
from specbuild.verify.verdict import Verdict
from specbuild.warmers import Spending, Warmers

Later = Callable[[], Awaitable[Iterable[Entry]]]
"""Brings further Recipes, such as those on a base that has to be made first. Raises BaseUnavailableError or
TransientError where nothing comes of it."""


@dataclass(slots=True)
class RaceResult:
    """What became of a race."""

    winner: Entry | None
    verdict: Verdict | None
    tree: Tree
    executions: list[Execution]
    seconds: float
    timed_out: bool = False
    ends: dict[str, str] = field(default_factory=dict[str, str])
    """Recipe id → why it ended."""
    warmed: Spending = field(default_factory=Spending)
    """What downloads ahead of their Steps have used; see `specbuild.warmers`."""


async def race(
    entries: Iterable[Entry],
    backend: Backend,
    workshop: Workshop,
    *,
    slots: int,
    reporter: Reporter,
    admitted: Callable[[], int] | None = None,
    later: Iterable[Later] = (),
    mender: Mends | None = None,
    ahead: bool = True,
    beside: bool = False,
    durations: Durations | None = None,
    breadth: Breadth = Breadth.ALL,
    warm: bool = False,
    min_pass_ratio: float = 0.9,
    limits: Limits | None = None,
    time_limit: float | None = None,
    logs: Path | None = None,
    clock: Callable[[], float] = time.monotonic,
    began: float | None = None,
) -> RaceResult:
    """Race Recipes until one verifies, none is left, or `time_limit` seconds have passed since `began`.

    `admitted` tells how many steps the machine bears now, at least one. `durations` tells how long work is expected to
    take.
    `mender` repairs what fails; with `ahead`, also what is only about to, in forks beside the running step. A check is
    ended early once so many of its tests have failed that `min_pass_ratio` is out of reach and a repair has joined in.
    With `beside`, system packages are installed beside the Steps before them (`specbuild.sides`).

    With `warm`, slots that would be idle download ahead what the leading Recipes will need.

    What is to come `later` is started, one at a time and in order, once a slot has nothing else to do; with one
    Recipe at a time once every Recipe has failed.

    When this returns or raises, every process and Sandbox of it is gone. Raises SandboxError only if our machinery
    failed in every Recipe.
    """
    options = _Options(
        slots=slots,
        admitted=admitted or (lambda: slots),
        breadth=breadth,
        ahead=ahead and breadth is not Breadth.RECIPE,
        warm=warm and breadth is not Breadth.RECIPE,
        min_pass_ratio=min_pass_ratio,
        limits=limits or Limits(),
        logs=logs,
    )
    chronicle = Chronicle(reporter, clock, began)
    beside = beside and breadth is not Breadth.RECIPE
    run = _Race(Tree(durations, beside=beside), backend, workshop, mender, chronicle, options)
    deadline = math.inf if time_limit is None else time_limit - chronicle.now()
    with anyio.move_on_after(deadline) as scope:
        await run.to_the_end(tuple(entries), tuple(later))
    return run.result(timed_out=scope.cancelled_caught)


@dataclass(frozen=True, slots=True)
class _Options:
    """What a race is told; see `race`."""

    slots: int
    admitted: Callable[[], int]
    breadth: Breadth
    ahead: bool
    warm: bool
    min_pass_ratio: float
    limits: Limits
    logs: Path | None


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An edge that is being worked on."""

    edge: Edge
    start: float
    """Seconds since the build began."""
    log: Path | None


class _Race:
    def __init__(
        self,
        tree: Tree,
        backend: Backend,
        workshop: Workshop,
        mender: Mends | None,
        chronicle: Chronicle,
        options: _Options,
    ) -> None:
        self._tree = tree
        self._workshop = workshop
        self._chronicle = chronicle
        self._options = options
        self._forks = Forks(tree, backend, options.limits)
        self._warmers = Warmers(tree, self._forks, workshop, now=chronicle.now, wake=self._wake)
        self._trouble = Trouble()
        self._hedging = Hedging(
            tree,
            chronicle,
            mender,
            ahead=options.ahead,
            min_pass_ratio=options.min_pass_ratio,
            wake=self._wake,
            end_early=self._cancel,
        )
        self._later: list[Later] = []
        self._arriving = False
        self._changed = anyio.Event()
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._executions: list[Execution] = []
        self._winner: Entry | None = None
        self._verdict: Verdict | None = None

    async def to_the_end(self, first: tuple[Entry, ...], later: tuple[Later, ...]) -> None:
        """Run until a winner is there or no live Recipe is left."""
        self._later = list(later)
        async with anyio.create_task_group() as tasks:
            self._hedging.begin(tasks)
            self._hedging.look_ahead([entry for entry in first if self._hedging.add(entry)])
            while self._winner is None and self._has_hope():
                self._changed = anyio.Event()
                self._fill(tasks)
                await self._forks.share_cpu()
                await self._changed.wait()
            tasks.cancel_scope.cancel()

    def result(self, *, timed_out: bool) -> RaceResult:
        """The end of the race; reports what became of every Recipe."""
        for entry in self._tree.entries():
            self._close(entry, timed_out=timed_out)
        if self._winner is None and not timed_out:
            self._trouble.raise_if_alone(self._hedging.ends)
        return RaceResult(
            winner=self._winner,
            verdict=self._verdict,
            tree=self._tree,
            executions=sorted(self._executions, key=lambda execution: execution.start),
            seconds=self._chronicle.now(),
            timed_out=timed_out and self._winner is None,
            ends=self._hedging.ends,
            warmed=self._warmers.spent,
        )

    def _close(self, entry: Entry, *, timed_out: bool) -> None:
        ends = self._hedging.ends
        end: Literal["committed", "failed", "cancelled"]
        state = self._tree.state(entry.id)
        match state:
            case RecipeState.VERIFIED:
                end, why = "committed", self._verdict.reason if self._verdict else ""
            case RecipeState.FAILED:
                end, why = "failed", ends[entry.id]
            case RecipeState.LIVE | RecipeState.CANCELLED:
                end, why = "cancelled", "the time ran out" if timed_out else "another candidate verified first"
                why = ends.get(entry.id, why)
                self._tree.cancel(entry.id)
            case _:
                assert_never(state)
        ends[entry.id] = why
        self._chronicle.left(entry.id, end, why)

    def _has_hope(self) -> bool:
        return bool(self._tree.has_hope or self._later or self._arriving or self._hedging.busy)

    def _fill(self, tasks: TaskGroup) -> None:
        """Free the slots of what nobody needs any more, and fill them with what is worth most."""
        for edge in self._tree.unneeded():
            self._cancel(edge)
        slots = min(self._options.slots, self._options.admitted()) - self._arriving
        decision = choose(self._tree, slots=slots, breadth=self._options.breadth, undecided=self._hedging.busy)
        self._tree.hold(decision.steady)
        for key in decision.start:
            if not self._tree.is_runnable(key):
                self._wake()  # its twin, which has just started, spares it: something else may have the slot
                continue
            scope = self._scopes[key] = anyio.CancelScope()
            tasks.start_soon(self._execute, self._tree.start(key), scope)
        if self._options.warm:
            # There is one slot more than there are cores, so that waiting keeps none idle: that one is not for warmers.
            self._warmers.attend(tasks, slots - 1 - len(self._tree.running()))
        if self._is_idle():
            self._arriving = True
            tasks.start_soon(self._bring, self._later.pop(0))

    def _is_idle(self) -> bool:
        """Whether a slot is free that only something from `later` could fill."""
        if not self._later or self._arriving or self._hedging.busy:
            return False
        if self._options.breadth is Breadth.RECIPE:
            return not self._tree.has_hope
        return len(self._tree.running()) < self._options.slots and not self._tree.runnable()

    async def _bring(self, later: Later) -> None:
        try:
            entries = [entry for entry in await later() if self._hedging.add(entry)]
            self._hedging.look_ahead(entries)
        except (SandboxError, TransientError) as error:
            self._chronicle.warn(error.message)
        self._arriving = False
        self._wake()

    def _wake(self) -> None:
        self._changed.set()

    def _cancel(self, edge: Edge) -> None:
        self._scopes[edge.key].cancel()

    async def _execute(self, edge: Edge, scope: anyio.CancelScope) -> None:
        log = self._options.logs / f"{edge.key[:16]}.log" if self._options.logs else None
        attempt = _Attempt(edge, self._chronicle.now(), log)
        candidates = tuple(entry.id for entry in self._tree.users(edge.key))
        if not candidates:  # what was started together with it has shown that nobody needs it
            self._tree.interrupt(edge.key)
            del self._scopes[edge.key]
            self._wake()
            return
        self._chronicle.started(edge, candidates)
        done: Execution | None = None
        try:
            with scope:
                done = await self._attempt(attempt)
        finally:
            del self._scopes[edge.key]
            done = done or self._cut_short(attempt)
            self._hedging.ended(edge, done)
            self._executions.append(done)
            self._chronicle.ended(done)
            self._wake()

    def _cut_short(self, attempt: _Attempt) -> Execution:
        """What a cancelled attempt comes to: nothing, unless it was given up as sure to fail."""
        edge = attempt.edge
        why = self._hedging.given_up(edge)
        if why and edge.recipes:
            done = replace(self._execution(attempt, Outcome.FAILED), ended_early=why)
            self._hedging.fail(edge, done)
            return done
        done = self._execution(attempt, Outcome.CANCELLED)
        self._tree.interrupt(edge.key)
        return done

    async def _attempt(self, attempt: _Attempt) -> Execution:
        edge = attempt.edge
        try:
            work = edge.work
            match work:
                case BaseRef():
                    self._forks.keep(edge, await self._workshop.provide(work))
                    done = self._execution(attempt, Outcome.OK)
                case Step():
                    done = await self._step(attempt, work)
                case Check():
                    done = await self._check(attempt, work)
                case _:
                    assert_never(work)
        except (SandboxError, TransientError) as error:
            return self._machinery_failed(attempt, error)
        self._settle(edge, done)
        return done

    async def _step(self, attempt: _Attempt, step: Step) -> Execution:
        edge = attempt.edge
        if await self._forks.reuse(edge):
            return self._execution(attempt, Outcome.REUSED)
        if await self._forks.graft(edge):
            return self._execution(attempt, Outcome.GRAFTED)
        if edge.twin is not None:
            self._tree.take_turn(edge.key)
            self._wake()
        async with self._forks.fork(edge) as sandbox:
            watch = self._hedging.watch(edge)
            completed = await self._workshop.run_step(sandbox, step, on_line=watch, log=attempt.log)
            if completed.ok:
                self._forks.keep(edge, await sandbox.freeze(edge.key))
        return replace(self._execution(attempt, Outcome.of(ok=completed.ok)), completed=completed)

    async def _check(self, attempt: _Attempt, check: Check) -> Execution:
        async with self._forks.fork(attempt.edge) as sandbox:
            watch = self._hedging.watch(attempt.edge)
            verdict = await self._workshop.verify(sandbox, check, on_line=watch, log=attempt.log)
        return replace(self._execution(attempt, Outcome.of(ok=verdict.ok)), verdict=verdict)

    def _settle(self, edge: Edge, done: Execution) -> None:
        if done.outcome is Outcome.FAILED and self._trouble.is_passing(edge, done):
            self._tree.interrupt(edge.key)
        elif done.outcome is Outcome.FAILED:
            self._hedging.fail(edge, done)
        elif done.verdict is not None and self._winner is None and edge.recipes:
            self._winner = self._tree.verify(edge.key)
            self._verdict = done.verdict
        else:
            self._hedging.succeed(edge)

    def _machinery_failed(self, attempt: _Attempt, error: SpecBuildError) -> Execution:
        done = replace(self._execution(attempt, Outcome.FAILED), error=error.message)
        if self._trouble.outlasts(attempt.edge, error):
            broken = self._hedging.break_off(attempt.edge, done)
            self._trouble.ended([entry.id for entry in broken], error)
        else:
            self._tree.interrupt(attempt.edge.key)
        return done

    def _execution(self, attempt: _Attempt, outcome: Outcome) -> Execution:
        edge, log = attempt.edge, attempt.log
        spent = self._forks.spent(edge)
        return Execution(
            key=edge.key,
            work=edge.work,
            start=attempt.start,
            end=self._chronicle.now(),
            outcome=outcome,
            candidates=self._chronicle.candidates(edge),
            cpu_seconds=spent.cpu_seconds,
            written_bytes=spent.written_bytes,
            failures=self._hedging.failures(edge, outcome),
            log=log if log is not None and log.exists() else None,
        )
