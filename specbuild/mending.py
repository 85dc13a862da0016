"""Repairs in a race: failures become further candidates, and how they fare becomes knowledge."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import anyio.to_thread

from specbuild.cures import Cure, cures
from specbuild.errors import SandboxError, StoreError, TransientError
from specbuild.events import FailureSeen, Notice, RepairMade, Reporter
from specbuild.execution import FORK_FROM, Execution, Foresight, kind, title
from specbuild.failures import Failure
from specbuild.field import Field, Runner
from specbuild.knowledge.outcomes import Outcomes
from specbuild.knowledge.query import NOTHING, Knowledge
from specbuild.predictors import Reader, reader
from specbuild.predictors.foresee import Foreseen, Outlook, Releases, foresee
from specbuild.predictors.foresee.contract import NO_INDEX
from specbuild.recipe import Check, Recipe, Step, StepKind
from specbuild.repairs import Case, Repair, repairs_for
from specbuild.repairs.edits import InsertSteps
from specbuild.repo.facts import Facts
from specbuild.sites import Site, node_at, place_alike, place_of, site_of, work_at
from specbuild.strategies import odds
from specbuild.strategies.contract import Candidate, Earlier
from specbuild.tree import Edge, Entry, Work
from specbuild.trials import Trials

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

REPAIR_SECONDS = 3.0
"""What a Repair adds to the expected seconds of a candidate, until its Steps are known better."""

Prepare = Callable[[str], Awaitable[None]]
"""Makes the package index of a release ready, as far as it can be had."""

Elsewhere = Callable[[str], Awaitable[Sequence[Candidate]]]
"""The candidates on another base, by its name; none if the user named other bases."""


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
        earlier: Sequence[Earlier] = (),
    ) -> None:
        """`now` gives the seconds since the build began; `index` is the user's package index.

        `outcomes` keeps how repairs fare from one build to the next; without it nothing is learned. `earlier` are
        environments of other revisions: what they needed is to be expected.
        """
        self._field = field
        self._facts = facts
        self._knowledge = knowledge
        self._reporter = reporter
        self._now = now
        self._prepare = prepare
        self._elsewhere = elsewhere
        self._index = index
        self._earlier = tuple(earlier)
        self._trials = Trials(reporter, now, outcomes)
        self._advice: dict[tuple[str, str], tuple[str, ...]] = {}
        """(candidate, failure) → what would cure it, in words."""
        self._incurable: set[str] = set()
        """Failures of which every repair was tried in vain."""
        self._damage: StoreError | None = None
        """What was wrong with a package index, until it is told of."""

    def reader(self) -> Reader:
        """A reader with every signature."""
        return reader()

    async def mend(
        self, edge: Edge, broken: Sequence[Entry], failures: Sequence[Failure], *, foreseen: bool
    ) -> list[Entry]:
        """The repaired candidates, likeliest first."""
        entries: list[Entry] = []
        known = _repairable(failures)
        if not known or not isinstance(edge.work, Step | Check):
            return entries
        for entry in sorted(broken, key=lambda entry: -entry.prior)[:MOST_MENDED]:
            place = place_of(entry.recipe, edge.key)
            sites = [Site(len(entry.recipe.steps) if place is None else place, failure) for failure in known]
            entries += await self._mended(entry.id, sites, against=edge.key if foreseen else None, foreseen=foreseen)
        return entries

    async def foresee(self, entry: Entry) -> Foresight:
        """What the candidate will run into, and its repairs, before anything of it has run."""
        candidate = self._field.candidates[entry.id]
        await self._prepare(candidate.recipe.base.release or "")
        outlook = Outlook(candidate, self._facts, self._knowledge, datetime.now(UTC), self._index, self._earlier)
        found = [(one, site_of(candidate.recipe, one)) for one in await foresee(outlook)]
        for one, site in found:
            self._reporter.emit(_foreseen(self._now(), entry, one, work_at(candidate.recipe, site.index)))
        kept = math.prod(1 - one.probability for one, _ in found if one.probability >= TELLING)
        likely = [site for one, site in found if one.probability >= FORK_FROM]
        likely = sorted(likely, key=lambda site: site.index)[:MOST_FAILURES]
        # Where several places are at stake, the success of one does not make the repairs of the others idle.
        alone = len({site.index for site in likely}) == 1
        against = node_at(entry.recipe, likely[0].index) if alone else None
        told = [site.index for one, site in found if one.probability >= TELLING]
        until = node_at(entry.recipe, max(told)) if told else None
        entries = await self._mended(entry.id, likely, against=against, foreseen=True)
        return Foresight(entries, entry.prior * kept if told else None, until)

    async def spread(self, entry: Entry, work: Work, failures: Sequence[Failure]) -> Foresight:
        """What a live candidate will run into, since such work has failed so in another branch."""
        had = {repair.failure.key for repair in self._field.runners[entry.id].repairs}
        new = _repairable([failure for failure in failures if failure.key not in had])
        place = place_alike(entry.recipe, work)
        if place is None or not new:
            return Foresight()
        sites = [Site(place, failure) for failure in new]
        node = node_at(entry.recipe, place)
        entries = await self._mended(entry.id, sites, against=node, foreseen=True)
        return Foresight(entries, entry.prior * (1 - SPREADS), node) if entries else Foresight()

    def advice(self, candidate: str, failure: Failure) -> tuple[str, ...]:
        """What would cure a failure of a candidate, in words, likeliest first, whether it was tried or not."""
        return self._advice.get((candidate, failure.key), ())

    def observe(self, done: Execution) -> None:
        """Judge the repairs of the candidates that an execution was for."""
        self._trials.observe(done)

    def give_up(self, entry: Entry) -> None:
        """Another failure may have the same repair: then the candidate enters the race again."""
        self._field.give_up(entry.id)

    async def learn(self) -> None:
        """Keep what the race has shown for later builds."""
        await self._trials.keep()

    async def _mended(self, of: str, sites: Sequence[Site], *, against: str | None, foreseen: bool) -> list[Entry]:
        runner = self._field.runners[of]
        if not sites or len(runner.repairs) >= MOST_REPAIRS:
            return []
        await self._prepare(runner.candidate.recipe.base.release or "")
        entries: list[Entry] = []
        found = await anyio.to_thread.run_sync(self._cures, runner, sites)
        self._tell_of_damage()
        for cure in found:
            if foreseen and cure.base:
                continue  # a base takes long to make, and what is only foreseen may not come
            candidate = await self._cured(runner, cure)
            if candidate is not None:
                entries += self._enter(runner, cure, candidate, against, foreseen=foreseen)
        return entries

    def _enter(
        self, runner: Runner, cure: Cure, candidate: Candidate, against: str | None, *, foreseen: bool
    ) -> Sequence[Entry]:
        """The entry of a repaired candidate, unless it is not worth one or is in the race already."""
        if candidate.prior < LEAST_PRIOR or len(self._field.runners) >= MOST_CANDIDATES:
            return ()
        recipe = runner.candidate.recipe
        told = tuple(
            _told(site.failure, repair, work_at(recipe, site.index), foreseen=foreseen) for site, repair in cure.repairs
        )
        entry = self._field.enter_repaired(runner.id, candidate, told, against)
        if entry is None:
            return ()
        made = cure.made_in(runner.candidate.recipe)
        self._trials.follow(entry.id, entry.recipe, runner.id, made)
        return (entry,)

    def _cures(self, runner: Runner, sites: Sequence[Site]) -> list[Cure]:
        """How the failures can be repaired, likeliest first; what could be is kept for `advice`."""

        def options(site: Site, recipe: Recipe) -> list[Repair]:
            failure, install = site.failure, runner.candidate.install
            case = Case(recipe, site.index, self._facts, self._knowledge, install, failure.building)
            found = self._options(failure, case)
            self._advice.setdefault((runner.id, failure.key), tuple(repair.title for repair in found))
            return found

        found = cures(runner.candidate.recipe, sites, {repair.name for repair in runner.repairs}, options)
        # Output begins with what matters most: where that cannot be cured, curing the rest leads nowhere.
        return [] if sites[0].failure.key in self._incurable else found

    def _options(self, failure: Failure, case: Case) -> list[Repair]:
        """The Repairs of a failure by what earlier builds and this race made of them, likeliest first."""
        known = self._known(failure, case)
        hopeful = [one for one in known if self._trials.worked(failure.key, one.name) is not False]
        if known and not hopeful:
            self._incurable.add(failure.key)
        return sorted((self._trials.learned(failure, one) for one in hopeful), key=lambda repair: -repair.probability)

    def _known(self, failure: Failure, case: Case) -> Sequence[Repair]:
        """The Repairs of a failure; without what indexes know from the moment on when one cannot be read."""
        try:
            return repairs_for(failure, case)
        except StoreError as error:
            self._damage, self._knowledge = error, NOTHING
            return repairs_for(failure, replace(case, knowledge=NOTHING))

    def _tell_of_damage(self) -> None:
        if self._damage is not None:
            message = f"{self._damage.message}; {self._damage.hint}"
            self._damage = None
            self._reporter.emit(Notice(at=self._now(), message=message, warning=True))

    async def _cured(self, runner: Runner, cure: Cure) -> Candidate | None:
        """The candidate with the repairs; where they move it to another base, what the same route is there."""
        candidate = runner.candidate
        if cure.base:
            return await self._moved(candidate, cure.base, cure.probability)
        recipe = cure.made_in(candidate.recipe)[-1].recipe
        if recipe.digest == candidate.recipe.digest:
            return None
        repaired = {
            "recipe": recipe,
            "prior": odds.clamp(self._prior(runner, cure)),
            "expected_seconds": candidate.expected_seconds + REPAIR_SECONDS * len(cure.repairs),
        }
        return candidate.model_copy(update=repaired)

    def _prior(self, runner: Runner, cure: Cure) -> float:
        """Of the strategy, times that of every repair which has not shown yet that it works; a little less for each."""
        prior = self._field.candidates[runner.id.partition(".")[0]].prior
        chances = [(repair.failure.key, repair.name, repair.probability) for repair in runner.repairs]
        chances += [(site.failure.key, repair.name, repair.probability) for site, repair in cure.repairs]
        for failure, name, probability in chances:
            prior *= MORE_TO_COME * (1.0 if self._trials.worked(failure, name) else probability)
        return prior

    async def _moved(self, candidate: Candidate, base: str, probability: float) -> Candidate | None:
        try:
            there = await self._elsewhere(base)
        except (SandboxError, TransientError):
            return None
        same = [other for other in there if other.strategy == candidate.strategy] or there
        if not same:
            return None
        return same[0].model_copy(update={"prior": odds.clamp(same[0].prior * probability)})


def _repairable(failures: Sequence[Failure]) -> list[Failure]:
    """Those of the repository, the first ones of the output."""
    return [failure for failure in failures if not failure.infrastructure][:MOST_FAILURES]


def _foreseen(at: float, entry: Entry, one: Foreseen, work: Step | Check) -> FailureSeen:
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


def _told(failure: Failure, repair: Repair, work: Step | Check, *, foreseen: bool) -> RepairMade:
    added = [step for edit in repair.edits if isinstance(edit, InsertSteps) for step in edit.steps]
    packages = all(isinstance(edit, InsertSteps) for edit in repair.edits)
    return RepairMade(
        failure=failure,
        name=repair.name,
        title=repair.title,
        why=repair.why,
        probability=repair.probability,
        foreseen=foreseen,
        at=work.kind if isinstance(work, Step) else StepKind.TEST,
        packages=packages and all(step.kind is StepKind.SYSTEM for step in added),
    )
