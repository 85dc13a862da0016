"""How a race runs in a recorded world: its work, the reading of its output, its repairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import anyio

from bench.journals import Foretold, Proposal
from bench.simulated import Tally
from specbuild.cures import Made
from specbuild.events import RepairMade, Silent
from specbuild.execution import FORK_FROM, Execution, Foresight
from specbuild.failures import Failure
from specbuild.field import Field, Runner
from specbuild.mending import (
    LEAST_PRIOR,
    MORE_TO_COME,
    MOST_CANDIDATES,
    MOST_FAILURES,
    MOST_MENDED,
    MOST_REPAIRS,
    SPREADS,
    TELLING,
)
from specbuild.recipe import BaseRef, Check, Recipe, Step, checkpoint_key, checkpoint_root
from specbuild.repairs import Repair
from specbuild.sandbox.contract import Checkpoint, Command, Completed, LineSink, Sandbox
from specbuild.sites import node_at, place_alike, place_of
from specbuild.strategies import odds
from specbuild.testing.cpu import Cpu
from specbuild.testing.fakes import FakeBackend, Script
from specbuild.tree import Edge, Entry, Work
from specbuild.trials import Trials
from specbuild.verify.verdict import Verdict

STATE = "/state"
"""Where a sandbox keeps the name of its node."""


GRAFT_SECONDS = 0.05
"""Of a graft, where none was recorded: it compares names."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What a piece of work does at its node."""

    seconds: float
    """If it has the CPU to itself."""
    cores: float
    ok: bool
    told: tuple[tuple[float, Failure], ...] = ()
    """What its output tells of, each after so many seconds."""
    doomed: float | None = None
    """Seconds after which so many tests have failed that it cannot pass any more."""
    verdict: Verdict | None = None
    assumed: bool = False
    """Whether no recording tells how it ends."""


@dataclass(frozen=True, slots=True)
class Graft:
    """What is grafted onto a state, and how long that takes."""

    node: str
    """To which it leads."""
    seconds: float


def plain(recipe: Recipe) -> Recipe:
    """Without what keeps its checkpoints apart from those of others."""
    steps = tuple(_plain(step) for step in recipe.steps)
    return recipe.model_copy(update={"steps": steps})


def _plain(step: Step) -> Step:
    return step.model_copy(update={"env": ()})


class RecordedReader:
    """Takes `FAIL n` for the failure of that number, as it comes; `END n` when the output has ended."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        self._failures = failures
        self._late: list[Failure] = []
        self._found: set[str] = set()

    def feed(self, line: str) -> Iterable[Failure]:
        """The failure that the line tells of."""
        word, _, number = line.partition(" ")
        if word == "END":
            self._late.append(self._failures[int(number)])
        return self._new([self._failures[int(number)]] if word == "FAIL" else [])

    def finish(self) -> Iterable[Failure]:
        """What showed at the end."""
        return self._new(self._late)

    def _new(self, failures: Iterable[Failure]) -> list[Failure]:
        new = [failure for failure in failures if failure.key not in self._found]
        self._found |= {failure.key for failure in new}
        return new


class RecordedBackend(FakeBackend):
    """Keeps names of nodes in place of files, and grafts what was grafted, or never refused, in the recordings."""

    def __init__(self, script: Script, cpu: Cpu, grafts: Mapping[tuple[str, str], Graft]) -> None:
        """`grafts` are by the nodes of the state and of the side."""
        super().__init__(script, cpu=cpu)
        self._grafts = grafts

    async def graft(self, onto: Checkpoint, side: Checkpoint, key: str) -> Checkpoint | None:
        """The Checkpoint `key`, after a while; None if it was refused."""
        made = self._grafts.get((self._node(onto), self._node(side)))
        if made is None:
            return None
        await anyio.sleep(made.seconds)
        return self.store(key, onto, {STATE: made.node.encode()})

    def _node(self, checkpoint: Checkpoint) -> str:
        return self.files[checkpoint.key][STATE].decode()


class RecordedWorkshop:
    """Does the work of nodes; the backend's script tells what comes of each."""

    def __init__(
        self, backend: FakeBackend, pieces: Mapping[str, Piece], checks: Mapping[tuple[str, str], str]
    ) -> None:
        """`checks` names the node of a Check by its parent and its digest."""
        self._backend = backend
        self._pieces = pieces
        self._checks = checks
        self.tally = Tally()

    async def provide(self, base: BaseRef) -> Checkpoint:
        """The base takes what it took when it was in the cache."""
        node = checkpoint_root(base)
        await anyio.sleep(self._pieces[node].seconds)
        return self._backend.store(node, None, {STATE: node.encode()})

    async def run_step(self, sandbox: Sandbox, step: Step, *, on_line: LineSink, log: Path | None) -> Completed:
        """Do what was recorded of the Step in this state."""
        del log
        return await self._run(sandbox, checkpoint_key(await _state(sandbox), _plain(step)), on_line)

    async def verify(self, sandbox: Sandbox, check: Check, *, on_line: LineSink, log: Path | None) -> Verdict:
        """The verdict that was recorded."""
        del log
        node = self._checks[await _state(sandbox), check.digest]
        await self._run(sandbox, node, on_line)
        piece = self._pieces[node]
        return piece.verdict or Verdict(level=check.level, ok=piece.ok, reason="assumed", passed=1)

    async def _run(self, sandbox: Sandbox, node: str, on_line: LineSink) -> Completed:
        began = anyio.current_time()
        try:
            return await sandbox.run(Command((node,)), on_line=on_line)
        finally:
            self.tally.add(anyio.current_time() - began, assumed=self._pieces[node].assumed)


async def _state(sandbox: Sandbox) -> str:
    return (await sandbox.read_file(STATE)).decode()


class RecordedMender:
    """Repairs candidates as they were repaired in some recording, by the rules of `specbuild.mending.Mender`."""

    def __init__(
        self,
        field: Field,
        failures: Sequence[Failure],
        children: Mapping[str, Sequence[Proposal]],
        foretold: Mapping[str, Sequence[Foretold]],
    ) -> None:
        """`failures` are those that output names by number; `children` and `foretold` are by the digest of a Recipe."""
        self._field = field
        self._failures = failures
        self._children = children
        self._foretold = foretold
        self._trials = Trials(Silent(), anyio.current_time, None)
        self._began = anyio.current_time()

    def reader(self) -> RecordedReader:
        """A new reader."""
        return RecordedReader(self._failures)

    async def mend(
        self, edge: Edge, broken: Sequence[Entry], failures: Sequence[Failure], *, foreseen: bool
    ) -> list[Entry]:
        """The repaired candidates, likeliest first."""
        known = [failure for failure in failures if not failure.infrastructure][:MOST_FAILURES]
        if not known or isinstance(edge.work, BaseRef):
            return []
        entries: list[Entry] = []
        for entry in sorted(broken, key=lambda entry: -entry.prior)[:MOST_MENDED]:
            found = place_of(entry.recipe, edge.key)
            place = len(entry.recipe.steps) if found is None else found
            entries += await self._mended(entry, known, place, edge.key if foreseen else None, foreseen=foreseen)
        return entries

    async def foresee(self, entry: Entry) -> Foresight:
        """What was foreseen of the candidate."""
        found = self._foretold.get(self._digest(entry), ())
        delay = max((one.delay for one in found), default=0.0)
        await anyio.sleep(max(self._began + delay - anyio.current_time(), 0.0))
        kept = math.prod(1 - one.probability for one in found if one.probability >= TELLING)
        likely = [one for one in found if one.probability >= FORK_FROM]
        places = {one.place for one in likely}
        against = node_at(entry.recipe, min(places)) if len(places) == 1 else None
        told = [one.place for one in found if one.probability >= TELLING]
        until = node_at(entry.recipe, max(told)) if told else None
        failures = [one.failure for one in likely]
        entries = await self._mended(entry, failures, max(places, default=0), against, foreseen=True) if likely else []
        return Foresight(entries, entry.prior * kept if told else None, until)

    async def spread(self, entry: Entry, work: Work, failures: Sequence[Failure]) -> Foresight:
        """What a live candidate will run into, since such work has failed so in another branch."""
        had = {repair.failure.key for repair in self._field.runners[entry.id].repairs}
        new = [one for one in failures if one.key not in had and not one.infrastructure][:MOST_FAILURES]
        place = place_alike(entry.recipe, work)
        if place is None or not new:
            return Foresight()
        node = node_at(entry.recipe, place)
        entries = await self._mended(entry, new, place, node, foreseen=True)
        return Foresight(entries, entry.prior * (1 - SPREADS), node) if entries else Foresight()

    def observe(self, done: Execution) -> None:
        """Judge the repairs of the candidates that an execution was for."""
        self._trials.observe(done)

    def give_up(self, entry: Entry) -> None:
        """It may be wanted again."""
        self._field.give_up(entry.id)

    def _digest(self, entry: Entry) -> str:
        return plain(entry.recipe).digest

    async def _mended(
        self, entry: Entry, failures: Sequence[Failure], place: int, against: str | None, *, foreseen: bool
    ) -> list[Entry]:
        """What cures some of the failures and nothing else; it comes after as long as it took."""
        runner = self._field.runners[entry.id]
        if len(runner.repairs) >= MOST_REPAIRS:
            return []
        fit = [child for child in self._children.get(self._digest(entry), ()) if self._fits(child, failures)]
        fit = [child for child in fit if not (foreseen and _moves(child, entry.recipe))]
        fit = list(_at(place, plain(entry.recipe), fit))
        if fit:
            await anyio.sleep(median(child.delay for child in fit))
        return list(self._entered(runner, fit, place, against, foreseen=foreseen))

    def _fits(self, child: Proposal, failures: Sequence[Failure]) -> bool:
        told = {failure.key for failure in failures}
        return all(
            repair.failure.key in told and self._trials.worked(repair.failure.key, repair.name) is not False
            for repair in child.repairs
        )

    def _entered(
        self, runner: Runner, fit: Sequence[Proposal], place: int, against: str | None, *, foreseen: bool
    ) -> Iterator[Entry]:
        for child in fit:
            candidate = child.candidate
            if not _moves(child, runner.candidate.recipe):
                candidate = candidate.model_copy(update={"prior": odds.clamp(self._prior(runner, child.repairs))})
            if candidate.prior < LEAST_PRIOR or len(self._field.runners) >= MOST_CANDIDATES:
                continue
            told = tuple(repair.model_copy(update={"foreseen": foreseen}) for repair in child.repairs)
            entry = self._field.enter_repaired(runner.id, candidate, told, against)
            if entry is not None:
                made = list(_made(child, runner.candidate.recipe, entry.recipe, place))
                self._trials.follow(entry.id, entry.recipe, runner.id, made)
                yield entry

    def _prior(self, runner: Runner, new: Sequence[RepairMade]) -> float:
        """Of the strategy, times that of every repair which has not shown yet that it works."""
        prior = self._field.candidates[runner.id.partition(".")[0]].prior
        for repair in (*runner.repairs, *new):
            worked = self._trials.worked(repair.failure.key, repair.name)
            prior *= MORE_TO_COME * (1.0 if worked else repair.probability)
        return prior


def _moves(child: Proposal, recipe: Recipe) -> bool:
    return child.candidate.recipe.base != recipe.base


def _at(place: int, recipe: Recipe, children: Sequence[Proposal]) -> Iterator[Proposal]:
    """Of the children those that no longer run the work at a place as it was; of the same repairs the last place."""
    node = node_at(recipe, place)
    latest: dict[tuple[str, ...], Proposal] = {}
    for child in children:
        names = tuple(repair.name for repair in child.repairs)
        other = child.candidate.recipe
        if place_of(other, node) is None and (
            names not in latest or _since(recipe, other) > _since(recipe, latest[names].candidate.recipe)
        ):
            latest[names] = child
    yield from latest.values()


def _since(before: Recipe, after: Recipe) -> int:
    """The place at which one Recipe leaves the other."""
    pairs = zip(before.steps, after.steps, strict=False)
    return next((n for n, (old, new) in enumerate(pairs) if old != new), min(len(before.steps), len(after.steps)))


def _made(child: Proposal, before: Recipe, after: Recipe, place: int) -> Iterator[Made]:
    """The repairs of a child as `Trials` follows them: they begin where its Recipe leaves the other one."""
    since = _since(plain(before), plain(after))
    grown = len(after.steps) - len(before.steps)
    for number, one in enumerate(child.repairs):
        repair = Repair(name=one.name, title=one.title, why=one.why, edits=(), probability=one.probability)
        yield Made(one.failure, repair, after, min(since, place), place + grown, grown if number == 0 else 0)
