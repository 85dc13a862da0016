"""What is foreseen of a corpus before anything runs, held against what is known to go wrong there.

    python -m bench foresight --corpus FILE [--base debian:bookworm] [--candidates N] [--json FILE]
    python -m bench foresight --eras

The corpus has one JSON object a line; of those whose `ecosystem` is `pypi`, `name` and `version` name a source
distribution, `failure_class` says what goes wrong on a bare base, and `repair` what a person would do. Nothing is run:
each is planned, and of the first candidates is told what is foreseen. Each class that foresight can know of counts as

- foreseen: a failure of that class is told, with at least `--least`;
- cured: the recipe holds the cure already (compilers, a date from before the break);
- missed: neither.

A told failure of a class that the corpus does not have counts as false: an upper bound, since a corpus names what was
seen first. `--eras` compares the dates of breaks with those of the package index.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import anyio
from packaging.version import Version

from specbuild.bases.debian import architecture
from specbuild.config import load_settings
from specbuild.errors import SpecBuildError
from specbuild.knowledge.query import Knowledge
from specbuild.knowledge.wheels import PackageIndex
from specbuild.predictors.foresee import Foreseen, Outlook, foresee
from specbuild.predictors.foresee.eras import BREAKS
from specbuild.strategies.contract import Candidate
from specbuild.survey import plan

KINDS: dict[str, tuple[str, ...]] = {
    "headers": ("missing-development-files",),
    "config-tool": ("missing-development-files",),
    "pkg-config": ("missing-development-files",),
    "meson": ("missing-toolchain", "missing-development-files"),
    "compiler": ("missing-toolchain",),
    "rust": ("missing-toolchain",),
    "build-tool": ("missing-command",),
    "binary-at-build": ("missing-command",),
    "service": ("service-needed",),
    "service-binary": ("service-needed",),
    "service-unavailable": ("service-needed",),
    "backend-drift": ("drifted-backend", "missing-build-dependency"),
    "date-drift": ("drifted-dependency", "drifted-test-tool"),
    "test-tool-drift": ("drifted-test-tool",),
    "old-python": ("version-out-of-range",),
    "dlopen": ("missing-library",),
    "runtime-binary": ("missing-command",),
    "git": ("missing-command", "version-control-needed"),
}
"""Class of the corpus → kinds of failures that it shows as. Others cannot be known before something runs."""

DRIFT = frozenset({"backend-drift", "date-drift", "test-tool-drift", "old-python"})


@dataclass(frozen=True)
class Row:
    """What became of one candidate of one project."""

    project: str
    strategy: str
    seconds: float
    told: tuple[str, ...]
    foreseen: tuple[str, ...]
    cured: tuple[str, ...]
    missed: tuple[str, ...]
    false: tuple[str, ...]


def judge(entry: dict[str, str], candidate: Candidate, told: Iterable[Foreseen], least: float, seconds: float) -> Row:
    """Hold what is told of a candidate against what the corpus knows."""
    sure = [one for one in told if one.probability >= least]
    kinds = {one.failure.kind for one in sure}
    classes = [name for name in entry["failure_class"].split(",") if name in KINDS]
    foreseen = [name for name in classes if kinds & set(KINDS[name])]
    cured = [name for name in classes if name not in foreseen and _cured(name, entry["repair"], candidate)]
    expected = {kind for name in classes for kind in KINDS[name]}
    if "-dev" in entry["repair"].replace("libc6-dev", ""):
        expected.add("missing-development-files")
    return Row(
        project=f"{entry['name']} {entry['version']}",
        strategy=candidate.strategy,
        seconds=round(seconds, 2),
        told=tuple(f"{one.probability:.2f} {one.failure}" for one in sure),
        foreseen=tuple(foreseen),
        cured=tuple(cured),
        missed=tuple(name for name in classes if name not in (*foreseen, *cured)),
        false=tuple(str(one.failure) for one in sure if one.failure.kind not in expected),
    )


def _cured(name: str, repair: str, candidate: Candidate) -> bool:
    text = "\n".join(step.run for step in candidate.recipe.steps)
    if name in DRIFT:
        return "--exclude-newer " in text
    apt = repair.partition("apt ")[2].partition(";")[0].split() if "apt " in repair else []
    installed = {word for line in text.splitlines() if "apt-get install" in line for word in line.split()}
    if name in ("compiler", "rust", "meson"):
        return bool(installed & {"gcc", "g++", "rustc"})
    return bool(apt) and set(apt) <= installed


async def measure(corpus: Path, base: str, candidates: int, least: float, only: str) -> list[Row]:
    """Judge the first candidates of every project."""
    settings = load_settings(bases=(base,))
    knowledge = Knowledge(settings.cache_dir, architecture=architecture())
    entries = [json.loads(line) for line in (await anyio.Path(corpus).read_text("utf-8")).splitlines()]
    rows: list[Row] = []
    async with PackageIndex(settings.cache_dir) as index:
        for entry in entries:
            if entry["ecosystem"] != "pypi" or only not in entry["name"]:
                continue
            try:
                planned = await plan(f"pypi:{entry['name']}=={entry['version']}", settings=settings)
            except SpecBuildError as error:
                print(f"{entry['name']}: {error}", file=sys.stderr)
                continue
            for candidate in planned.candidates[:candidates]:
                began = time.monotonic()
                told = await foresee(Outlook(candidate, planned.facts, knowledge, datetime.now(UTC), index))
                rows.append(judge(entry, candidate, told, least, time.monotonic() - began))
                print(describe(rows[-1]), flush=True)
    return rows


def describe(row: Row) -> str:
    """A few lines."""
    lines = [f"{row.project} {row.strategy} ({row.seconds:.2f} s)", *(f"    {one}" for one in row.told)]
    ends = {"foreseen": row.foreseen, "cured": row.cured, "missed": row.missed, "false": row.false}
    return "\n".join([*lines, *(f"  {name}: {', '.join(found)}" for name, found in ends.items() if found)])


def summary(rows: list[Row]) -> str:
    """As Markdown: by class of the corpus, and all together."""
    counts = {
        name: Counter(one for row in rows for one in getattr(row, name)) for name in ("foreseen", "cured", "missed")
    }
    lines = ["| class | foreseen | cured by the recipe | missed |", "|---|---|---|---|"]
    classes = sorted(set[str]().union(*counts.values()))
    lines += ["| " + " | ".join([name, *(str(one[name]) for one in counts.values())]) + " |" for name in classes]
    totals = [sum(one.values()) for one in counts.values()]
    lines.append("| all | " + " | ".join(map(str, totals)) + " |")
    false = sum(len(row.false) for row in rows)
    slowest = max((row.seconds for row in rows), default=0.0)
    lines += ["", f"{len(rows)} candidates; {false} told that the corpus does not name; slowest {slowest:.1f} s"]
    return "\n".join(lines)


async def eras() -> int:
    """Print where the dates of breaks differ from the index's; how many do."""
    wrong = 0
    async with PackageIndex(load_settings().cache_dir) as index:
        for one in BREAKS:
            releases = await index.releases(one.distribution)
            later = [r for r in releases if not r.version.is_prerelease and r.version >= Version(one.version)]
            first = min(later, key=lambda release: release.version, default=None)
            day = first.uploaded.date() if first and first.uploaded else None
            if first is None or day is None or abs((day - one.day).days) > 1:
                wrong += 1
                print(f"{one.distribution} {one.version}: {one.day} here, {day} there ({first and first.version})")
    print(f"{len(BREAKS)} breaks, {wrong} with another date")
    return wrong


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench foresight", description="What is foreseen of a corpus.")
    parser.add_argument("--corpus", type=Path, help="file of projects, one JSON object a line")
    parser.add_argument("--base", default="debian:bookworm", help="default: %(default)s")
    parser.add_argument(
        "--candidates", type=int, default=2, help="of each project, from the best (default: %(default)s)"
    )
    parser.add_argument("--least", type=float, default=0.3, help="probability that counts (default: %(default)s)")
    parser.add_argument("--only", default="", help="projects whose name has this")
    parser.add_argument("--eras", action="store_true", help="compare the dates of breaks with the index")
    parser.add_argument("--json", type=Path, help="write all rows to this file")
    options = parser.parse_args(arguments)
    if options.eras:
        return min(1, anyio.run(eras))
    if options.corpus is None:
        parser.error("--corpus is missing")
    rows = anyio.run(measure, options.corpus, options.base, options.candidates, options.least, options.only)
    print("\n" + summary(rows))
    if options.json:
        options.json.write_text(json.dumps({"schema_version": 1, "rows": [asdict(row) for row in rows]}, indent=2))
    return 0
