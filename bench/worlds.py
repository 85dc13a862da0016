"""Random repositories for `bench.simulate`: strategies that share prefixes, failures and their repairs, predictions.

A world is made from a seed. Its commands take log-normal times. What can go wrong is a `Fault` of a command: all of
its output's tellings, its repairs and which of them work are drawn beforehand, so that every mode meets the same world.
Predictions are calibrated but for noise: a fault that is foreseen with probability q is there with probability q.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import anyio

from bench.simulated import Stage, Tally
from specbuild.durations import KIND_SECONDS
from specbuild.events import FailureSeen, RepairMade, Reporter
from specbuild.execution import FORK_FROM, Execution, Foresight, title
from specbuild.execution import kind as kind_of
from specbuild.failures import Failure, MissingCommand
from specbuild.field import Field, Runner
from specbuild.mending import (
    LEAST_PRIOR,
    MORE_TO_COME,
    MOST_CANDIDATES,
    MOST_MENDED,
    MOST_REPAIRS,
    REPAIR_SECONDS,
    SPREADS,
    TELLING,
)
from specbuild.outcome import Outcome
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.sites import node_at, place_alike, work_at
from specbuild.strategies import odds
from specbuild.strategies.contract import Candidate
from specbuild.testing.cpu import Cpu
from specbuild.testing.fakes import Behaviour, FakeBackend, Files, ScriptWorkshop
from specbuild.testing.mending import ScriptReader
from specbuild.tree import Edge, Entry, Work

SPREAD = 0.8
"""Of the logarithm of what a kind of step takes in a repository: for a median of 10 s, 4.5 to 22 s in two of three."""

SPREAD_WITHIN = 0.3
"""The same from one command of that kind to another within a repository."""

FIX_SECONDS = 8.0
"""Median of a repair's own step: a few packages."""

TOLD_ON_THE_WAY = 0.7
"""Share of faults that output tells of while the step runs; of the others it tells at the end."""

FALSE_TELLINGS = 0.06
"""Probability that a command which succeeds tells of a failure on the way."""

FORESEEN = 0.6
"""Share of faults, and of others that might have been there, that facts tell of before anything runs."""

CHANCES = {"system": 0.03, "toolchain": 0.03, "install": 0.2, "build": 0.15, "test": 0.3}
"""Mean probability that something may go wrong, by kind of command."""

COMMON = 0.7
"""Share of that which is common to all strategies of a repository, such as a library that its build needs."""

_MARK, _DEPENDENCIES = "/fixed/", "/dependencies"


@dataclass(frozen=True, slots=True)
class Way:
    """A repair of a fault."""

    name: str
    probability: float
    """That it works, as the engine is told."""
    works: bool

    @property
    def command(self) -> str:
        return f"fix {self.name}"


@dataclass(frozen=True, slots=True)
class Fault:
    """What a command fails for until a repair that works has run."""

    name: str
    ways: tuple[Way, ...]
    """Likeliest first."""
    after: float
    """Share of the command's time after which it fails."""
    told: float | None
    """Share of that after which output tells; None: at its end."""


@dataclass(frozen=True, slots=True)
class Threat:
    """What may go wrong with a command, and does so or not."""

    fault: Fault
    real: bool
    foreseen: float | None
    """The probability that is told before anything runs; None if nothing is told."""


@dataclass(frozen=True)
class World:
    """A repository, and all that would happen to it."""

    seed: int
    candidates: tuple[Candidate, ...]
    seconds: Mapping[str, float]
    """Of each command, if it comes to its end."""
    threats: Mapping[str, tuple[Threat, ...]]
    """By command; those of tests by command and dependencies, see `place`."""
    false_tellings: Mapping[str, tuple[float, Fault]]
    """Command → share of its time after which it tells of a failure that does not come."""

    @property
    def ways(self) -> Mapping[str, tuple[Way, ...]]:
        """Fault → its repairs."""
        told = [fault for _, fault in self.false_tellings.values()]
        real = [threat.fault for threats in self.threats.values() for threat in threats]
        return {fault.name: fault.ways for fault in (*told, *real)}

    def script(self, command: str, files: Files) -> Behaviour:
        """What a command does where these files are."""
        seconds = self.seconds[command]
        if command.startswith("fix "):
            way = next(w for ways in self.ways.values() for w in ways if w.command == command)
            return Behaviour(seconds, writes={_MARK + command.split()[1].partition("#")[0]: b""} if way.works else {})
        dependencies = command if command.startswith("install") else files.get(_DEPENDENCIES, b"").decode()
        for threat in self.threats.get(place(command, dependencies), ()):
            fault = threat.fault
            if threat.real and _MARK + fault.name not in files:
                return _failing(fault, seconds)
        says: tuple[tuple[float, str], ...] = ()
        if command in self.false_tellings:
            after, fault = self.false_tellings[command]
            says = ((after * seconds, f"FAIL {fault.name}"),) if _MARK + fault.name not in files else ()
        writes = {_DEPENDENCIES: command.encode()} if command.startswith("install") else {}
        return Behaviour(seconds, says=says, writes=writes)

    @property
    def name(self) -> str:
        return f"world {self.seed}"

    @property
    def before(self) -> float:
        """Its races begin at once."""
        return 0.0

    @property
    def later(self) -> Sequence[tuple[float, Sequence[Candidate]]]:
        """All candidates are there from the start."""
        return ()

    def stage(self, cpu: Cpu, field: Field, reporter: Reporter) -> Stage:
        """For one race."""
        backend = FakeBackend(self.script, cpu=cpu)
        return Stage(backend, ScriptWorkshop(backend), WorldMender(self, field, reporter), Tally())

    def alone(self, recipe: Recipe, cores: float = 1) -> float:
        """Seconds of a Recipe's commands, each of which keeps one core busy."""
        del cores
        return sum(self.seconds[command] for command in commands(recipe))

    def is_known(self, recipe: Recipe) -> bool:
        """All is drawn beforehand."""
        del recipe
        return True

    def oracle(self, cores: float = 1) -> float:
        """Seconds of the quickest path that works, run alone; infinite if there is none."""
        del cores
        return min(self._repaired(candidate.recipe) for candidate in self.candidates)

    def _repaired(self, recipe: Recipe) -> float:
        """Seconds of a Recipe with the quickest repairs that it needs."""
        total, fixed, dependencies = 0.0, set[str](), ""
        for command in commands(recipe):
            dependencies = command if command.startswith("install") else dependencies
            for threat in self.threats.get(place(command, dependencies), ()):
                if threat.real and threat.fault.name not in fixed:
                    fixed.add(threat.fault.name)
                    working = [self.seconds[way.command] for way in threat.fault.ways if way.works]
                    total += min(working, default=math.inf)
            total += self.seconds[command]
        return total


def commands(recipe: Recipe) -> list[str]:
    """Of all its work but the base."""
    return [*(step.run for step in recipe.steps), recipe.check.step.run]


def place(command: str, dependencies: str) -> str:
    """Names what a command runs into: tests and builds by what is installed, the others for themselves."""
    return f"{command} with {dependencies}" if command.startswith(("test", "build")) else command


def _failing(fault: Fault, seconds: float) -> Behaviour:
    taken = fault.after * seconds
    if fault.told is None:
        return Behaviour(taken, exit_code=1, output=(f"END {fault.name}",))
    return Behaviour(taken, exit_code=1, says=((fault.told * taken, f"FAIL {fault.name}"),))


def world(seed: int, medians: Mapping[StepKind, float] = KIND_SECONDS) -> World:
    """The world of that seed, one that can be set up; `medians` are seconds by kind of step."""
    for attempt in range(1000):
        made = _Maker(random.Random(f"{seed}.{attempt}"), medians).world(seed)
        if math.isfinite(made.oracle()):
            return made
    raise AssertionError("no world can be set up")


@dataclass
class _Maker:
    random: random.Random
    medians: Mapping[StepKind, float]
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    faults: int = 0
    scales: dict[StepKind | None, float] = field(default_factory=dict[StepKind | None, float])
    """Kind of step (None: repairs) → what it takes in this repository over the median."""

    def world(self, seed: int) -> World:
        threats: dict[str, tuple[Threat, ...]] = {}
        builds = self.random.random() < 0.6
        common = {kind: self._threat(chance * COMMON * self._around_one()) for kind, chance in CHANCES.items()}
        candidates: dict[str, Candidate] = {}
        for _ in range(self.random.randint(4, 6)):
            candidate = self._candidate(builds, common, threats)
            candidates.setdefault(candidate.recipe.digest, candidate)
        told = {command: self._false_telling() for command in self.seconds if self.random.random() < FALSE_TELLINGS}
        for ways in [t.fault.ways for ts in threats.values() for t in ts] + [f.ways for _, f in told.values()]:
            for way in ways:
                self._time(way.command, None)
        kinds = MappingProxyType(dict(sorted(self.seconds.items())))
        return World(seed, tuple(candidates.values()), kinds, threats, told)

    def _candidate(
        self, builds: bool, common: Mapping[str, Threat], threats: dict[str, tuple[Threat, ...]]
    ) -> Candidate:
        variant = self.random.choices((0, 1), (3, 1))[0]
        rows = [
            (StepKind.SYSTEM, f"system {variant}"),
            (StepKind.TOOLCHAIN, f"toolchain {self.random.randint(0, 1)}"),
            (StepKind.DEPENDENCIES, f"install {self.random.randint(0, 7)}"),
            *([(StepKind.BUILD, f"build {self.random.randint(0, 1)}")] if builds else []),
        ]
        test = f"test {self.random.randint(0, 1)}"
        steps = tuple(Step(kind=kind, run=command) for kind, command in rows)
        check = Check(level=Level.TESTS, runner="pytest", step=Step(kind=StepKind.TEST, run=test))
        base = BaseRef(name=f"base {variant}", digest=f"sha256:{variant}")
        recipe = Recipe(base=base, steps=steps, check=check)
        fine = self._dangers(recipe, common, threats)
        prior = min(0.95, max(0.05, fine + self.random.gauss(0, 0.15)))
        expected = sum(self.medians[kind] for kind, _ in rows) + self.medians[StepKind.TEST]
        for kind, command in (*rows, (StepKind.TEST, test)):
            self._time(command, kind)
        return Candidate(
            recipe=recipe, strategy=f"route {rows[2][1]}", prior=prior, expected_seconds=expected, reason="drawn"
        )

    def _dangers(self, recipe: Recipe, common: Mapping[str, Threat], threats: dict[str, tuple[Threat, ...]]) -> float:
        """Draw what may go wrong with the Recipe's commands; the probability that nothing does that nobody foresees."""
        fine, dependencies = 1.0, next(c for c in commands(recipe) if c.startswith("install"))
        for command in commands(recipe):
            kind = command.split()[0]
            key, chance = place(command, dependencies), CHANCES[kind]
            if key not in threats:
                threats[key] = common[kind], self._threat(chance * (1 - COMMON) * self._around_one())
            for threat in threats[key]:
                fine *= 1.0 if threat.foreseen is not None else 1 - chance / 2
        return fine

    def _around_one(self) -> float:
        return self.random.uniform(0.3, 1.7)

    def _threat(self, probability: float) -> Threat:
        """Of a fault that is there with that probability."""
        real = self.random.random() < probability
        told = min(0.95, max(0.05, probability + self.random.gauss(0, 0.1)))
        return Threat(self._fault(), real, told if self.random.random() < FORESEEN else None)

    def _fault(self) -> Fault:
        self.faults += 1
        name = f"f{self.faults}"
        chances = sorted(self.random.uniform(0.2, 0.95) for _ in range(self.random.choice((0, 1, 1, 2, 2, 3))))[::-1]
        ways = tuple(Way(f"{name}#{n}", chance, self.random.random() < chance) for n, chance in enumerate(chances))
        told = self.random.uniform(0.05, 0.95) if self.random.random() < TOLD_ON_THE_WAY else None
        return Fault(name, ways, self.random.uniform(0.3, 1.0), told)

    def _false_telling(self) -> tuple[float, Fault]:
        return self.random.uniform(0.05, 0.95), self._fault()

    def _time(self, command: str, kind: StepKind | None) -> None:
        if command in self.seconds:
            return
        scale = self.scales.setdefault(kind, math.exp(self.random.gauss(0, SPREAD)))
        middle = FIX_SECONDS if kind is None else self.medians[kind]
        self.seconds[command] = middle * scale * math.exp(self.random.gauss(0, SPREAD_WITHIN))


class WorldMender:
    """Repairs candidates in a world, by the rules of `specbuild.mending.Mender`, but from what the world knows."""

    def __init__(self, world: World, field: Field, reporter: Reporter) -> None:
        self._reporter = reporter
        self._ways = world.ways
        self._world = world
        self._field = field
        self._judged: dict[str, bool] = {}
        """Way → whether it worked, as far as this race has shown."""
        self._trials: dict[str, dict[str, str]] = {}
        """Candidate → its ways, each with the command that is to pass by it."""

    def reader(self) -> ScriptReader:
        """A new reader."""
        return ScriptReader()

    async def mend(
        self, edge: Edge, broken: Sequence[Entry], failures: Sequence[Failure], *, foreseen: bool
    ) -> list[Entry]:
        """The repaired candidates, likeliest first."""
        names = [failure.command for failure in failures if isinstance(failure, MissingCommand)]
        against, work = edge.key if foreseen else None, edge.work
        if isinstance(work, BaseRef) or not names:
            return []
        site = (work.step if isinstance(work, Check) else work).run
        best = sorted(broken, key=lambda entry: -entry.prior)[:MOST_MENDED]
        sites = [(site, name) for name in names]
        return [one for entry in best for one in self._mended(entry, sites, against, foreseen=foreseen)]

    async def foresee(self, entry: Entry) -> Foresight:
        """What facts tell of its commands."""
        threats = list(self._threats(entry.recipe))
        for site, fault, probability in threats:
            self._reporter.emit(_foreseen(entry, site, fault, probability))
        kept = math.prod(1 - q for _, _, q in threats if q >= TELLING)
        likely = [(site, fault.name) for site, fault, q in threats if q >= FORK_FROM]
        places = {commands(entry.recipe).index(site) for site, _ in likely}
        against = node_at(entry.recipe, places.pop()) if len(places) == 1 else None
        told = [commands(entry.recipe).index(site) for site, _, q in threats if q >= TELLING]
        until = node_at(entry.recipe, max(told)) if told else None
        entries = list(self._mended(entry, likely, against, foreseen=True))
        return Foresight(entries, entry.prior * kept if told else None, until)

    async def spread(self, entry: Entry, work: Work, failures: Sequence[Failure]) -> Foresight:
        """What a live candidate will run into, since such work has failed so in another branch."""
        runner = self._field.runners[entry.id]
        index = place_alike(entry.recipe, work)
        had = {repair.failure.key for repair in runner.repairs}
        new = [one.command for one in failures if isinstance(one, MissingCommand) and one.key not in had]
        if index is None or not new:
            return Foresight()
        site, key = commands(entry.recipe)[index], node_at(entry.recipe, index)
        entries = list(self._mended(entry, [(site, name) for name in new], key, foreseen=True))
        return Foresight(entries, entry.prior * (1 - SPREADS), key) if entries else Foresight()

    def observe(self, done: Execution) -> None:
        """Judge the repairs of the candidates that an execution was for."""
        if not done.is_telling or isinstance(done.work, BaseRef):
            return
        command = (done.work.step if isinstance(done.work, Check) else done.work).run
        failed = {failure.command for failure in done.failures if isinstance(failure, MissingCommand)}
        for name in done.candidates:
            for way, site in self._trials.get(name, {}).items():
                if site == command:
                    worked = done.outcome is Outcome.OK or way.partition("#")[0] not in failed
                    self._judged.setdefault(way, worked)

    def give_up(self, entry: Entry) -> None:
        """It may be wanted again."""
        self._field.give_up(entry.id)

    def _threats(self, recipe: Recipe) -> Iterator[tuple[str, Fault, float]]:
        dependencies = next(command for command in commands(recipe) if command.startswith("install"))
        for command in commands(recipe):
            for threat in self._world.threats.get(place(command, dependencies), ()):
                if threat.foreseen is not None:
                    yield command, threat.fault, threat.foreseen

    def _mended(
        self, entry: Entry, sites: Sequence[tuple[str, str]], against: str | None, *, foreseen: bool
    ) -> Iterator[Entry]:
        runner = self._field.runners[entry.id]
        if len(runner.repairs) >= MOST_REPAIRS:
            return
        for plan in self._plans(runner, sites):
            candidate = _carried_out(runner.candidate, plan, self._prior(runner, plan))
            if candidate.prior < LEAST_PRIOR or len(self._field.runners) >= MOST_CANDIDATES:
                continue
            made = tuple(_made(way, foreseen=foreseen) for _, way in plan)
            repaired = self._field.enter_repaired(runner.id, candidate, made, against)
            if repaired is not None:
                new = {way.name: site for site, way in plan}
                self._trials[repaired.id] = self._trials.get(runner.id, {}) | new
                yield repaired

    def _prior(self, runner: Runner, plan: Sequence[tuple[str, Way]]) -> float:
        """Of the strategy, times that of every repair which has not shown yet that it works."""
        prior = self._field.candidates[runner.id.partition(".")[0]].prior
        chances = [(repair.name, repair.probability) for repair in runner.repairs]
        for name, probability in [*chances, *((way.name, way.probability) for _, way in plan)]:
            prior *= MORE_TO_COME * (1.0 if self._judged.get(name) else probability)
        return prior

    def _plans(self, runner: Runner, sites: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, Way]]]:
        """All failures repaired in the likeliest way; then rivals for the first; then the first alone."""
        taken = {repair.name for repair in runner.repairs}
        options = [
            (site, ways)
            for site, name in sites
            if (ways := [w for w in self._ways[name] if w.name not in taken and self._judged.get(w.name, True)])
        ]
        if not options:
            return
        chosen = [(site, ways[0]) for site, ways in options]
        yield chosen
        site, ways = options[0]
        for rival in ways[1:]:
            yield [(site, rival), *chosen[1:]]
        if len(chosen) > 1:
            yield chosen[:1]


def _carried_out(candidate: Candidate, plan: Sequence[tuple[str, Way]], prior: float) -> Candidate:
    steps = list(candidate.recipe.steps)
    for site, way in plan:
        at = next((n for n, step in enumerate(steps) if step.run == site), len(steps))
        steps.insert(at, Step(kind=StepKind.SYSTEM, run=way.command))
    return candidate.model_copy(
        update={
            "recipe": candidate.recipe.model_copy(update={"steps": tuple(steps)}),
            "prior": odds.clamp(prior),
            "expected_seconds": candidate.expected_seconds + REPAIR_SECONDS * len(plan),
        }
    )


def _foreseen(entry: Entry, site: str, fault: Fault, probability: float) -> FailureSeen:
    work = work_at(entry.recipe, commands(entry.recipe).index(site))
    failure = MissingCommand(command=fault.name, evidence="")
    return FailureSeen(
        at=anyio.current_time(),
        node="",
        title=title(work),
        step_kind=kind_of(work),
        candidates=(entry.id,),
        failure=failure,
        words=str(failure),
        probability=probability,
    )


def _made(way: Way, *, foreseen: bool) -> RepairMade:
    failure = MissingCommand(command=way.name.partition("#")[0], evidence="")
    return RepairMade(
        failure=failure, name=way.name, title=way.command, why="", probability=way.probability, foreseen=foreseen
    )
