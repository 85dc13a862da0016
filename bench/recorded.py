"""A recorded world: a repository as the journals of its builds tell of it, in whichever mode they were made.

Work is known by its node: the same commands in the same order on the same base. It takes the median of what it took
while the CPU was not busy; where that never was so, what its CPU seconds come to with the cores that its kind usually
keeps busy. It keeps as many cores busy as its CPU seconds say, and ends as most of its executions did.

What no build has executed to its end is assumed: a step takes what the same command took elsewhere, or the median of
its kind, and ends well; whether a check passes is drawn by its Recipe's prior, by one number for all Recipes of the
repository, since these mostly fail for the same reasons.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median

from bench.journals import Foretold, Proposal, Recording, Sample, read_project
from bench.recorded_race import (
    GRAFT_SECONDS,
    STATE,
    Graft,
    Piece,
    RecordedBackend,
    RecordedMender,
    RecordedWorkshop,
    plain,
)
from bench.simulated import Stage
from specbuild.durations import BASE_SECONDS, KIND_SECONDS
from specbuild.errors import UsageError
from specbuild.events import Reporter
from specbuild.execution import kind as kind_of
from specbuild.failures import Failure
from specbuild.field import Field
from specbuild.recipe import BaseRef, Check, Recipe, Step
from specbuild.sides import sides
from specbuild.strategies.contract import Candidate
from specbuild.testing.cpu import Cpu
from specbuild.testing.fakes import Behaviour, Files
from specbuild.tree import Work, check_key
from specbuild.watch import TALLY

LEAST_SECONDS = 0.001

LEAST_CORES = 0.02
"""What work keeps busy at least: the figures of short steps are coarse."""

BUSY = 0.75
"""Share of the cores that may be busy while the seconds of a step are taken as they are."""

AT_END = 0.99
"""Share of a step's seconds from which a failure is taken to be told at its end."""


@dataclass(frozen=True)
class Cost:
    """What work takes."""

    seconds: float
    """If it has the CPU to itself."""
    cores: float


Costs = Mapping[str, Cost]
"""By kind of work."""


def kinds_of(samples: Iterable[Sample], cores: float) -> dict[str, Cost]:
    """Medians by kind of work, of what ended well while at most `BUSY` of the machine's cores were busy."""
    found: dict[str, list[Sample]] = {}
    for one in samples:
        if one.ok and not one.grafted and one.busy <= BUSY * cores:
            found.setdefault(one.kind, []).append(one)
    return {
        kind: Cost(median(one.seconds for one in some), _cores(some, median(one.seconds for one in some)))
        for kind, some in found.items()
    }


def cost_of(samples: Sequence[Sample], kinds: Costs, cores: float) -> Cost:
    """What work took, from its executions on a machine with so many cores; at least one."""
    free = [one.seconds for one in samples if one.busy <= BUSY * cores]
    if free:
        seconds = median(free)
    else:
        usual = kinds[samples[0].kind].cores if samples[0].kind in kinds else 1.0
        seconds = median(min(one.seconds, one.cpu_seconds / usual) for one in samples)
    return Cost(seconds, _cores(samples, seconds))


def _cores(samples: Sequence[Sample], seconds: float) -> float:
    return max(median(one.cpu_seconds for one in samples) / max(seconds, LEAST_SECONDS), LEAST_CORES)


@dataclass(frozen=True)
class RecordedWorld:
    """See `bench.simulated.Simulated`."""

    name: str
    recordings: Sequence[Recording]
    before: float
    candidates: Sequence[Candidate]
    later: Sequence[tuple[float, Sequence[Candidate]]]
    recipes: Mapping[str, Recipe]
    """By digest."""
    pieces: Mapping[str, Piece]
    """By node."""
    children: Mapping[str, Sequence[Proposal]]
    """Digest of a Recipe → what repairs it."""
    foretold: Mapping[str, Sequence[Foretold]]
    grafts: Mapping[tuple[str, str], Graft]
    """(Node of a state, node of a side) → what the side is on that state."""

    @cached_property
    def failures(self) -> Sequence[Failure]:
        """All that output tells of; it names them by number."""
        told = (failure for piece in self.pieces.values() for _, failure in piece.told)
        return list({failure.model_dump_json(): failure for failure in told}.values())

    @cached_property
    def _behaviours(self) -> Mapping[str, Behaviour]:
        numbers = {failure.model_dump_json(): n for n, failure in enumerate(self.failures)}
        marks = {check_key(recipe): recipe.check.mark for recipe in self.recipes.values()}
        return {node: _behaviour(node, piece, numbers, marks.get(node, "")) for node, piece in self.pieces.items()}

    def stage(self, cpu: Cpu, field: Field, reporter: Reporter) -> Stage:
        """For one race."""
        del reporter  # what was foreseen is in the recordings
        backend = RecordedBackend(self._script, cpu, self.grafts)
        checks = {(recipe.checkpoints[-1], recipe.check.digest): check_key(recipe) for recipe in self.recipes.values()}
        workshop = RecordedWorkshop(backend, self.pieces, checks)
        mender = RecordedMender(field, self.failures, self.children, self.foretold)
        return Stage(backend, workshop, mender, workshop.tally)

    def alone(self, recipe: Recipe, cores: float) -> float:
        """Seconds of a Recipe's work, run alone."""
        pieces = [self.pieces[node] for node in nodes(plain(recipe))]
        return sum(piece.seconds * max(1.0, piece.cores / cores) for piece in pieces)

    def is_known(self, recipe: Recipe) -> bool:
        """Whether a recording tells how each piece of a Recipe's work ends."""
        return not any(self.pieces[node].assumed for node in nodes(plain(recipe)))

    def oracle(self, cores: float) -> float:
        """Of the Recipes that have won in a recording."""
        won = [one.winner for one in self.recordings if one.winner is not None]
        return min((self.alone(recipe, cores) for recipe in won), default=math.inf)

    def _script(self, command: str, files: Files) -> Behaviour:
        del files
        return self._behaviours[command]


def nodes(recipe: Recipe) -> tuple[str, ...]:
    """The nodes that a Recipe passes through."""
    return *recipe.checkpoints, check_key(recipe)


def _behaviour(node: str, piece: Piece, numbers: Mapping[str, int], mark: str) -> Behaviour:
    says = [
        (after, f"FAIL {numbers[failure.model_dump_json()]}")
        for after, failure in piece.told
        if after < piece.seconds * AT_END
    ]
    late = [
        f"END {numbers[failure.model_dump_json()]}" for after, failure in piece.told if after >= piece.seconds * AT_END
    ]
    if piece.doomed is not None:
        says.append((piece.doomed, f"{TALLY}{mark} 0 1 1"))
    return Behaviour(
        seconds=piece.seconds,
        cores=piece.cores,
        exit_code=int(not piece.ok),
        says=tuple(sorted(says)),
        output=tuple(late),
        writes={STATE: node.encode()},
    )


def read_worlds(folder: Path, cores: int, *, seed: int = 1, unseen: bool = True) -> list[RecordedWorld]:
    """The worlds of all projects in `folder`, whose journals were recorded on a machine with so many cores.

    With `unseen` unset, no check passes of which no recording tells. Raises UsageError.
    """
    recorded = {path.name: read_project(path) for path in sorted(folder.iterdir()) if path.is_dir()}
    recorded = {name: some for name, some in recorded.items() if any(one.proposals for one in some)}
    if not recorded:
        raise UsageError(f"{folder} holds no journals", hint="record some: python -m bench race --traces FOLDER")
    kinds = kinds_of((one for some in recorded.values() for run in some for one in run.samples), cores)
    return [_Maker(name, some, kinds, cores, seed, unseen).world() for name, some in recorded.items()]


@dataclass
class _Maker:
    name: str
    recordings: Sequence[Recording]
    kinds: Costs
    """Of all projects."""
    cores: int
    seed: int
    unseen: bool
    recipes: dict[str, Recipe] = field(default_factory=dict[str, Recipe])
    beside: dict[str, str] = field(default_factory=dict[str, str])
    """Node → that of the same work on an earlier state."""
    samples: dict[str, list[Sample]] = field(default_factory=dict[str, list[Sample]])
    """By node."""
    commands: dict[str, list[Sample]] = field(default_factory=dict[str, list[Sample]])
    """Those that ended well, by digest."""

    def world(self) -> RecordedWorld:
        told = [run for run in self.recordings if run.mode != "learned"] or self.recordings  # its odds are others
        proposals = [one for run in told for one in run.proposals]
        self.recipes = {one.candidate.recipe.digest: one.candidate.recipe for one in proposals}
        self.beside = {key: side.key for recipe in self.recipes.values() for key, side in sides(recipe).items()}
        samples = [one for run in self.recordings for one in run.samples if not one.grafted]
        for one in samples:
            self.samples.setdefault(one.node, []).append(one)
            if one.ok:
                self.commands.setdefault(one.digest, []).append(one)
        self.kinds = {**self.kinds, **kinds_of(samples, self.cores)}
        roots = _merged(one for one in proposals if one.of is None)
        return RecordedWorld(
            name=self.name,
            recordings=self.recordings,
            before=median(run.before for run in self.recordings),
            candidates=[one.candidate for one in roots if one.at <= 0],
            later=_later(roots),
            recipes=self.recipes,
            pieces=self._pieces({one.candidate.recipe.digest: one.candidate.prior for one in proposals}),
            children=_grouped(_merged(one for one in proposals if one.of is not None)),
            foretold=_foretold(one for run in told for one in run.foretold),
            grafts=self._grafts(),
        )

    def _pieces(self, priors: Mapping[str, float]) -> dict[str, Piece]:
        pieces: dict[str, Piece] = {}
        drawn = random.Random(f"{self.seed} {self.name}").random()
        for digest, recipe in self.recipes.items():
            passes = self.unseen and drawn < priors[digest]
            works: tuple[Work, ...] = (recipe.base, *recipe.steps, recipe.check)
            for node, work in zip(nodes(recipe), works, strict=True):
                ends_well = passes if isinstance(work, Check) else True
                side = self.beside.get(node, node)
                for here, there in ((node, side), (side, node)):
                    if here not in pieces:
                        mine = self.samples.get(here) or self.samples.get(there, [])
                        pieces[here] = self._piece(mine, kind_of(work), _digest(work), passes=ends_well)
        return pieces

    def _grafts(self) -> dict[tuple[str, str], Graft]:
        """(Node of a state, node of a side) → what the side is on that state; none of those that would not take."""
        runs = [run.samples for run in self.recordings]
        seconds = [one.seconds for some in runs for one in some if one.grafted]
        usual = median(seconds) if seconds else GRAFT_SECONDS
        grafts: dict[tuple[str, str], Graft] = {}
        for recipe in self.recipes.values():
            for before, node in pairwise(recipe.checkpoints):
                side = self.beside.get(node)
                if side is not None and not any(_refused(node, side, some) for some in runs):
                    grafts[before, side] = Graft(node, usual)
        return grafts

    def _piece(self, mine: Sequence[Sample], kind: str, digest: str, *, passes: bool) -> Piece:
        """From executions; `digest` is of the real work, `passes` tells how it ends if no recording does."""
        ended = [one for one in mine if one.ok is not None]
        if not ended:
            return self._assumed(mine, kind, digest, passes=passes)
        ok = sum(one.ok is True for one in ended) * 2 >= len(ended)
        agreeing = [one for one in ended if one.ok is ok]
        whole = [one for one in agreeing if not one.early]
        cost = cost_of(whole or agreeing, self.kinds, self.cores)
        early = [one.seconds for one in agreeing if one.early]
        typical = sorted(whole or agreeing, key=lambda one: one.seconds)[len(whole or agreeing) // 2]
        scale = cost.seconds / max(typical.seconds, LEAST_SECONDS)
        if not whole:
            cost = Cost(max(cost.seconds, self._usual(kind, digest).seconds), cost.cores)
        return Piece(
            seconds=cost.seconds,
            cores=cost.cores,
            ok=ok,
            told=tuple((min(after * scale, cost.seconds), failure) for after, failure in typical.told),
            doomed=min(median(early), cost.seconds * AT_END) if early else None,
            verdict=typical.verdict,
        )

    def _assumed(self, cut_short: Sequence[Sample], kind: str, digest: str, *, passes: bool) -> Piece:
        usual = self._usual(kind, digest)
        lasted = (one.seconds if one.busy <= BUSY * self.cores else one.cpu_seconds / usual.cores for one in cut_short)
        return Piece(max(usual.seconds, *lasted, 0.0), usual.cores, passes, assumed=True)

    def _usual(self, kind: str, digest: str) -> Cost:
        """What the same command took elsewhere, else the median of its kind."""
        same = self.commands.get(digest)
        if same:
            return cost_of(same, self.kinds, self.cores)
        return self.kinds.get(kind) or Cost(_KIND_SECONDS.get(kind, BASE_SECONDS), 1.0)


def _refused(node: str, side: str, samples: Sequence[Sample]) -> bool:
    """Whether a side was there when the work was run at its own node."""
    there = min((one.end for one in samples if one.node == side and one.ok), default=math.inf)
    return any(one.node == node and not one.grafted and one.start >= there for one in samples)


def _digest(work: Work) -> str:
    """Of the real work, see `bench.journals.plain_recipe`."""
    match work:
        case BaseRef():
            return work.digest
        case Step():
            return work.run
        case Check():
            return work.step.run


_KIND_SECONDS: Mapping[str, float] = {kind.value: seconds for kind, seconds in KIND_SECONDS.items()}


def _merged(proposals: Iterable[Proposal]) -> list[Proposal]:
    """Each candidate once by what it repairs and how, with its mean odds and least delay, in order of entry."""
    found: dict[tuple[str, ...], list[Proposal]] = {}
    for one in proposals:
        made = (word for repair in one.repairs for word in (repair.failure.key, repair.name))
        found.setdefault((one.of.digest if one.of else "", one.candidate.recipe.digest, *made), []).append(one)
    return [_middle(some) for some in found.values()]


def _middle(some: Sequence[Proposal]) -> Proposal:
    candidate = some[0].candidate.model_copy(update={"prior": fmean(one.candidate.prior for one in some)})
    at, delay = min(one.at for one in some), min(one.delay for one in some)  # what took longer had other reasons
    return replace(some[0], candidate=candidate, at=at, delay=delay)


def _later(roots: Iterable[Proposal]) -> list[tuple[float, Sequence[Candidate]]]:
    """Candidates on bases that had to be made first: together those that came together."""
    found: dict[str, list[Proposal]] = {}
    for one in roots:
        if one.at > 0:
            found.setdefault(one.candidate.recipe.base.digest, []).append(one)
    return [(min(one.delay for one in some), [one.candidate for one in some]) for some in found.values()]


def _grouped(children: Iterable[Proposal]) -> dict[str, list[Proposal]]:
    found: dict[str, list[Proposal]] = {}
    for one in children:
        found.setdefault(one.of.digest if one.of else "", []).append(one)
    return {of: sorted(some, key=lambda one: -one.candidate.prior) for of, some in found.items()}


def _foretold(told: Iterable[Foretold]) -> dict[str, list[Foretold]]:
    """By Recipe, each failure once, with medians over the recordings."""
    found: dict[tuple[str, str, int], list[Foretold]] = {}
    for one in told:
        found.setdefault((one.recipe, one.failure.key, one.place), []).append(one)
    merged: dict[str, list[Foretold]] = {}
    for (recipe, _, _), some in found.items():
        one = replace(some[0], probability=median(x.probability for x in some), delay=median(x.delay for x in some))
        merged.setdefault(recipe, []).append(one)
    return merged
