"""Many cores by simulation: the real engine on a virtual clock, over random repositories.

    python -m bench simulate [--repositories N] [--modes NAME,...] [--machines CORES/SLOTS,...] [--seed N]
                             [--from RACE.json] [--json FILE] [--markdown FILE]

The race, the scheduler and the tree are those that build; commands, their failures, repairs and predictions are drawn
(`bench.worlds`), the same for every mode. Commands share the cores by the weights that the race gives them. The modes
are those of `python -m bench race`. `oracle` is the quickest path that works, known beforehand and run alone.

`regret` is the mean time over the oracle's; `gap closed` is (sequential - mode) ÷ (sequential - oracle) of the mean
seconds; `slower` is the share of repositories that take over 5% longer than in the mode `sequential`, or `checkpoint`,
on as many cores; `CPU` is all CPU time over the oracle's. `--from` takes the durations of steps from a race's JSON.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median

import anyio

from bench.worlds import World, WorldMender, world
from specbuild.breadth import Breadth
from specbuild.durations import KIND_SECONDS
from specbuild.events import Event
from specbuild.field import Field
from specbuild.recipe import StepKind
from specbuild.speculate import RaceResult, race
from specbuild.testing.clock import VirtualLoop
from specbuild.testing.cpu import Cpu
from specbuild.testing.fakes import FakeBackend, ScriptWorkshop

THINKING_SECONDS = 10.0
"""Of an agent before each command."""

MACHINES = ("1/1", "2/2", "2/3", "2/4", "4/6", "16/16", "16/24")
SLOWER = 1.05


@dataclass(frozen=True)
class Mode:
    """How a repository is built."""

    breadth: Breadth
    ahead: bool
    checkpoints: bool = True


MODES: Mapping[str, Mode] = {
    "sequential": Mode(Breadth.RECIPE, ahead=False, checkpoints=False),
    "checkpoint": Mode(Breadth.RECIPE, ahead=False),
    "strategy": Mode(Breadth.ALL, ahead=False),
    "command": Mode(Breadth.STRATEGY, ahead=True),
    "full": Mode(Breadth.ALL, ahead=True),
}


@dataclass(frozen=True)
class Machine:
    """What the commands run on."""

    cores: int
    slots: int

    @classmethod
    def parse(cls, text: str) -> Machine:
        """From `2/3`: cores, slots."""
        cores, _, slots = text.partition("/")
        return cls(int(cores), int(slots or cores))

    def __str__(self) -> str:
        return f"{self.cores}/{self.slots}"


@dataclass(frozen=True)
class Run:
    """A repository built in one mode on one machine."""

    seconds: float
    committed: bool
    cpu_seconds: float
    commands: int


class Ignore:
    """A reporter that keeps nothing."""

    def emit(self, event: Event) -> None:
        """Nothing."""


async def build(world: World, mode: Mode, machine: Machine) -> RaceResult:
    """Race the world's candidates; on a virtual loop only."""
    backend = FakeBackend(world.script, cpu=Cpu(machine.cores))
    reporter = Ignore()
    field = Field(anyio.current_time, reporter, lambda recipe: None, salt=lambda name: "" if mode.checkpoints else name)
    return await race(
        field.enter(world.candidates),
        backend,
        ScriptWorkshop(backend),
        slots=1 if mode.breadth is Breadth.RECIPE else machine.slots,
        reporter=reporter,
        mender=WorldMender(world, field),
        ahead=mode.ahead,
        breadth=mode.breadth,
        clock=anyio.current_time,
    )


def run(world: World, mode: Mode, machine: Machine) -> Run:
    """Build a world and sum up."""
    result = anyio.run(build, world, mode, machine, backend_options={"loop_factory": VirtualLoop})
    return Run(
        seconds=result.seconds,
        committed=result.winner is not None,
        cpu_seconds=sum(done.cpu_seconds for done in result.executions),
        commands=sum(done.completed is not None or done.verdict is not None for done in result.executions),
    )


Results = dict[str, dict[str, list[Run]]]
"""Machine → mode → one run a repository."""


def measure(worlds: Sequence[World], modes: Sequence[str], machines: Sequence[Machine]) -> Results:
    """Every world in every mode on every machine; sequential modes are the same on all of them."""
    results: Results = {}
    single = {name: [run(world, MODES[name], Machine(1, 1)) for world in worlds] for name in modes if _is_single(name)}
    for machine in machines:
        results[str(machine)] = {
            name: single[name] if name in single else [run(world, MODES[name], machine) for world in worlds]
            for name in modes
        }
    return results


def _is_single(name: str) -> bool:
    return MODES[name].breadth is Breadth.RECIPE


Figures = dict[str, float | None]


def summary(results: Results, oracle: Sequence[float]) -> dict[str, dict[str, Figures]]:
    """Machine → mode → figures."""
    return {machine: {name: _figures(runs[name], runs, oracle) for name in runs} for machine, runs in results.items()}


def _figures(mine: Sequence[Run], runs: Mapping[str, Sequence[Run]], oracle: Sequence[float]) -> Figures:
    """Of the repositories that every mode commits; success is over all."""
    common = [n for n in range(len(oracle)) if all(some[n].committed for some in runs.values())]
    mean, best = fmean(mine[n].seconds for n in common), fmean(oracle[n] for n in common)
    figures: Figures = {
        "success": fmean(one.committed for one in mine),
        "mean_seconds": mean,
        "median_seconds": median(mine[n].seconds for n in common),
        "regret": mean / best,
        "cpu": fmean(mine[n].cpu_seconds for n in common) / best,
    }
    for name in ("sequential", "checkpoint"):
        if name in runs:
            ratios = [mine[n].seconds / runs[name][n].seconds for n in common]
            figures[f"slower_than_{name}"] = fmean(ratio > SLOWER for ratio in ratios)
            figures[f"worst_to_{name}"] = max(ratios)
            slow = fmean(runs[name][n].seconds for n in common)
            figures["gap_closed" if name == "sequential" else "gap_closed_of_checkpoint"] = (slow - mean) / (
                slow - best
            )
    if "sequential" in runs:
        thinking = fmean(
            one.seconds + THINKING_SECONDS * one.commands for one in (runs["sequential"][n] for n in common)
        )
        figures["less_than_thinking"] = 1 - mean / thinking
    return figures


def markdown(table: Mapping[str, Mapping[str, Figures]]) -> str:
    """A row a machine and mode."""
    head = ("cores/slots", "mode", "success", "mean s", "regret", "gap closed", "of checkpoint's")
    more = ("slower than sequential, worst", "slower than checkpoint, worst", "CPU")
    lines = [f"| {' | '.join((*head, *more))} |", "|---" * len((*head, *more)) + "|"]
    for machine, modes in table.items():
        for name, row in modes.items():
            cells = [_percent(row["success"]), _number(row["mean_seconds"]), _number(row["regret"])]
            cells += [_percent(row.get("gap_closed")), _percent(row.get("gap_closed_of_checkpoint"))]
            for rival in ("sequential", "checkpoint"):
                share = _percent(row.get(f"slower_than_{rival}"))
                cells.append(f"{share}, {_number(row.get(f'worst_to_{rival}'))}")
            lines.append(f"| {machine} | {name} | {' | '.join(cells)} | {_number(row['cpu'])} |")
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def medians(race_file: Path) -> dict[StepKind, float]:
    """Seconds by kind of step from a race's JSON: medians of its `kinds`; else all in proportion to its oracle."""
    projects = json.loads(race_file.read_text())["projects"].values()
    seen: dict[str, list[float]] = {}
    for runs in projects:
        for one in (one for some in runs.values() for one in some):
            for kind, seconds in one.get("kinds", {}).items():
                seen.setdefault(kind, []).extend(seconds)
    if seen:
        return {kind: median(seen.get(kind) or [usual]) for kind, usual in KIND_SECONDS.items()}
    oracle = [one["seconds"] for runs in projects for one in runs["oracle"]]
    scale = median(oracle) / sum(KIND_SECONDS.values())
    return {kind: usual * scale for kind, usual in KIND_SECONDS.items()}


def main(arguments: list[str]) -> int:
    """Simulate and print."""
    parser = argparse.ArgumentParser(
        prog="python -m bench simulate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repositories", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--machines", default=",".join(MACHINES))
    parser.add_argument("--from", dest="race", type=Path, help="the JSON of `python -m bench race`")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args(arguments)
    kinds = medians(given.race) if given.race else KIND_SECONDS
    worlds = [world(given.seed * 1_000_000 + number, kinds) for number in range(given.repositories)]
    machines = [Machine.parse(text) for text in given.machines.split(",")]
    results = measure(worlds, given.modes.split(","), machines)
    oracle = [one.oracle() for one in worlds]
    table = summary(results, oracle)
    text = markdown(table)
    print(text)
    if given.json:
        runs = {
            machine: {name: [asdict(one) for one in some] for name, some in modes.items()}
            for machine, modes in results.items()
        }
        whole = {"schema_version": 1, "seed": given.seed, "machines": table, "oracle_seconds": oracle, "runs": runs}
        given.json.write_text(json.dumps(whole, indent=2) + "\n")
    if given.markdown:
        given.markdown.write_text(text + "\n")
    return 0
