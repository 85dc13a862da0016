"""The race: runs the Tree's work in bounded slots until the first leaf verifies, then cancels everything else.

This module moves data between the Tree, the scheduler and a sandbox backend. It decides nothing: what runs next is
the scheduler's answer, what a result means is the Tree's.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, assert_never

import anyio
from anyio.abc import TaskGroup

from specbuild.breadth import Breadth
from specbuild.durations import Durations
from specbuild.errors import BaseUnavailableError, SandboxError, SpecBuildError, TransientError
from specbuild.events import (
    CandidateEnded,
    FailureSeen,
    Notice,
    Reporter,
    StepEnded,
    StepOutput,
    StepStarted,
    Verified,
)
from specbuild.execution import (
    FORK_FROM,
    Execution,
    Foresight,
    LineReader,
    Mends,
    Outcome,
    Workshop,
    explain,
    kind,
    title,
)
from specbuild.failures import Failure, NetworkTrouble, RegistryTrouble, Weight
from specbuild.recipe import BaseRef, Check, Step
from specbuild.sandbox.contract import Backend, Checkpoint, Completed, Limits, Sandbox, Spent
from specbuild.scheduler import choose, cpu_weights
from specbuild.tree import Edge, EdgeState, Entry, RecipeState, Tree
from specbuild.verify.verdict import Verdict

MACHINERY_TRIES = 2
"""How often a piece of work is started before trouble of our own machinery counts against the Recipes that need it."""


MOST_FORESEEN = 8
"""Recipes, best first, of which is foreseen what they run into: the others differ little from them."""

MOST_WARNED = 4
"""Recipes, likeliest first, that are told of a failure in another branch."""

TOLD_IN_STEP = 0.9
"""Probability that a Step fails once its output has told of a cause."""

TOLD_IN_CHECK = 0.3
"""The same for a Check: tests may fail for a cause without the suite falling below its ratio."""

DOOMED = 0.97
"""The same once so many tests have failed that the rest cannot make up for them."""

_TALLY = "specbuild-tally "
"""What begins the lines by which pytest's tally is told; see `specbuild.verify.program_pytest`."""


Later = Callable[[], Awaitable[Iterable["Entry"]]]
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


async def race(
    entries: Iterable[Entry],
    backend: Backend,
    workshop: Workshop,
    *,
    slots: int,
    reporter: Reporter,
    later: Iterable[Later] = (),
    mender: Mends | None = None,
    ahead: bool = True,
    durations: Durations | None = None,
    breadth: Breadth = Breadth.ALL,
    min_pass_ratio: float = 0.9,
    limits: Limits | None = None,
    time_limit: float | None = None,
    logs: Path | None = None,
    clock: Callable[[], float] = time.monotonic,
    began: float | None = None,
) -> RaceResult:
    """Race Recipes until one verifies, none is left, or `time_limit` seconds have passed since `began`.

    `durations` tells how long work is expected to take.
    `mender` repairs what fails; with `ahead`, also what is only about to, in forks beside the running step.

    What is to come `later` is started, one at a time and in order, once a slot has nothing else to do; with one
    Recipe at a time once every Recipe has failed.

    When this returns or raises, every process and Sandbox of it is gone. Raises SandboxError only if our machinery
    failed in every Recipe.
    """
    run = _Race(
        backend,
        workshop,
        slots=slots,
        breadth=breadth,
        min_pass_ratio=min_pass_ratio,
        limits=limits or Limits(),
        reporter=reporter,
        later=tuple(later),
        mender=mender,
        ahead=ahead and breadth is not Breadth.RECIPE,
        durations=durations,
        logs=logs,
        clock=clock,
        began=began,
    )
    run.first = tuple(entries)
    deadline = math.inf if time_limit is None else time_limit - run.now()
    with anyio.move_on_after(deadline) as scope:
        await run.to_the_end()
    return run.result(timed_out=scope.cancelled_caught)


class _Race:
    def __init__(
        self,
        backend: Backend,
        workshop: Workshop,
        *,
        slots: int,
        breadth: Breadth,
        min_pass_ratio: float,
        limits: Limits,
        reporter: Reporter,
        later: tuple[Later, ...],
        mender: Mends | None,
        ahead: bool,
        durations: Durations | None,
        logs: Path | None,
        clock: Callable[[], float],
        began: float | None,
    ) -> None:
        self.tree = Tree(durations)
        self._backend = backend
        self._workshop = workshop
        self._slots = slots
        self._breadth = breadth
        self._limits = limits
        self._reporter = reporter
        self._later = list(later)
        self._arriving = False
        self._mender = mender
        self._ahead = ahead
        self._min_pass_ratio = min_pass_ratio
        self._given_up: dict[str, str] = {}
        """Running edges that are ended early, since they are sure to fail, and why."""
        self._watches: dict[str, _Watch] = {}
        """What the output of each running edge told."""
        self._mending = 0
        """Repairs that are being sought."""
        self._logs = logs
        self._clock = clock
        self._began = clock() if began is None else began
        self._changed = anyio.Event()
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._sandboxes: dict[str, tuple[Sandbox, int]] = {}
        self._forks: dict[str, Sandbox] = {}
        """The last fork for each edge whose execution is not written down yet."""
        self._checkpoints: dict[str, Checkpoint] = {}
        self._executions: list[Execution] = []
        self._tries: dict[str, int] = {}
        self._machinery: dict[str, SpecBuildError] = {}
        self._needers: dict[str, tuple[str, ...]] = {}
        self._ends: dict[str, str] = {}
        self._winner: Entry | None = None
        self._verdict: Verdict | None = None
        self._tasks: TaskGroup
        self._failed: dict[str, tuple[str, tuple[Failure, ...]]] = {}
        """Failed edge → why, and what its output told."""
        self.first: tuple[Entry, ...] = ()

    def now(self) -> float:
        """Seconds since the build began."""
        return self._clock() - self._began

    async def to_the_end(self) -> None:
        """Run until a winner is there or no live Recipe is left."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            for entry in self.first:
                self._add(entry)
            self._look_ahead(self.first)
            while self._winner is None and (self.tree.live() or self._later or self._arriving or self._mending):
                self._changed = anyio.Event()
                self._cancel_unneeded()
                slots = self._slots - self._arriving
                for key in choose(self.tree, slots=slots, breadth=self._breadth).start:
                    self._begin(tasks, self.tree.start(key))
                if self._is_idle():
                    self._arriving = True
                    tasks.start_soon(self._bring, self._later.pop(0))
                await self._share_cpu()
                await self._changed.wait()
            tasks.cancel_scope.cancel()

    def result(self, *, timed_out: bool) -> RaceResult:
        """The end of the race; reports what became of every Recipe."""
        for entry in self.tree.entries():
            self._close(entry, timed_out=timed_out)
        if self._winner is None and not timed_out and self._machinery and set(self._machinery) == set(self._ends):
            raise next(iter(self._machinery.values()))
        return RaceResult(
            winner=self._winner,
            verdict=self._verdict,
            tree=self.tree,
            executions=sorted(self._executions, key=lambda execution: execution.start),
            seconds=self.now(),
            timed_out=timed_out and self._winner is None,
            ends=self._ends,
        )

    def _close(self, entry: Entry, *, timed_out: bool) -> None:
        end: Literal["committed", "failed", "cancelled"]
        state = self.tree.state(entry.id)
        match state:
            case RecipeState.VERIFIED:
                end, why = "committed", self._verdict.reason if self._verdict else ""
            case RecipeState.FAILED:
                end, why = "failed", self._ends[entry.id]
            case RecipeState.LIVE | RecipeState.CANCELLED:
                end, why = "cancelled", "the time ran out" if timed_out else "another candidate verified first"
                why = self._ends.get(entry.id, why)
                self.tree.cancel(entry.id)
            case _:
                assert_never(state)
        self._ends[entry.id] = why
        self._reporter.emit(CandidateEnded(at=self.now(), candidate=entry.id, end=end, why=why))

    def _is_idle(self) -> bool:
        """Whether a slot is free that only something from `later` could fill."""
        if not self._later or self._arriving or self._mending:
            return False
        if self._breadth is Breadth.RECIPE:
            return not self.tree.live()
        return len(self.tree.running()) < self._slots and not self.tree.runnable()

    async def _bring(self, later: Later) -> None:
        try:
            entries = [entry for entry in await later() if self._add(entry)]
            self._look_ahead(entries)
        except (SandboxError, TransientError) as error:
            self._reporter.emit(Notice(at=self.now(), message=error.message, warning=True))
        self._arriving = False
        self._changed.set()

    def _cancel_unneeded(self) -> None:
        for edge in self.tree.unneeded():
            self._scopes[edge.key].cancel()

    def _begin(self, tasks: TaskGroup, edge: Edge) -> None:
        scope = anyio.CancelScope()
        self._scopes[edge.key] = scope
        tasks.start_soon(self._execute, edge, scope)

    async def _share_cpu(self) -> None:
        for key, weight in cpu_weights(self.tree).items():
            held = self._sandboxes.get(key)
            if held is not None and held[1] != weight:
                self._sandboxes[key] = (held[0], weight)
                await held[0].set_cpu_weight(weight)

    async def _execute(self, edge: Edge, scope: anyio.CancelScope) -> None:
        start = self.now()
        done: Execution | None = None
        log = self._logs / f"{edge.key[:16]}.log" if self._logs else None
        self._announce(edge)
        try:
            with scope:
                done = await self._attempt(edge, start, log)
        finally:
            del self._scopes[edge.key]
            if done is None and edge.key in self._given_up and edge.recipes:
                done = self._execution(edge, start, "failed", ended_early=self._given_up.pop(edge.key), log=log)
                self._fail(edge, done)
            elif done is None:
                done = self._execution(edge, start, "cancelled", log=log)
                self.tree.interrupt(edge.key)
            self._watches.pop(edge.key, None)
            self._executions.append(done)
            self._report(done)
            self._changed.set()

    async def _attempt(self, edge: Edge, start: float, log: Path | None) -> Execution:
        try:
            work = edge.work
            match work:
                case BaseRef():
                    self._checkpoints[edge.key] = await self._workshop.provide(work)
                    done = self._execution(edge, start, "ok", log=log)
                case Step():
                    done = await self._step(edge, work, start, log)
                case Check():
                    done = await self._check(edge, work, start, log)
                case _:
                    assert_never(work)
        except (SandboxError, TransientError) as error:
            return self._machinery_failed(edge, start, error, log)
        self._settle(edge, done)
        return done

    def _watch(self, edge: Edge) -> _Watch:
        """Follow the output of an edge that begins to run."""
        reader = self._mender.reader() if self._mender else None

        def told(failures: list[Failure]) -> None:
            self._told(edge, failures)

        def shown(line: str) -> None:
            self._reporter.emit(StepOutput(at=self.now(), node=edge.key, line=line))

        def tallied(failed: int, collected: int) -> None:
            self._tallied(edge, failed, collected)

        watch = self._watches[edge.key] = _Watch(reader, shown, told, tallied)
        return watch

    def _told(self, edge: Edge, failures: list[Failure]) -> None:
        """The output of a running edge tells of failures."""
        sure = TOLD_IN_CHECK if isinstance(edge.work, Check) else TOLD_IN_STEP
        for failure in failures:
            self._reporter.emit(
                FailureSeen(
                    at=self.now(),
                    node=edge.key,
                    title=title(edge.work),
                    step_kind=kind(edge.work),
                    candidates=self._needers[edge.key],
                    failure=failure,
                    words=str(failure),
                    probability=sure if failure.weight is Weight.CAUSE else 0.1,
                )
            )
        if not self._ahead or self._watches[edge.key].ended:
            return
        if sure >= FORK_FROM and any(failure.weight is Weight.CAUSE for failure in failures):
            for entry in self._needed_by(edge):
                self.tree.believe(entry.id, entry.prior * (1 - sure))
            self._mend_soon(edge, self._needed_by(edge), tuple(self._watches[edge.key].causes), sure)

    def _look_ahead(self, entries: Iterable[Entry]) -> None:
        if self._mender is not None and self._ahead:
            self._tasks.start_soon(self._foresee, self._mender, list(entries)[:MOST_FORESEEN])

    async def _foresee(self, mender: Mends, entries: list[Entry]) -> None:
        """Let what is foreseen of Recipes change their odds, and add their repairs, best Recipe first."""
        for entry in entries:
            self._heed(entry, await mender.foresee(entry))

    def _add(self, entry: Entry) -> bool:
        """Insert a Recipe; one that needs what has failed already is repaired at once. Whether it was new."""
        if not self.tree.add(entry):
            return False
        if self.tree.state(entry.id) is RecipeState.FAILED:
            edge = next(edge for edge in self.tree.remaining(entry.id) if edge.state is EdgeState.FAILED)
            self._ends[entry.id], failures = self._failed[edge.key]
            self._mend_soon(edge, [entry], failures, 1.0)
        return True

    def _tallied(self, edge: Edge, failed: int, collected: int) -> None:
        """So many tests of a running Check have failed: when too many have, what follows is foreseen."""
        watch = self._watches[edge.key]
        if watch.doomed or not self._ahead or failed <= (1 - self._min_pass_ratio) * collected:
            return
        watch.doomed = f"{failed} of {collected} tests had failed, so that the ratio could not be reached any more"
        if watch.causes:
            for entry in self._needed_by(edge):
                self.tree.believe(entry.id, entry.prior * (1 - DOOMED))
            self._mend_soon(edge, self._needed_by(edge), tuple(watch.causes), DOOMED)

    def _mend_soon(self, edge: Edge, broken: list[Entry], failures: tuple[Failure, ...], sure: float) -> None:
        if self._mender is not None and broken:
            self._mending += 1
            self._tasks.start_soon(self._mend, self._mender, edge, broken, failures, sure)

    async def _mend(
        self, mender: Mends, edge: Edge, broken: list[Entry], failures: tuple[Failure, ...], sure: float
    ) -> None:
        try:
            for entry in await mender.mend(edge, broken, failures, foreseen=sure < 1):
                if edge.state is not EdgeState.DONE and self._add(entry):
                    self.tree.believe(entry.id, entry.prior * (sure if edge.state is EdgeState.RUNNING else 1))
                    self._give_up(edge)
        finally:
            self._mending -= 1
            self._changed.set()

    def _give_up(self, edge: Edge) -> None:
        """End a Check that cannot pass any more, once its repair is on its way."""
        watch = self._watches.get(edge.key)
        if watch is not None and watch.doomed and edge.state is EdgeState.RUNNING:
            self._given_up[edge.key] = watch.doomed
            self._scopes[edge.key].cancel()

    def _needed_by(self, edge: Edge) -> list[Entry]:
        return [entry for entry in self.tree.live() if entry.id in edge.recipes]

    async def _step(self, edge: Edge, step: Step, start: float, log: Path | None) -> Execution:
        known = await self._backend.find(edge.key)
        if known is not None:
            self._checkpoints[edge.key] = known
            return self._execution(edge, start, "reused")
        async with self._fork(edge) as sandbox:
            completed = await self._workshop.run_step(sandbox, step, on_line=self._watch(edge), log=log)
            if completed.ok:
                self._checkpoints[edge.key] = await sandbox.freeze(edge.key)
        return self._execution(edge, start, "ok" if completed.ok else "failed", completed=completed, log=log)

    async def _check(self, edge: Edge, check: Check, start: float, log: Path | None) -> Execution:
        async with self._fork(edge) as sandbox:
            verdict = await self._workshop.verify(sandbox, check, on_line=self._watch(edge), log=log)
        return self._execution(edge, start, "ok" if verdict.ok else "failed", verdict=verdict, log=log)

    @asynccontextmanager
    async def _fork(self, edge: Edge) -> AsyncGenerator[Sandbox]:
        weight = cpu_weights(self.tree).get(edge.key, self._limits.cpu_weight)
        parent = self._checkpoints[edge.parent or ""]
        async with self._backend.fork(parent, limits=replace(self._limits, cpu_weight=weight)) as sandbox:
            self._sandboxes[edge.key] = (sandbox, weight)
            self._forks[edge.key] = sandbox
            try:
                yield sandbox
            finally:
                del self._sandboxes[edge.key]

    def _settle(self, edge: Edge, done: Execution) -> None:
        if done.outcome == "failed" and self._is_outage(edge, done):
            self.tree.interrupt(edge.key)
        elif done.outcome == "failed":
            self._fail(edge, done)
        elif done.verdict is not None and self._winner is None and edge.recipes:
            self._winner = self.tree.verify(edge.key)
            self._verdict = done.verdict
        else:
            self._succeed(edge)

    def _is_outage(self, edge: Edge, done: Execution) -> bool:
        """Whether only network and registries failed, which may not do so again."""
        causes = [failure for failure in done.failures if failure.weight is Weight.CAUSE]
        if not causes or not all(isinstance(failure, NetworkTrouble | RegistryTrouble) for failure in causes):
            return False
        self._tries[edge.key] = self._tries.get(edge.key, 0) + 1
        return self._tries[edge.key] < MACHINERY_TRIES and isinstance(edge.work, Step)

    def _fail(self, edge: Edge, done: Execution) -> None:
        """End the Recipes that need the edge; their repairs take their place, those that were forked ahead at once."""
        why = explain(done)
        watch = self._watches.get(edge.key)
        causes = tuple(watch.causes) if watch else ()
        self._failed[edge.key] = why, causes
        broken = self.tree.fail(edge.key)
        for entry in broken:
            self._ends[entry.id] = why
        for entry in self.tree.hedges(edge.key):
            self.tree.believe(entry.id, entry.prior)
        self._mend_soon(edge, broken, causes, 1.0)
        if self._mender is not None and self._ahead and causes:
            self._tasks.start_soon(self._spread, self._mender, edge, causes)

    async def _spread(self, mender: Mends, edge: Edge, failures: tuple[Failure, ...]) -> None:
        """Let other branches know what failed here, the best first."""
        rivals = [entry for entry in self.tree.live() if entry.against is None]
        for entry in sorted(rivals, key=lambda entry: -self.tree.odds(entry.id))[:MOST_WARNED]:
            self._heed(entry, await mender.spread(entry, edge.work, failures))

    def _heed(self, entry: Entry, foresight: Foresight) -> None:
        """Let what is foreseen of a Recipe change its odds, and add its repairs."""
        if foresight.odds is not None and self.tree.state(entry.id) is RecipeState.LIVE:
            self.tree.believe(entry.id, min(foresight.odds, self.tree.odds(entry.id)))
        for repaired in foresight.entries:
            if repaired.against is None or self.tree.edge(repaired.against).state is not EdgeState.DONE:
                self._add(repaired)
        self._changed.set()

    def _succeed(self, edge: Edge) -> None:
        """Give up what was forked against a failure that did not come."""
        self.tree.finish(edge.key)
        for entry in self.tree.hedges(edge.key):
            self.tree.cancel(entry.id)
            self._ends[entry.id] = "what it repairs did not fail"
        for entry in self._needed_by(edge):
            self.tree.believe(entry.id, entry.prior)

    def _machinery_failed(self, edge: Edge, start: float, error: SpecBuildError, log: Path | None) -> Execution:
        self._tries[edge.key] = self._tries.get(edge.key, 0) + 1
        done = self._execution(edge, start, "failed", error=error.message, log=log)
        if self._tries[edge.key] < MACHINERY_TRIES and not isinstance(error, BaseUnavailableError):
            self.tree.interrupt(edge.key)
            return done
        self._failed[edge.key] = explain(done), ()
        for entry in self.tree.fail(edge.key):
            self._ends[entry.id] = explain(done)
            self._machinery[entry.id] = error
        return done

    def _execution(
        self,
        edge: Edge,
        start: float,
        outcome: Outcome,
        *,
        completed: Completed | None = None,
        verdict: Verdict | None = None,
        error: str = "",
        ended_early: str = "",
        log: Path | None = None,
    ) -> Execution:
        fork = self._forks.pop(edge.key, None)
        spent = fork.spent if fork else Spent()
        return Execution(
            key=edge.key,
            work=edge.work,
            start=start,
            end=self.now(),
            outcome=outcome,
            candidates=self._needers[edge.key],
            cpu_seconds=spent.cpu_seconds,
            written_bytes=spent.written_bytes,
            completed=completed,
            verdict=verdict,
            failures=self._failures_of(edge, outcome),
            error=error,
            ended_early=ended_early,
            log=log if log is not None and log.exists() else None,
        )

    def _failures_of(self, edge: Edge, outcome: Outcome) -> tuple[Failure, ...]:
        watch = self._watches.get(edge.key)
        if watch is None:
            return ()
        if outcome == "failed":
            watch.finish()
        return tuple(watch.found)

    def _announce(self, edge: Edge) -> None:
        self._needers[edge.key] = tuple(entry.id for entry in self.tree.live() if entry.id in edge.recipes)
        self._reporter.emit(
            StepStarted(
                at=self.now(),
                node=edge.key,
                title=title(edge.work),
                step_kind=kind(edge.work),
                candidates=self._needers[edge.key],
            )
        )

    def _report(self, done: Execution) -> None:
        if self._mender is not None:
            self._mender.observe(done)
        completed = done.completed
        self._reporter.emit(
            StepEnded(
                at=self.now(),
                node=done.key,
                title=title(done.work),
                ok=done.outcome in {"ok", "reused"},
                cancelled=done.outcome == "cancelled",
                exit_code=completed.exit_code if completed else None,
                end=completed.end.value if completed else "",
                seconds=done.end - done.start,
                cpu_seconds=done.cpu_seconds,
                written_bytes=done.written_bytes,
                note=done.error
                or done.ended_early
                or ("reused" if done.outcome == "reused" else completed.note if completed else ""),
                log=str(done.log) if done.log else None,
            )
        )
        if done.verdict is not None:
            self._reporter.emit(Verified(at=self.now(), candidates=done.candidates, verdict=done.verdict))


def _note(done: Execution) -> str:
    if done.outcome == "reused":
        return "reused"
    return done.error or done.ended_early or (done.completed.note if done.completed else "")


class _Watch:
    """Passes the lines of a command on, and follows them with a reader of failures."""

    def __init__(
        self,
        reader: LineReader | None,
        shown: Callable[[str], None],
        told: Callable[[list[Failure]], None],
        tallied: Callable[[int, int], None],
    ) -> None:
        self._tallied = tallied
        self.doomed = ""
        """Why it is sure to fail; empty as long as it is not."""
        self._reader = reader
        self._shown = shown
        self._told = told
        self.found: list[Failure] = []
        self.ended = False

    def __call__(self, line: str) -> None:
        if line.startswith(_TALLY):
            self._count(line)
            return
        self._shown(line)
        if self._reader is not None:
            self._take(self._reader.feed(line))

    def _count(self, line: str) -> None:
        figures = line.removeprefix(_TALLY).split()
        if len(figures) == 3 and all(figure.isdigit() for figure in figures):
            self._tallied(int(figures[1]), int(figures[2]))

    def finish(self) -> None:
        """The output has ended, and the command has failed."""
        self.ended = True
        if self._reader is not None:
            self._take(self._reader.finish())

    @property
    def causes(self) -> list[Failure]:
        """What is to be repaired; where nothing better is known, symptoms."""
        return [failure for failure in self.found if failure.weight is not Weight.WARNING] or self.found

    def _take(self, failures: Iterable[Failure]) -> None:
        new = list(failures)
        if new:
            self.found += new
            self._told(new)
