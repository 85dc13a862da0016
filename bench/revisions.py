"""What the environment of one revision saves the next: two releases of a source distribution, one after the other.

    python -m bench revisions [--only ONLY] [--limit SECONDS] [--cache DIR] [--json FILE] [--markdown FILE]

`cold` is the later release by itself, no checkpoint of another build being taken; `warm` takes what a build of another
project on that base has left (system packages, uv); `next` is the same again once the earlier release has been built.
Downloads are cached by a first run that is not counted, outcomes of other runs are not used. What `next` gives is built
again from its base, which does not count, and tells whether it is reproducible.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

import anyio

from specbuild import journey
from specbuild.config import Reuse, Settings, load_settings
from specbuild.library import Library
from specbuild.outcome import Outcome
from specbuild.sandbox.backends import open_backend

MODES = ("cold", "warm", "next")

ANOTHER = "pypi:itsdangerous==2.2.0"
"""A project that has nothing to do with those that are measured."""


@dataclass(frozen=True)
class Pair:
    """Two releases, the earlier one first."""

    earlier: str
    later: str
    base: str = "debian:bookworm"


@dataclass(frozen=True)
class Run:
    """One build of the later release."""

    seconds: float | None
    """Until the commit; None if there was none."""
    strategy: str
    passed: int
    reproducible: bool | None
    reused: int
    """Steps whose results were in the store."""
    load: float


def pairs() -> list[Pair]:
    """Those of `corpus.toml`."""
    table = tomllib.loads((Path(__file__).parent / "corpus.toml").read_text())
    return [Pair(**row) for row in table["pair"]]


async def measure(chosen: Sequence[Pair], settings: Settings) -> dict[str, dict[str, Run]]:
    """The later release → mode → its run."""
    results: dict[str, dict[str, Run]] = {}
    for pair in chosen:
        alone = settings.model_copy(update={"bases": (pair.base,), "reuse": Reuse.BUILD, "replay": False})
        shared = alone.model_copy(update={"reuse": Reuse.BUILDS})
        proved = shared.model_copy(update={"replay": True})
        await _build(pair.later, alone)
        runs = {"cold": await _build(pair.later, alone)}
        await _build(ANOTHER, shared, stays=True)
        runs["warm"] = await _build(pair.later, shared)
        await _build(pair.earlier, shared, stays=True)
        runs["next"] = await _build(pair.later, proved)
        results[pair.later] = runs
        print(f"{pair.later}: {' '.join(f'{mode} {run.seconds} s' for mode, run in runs.items())}", flush=True)
    return results


async def _build(spec: str, settings: Settings, *, stays: bool = False) -> Run:
    """Build; unless it `stays`, later builds find nothing of it."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        built = await journey.build(spec, settings=settings, output=Path(folder, "out"))
    if not stays:
        async with open_backend(settings) as backend:
            await backend.forget(built.id)
            await backend.prune()
        shutil.rmtree(Library(settings.cache_dir).place(built.id).folder)
    return Run(
        seconds=built.seconds.to_commit,
        strategy=built.strategy or "",
        passed=built.verdict.passed if built.verdict else 0,
        reproducible=built.reproducible,
        reused=sum(row.outcome is Outcome.REUSED for row in built.timeline),
        load=round(load, 2),
    )


def markdown(results: Mapping[str, Mapping[str, Run]]) -> str:
    """A row for each pair."""
    lines = [
        "| release | cold s | warm s | next s | saved | route of the next | steps reused | passed | reproducible |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, runs in results.items():
        times = [_seconds(runs[mode]) for mode in MODES]
        last = runs["next"]
        cells = [*times, _saved(runs), last.strategy, str(last.reused), str(last.passed), str(last.reproducible)]
        lines.append(f"| {name.removeprefix('pypi:')} | {' | '.join(cells)} |")
    whole = [runs for runs in results.values() if all(run.seconds is not None for run in runs.values())]
    means = {mode: fmean(runs[mode].seconds or 0.0 for runs in whole) for mode in MODES} if whole else {}
    if means:
        lines.append(f"| mean | {' | '.join(f'{means[mode]:.1f}' for mode in MODES)} | | | | | |")
    return "\n".join(lines)


def _seconds(run: Run) -> str:
    return "-" if run.seconds is None else f"{run.seconds:.1f}"


def _saved(runs: Mapping[str, Run]) -> str:
    cold, last = runs["cold"].seconds, runs["next"].seconds
    return f"{1 - last / cold:.0%}" if cold and last else "-"


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m bench revisions", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="releases whose name holds one of these, comma-separated")
    parser.add_argument("--limit", type=float, default=300.0)
    parser.add_argument("--cache", type=Path, help="default: the user's own")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args(arguments)
    chosen = [pair for pair in pairs() if not given.only or any(part in pair.later for part in given.only.split(","))]
    settings = load_settings(cache_dir=given.cache, time_limit=given.limit, learn=False)
    results = anyio.run(measure, chosen, settings)
    text = markdown(results)
    print(f"\n{text}")
    if given.json:
        rows = {name: {mode: asdict(run) for mode, run in runs.items()} for name, runs in results.items()}
        given.json.write_text(json.dumps({"schema_version": 1, "releases": rows}, indent=2) + "\n")
    if given.markdown:
        given.markdown.write_text(text + "\n")
    return 0
