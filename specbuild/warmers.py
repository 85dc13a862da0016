"""Warmers: downloads that the leading Recipes will need are begun before the Steps that need them can run.

While system packages or tools are installed, a fork of the last Checkpoint on the way is given a later Step to run,
told to fetch only: apt downloads without installing, uv and pip take wheels and build nothing. What they fetch gets
into the shared caches, everything else is thrown away. So warmers change when a Step is done, never what comes of it.

They have the least share of the CPU, start only where a slot would be idle, one at a time, and end at once when a Step
that they fetch for starts, or nobody needs it any more. Whatever becomes of them is nobody's failure.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup

from specbuild.errors import SandboxError, TransientError
from specbuild.execution import Workshop
from specbuild.forks import Forks
from specbuild.recipe import Step, StepKind
from specbuild.sandbox.contract import Sandbox
from specbuild.tree import Edge, EdgeState, Entry, Tree

MOST_LEADING = 3
"""Recipes, the steady one and then the best, of which the next downloads are looked for."""

APT_TOLD = "/etc/apt/apt.conf.d/zz-specbuild-warmer"
"""Read last of all (apt.conf(5)), in a fork that nobody sees."""

_WHEELS_ONLY = (("PIP_ONLY_BINARY", ":all:"), ("UV_NO_BUILD", "1"))
_SLOW = (StepKind.SYSTEM, StepKind.TOOLCHAIN)
"""Steps that take long enough for something to be fetched beside them."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What warmers have used."""

    runs: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    written_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Plan:
    """What one warmer does."""

    target: str
    """The edge of the Step that it fetches for."""
    start: str
    """The edge whose Checkpoint it forks."""
    key: tuple[str, str]
    """Base and Step: what it fetches is the same for all branches."""
    steps: tuple[Step, ...]


class Warmers:
    """The warmers of one race."""

    def __init__(
        self, tree: Tree, forks: Forks, workshop: Workshop, *, now: Callable[[], float], wake: Callable[[], None]
    ) -> None:
        """`now` tells the seconds of the race; `wake` is called when a warmer has ended."""
        self._tree = tree
        self._forks = forks
        self._workshop = workshop
        self._now = now
        self._wake = wake
        self._met: set[tuple[str, str]] = set()
        """Base and Step of what is being fetched for, or was, by whatever branch."""
        self._plan: _Plan | None = None
        """What the present warmer does."""
        self._scope = anyio.CancelScope()
        self.spent = Spending()

    def attend(self, tasks: TaskGroup, idle: int) -> None:
        """Something has started or ended; `idle` slots have nothing to do."""
        running = {key for edge in self._tree.running() for key in self._keys(edge)}
        self._met |= running
        if self._plan is not None and (self._plan.key in running or not self._is_wanted(self._plan)):
            self._scope.cancel()
        if self._plan is None and idle > 0 and (plan := self._next()) is not None:
            self._plan, self._scope = plan, anyio.CancelScope()
            tasks.start_soon(self._warm, plan, self._scope)

    def _keys(self, edge: Edge) -> Iterator[tuple[str, str]]:
        if isinstance(edge.work, Step):
            for name in edge.users:
                yield self._tree.entry(name).recipe.base.digest, edge.work.digest

    def _is_wanted(self, plan: _Plan) -> bool:
        edge = self._tree.edge(plan.target)
        return edge.state is EdgeState.WAITING and bool(edge.recipes)

    def _next(self) -> _Plan | None:
        """The next download of a leading Recipe that none of them is about to make anyway."""
        leading = self._leading()
        near = {key for entry in leading for key in self._near(entry)}
        for entry in leading:
            for plan in self._plans(entry):
                if plan.key not in self._met and plan.key not in near:
                    self._met.add(plan.key)
                    return plan
        return None

    def _leading(self) -> list[Entry]:
        tree = self._tree
        names = {name for edge in tree.running() for name in edge.users}
        best = heapq.nlargest(MOST_LEADING, sorted(names), lambda name: tree.odds(name) / tree.seconds_left(name))
        if tree.steady in names:
            best = [tree.steady, *(name for name in best if name != tree.steady)]
        return [tree.entry(name) for name in best[:MOST_LEADING]]

    def _near(self, entry: Entry) -> Iterator[tuple[str, str]]:
        """The Steps of a Recipe that wait for nothing slow."""
        for edge in self._tree.remaining(entry.id):
            if not isinstance(edge.work, Step) or edge.work.kind in _SLOW:
                return
            yield entry.recipe.base.digest, edge.work.digest

    def _plans(self, entry: Entry) -> Iterator[_Plan]:
        """What could be fetched for Steps that wait for others of the Recipe, the first first."""
        edges = [self._tree.edge(key) for key in self._tree.path(entry.id)]
        done = [edge for edge in edges if edge.state is EdgeState.DONE]
        before = list[Step]()
        for edge in edges[len(done) :]:
            step = edge.work
            if not isinstance(step, Step) or not done:
                return
            if edge.state is EdgeState.WAITING and any(other.kind in _SLOW for other in before):
                steps = _fetches(step, [one.work for one in done if isinstance(one.work, Step)], before)
                if steps:
                    yield _Plan(edge.key, done[-1].key, (entry.recipe.base.digest, step.digest), steps)
            before.append(step)

    async def _warm(self, plan: _Plan, scope: anyio.CancelScope) -> None:
        began = self._now()
        sandbox: Sandbox | None = None
        try:
            with scope:
                async with self._forks.spare(plan.start) as sandbox:
                    await self._fetch(sandbox, plan.steps)
        except (SandboxError, TransientError):
            pass  # the Step itself will tell of it
        finally:
            self._plan = None
            self._count(sandbox, self._now() - began)
            self._wake()

    async def _fetch(self, sandbox: Sandbox, steps: tuple[Step, ...]) -> None:
        if steps[-1].kind is StepKind.SYSTEM:
            await sandbox.write_file(APT_TOLD, b'APT::Get::Download-Only "true";\n')
        for step in steps:
            done = await self._workshop.run_step(sandbox, step, on_line=_unheard, log=None)
            if not done.ok:
                return

    def _count(self, sandbox: Sandbox | None, seconds: float) -> None:
        used, so_far = (sandbox.spent if sandbox is not None else None), self.spent
        self.spent = Spending(
            so_far.runs + 1,
            so_far.seconds + seconds,
            so_far.cpu_seconds + (used.cpu_seconds if used else 0.0),
            so_far.written_bytes + (used.written_bytes if used else 0),
        )


def _fetches(step: Step, done: list[Step], before: list[Step]) -> tuple[Step, ...]:
    """The Steps that make a fork fetch what `step` will need, and nothing else; none where nothing does.

    `done` has been run in what is forked, `before` comes first in the Recipe and has not.
    """
    if not step.network:
        return ()
    if step.kind is StepKind.SYSTEM and "apt" in step.caches:
        lists = "" if any("apt-get update" in one.run for one in done) else "apt-get update -qq\n"
        return (step.model_copy(update={"run": lists + step.run}),)
    if step.kind is not StepKind.DEPENDENCIES or not any(one.kind is StepKind.TOOLCHAIN for one in done):
        return ()
    needed = [one for one in before if one.kind not in _SLOW]
    if any(one.kind not in (StepKind.SOURCE, StepKind.DEPENDENCIES) for one in needed):
        return ()
    return tuple(_wheels_only(one) for one in (*needed, step))


def _wheels_only(step: Step) -> Step:
    if step.kind is StepKind.SOURCE:
        return step
    return step.model_copy(update={"env": (*step.env, *_WHEELS_ONLY)})


def _unheard(line: str) -> None:
    """Nobody is told what they print."""
