"""How failures, foreseen and seen, change the Recipes of a race.

What fails ends the Recipes that need it, and their repairs join in. What output or foresight tells of beforehand lowers
the odds of those Recipes, and the same repairs join in then, beside the running step; they are given up if it succeeds.
What has failed in one branch is foreseen in the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from anyio.abc import TaskGroup

from specbuild.chronicle import Chronicle
from specbuild.execution import FORK_FROM, Execution, Foresight, Mends, explain
from specbuild.failures import Failure, HollowPass, Weight
from specbuild.outcome import Outcome
from specbuild.recipe import Check
from specbuild.tree import Edge, EdgeState, Entry, RecipeState, Tree
from specbuild.watch import Watch

MOST_FORESEEN = 8
"""Recipes, best first, of which is foreseen what they run into: the others differ little from them."""

MOST_WARNED = 4
"""Recipes, likeliest first, that are told of a failure in another branch."""

TOLD_IN_STEP = 0.9
"""Probability that a Step fails once its output has told of a cause."""

TOLD_IN_CHECK = 0.3
"""The same for a Check: tests may fail for a cause without the suite falling below its ratio."""

WARNED = 0.1
"""The same once its output has told of what seldom is a cause."""

_UNSURE = "unsure:"
"""With an edge, what speaks against a repair of it: that it may not be needed."""

DOOMED = 0.97
"""The same for a Check once so many tests have failed that the rest cannot make up for them."""


class Hedging:
    """The failures of one race, and the repairs that they bring into it."""

    def __init__(
        self,
        tree: Tree,
        chronicle: Chronicle,
        mender: Mends | None,
        *,
        ahead: bool,
        min_pass_ratio: float,
        wake: Callable[[], None],
        end_early: Callable[[Edge], None],
    ) -> None:
        """`wake` is called when the Tree has changed; `end_early` cancels the execution of an edge."""
        self._tree = tree
        self._chronicle = chronicle
        self._mender = mender
        self._ahead = ahead
        self._min_pass_ratio = min_pass_ratio
        self._wake = wake
        self._end_early = end_early
        self._tasks: TaskGroup
        self._watches: dict[str, Watch] = {}
        """What the output of each running edge told."""
        self._failed: dict[str, tuple[str, tuple[Failure, ...]]] = {}
        """Failed edge → why, and what its output told."""
        self._given_up: dict[str, str] = {}
        """Running edges that are ended early, since they are sure to fail, and why."""
        self._seeking = 0
        self._doubts: dict[str, dict[str, float]] = {}
        """Recipe → what speaks against it (an edge that is to fail) → the share of its odds that this leaves."""
        self.ends: dict[str, str] = {}
        """Recipe → why it ended."""

    @property
    def busy(self) -> bool:
        """Whether repairs of a failure are being sought."""
        return self._seeking > 0

    def begin(self, tasks: TaskGroup) -> None:
        """Seek repairs in `tasks` from now on; no Recipe may be added before."""
        self._tasks = tasks

    def add(self, entry: Entry) -> bool:
        """Insert a Recipe; one that needs what has failed already is repaired at once. Whether it was new."""
        if not self._tree.add(entry):
            return False
        if self._tree.state(entry.id) is RecipeState.FAILED:
            edge = next(edge for edge in self._tree.remaining(entry.id) if edge.state is EdgeState.FAILED)
            self.ends[entry.id], failures = self._failed[edge.key]
            self._mend_soon(edge, [entry], failures, 1.0)
        elif entry.against and self._cannot_fail(entry.against):
            self._drop(entry)
        return True

    def _cannot_fail(self, key: str) -> bool:
        """Whether an edge has succeeded, or will not be run: all that were on the way to it were given up."""
        edge, tree = self._tree.edge(key), self._tree
        if edge.state in (EdgeState.DONE, EdgeState.FAILED) or edge.recipes:
            return edge.state is EdgeState.DONE
        passing = [entry.id for entry in tree.entries() if key in tree.path(entry.id)]
        return all(tree.state(name) is RecipeState.CANCELLED for name in passing)

    def look_ahead(self, entries: Iterable[Entry]) -> None:
        """Begin to foresee what Recipes will run into."""
        if self._mender is not None and self._ahead:
            self._tasks.start_soon(self._foresee, self._mender, list(entries)[:MOST_FORESEEN])

    def watch(self, edge: Edge) -> Watch:
        """Follow the output of an edge that begins to run."""
        watch = self._watches[edge.key] = Watch(
            self._mender.reader() if self._mender else None,
            mark=edge.work.mark if isinstance(edge.work, Check) else "",
            shown=lambda line: self._chronicle.line(edge, line),
            told=lambda failures: self._told(edge, failures),
            tallied=lambda failed, collected: self._tallied(edge, failed, collected),
        )
        return watch

    def failures(self, edge: Edge, outcome: Outcome) -> tuple[Failure, ...]:
        """What the output of an edge that has ended told."""
        watch = self._watches.get(edge.key)
        if watch is None:
            return ()
        if outcome is Outcome.FAILED:
            watch.finish()
        return tuple(watch.found)

    def given_up(self, edge: Edge) -> str:
        """Why the execution of an edge was ended early; asked for once, and empty if it was not."""
        return self._given_up.pop(edge.key, "")

    def fail(self, edge: Edge, done: Execution) -> None:
        """End the Recipes that need the edge; their repairs take their place, those that were forked ahead at once."""
        watch = self._watches.get(edge.key)
        causes = _believed(watch.causes, done) if watch else ()
        broken = self._end(edge, done, causes)
        for entry in self._tree.hedges(edge.key):
            self._no_longer_doubt(entry, _UNSURE + edge.key)
        self._mend_soon(edge, broken, causes, 1.0)
        if self._mender is not None and self._ahead and causes:
            self._tasks.start_soon(self._spread, self._mender, edge, causes)

    def break_off(self, edge: Edge, done: Execution) -> list[Entry]:
        """End the Recipes that need an edge which our machinery could not run, without repairs; returns them."""
        return self._end(edge, done, ())

    def succeed(self, edge: Edge) -> None:
        """Give up what was forked against a failure that did not come."""
        self._tree.finish(edge.key)
        for entry in self._tree.hedges(edge.key):
            self._drop(entry)
        for entry in self._needed_by(edge):
            self._no_longer_doubt(entry, edge.key)

    def _drop(self, entry: Entry) -> None:
        """Give up a repair that is not needed, and what repairs it in its turn."""
        self._tree.cancel(entry.id)
        self.ends[entry.id] = "what it repairs did not fail"
        if self._mender is not None:
            self._mender.give_up(entry)
        for key in self._tree.path(entry.id):
            if not self._tree.edge(key).recipes:
                for hedge in self._tree.hedges(key):
                    self._drop(hedge)

    def ended(self, edge: Edge, done: Execution) -> None:
        """The execution of an edge is over, whatever came of it."""
        self._watches.pop(edge.key, None)
        if self._mender is not None:
            self._mender.observe(done)

    def _end(self, edge: Edge, done: Execution, causes: tuple[Failure, ...]) -> list[Entry]:
        why = explain(done)
        self._failed[edge.key] = why, causes
        broken = self._tree.fail(edge.key)
        for entry in broken:
            self.ends[entry.id] = why
        return broken

    def _told(self, edge: Edge, failures: list[Failure]) -> None:
        """The output of a running edge tells of failures."""
        sure = TOLD_IN_CHECK if isinstance(edge.work, Check) else TOLD_IN_STEP
        for failure in failures:
            self._chronicle.seen(edge, failure, sure if failure.weight is Weight.CAUSE else WARNED)
        if not self._ahead or self._watches[edge.key].ended:
            return
        if sure >= FORK_FROM and any(failure.weight is Weight.CAUSE for failure in failures):
            self._expect_failure(edge, sure)

    def _tallied(self, edge: Edge, failed: int, collected: int) -> None:
        """So many tests of a running Check have failed: when too many have, what follows is foreseen."""
        watch = self._watches[edge.key]
        if (
            watch.doomed
            or not self._ahead
            or not failed <= collected
            or failed <= (1 - self._min_pass_ratio) * collected
        ):
            return
        watch.doomed = f"{failed} of {collected} tests had failed, so that the ratio could not be reached any more"
        if _without_hollow(watch.causes):
            self._expect_failure(edge, DOOMED)

    def _expect_failure(self, edge: Edge, sure: float) -> None:
        """Lower the odds of the Recipes that need a running edge, and seek their repairs."""
        for entry in self._needed_by(edge):
            self._doubt(entry, edge.key, 1 - sure)
        causes = self._watches[edge.key].causes
        if isinstance(edge.work, Check):
            causes = _without_hollow(causes)
        self._mend_soon(edge, self._needed_by(edge), causes, sure)

    def _doubt(self, entry: Entry, why: str, kept: float) -> None:
        doubts = self._doubts.setdefault(entry.id, {})
        doubts[why] = min(kept, doubts.get(why, 1.0))
        self._weigh(entry, doubts)

    def _no_longer_doubt(self, entry: Entry, why: str) -> None:
        doubts = self._doubts.get(entry.id, {})
        if doubts.pop(why, None) is not None:
            self._weigh(entry, doubts)

    def _weigh(self, entry: Entry, doubts: dict[str, float]) -> None:
        self._tree.believe(entry.id, entry.prior * math.prod(doubts.values()))

    async def _foresee(self, mender: Mends, entries: list[Entry]) -> None:
        """Let what is foreseen of Recipes change their odds, and add their repairs, best Recipe first."""
        for entry in entries:
            self._heed(entry, await mender.foresee(entry))

    async def _spread(self, mender: Mends, edge: Edge, failures: tuple[Failure, ...]) -> None:
        """Let other branches know what failed here, the best first."""
        rivals = [entry for entry in self._tree.live() if entry.against is None]
        for entry in sorted(rivals, key=lambda entry: -self._tree.odds(entry.id))[:MOST_WARNED]:
            self._heed(entry, await mender.spread(entry, edge.work, failures))

    def _heed(self, entry: Entry, foresight: Foresight) -> None:
        """Let what is foreseen of a Recipe change its odds, and add its repairs."""
        until = self._tree.edge(foresight.until) if foresight.until else None
        passed = until is not None and until.state is EdgeState.DONE
        if foresight.odds is not None and not passed and self._tree.state(entry.id) is RecipeState.LIVE:
            self._doubt(entry, foresight.until or "", foresight.odds / entry.prior)
        for repaired in foresight.entries:
            self.add(repaired)
        self._wake()

    def _mend_soon(self, edge: Edge, broken: list[Entry], failures: tuple[Failure, ...], sure: float) -> None:
        if self._mender is not None and broken:
            self._seeking += 1
            self._tasks.start_soon(self._mend, self._mender, edge, broken, failures, sure)

    async def _mend(
        self, mender: Mends, edge: Edge, broken: list[Entry], failures: tuple[Failure, ...], sure: float
    ) -> None:
        try:
            for entry in await mender.mend(edge, broken, failures, foreseen=sure < 1):
                if self.add(entry):
                    if edge.state is EdgeState.RUNNING:
                        self._doubt(entry, _UNSURE + edge.key, sure)
                    self._give_up(edge)
        finally:
            self._seeking -= 1
            self._wake()

    def _give_up(self, edge: Edge) -> None:
        """End a Check that cannot pass any more, once its repair is on its way."""
        watch = self._watches.get(edge.key)
        if watch is not None and watch.doomed and edge.state is EdgeState.RUNNING:
            self._given_up[edge.key] = watch.doomed
            self._end_early(edge)

    def _needed_by(self, edge: Edge) -> list[Entry]:
        return self._tree.passing(edge.key)


def _believed(causes: tuple[Failure, ...], done: Execution) -> tuple[Failure, ...]:
    """What output tells, unless the report says otherwise: where tests have failed, it is not that there were none.

    What is run in the place of a suite that is empty must never be run in the place of one that fails.
    """
    verdict = done.verdict
    ran = verdict.passed + verdict.failed + verdict.errors if verdict else 0
    # It is ended early when too many tests have failed.
    return _without_hollow(causes) if ran or done.ended_early else causes


def _without_hollow(causes: tuple[Failure, ...]) -> tuple[Failure, ...]:
    return tuple(failure for failure in causes if not isinstance(failure, HollowPass))
