"""Many cores by simulation: the real engine on a virtual clock, over recorded or random repositories.

    python -m bench simulate [--traces FOLDER | --repositories N] [--modes NAME,...] [--machines CORES/SLOTS,...]
                             [--thinking DISTRIBUTION] [--from RACE.json] [--json FILE] [--markdown FILE] [--plot FILE]

The race, the scheduler and the tree are those that build. With `--traces`, repositories are those whose builds
`python -m bench race --traces FOLDER` recorded (`bench.recorded`): what was proposed, what ran and how it ended, what
output and foresight told, which repairs came of it. Else commands, failures, repairs and predictions are drawn
(`bench.worlds`). They are the same for every mode. Commands share the cores by the weights that the race gives them.
The modes are those of `python -m bench race`. `oracle` is the quickest path that works, known beforehand and run alone;
of recorded repositories, the quickest Recipe that won, really or in simulation.

`regret` is the mean time over the oracle's; `gap closed` is (sequential - mode) ÷ (sequential - oracle) of the mean
seconds; `slower` is the share of repositories that take over 5% longer than in the mode `sequential`, or `checkpoint`,
on as many cores; `CPU` is all CPU time over the oracle's; `assumed` is the share of all seconds of work, cancelled work
included, of which no recording tells how it ends, and the share of repositories whose winner has such work. Whether an
unseen check passes is drawn by the odds of its Recipe; with `--unseen fails` none does.

A simulation of recorded repositories is also held against the real builds, each at its own cores and slots.

With `--thinking` a model makes candidates and repairs, each of which takes `10` seconds, `uniform:5,20` (from, to) or
`lognormal:10,0.5` (median, deviation of the logarithm): an agent that thinks before each command, in the modes
`sequential` and `checkpoint`, is held against one that thinks while commands run, in the mode `full`: its race begins
after a thought, repairs of a failure come a thought after that is first told of.

`--from` takes from a race's JSON what belongs to its journals (the number of cores, the time limit), or the durations
of steps for random repositories. With a limit, what is not committed by then counts with it, if some mode commits it;
without one, only repositories count that every mode commits.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, median

from bench import validation
from bench.recorded import RecordedWorld, read_worlds
from bench.simulated import MODES, Conditions, Machine, Run, Simulated, run
from bench.tables import Figures, Results, drawn, markdown, number, oracles, percent, summary
from bench.thinking import Latency
from bench.worlds import World, world
from specbuild.breadth import Breadth
from specbuild.durations import KIND_SECONDS
from specbuild.errors import UsageError
from specbuild.recipe import StepKind

MACHINES = ("1/1", "2/2", "2/3", "2/4", "4/6", "16/16", "16/24")
MACHINES_RECORDED = ("1/1", "2/2", "4/4", "8/8", "16/16", "32/32", "64/64")


def measure(
    worlds: Sequence[Simulated], modes: Sequence[str], machines: Sequence[Machine], conditions: Conditions
) -> Results:
    """Every world in every mode on every machine; sequential modes are the same for all slot counts."""
    single: dict[tuple[str, int], list[Run]] = {}
    results: Results = {}
    for machine in machines:
        here = results[str(machine)] = dict[str, list[Run]]()
        for name in modes:
            runs = single.get((name, machine.cores)) or [
                run(world, MODES[name], machine, conditions) for world in worlds
            ]
            if MODES[name].breadth is Breadth.RECIPE:
                single[name, machine.cores] = runs
            here[name] = runs
    return results


def think(worlds: Sequence[Simulated], machines: Sequence[Machine], latency: Latency) -> dict[str, Figures]:
    """Machine → mean seconds of agents that think before commands, and of one that thinks meanwhile."""
    modes = ("sequential", "checkpoint", "full")
    table: dict[str, Figures] = {}
    for machine, runs in measure(worlds, modes, machines, Conditions(thinking=latency)).items():
        common = [n for n in range(len(worlds)) if all(runs[mode][n].committed for mode in modes)]
        row: Figures = {"compared": len(common)}
        if common:
            means = {mode: fmean(runs[mode][n].seconds for n in common) for mode in modes}
            row |= {f"{mode}_seconds": seconds for mode, seconds in means.items()}
            row["saved"] = 1 - means["full"] / means["sequential"]
            row["saved_of_checkpoint"] = 1 - means["full"] / means["checkpoint"]
        table[machine] = row
    return table


def thinking_markdown(table: Mapping[str, Figures], latency: Latency) -> str:
    """A row a machine."""
    head = "thinks before each command, mean s", "the same with checkpoints", "thinks while commands run", "saved"
    lines = [f"A model that thinks {latency.text} s:", "", f"| cores/slots | {' | '.join(head)} |", "|---" * 5 + "|"]
    for machine, row in table.items():
        cells = [number(row.get(f"{mode}_seconds")) for mode in ("sequential", "checkpoint", "full")]
        saved = f"{percent(row.get('saved'))}, {percent(row.get('saved_of_checkpoint'))}"
        lines.append(f"| {machine} | {' | '.join(cells)} | {saved} |")
    return "\n".join(lines)


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


def cores_of(race_file: Path | None) -> int:
    """Of the machine of a race; of this one if no race is given."""
    if race_file is None:
        return len(os.sched_getaffinity(0))
    return int(json.loads(race_file.read_text())["machine"]["cores"])


def limit_of(race_file: Path | None) -> float | None:
    """Seconds after which builds of a race ended; None if no race is given."""
    return None if race_file is None else float(json.loads(race_file.read_text())["limit_seconds"])


def recorded_machines(worlds: Sequence[RecordedWorld], cores: int) -> list[Machine]:
    """Those of the recordings: all slot counts that their builds had."""
    return [Machine(cores, slots) for slots in sorted({one.slots for world in worlds for one in world.recordings})]


def main(arguments: list[str]) -> int:
    """Simulate and print."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        modes, machines, recorded = _modes(given.modes), _machines(given), _recorded(given) if given.traces else []
    except (UsageError, ValueError, OSError) as error:
        parser.error(str(error))
    worlds: Sequence[Simulated] = recorded or _random(given)
    limit = given.limit or (limit_of(given.race) if recorded else None)
    real = recorded_machines(recorded, _cores(given)) if recorded else []
    measured = [*machines, *(machine for machine in real if machine not in machines)]
    results = measure(worlds, modes, measured, Conditions(limit=limit))
    oracle = {str(machine): oracles(worlds, machine, results[str(machine)]) for machine in measured}
    table = summary(results, oracle, limited=limit is not None)
    texts, whole = [markdown(table)], _as_json(worlds, results, oracle) | {"seed": given.seed, "machines": table}
    if recorded:
        compared = validation.comparisons(recorded, results, _cores(given))
        texts.append(f"Against the real builds, on {_cores(given)} cores, as many at once as these ran:")
        texts.append(validation.markdown(compared))
        whole["validation"] = validation.as_json(compared, _cores(given))
    if given.thinking:
        thought = think(worlds, machines, given.thinking)
        texts.append(thinking_markdown(thought, given.thinking))
        whole["thinking"] = {"latency": given.thinking.text, "machines": thought}
    _write(given, "\n\n".join(texts), whole, drawn(table, machines, len(worlds)))
    return 0


def _write(given: argparse.Namespace, text: str, whole: Mapping[str, object], svg: str) -> None:
    print(text)
    files = [(given.json, json.dumps(whole, indent=2) + "\n"), (given.markdown, text + "\n"), (given.plot, svg)]
    for path, content in files:
        if path:
            path.write_text(content)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench simulate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", type=Path, help="a folder with the journals of `python -m bench race --traces`")
    parser.add_argument("--unseen", choices=["odds", "fails"], default="odds", help="how unseen checks end")
    parser.add_argument("--repositories", type=int, default=200, help="random ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument(
        "--machines", help=f"by default {','.join(MACHINES)}; with --traces {','.join(MACHINES_RECORDED)}"
    )
    parser.add_argument("--limit", type=float, help="seconds after which a build ends; else that of the recorded race")
    parser.add_argument("--thinking", type=_latency, metavar="DISTRIBUTION", help="of a model's latency in seconds")
    parser.add_argument("--from", dest="race", type=Path, help="the JSON of `python -m bench race`")
    parser.add_argument("--cores", type=int, help="of the machine of the journals")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--plot", type=Path, help="an SVG")
    return parser


def _latency(text: str) -> Latency:
    try:
        return Latency.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _modes(text: str) -> list[str]:
    modes = text.split(",")
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown:
        raise ValueError(f"no mode is called {', '.join(unknown)}; known are {', '.join(MODES)}")
    return modes


def _machines(given: argparse.Namespace) -> list[Machine]:
    usual = MACHINES_RECORDED if given.traces else MACHINES
    return [Machine.parse(text) for text in (given.machines.split(",") if given.machines else usual)]


def _cores(given: argparse.Namespace) -> int:
    """Of the machine of the journals."""
    cores: int = given.cores or cores_of(given.race)
    return cores


def _recorded(given: argparse.Namespace) -> list[RecordedWorld]:
    return read_worlds(given.traces, _cores(given), seed=given.seed, unseen=given.unseen == "odds")


def _random(given: argparse.Namespace) -> list[World]:
    kinds = medians(given.race) if given.race else KIND_SECONDS
    return [world(given.seed * 1_000_000 + number, kinds) for number in range(given.repositories)]


def _as_json(worlds: Sequence[Simulated], results: Results, oracle: Mapping[str, Sequence[float]]) -> dict[str, object]:
    runs = {
        machine: {name: [_finite(asdict(one)) for one in some] for name, some in modes.items()}
        for machine, modes in results.items()
    }
    seconds = {machine: [one if math.isfinite(one) else None for one in some] for machine, some in oracle.items()}
    return {"schema_version": 2, "repositories": [one.name for one in worlds], "oracle_seconds": seconds, "runs": runs}


def _finite(values: dict[str, float]) -> dict[str, float | None]:
    return {key: value if math.isfinite(value) else None for key, value in values.items()}
