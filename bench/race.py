"""What speculation brings: the same engine from a sequential agent to everything, on the same projects.

    python -m bench race [--set quick|full] [--modes NAME,...] [--repeats N] [--limit SECONDS] [--cache DIR]
                         [--json FILE [--resume]] [--markdown FILE] [--plot FILE] [--traces FOLDER]

| mode | recipes at once | repairs | checkpoints |
|---|---|---|---|
| `sequential` | one | once the failure was observed | none: each recipe starts from its base |
| `one-slot` | one step at a time of any | once the failure was observed | of this build |
| `checkpoint` | one | once the failure was observed | of this build |
| `strategy` | all that pay | once the failure was observed | of this build |
| `command` | one strategy's | ahead of the failure | of this build |
| `both` | all that pay | ahead of the failure | of this build |
| `full` | as `both`, with system packages installed beside the steps before them |  | of this build |
| `learned` | as `full`, with what the runs before it taught: durations, outcomes of repairs |  | of this build |

Downloads are cached by a first run that is not counted; checkpoints and outcomes of other runs are not used (but for
`learned`). Runs are interleaved, the order of modes rotates. `oracle` is the quickest of all recipes that won, built
alone from its base: no scheduling gets under it without a shorter path. `regret` is the mean time over the oracle's;
`gap_closed` is (sequential - mode) ÷ (sequential - oracle) of the mean seconds. A project that is not committed within
the limit counts with the limit. `thinking` is the sequential run plus 10 seconds a command, as an agent would think.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

import anyio

from bench.plot import plot
from specbuild import journey
from specbuild.breadth import Breadth
from specbuild.config import Reuse, Settings, load_settings
from specbuild.environment import Environment
from specbuild.errors import SpecBuildError
from specbuild.opened import OpenEnvironment
from specbuild.outcome import Outcome
from specbuild.rebuild import rebuild
from specbuild.recipe import Recipe, salted
from specbuild.sandbox.backends import open_backend
from specbuild.workshop import Surroundings

THINKING_SECONDS = 10.0

LIMITS = (15, 20, 30, 45, 60, 90, 120)
"""Seconds within which successes are counted, besides the limit of the runs."""

MODES: Mapping[str, Mapping[str, object]] = {
    "sequential": {"sequential": True, "ahead": False, "reuse": Reuse.NONE, "learn": False},
    "one-slot": {"jobs": 1, "ahead": False, "beside": False, "warm": False, "reuse": Reuse.BUILD, "learn": False},
    "checkpoint": {"sequential": True, "ahead": False, "reuse": Reuse.BUILD, "learn": False},
    "strategy": {"ahead": False, "beside": False, "warm": False, "reuse": Reuse.BUILD, "learn": False},
    "command": {"pursue": Breadth.STRATEGY, "beside": False, "warm": False, "reuse": Reuse.BUILD, "learn": False},
    "both": {"beside": False, "warm": False, "reuse": Reuse.BUILD, "learn": False},
    "full": {"reuse": Reuse.BUILD, "learn": False},
    "learned": {"reuse": Reuse.BUILD, "learn": True},
}


@dataclass(frozen=True)
class Project:
    """One row of the corpus."""

    spec: str
    set: str
    base: str = "debian:bookworm"
    repair: str = ""

    @property
    def name(self) -> str:
        """As in results."""
        return self.spec.removeprefix("pypi:")


@dataclass(frozen=True)
class Run:
    """One build in one mode."""

    seconds: float
    """Until the commit; the limit if there was none."""
    committed: bool
    commands: int
    """Steps and checks that were begun."""
    loser_seconds: float = 0.0
    loser_cpu_seconds: float = 0.0
    winner_cpu_seconds: float = 0.0
    strategy: str = ""
    repairs: tuple[str, ...] = ()
    foreseen: int = 0
    """Repairs of the winner that were forked ahead."""
    load: float = 0.0
    """Of the machine, when it began."""
    recipe: str = ""
    """Digest of the winner's recipe, without what keeps checkpoints apart."""
    predictions: Mapping[str, float] = field(default_factory=dict[str, float])
    """Failures told ahead, and what came of them; see `specbuild.environment.Predictions`."""
    kinds: Mapping[str, Sequence[float]] = field(default_factory=dict[str, Sequence[float]])
    """Kind of step → seconds of those that came to a good end; `bench.simulate` draws durations from them."""


Results = Mapping[str, Mapping[str, Sequence[Run]]]
"""Project → mode (and `oracle`) → its runs."""

Table = Mapping[str, Mapping[str, float | None]]
"""Mode → figure → value."""


def corpus(wanted: str) -> list[Project]:
    """The projects of a set; `full` holds `quick`."""
    table = tomllib.loads((Path(__file__).parent / "corpus.toml").read_text())
    rows = [Project(**row) for row in table["project"]]
    return [row for row in rows if wanted == "full" or row.set == wanted]


async def build(
    project: Project, mode: str, cache: Path, limit: float, trace: Path | None = None
) -> tuple[Run, OpenEnvironment | None]:
    """Build a project in a mode; its journal goes to `trace`."""
    load = os.getloadavg()[0]
    settings = settings_of(project, mode, cache, limit)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        try:
            environment = await journey.build(project.spec, settings=settings, output=out)
        except SpecBuildError as error:
            print(f"  {project.name} {mode}: {error.message}", file=sys.stderr)
            return Run(limit, committed=False, commands=0, load=load), None
        finally:
            if trace is not None and (out / "journal.jsonl").exists():
                trace.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(out / "journal.jsonl", trace)
    run = replace(run_of(environment, limit), load=round(load, 2))
    return run, environment if run.committed else None


def settings_of(project: Project, mode: str, cache: Path, limit: float) -> Settings:
    """The settings of a mode."""
    given: dict[str, object] = {"bases": (project.base,), "cache_dir": cache, "time_limit": limit, "replay": False}
    return load_settings(**given, **MODES[mode])


def run_of(environment: Environment, limit: float) -> Run:
    """What counts of a build."""
    taken = environment.seconds.to_commit
    return Run(
        seconds=limit if taken is None else taken,
        committed=taken is not None,
        commands=sum(
            row.kind not in ("base", "source") for row in environment.timeline if not row.outcome.is_taken_over
        ),
        loser_seconds=environment.waste.loser_seconds,
        loser_cpu_seconds=environment.waste.loser_cpu_seconds,
        winner_cpu_seconds=environment.waste.winner_cpu_seconds,
        strategy=environment.strategy or "",
        repairs=tuple(repair.name for repair in environment.repairs),
        recipe=_plain(environment.recipe) if environment.recipe else "",
        predictions=environment.predictions.model_dump(),
        foreseen=sum(repair.foreseen for repair in environment.repairs),
        kinds=_kinds(environment),
    )


def _plain(recipe: Recipe) -> str:
    return salted(recipe, "").digest[:16]


def _kinds(environment: Environment) -> dict[str, Sequence[float]]:
    found: dict[str, list[float]] = {}
    for row in environment.timeline:
        if row.outcome is Outcome.OK:
            found.setdefault(row.kind, []).append(round(row.end - row.start, 3))
    return dict(found)


async def alone(winner: OpenEnvironment) -> float | None:
    """Seconds of a winner's own steps, run alone from its base; None if it does not verify again."""
    async with open_backend(winner.settings) as backend:
        began = time.monotonic()
        verdict = await rebuild(
            winner.committed(),
            backend,
            winner.workshop(backend),
            limits=Surroundings.of(winner.settings).limits,
            on_line=lambda line: None,
        )
        return time.monotonic() - began if verdict.ok else None


async def measure(
    projects: Sequence[Project],
    modes: Sequence[str],
    *,
    repeats: int,
    limit: float,
    cache: Path,
    traces: Path | None = None,
    fill: bool = True,
    done: Callable[[str, dict[str, list[Run]]], None] = lambda project, runs: None,
) -> dict[str, dict[str, list[Run]]]:
    """Project → mode (and `oracle`) → its runs; their journals go to `traces`/project/mode-repeat.jsonl.

    `done` is told of each project once it is measured.
    """
    results: dict[str, dict[str, list[Run]]] = {}
    for number, project in enumerate(projects):
        runs: dict[str, list[Run]] = {mode: [] for mode in (*modes, "oracle")}
        if fill:
            await build(project, "full", cache, limit)  # not counted: it fills the caches of downloads
        for repeat in range(repeats):
            winners: dict[str, OpenEnvironment] = {}
            turn = (number + repeat) % len(modes)
            for mode in (*modes[turn:], *modes[:turn]):
                trace = traces / project.name / f"{mode}-{repeat}.jsonl" if traces else None
                run, winner = await build(project, mode, cache, limit, trace)
                runs[mode].append(run)
                print(f"{project.name} {mode}: {run.seconds:.1f} s {run.strategy} {' '.join(run.repairs)}", flush=True)
                if winner is not None:
                    winners.setdefault(f"{winner.strategy} {run.repairs}", winner)
            times = [taken for winner in list(winners.values())[:3] if (taken := await alone(winner)) is not None]
            if times:
                runs["oracle"].append(Run(min(times), committed=True, commands=0))
                print(f"{project.name} oracle: {min(times):.1f} s", flush=True)
        results[project.name] = runs
        done(project.name, runs)
    return results


def summary(results: Results, limit: float) -> dict[str, dict[str, float | None]]:
    """The figures of each mode over all projects that some mode committed; success is over all projects."""
    names = [name for name, runs in results.items() if runs["oracle"]]
    modes = list(next(iter(results.values())))
    means = {mode: [_middle(results[name][mode], limit) for name in names] for mode in modes}
    thinking = [
        middle + THINKING_SECONDS * median(run.commands for run in results[name]["sequential"])
        for name, middle in zip(names, means.get("sequential", []), strict=False)
    ]
    table: dict[str, dict[str, float | None]] = {}
    for mode in modes:
        runs = [run for name in results for run in results[name][mode]]
        table[mode] = _figures(means[mode], means["oracle"], means.get("sequential", []))
        table[mode]["success"] = fmean(run.committed for run in runs) if runs else 0.0
        table[mode]["waste"] = fmean(run.loser_cpu_seconds for run in runs) if runs else 0.0
        for within in LIMITS:
            committed = [run.committed and run.seconds <= within for run in runs]
            table[mode][f"success_within_{within}"] = fmean(committed) if runs else 0.0
        for what in ("told", "hit", "missed", "lead_seconds"):
            table[mode][f"predictions_{what}"] = sum(run.predictions.get(what, 0) for run in runs)
    if thinking:
        table["thinking"] = _figures(thinking, means["oracle"], means["sequential"])
    return table


def _figures(mine: Sequence[float], oracle: Sequence[float], sequential: Sequence[float]) -> dict[str, float | None]:
    if not mine:
        return {"mean_seconds": None, "median_seconds": None, "regret": None, "gap_closed": None}
    gap = fmean(sequential) - fmean(oracle) if sequential else 0.0
    return {
        "mean_seconds": fmean(mine),
        "median_seconds": median(mine),
        "regret": fmean(mine) / fmean(oracle),
        "gap_closed": (fmean(sequential) - fmean(mine)) / gap if gap > 0 else None,
    }


def _middle(runs: Sequence[Run], limit: float) -> float:
    return median(run.seconds for run in runs) if runs else limit


def markdown(
    results: Mapping[str, Mapping[str, Sequence[Run]]], table: Mapping[str, Mapping[str, float | None]]
) -> str:
    """The summary, and the seconds of each project in each mode."""
    lines = [
        "| mode | success | mean s | median s | regret | gap closed | loser CPU s |",
        "|---|---|---|---|---|---|---|",
    ]
    for mode, row in table.items():
        cells = [_percent(row.get("success")), *(_number(row[key]) for key in ("mean_seconds", "median_seconds"))]
        cells += [_number(row["regret"]), _percent(row["gap_closed"]), _number(row.get("waste"))]
        lines.append(f"| {mode} | {' | '.join(cells)} |")
    modes = list(next(iter(results.values())))
    lines += ["", f"| success within | {' | '.join(f'{one} s' for one in LIMITS)} |", "|---|" + "---|" * len(LIMITS)]
    for mode in modes:
        cells = [_percent(table[mode][f"success_within_{one}"]) for one in LIMITS]
        lines.append(f"| {mode} | {' | '.join(cells)} |")
    lines += [
        "",
        *(f"{one}: {two} of {three} winners are those of sequential" for one, two, three in agreement(results)),
    ]
    lines += ["", f"| project | {' | '.join(modes)} | repairs |", "|---|" + "---|" * (len(modes) + 1)]
    for name, runs in results.items():
        cells = [_cell(runs[mode]) for mode in modes]
        last = next((run for mode in ("full", *modes) for run in runs.get(mode, []) if run.committed), None)
        lines.append(f"| {name} | {' | '.join(cells)} | {', '.join(last.repairs) if last else ''} |")
    return "\n".join(lines)


def agreement(results: Results) -> Iterator[tuple[str, int, int]]:
    """Modes of one step at a time, without predictions: how often their winner is that of `sequential`, of how many."""
    for mode in ("one-slot", "checkpoint"):
        both = [
            (runs["sequential"][0].recipe, runs[mode][0].recipe)
            for runs in results.values()
            if runs.get("sequential") and runs.get(mode)
        ]
        known = [(one, two) for one, two in both if one and two]
        if known:
            yield mode, sum(one == two for one, two in known), len(known)


def _cell(runs: Sequence[Run]) -> str:
    good = [run.seconds for run in runs if run.committed]
    return f"{median(good):.1f}" if good else "-"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def as_json(results: Results, table: Table, limit: float) -> dict[str, object]:
    """What `--json` writes."""
    return {
        "schema_version": 1,
        "machine": {"cores": len(os.sched_getaffinity(0)), "kernel": platform.release()},
        "limit_seconds": limit,
        "modes": table,
        "projects": {
            name: {mode: [asdict(run) for run in some] for mode, some in runs.items()} for name, runs in results.items()
        },
    }


def read_json(file: Path, modes: Sequence[str]) -> dict[str, dict[str, list[Run]]]:
    """The projects of a file that `--json` wrote, in these modes; without those that lack one of them."""
    if not file.exists():
        return {}
    wanted = (*modes, "oracle")
    projects: dict[str, dict[str, list[dict[str, Any]]]] = json.loads(file.read_text())["projects"]
    return {
        name: {mode: [_run(told) for told in runs[mode]] for mode in wanted}
        for name, runs in projects.items()
        if runs.keys() >= set(wanted)
    }


def _run(told: dict[str, Any]) -> Run:
    values: dict[str, Any] = {**told, "repairs": tuple(told["repairs"])}
    return Run(**values)


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m bench race", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", choices=["quick", "full"], default="quick")
    parser.add_argument("--only", help="projects whose name holds one of these, comma-separated")
    parser.add_argument("--modes", default=",".join(mode for mode in MODES if mode not in {"learned", "one-slot"}))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300.0)
    parser.add_argument("--cache", type=Path, help="default: the user's own")
    parser.add_argument("--json", type=Path, help="written after each project")
    parser.add_argument("--resume", action="store_true", help="take the projects that the JSON has, and add the others")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--plot", type=Path, help="an SVG")
    parser.add_argument("--filled", action="store_true", help="the caches of downloads are filled already")
    parser.add_argument("--traces", type=Path, help="a folder for the journals of all runs")
    given = parser.parse_args(arguments)
    modes = _known(given.modes.split(","), parser)
    projects = [one for one in corpus(given.set) if not given.only or _holds(one, given.only.split(","))]
    cache = given.cache or load_settings().cache_dir
    if given.resume and not given.json:
        parser.error("--resume takes what --json names")
    results = read_json(given.json, modes) if given.resume else {}

    def keep(project: str, runs: dict[str, list[Run]]) -> None:
        results[project] = runs
        if given.json:
            written = as_json(results, summary(results, given.limit), given.limit)
            given.json.write_text(json.dumps(written, indent=2) + "\n")

    anyio.run(
        lambda: measure(
            [project for project in projects if project.name not in results],
            modes,
            repeats=given.repeats,
            limit=given.limit,
            cache=cache,
            traces=given.traces,
            fill=not given.filled,
            done=keep,
        )
    )
    table = summary(results, given.limit)
    text = markdown(results, table)
    print(f"\n{text}")
    if given.plot:
        given.plot.write_text(drawn(results, table, given.limit))
    if given.markdown:
        given.markdown.write_text(text + "\n")
    return 0


def drawn(results: Results, table: Table, limit: float) -> str:
    """The plot."""
    means = {mode: seconds for mode, row in table.items() if (seconds := row["mean_seconds"]) is not None}
    names = [name for name, runs in results.items() if runs["oracle"]]
    projects = {mode: [_middle(results[name][mode], limit) for name in names] for mode in means if mode != "thinking"}
    return plot(means, projects, f"seconds to a verified environment, mean of {len(names)} projects")


def _known(modes: list[str], parser: argparse.ArgumentParser) -> list[str]:
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown:
        parser.error(f"no mode is called {', '.join(unknown)}; known are {', '.join(MODES)}")
    return modes


def _holds(project: Project, parts: Iterable[str]) -> bool:
    return any(part.lower() in project.name.lower() for part in parts)
