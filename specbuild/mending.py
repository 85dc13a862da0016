"""Repairs in a race: failures become further candidates, and how they fare becomes knowledge.

The Repairs of several failures of one Step are made one after the other in the order in which the output told of them,
each as Steps of its own: so what is foreseen from the first line shares its checkpoints with what is known at the end.
Rivals replace the first Repair by the next likely one.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

import anyio.to_thread

from specbuild.durations import name_of
from specbuild.errors import SandboxError, StoreError, TransientError
from specbuild.events import FailureSeen, RepairJudged, RepairMade, Reporter
from specbuild.execution import FORK_FROM, Execution, Foresight, kind, title
from specbuild.failures import Failure
from specbuild.field import Field, Runner
from specbuild.knowledge.outcomes import Outcomes
from specbuild.knowledge.posteriors import Beta
from specbuild.knowledge.query import Knowledge
from specbuild.predictors import Reader, reader
from specbuild.predictors.foresee import Foreseen, Outlook, Releases, foresee
from specbuild.predictors.foresee.contract import NO_INDEX
from specbuild.recipe import Check, Recipe, Step, StepKind
from specbuild.repairs import Case, Repair, repairs_for
from specbuild.repairs.edits import MoveToBase, apply
from specbuild.repo.facts import Facts
from specbuild.strategies import odds
from specbuild.strategies.contract import Candidate
from specbuild.tree import Edge, Entry, Work, check_key

MOST_FAILURES = 8
"""Failures of one Step that are repaired together, the first ones of its output."""

MOST_REPAIRS = 12
"""Repairs that one candidate may come to have: beyond it a chain of failures leads nowhere."""

MOST_MENDED = 3
"""Candidates that are repaired for one failed Step, best first: they share it, and so they share its repairs."""

SPREADS = 0.8
"""Probability that what failed in one branch fails in another one that runs work of the same kind on the same base."""

LEAST_PRIOR = 0.03
"""Probability of verification below which a repaired candidate is not worth a place in the race."""

MOST_CANDIDATES = 120
"""Candidates of one race, repaired ones included: a bound for what cannot be repaired at all."""

MORE_TO_COME = 0.95
"""What is left of the probability for each repair: where something failed, something else often does."""

TELLING = 0.3
"""Probability from which what is foreseen counts against a candidate: below it, it is mostly what a suite survives."""

PRIOR_WEIGHT = 4.0
"""Outcomes that the estimate of a repairer counts as."""

REPAIR_SECONDS = 3.0
"""What a Repair adds to the expected seconds of a candidate, until its Steps are known better."""

Prepare = Callable[[str], Awaitable[None]]
"""Makes the package index of a release ready, as far as it can be had."""

Elsewhere = Callable[[str], Awaitable[Sequence[Candidate]]]
"""The candidates on another base, by its name; none if the user named other bases."""


@dataclass(frozen=True, slots=True)
class Site:
    """A failure and where it is: the index of a Step in a Recipe, or the number of its Steps for the Check."""

    index: int
    failure: Failure


@dataclass(frozen=True, slots=True)
class Plan:
    """Repairs for the failures of one candidate, made together; in order of their sites."""

    repairs: tuple[tuple[Site, Repair], ...]

    @property
    def probability(self) -> float:
        """That all failures are gone."""
        return math.prod(repair.probability for _, repair in self.repairs)

    @property
    def base(self) -> str | None:
        """The base that it moves to, if it does."""
        edits = (edit for _, repair in self.repairs for edit in repair.edits)
        return next((edit.base for edit in edits if isinstance(edit, MoveToBase)), None)

    def carried_out(self, recipe: Recipe) -> Recipe:
        """The Recipe with every repair."""
        grown = 0
        for site, repair in self.repairs:
            placed = apply(repair.edits, recipe, site.index + grown)
            recipe, grown = placed.recipe, placed.index - site.index
        return recipe


class Mender:
    """Repairs the candidates of one race; see `specbuild.execution.Mends`."""

    def __init__(
        self,
        field: Field,
        facts: Facts,
        knowledge: Knowledge,
        *,
        reporter: Reporter,
        now: Callable[[], float],
        prepare: Prepare,
        elsewhere: Elsewhere,
        index: Releases = NO_INDEX,
        outcomes: Outcomes | None = None,
    ) -> None:
        self._field = field
        self._facts = facts
        self._knowledge = knowledge
        self._reporter = reporter
        self._now = now
        self._prepare = prepare
        self._elsewhere = elsewhere
        self._index = index
        self._outcomes = outcomes
        self._trials: dict[str, list[_Trial]] = {}
        """Candidate → the repairs that it has, with the place of what they are to cure."""
        self._judged: dict[tuple[str, str], bool] = {}
        """(failure, repair) → whether it worked, as far as this race has shown."""
        self._advice: dict[tuple[str, str], tuple[str, ...]] = {}
        self._seconds: list[tuple[str, float]] = []

    def reader(self) -> Reader:
        """A reader with every signature."""
        return reader()

    async def mend(
        self, edge: Edge, broken: Sequence[Entry], failures: Sequence[Failure], *, foreseen: bool
    ) -> list[Entry]:
        """The repaired candidates, likeliest first."""
        entries: list[Entry] = []
        known = [failure for failure in failures if not failure.infrastructure][:MOST_FAILURES]
        if not known or not isinstance(edge.work, Step | Check):
            return entries
        for entry in sorted(broken, key=lambda entry: -entry.prior)[:MOST_MENDED]:
            place = _place(entry.recipe, edge)
            sites = [Site(place, failure) for failure in known]
            entries += await self._mended(entry.id, sites, against=edge.key if foreseen else None, foreseen=foreseen)
        return entries

    async def foresee(self, entry: Entry) -> Foresight:
        """What the candidate will run into, and its repairs, before anything of it has run."""
        candidate = self._field.candidates[entry.id]
        await self._prepare(candidate.recipe.base.release or "")
        outlook = Outlook(candidate, self._facts, self._knowledge, datetime.now(UTC), self._index)
        found = [(one, _site(candidate.recipe, one)) for one in await foresee(outlook)]
        for one, site in found:
            self._reporter.emit(_foreseen(self._now(), entry, candidate.recipe, one, site))
        kept = math.prod(1 - one.probability for one, _ in found if one.probability >= TELLING)
        likely = [site for one, site in found if one.probability >= FORK_FROM]
        likely = sorted(likely, key=lambda site: site.index)[:MOST_FAILURES]
        # Where several places are at stake, the success of one does not make the repairs of the others idle.
        key = _key(entry.recipe, likely[0].index) if len({site.index for site in likely}) == 1 else None
        return Foresight(await self._mended(entry.id, likely, against=key, foreseen=True), entry.prior * kept)

    async def spread(self, entry: Entry, work: Work, failures: Sequence[Failure]) -> Foresight:
        """What a live candidate will run into, since such work has failed so in another branch."""
        runner = self._field.runners[entry.id]
        index = _alike(entry.recipe, work)
        had = {repair.failure.key for repair in runner.repairs}
        new = [one for one in failures if not one.infrastructure and one.key not in had][:MOST_FAILURES]
        if index is None or not new:
            return Foresight()
        sites = [Site(index, failure) for failure in new]
        entries = await self._mended(entry.id, sites, against=_key(entry.recipe, index), foreseen=True)
        return Foresight(entries, entry.prior * (1 - SPREADS)) if entries else Foresight()

    def advice(self, candidate: str, failure: Failure) -> tuple[str, ...]:
        """What would cure a failure of a candidate, in words, likeliest first, whether it was tried or not."""
        return self._advice.get((candidate, failure.key), ())

    def observe(self, done: Execution) -> None:
        """Judge the repairs of the candidates that an execution was for."""
        if done.outcome in ("cancelled", "reused") or done.error:
            return
        if done.outcome == "ok":
            taken = done.end - done.start
            self._seconds += [(f"kind:{kind(done.work)}", taken), (name_of(done.work), taken)]
        for name in done.candidates:
            for trial in self._trials.get(name, ()):
                self._judge(name, trial, done)

    async def learn(self) -> None:
        """Keep what the race has shown. A store that cannot be written loses that, and nothing else."""
        if self._outcomes is None:
            return
        try:
            for (failure, repair), worked in self._judged.items():
                await self._outcomes.arecord_repair(failure, repair, worked=worked)
            for step_kind, seconds in self._seconds:
                await self._outcomes.arecord_step(step_kind, seconds)
        except (StoreError, SandboxError):
            return

    async def _mended(self, name: str, sites: Sequence[Site], *, against: str | None, foreseen: bool) -> list[Entry]:
        runner = self._field.runners[name]
        if not sites or len(runner.repairs) >= MOST_REPAIRS:
            return []
        await self._prepare(runner.candidate.recipe.base.release or "")
        plans = await anyio.to_thread.run_sync(self._plans, runner, sites)
        entries: list[Entry] = []
        for plan in plans:
            if foreseen and plan.base:
                continue  # a base takes long to make, and what is only foreseen may not come
            made = tuple(_made(site.failure, repair, foreseen=foreseen) for site, repair in plan.repairs)
            for candidate in await self._candidates(runner, plan):
                if candidate.prior < LEAST_PRIOR or len(self._field.runners) >= MOST_CANDIDATES:
                    continue
                entry = self._field.enter_repaired(runner.id, candidate, made, against)
                if entry is not None:
                    self._follow(runner, plan, entry)
                    entries.append(entry)
        return entries

    def _plans(self, runner: Runner, sites: Sequence[Site]) -> list[Plan]:
        """All failures repaired in the likeliest way; then rivals for the first; then the first alone."""
        recipe, grown = runner.candidate.recipe, 0
        chosen: list[tuple[Site, Repair]] = []
        rivals: list[tuple[Site, Repair]] = []
        taken = {repair.name for repair in runner.repairs}
        for site in sites:
            case = Case(
                recipe,
                site.index + grown,
                self._facts,
                self._knowledge,
                runner.candidate.install,
                site.failure.building,
            )
            found = self._options(site.failure, case)
            self._advice.setdefault((runner.id, site.failure.key), tuple(repair.title for repair in found))
            options = [repair for repair in found if repair.name not in taken]
            if not options:
                continue
            if not chosen:
                rivals = [(site, other) for other in options[1:]]
            chosen.append((site, options[0]))
            taken.add(options[0].name)
            placed = apply(options[0].edits, recipe, site.index + grown)
            recipe, grown = placed.recipe, placed.index - site.index
        if not chosen:
            return []
        ways = [chosen, *([rival, *chosen[1:]] for rival in rivals), *([chosen[:1]] if len(chosen) > 1 else [])]
        return [Plan(tuple(way)) for way in ways]

    def _options(self, failure: Failure, case: Case) -> list[Repair]:
        """The Repairs of a failure by what earlier builds and this race made of them, likeliest first."""
        found = [repair for repair in repairs_for(failure, case) if self._judged.get((failure.key, repair.name), True)]
        return sorted((self._learned(failure, repair) for repair in found), key=lambda repair: -repair.probability)

    def _learned(self, failure: Failure, repair: Repair) -> Repair:
        if self._outcomes is None:
            return repair
        try:
            prior = Beta.prior(repair.probability, PRIOR_WEIGHT)
            mean = self._outcomes.success(failure.key, repair.name, prior).mean
        except StoreError:
            return repair
        return repair.model_copy(update={"probability": odds.clamp(mean)})

    async def _candidates(self, runner: Runner, plan: Plan) -> list[Candidate]:
        """The candidate with the plan carried out; on another base, what the same route is there."""
        candidate = runner.candidate
        if plan.base:
            return await self._moved(candidate, plan.base, plan.probability)
        recipe = plan.carried_out(candidate.recipe)
        if recipe.digest == candidate.recipe.digest:
            return []
        repaired = {
            "recipe": recipe,
            "prior": odds.clamp(self._prior(runner, plan)),
            "expected_seconds": candidate.expected_seconds + REPAIR_SECONDS * len(plan.repairs),
        }
        return [candidate.model_copy(update=repaired)]

    def _prior(self, runner: Runner, plan: Plan) -> float:
        """Of the strategy, times that of every repair which has not shown yet that it works; a little less for each."""
        prior = self._field.candidates[runner.id.partition(".")[0]].prior
        chances = [(repair.failure.key, repair.name, repair.probability) for repair in runner.repairs]
        chances += [(site.failure.key, repair.name, repair.probability) for site, repair in plan.repairs]
        for failure, name, probability in chances:
            prior *= MORE_TO_COME * (1.0 if self._judged.get((failure, name)) else probability)
        return prior

    async def _moved(self, candidate: Candidate, base: str, probability: float) -> list[Candidate]:
        try:
            there = await self._elsewhere(base)
        except (SandboxError, TransientError):
            return []
        same = [other for other in there if other.strategy == candidate.strategy] or list(there)
        return [other.model_copy(update={"prior": odds.clamp(other.prior * probability)}) for other in islice(same, 1)]

    def _follow(self, runner: Runner, plan: Plan, entry: Entry) -> None:
        """Remember where it will show whether the plan works."""
        recipe, grown = runner.candidate.recipe, 0
        trials = list(self._trials.get(runner.id, ()))
        for site, repair in plan.repairs:
            at = site.index + grown
            placed = apply(repair.edits, recipe, at)
            more = len(placed.recipe.steps) - len(recipe.steps)
            trials = [replace(old, place=old.place + more) if old.place >= at else old for old in trials]
            trials.append(_Trial(site.failure, repair.name, placed.index, at))
            recipe, grown = placed.recipe, placed.index - site.index
        self._trials[entry.id] = trials

    def _judge(self, name: str, trial: _Trial, done: Execution) -> None:
        key = (trial.failure.key, trial.repair)
        recipe = self._field.candidates[name].recipe
        at = _index(recipe, done.key)
        if key in self._judged or at is None or not trial.since <= at <= trial.place:
            return
        again = any(failure.key == trial.failure.key for failure in done.failures)
        if at < trial.place and done.outcome == "failed":
            self._tell(name, trial, worked=False, why="a step of the repair itself failed")
        elif at == trial.place:
            why = "the same failure came again" if again else "the failure was gone"
            self._tell(name, trial, worked=done.outcome == "ok" or not again, why=why)

    def _tell(self, name: str, trial: _Trial, *, worked: bool, why: str) -> None:
        self._judged[trial.failure.key, trial.repair] = worked
        self._reporter.emit(
            RepairJudged(
                at=self._now(), candidate=name, failure=trial.failure, name=trial.repair, worked=worked, why=why
            )
        )


@dataclass(frozen=True, slots=True)
class _Trial:
    """A repair that a candidate has, and where in its Recipe it will show whether it works."""

    failure: Failure
    repair: str
    place: int
    """Of the work that had failed."""
    since: int
    """Of the first Step of the repair."""


def _alike(recipe: Recipe, work: Work) -> int | None:
    """The index of the work in a Recipe that is most like `work`: of the same kind, the Check for a Check."""
    if isinstance(work, Check):
        return len(recipe.steps)
    if not isinstance(work, Step) or work.kind not in (StepKind.DEPENDENCIES, StepKind.BUILD):
        return None
    return next((index for index, step in enumerate(recipe.steps) if step.kind is work.kind), None)


def _site(recipe: Recipe, one: Foreseen) -> Site:
    """The first Step of the kind at which it will show; the Check, if there is none such."""
    found = (index for index, step in enumerate(recipe.steps) if step.kind is one.at)
    failure = one.failure.model_copy(update={"building": one.subject})
    return Site(next(found, len(recipe.steps)), failure)


def _foreseen(at: float, entry: Entry, recipe: Recipe, one: Foreseen, site: Site) -> FailureSeen:
    work = recipe.check if site.index == len(recipe.steps) else recipe.steps[site.index]
    return FailureSeen(
        at=at,
        node="",
        title=title(work),
        step_kind=kind(work),
        candidates=(entry.id,),
        failure=one.failure,
        words=str(one.failure),
        probability=one.probability,
        why=one.why,
    )


def _key(recipe: Recipe, index: int) -> str:
    """The node that the Step `index` leads to, or the Check."""
    return (*recipe.checkpoints[1:], check_key(recipe))[index]


def _made(failure: Failure, repair: Repair, *, foreseen: bool) -> RepairMade:
    return RepairMade(
        failure=failure,
        name=repair.name,
        title=repair.title,
        why=repair.why,
        probability=repair.probability,
        foreseen=foreseen,
    )


def _place(recipe: Recipe, edge: Edge) -> int:
    """The index of the Step that leads to the edge's node; the number of Steps for the Check."""
    found = _index(recipe, edge.key)
    return len(recipe.steps) if found is None else found


def _index(recipe: Recipe, key: str) -> int | None:
    """The index of the Step that leads to the node `key`; the number of Steps for the Check's; None for others."""
    if key in recipe.checkpoints:
        return recipe.checkpoints.index(key) - 1
    return len(recipe.steps) if key == check_key(recipe) else None
