"""How Repairs fare: whether each has worked is seen from what its candidates come to, and kept for later builds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import anyio.to_thread

from specbuild.cures import Made
from specbuild.durations import name_of
from specbuild.errors import SandboxError, StoreError
from specbuild.events import RepairJudged, Reporter
from specbuild.execution import Execution, kind
from specbuild.failures import Failure
from specbuild.knowledge.outcomes import Outcomes
from specbuild.knowledge.posteriors import Beta
from specbuild.outcome import Outcome
from specbuild.recipe import Recipe
from specbuild.repairs import Repair
from specbuild.sites import place_of
from specbuild.strategies import odds

PRIOR_WEIGHT = 4.0
"""Outcomes that the estimate of a repairer counts as."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """A Repair that a candidate has, and where in its Recipe it will show whether it works."""

    failure: Failure
    repair: str
    since: int
    """The place of its first Step."""
    place: int
    """Of the work that had failed."""


class Trials:
    """The Repairs that are tried in one race."""

    def __init__(self, reporter: Reporter, now: Callable[[], float], outcomes: Outcomes | None) -> None:
        """`now` gives the seconds since the build began; `outcomes` is where earlier builds have told theirs."""
        self._reporter = reporter
        self._now = now
        self._outcomes = outcomes
        self._recipes: dict[str, Recipe] = {}
        self._trials: dict[str, tuple[_Trial, ...]] = {}
        """Candidate → the Repairs that it has."""
        self._judged: dict[tuple[str, str], bool] = {}
        """(failure, repair) → whether it worked, as far as this race has shown."""
        self._seconds: list[tuple[str, float]] = []
        """Names of work, and what it took."""

    def follow(self, candidate: str, recipe: Recipe, of: str, made: Sequence[Made]) -> None:
        """A candidate with such a Recipe is `of` with more Repairs: remember where it will show whether they work."""
        trials = self._trials.get(of, ())
        for one in made:
            moved = (replace(old, place=old.place + one.grown) if old.place >= one.since else old for old in trials)
            trials = (*moved, _Trial(one.failure, one.repair.name, one.since, one.place))
        self._trials[candidate] = trials
        self._recipes[candidate] = recipe

    def worked(self, failure: str, repair: str) -> bool | None:
        """Whether a Repair, by name, has cured a failure, by key, in this race; None as long as that has not shown."""
        return self._judged.get((failure, repair))

    def learned(self, failure: Failure, repair: Repair) -> Repair:
        """The Repair with the probability that earlier builds give it."""
        if self._outcomes is None:
            return repair
        try:
            prior = Beta.prior(repair.probability, PRIOR_WEIGHT)
            mean = self._outcomes.success(failure.key, repair.name, prior).mean
        except StoreError:
            return repair
        return repair.model_copy(update={"probability": odds.clamp(mean)})

    def observe(self, done: Execution) -> None:
        """Judge the Repairs of the candidates that an execution was for, and note what it took."""
        if not done.is_telling:
            return
        if done.outcome is Outcome.OK:
            taken = done.end - done.start
            self._seconds += [(f"kind:{kind(done.work)}", taken), (name_of(done.work), taken)]
        for candidate in done.candidates:
            for trial in self._trials.get(candidate, ()):
                self._judge(candidate, trial, done)

    async def keep(self) -> None:
        """Keep what the race has shown. A store that cannot be written loses that, and nothing else."""
        if self._outcomes is None:
            return
        try:
            repairs = [(failure, repair, worked) for (failure, repair), worked in self._judged.items()]
            await anyio.to_thread.run_sync(self._outcomes.record_all, repairs, self._seconds)
        except (StoreError, SandboxError):
            return

    def _judge(self, candidate: str, trial: _Trial, done: Execution) -> None:
        at = place_of(self._recipes[candidate], done.key)
        if self.worked(trial.failure.key, trial.repair) is not None:
            return
        if at is None or not trial.since <= at <= trial.place:
            return
        again = any(failure.key == trial.failure.key for failure in done.failures)
        if at < trial.place and done.outcome is Outcome.FAILED:
            self._tell(candidate, trial, worked=False, why="a step of the repair itself failed")
        elif at == trial.place:
            why = "the same failure came again" if again else "the failure was gone"
            self._tell(candidate, trial, worked=done.outcome is Outcome.OK or not again, why=why)

    def _tell(self, candidate: str, trial: _Trial, *, worked: bool, why: str) -> None:
        self._judged[trial.failure.key, trial.repair] = worked
        self._reporter.emit(
            RepairJudged(
                at=self._now(), candidate=candidate, failure=trial.failure, name=trial.repair, worked=worked, why=why
            )
        )
