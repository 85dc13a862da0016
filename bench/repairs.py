"""Whether the packages that cure real outputs are found: by the package indexes, and by rule.

    python -m bench repairs CORPUS [--releases bookworm,bullseye,trixie] [--sample N] [--cache DIR] [--json FILE]

CORPUS is a file of JSON lines, or a folder with `signatures.jsonl`: `output` as a tool printed it, and the `repair` of
those whose `repair_kind` is `apt`. On the first release all of them are asked, on the others a sample. Each output is
read, and each diagnosis is asked for repairs in a bare recipe: with nothing known of the project, and with its name,
where the corpus says which one printed the output. Found is an answer if one Repair of each diagnosis, taken together,
installs all its packages or what stands for them; `first` means the likeliest, `rival` another. `cures` means that the
message is gone though more will be missing. Indexes are made in the cache if need be.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import anyio

from specbuild.bases.debian import architecture
from specbuild.config import Settings
from specbuild.knowledge.query import Knowledge
from specbuild.knowledge.refresh import Refresher, mirror_address
from specbuild.predictors import reader
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.repairs import Case, Repair, apt, repairs_for
from specbuild.repo.facts import Evidence, Fact, Facts

_STANDS_FOR = {
    "g++": ("gcc", "libc6-dev"),
    "libmariadb-dev-compat": ("default-libmysqlclient-dev",),
    "pkgconf": ("pkg-config",),
    "python3-dev": ("libc6-dev",),
    "rustc-web": ("rustc",),
    "cargo-web": ("cargo",),
    "locales-all": ("locales",),
}
"""What a package brings by its dependencies, which the indexes do not tell."""

_ENDS = re.compile(r"(?:t64|v5)$")
"""Marks of transitions of the ABI in names of libraries."""

_LATE = ("browser", "dlopen", "runtime binary")
"""Classes of the corpus that show when tests run."""

_LIBRARIES = ("libs", "libdevel", "oldlibs")


@dataclass(frozen=True)
class Row:
    """One output on one release."""

    id: str
    release: str
    project: str
    """Empty where it is not known."""
    kinds: tuple[str, ...]
    """Of the diagnoses."""
    wanted: tuple[str, ...]
    """The corpus's packages that the release has; empty where it names none."""
    repairs: tuple[tuple[str, float, str], ...]
    """Name, probability and source of each that was offered."""
    found: str
    """`first`, `rival`, `cures`, `no`, or `-` where no package is wanted."""
    source: str
    """How it was found: `rule`, `index`, both, or nothing."""


def wanted(text: str, knowledge: Knowledge, release: str) -> tuple[str, ...]:
    """The packages that a repair in the corpus's words begins with, as far as the release has them."""
    words = re.sub(r"\([^)]*\)", "", text).rpartition(": ")[2].split()
    known = knowledge.packages([form for word in words for form in _forms(word)], release=release)
    return tuple(takewhile(lambda word: any(form in known for form in _forms(word)), words))


def _forms(name: str) -> tuple[str, ...]:
    plain = _ENDS.sub("", name)
    return name, plain, f"{plain}t64"


def project_of(tool: str, note: str) -> str:
    """The project whose build printed an output; empty where the corpus does not tell."""
    by_tool = re.match(r"([\w-]+) (?:setup\.py|\(old)", tool) or re.search(r"\((\w+)\)$", tool)
    match = by_tool or re.search(r"\b([A-Za-z][\w-]*?)-\d[\d.]*(?=$|,| )", note)
    return match[1].removeprefix("python-") if match else ""


def case_of(release: str, knowledge: Knowledge, project: str, *, late: bool) -> Case:
    """A bare recipe that fails in a build, or, if it is `late`, in its check."""
    test = Step(kind=StepKind.TEST, run="python3 -m pytest")
    build = Step(kind=StepKind.BUILD, run="python3 -m pip install .")
    base = BaseRef(name=f"debian:{release}", digest="sha256:0", release=release)
    recipe = Recipe(base=base, steps=(build,), check=Check(level=Level.TESTS, runner="pytest", step=test))
    python = Facts(languages=(Fact(value="python", evidence=Evidence(file="setup.py")),))
    return Case(recipe, int(late), python, knowledge, "python3 -m pip install", subject=project)


def brought(repair: Repair) -> frozenset[str]:
    """The packages that a Repair installs, with those that they stand for."""
    steps = [step for edit in repair.edits if edit.kind == "insert-steps" for step in edit.steps]
    if not steps:
        return frozenset()
    base = BaseRef(name="debian:any", digest="")
    recipe = Recipe(base=base, steps=tuple(steps), check=Check(level=Level.TESTS, runner="", step=steps[0]))
    names = apt.installed(recipe, len(steps))
    return names | {other for name in names for other in _STANDS_FOR.get(name, ())}


def ask(row: dict[str, Any], release: str, knowledge: Knowledge, project: str) -> Row:
    """What is offered for one output."""
    one = reader()
    failures = [failure for line in row["output"].split("\n") for failure in one.feed(line)] + one.finish()
    case = case_of(release, knowledge, project, late=row["cls"] in _LATE)
    offered = [repairs_for(failure, case) for failure in failures]
    names = wanted(row["repair"], knowledge, release)
    found, used = _judged(names, offered, knowledge, release)
    return Row(
        id=row["id"],
        release=release,
        project=project,
        kinds=tuple(failure.kind for failure in failures),
        wanted=names,
        repairs=tuple((each.name, each.probability, each.source) for rivals in offered for each in rivals),
        found=found,
        source="+".join(sorted({repair.source for repair in used})),
    )


def _judged(
    names: Sequence[str], offered: Sequence[Sequence[Repair]], knowledge: Knowledge, release: str
) -> tuple[str, list[Repair]]:
    if not names:
        return "-", []
    plans = [[rivals[min(rank, len(rivals) - 1)] for rivals in offered if rivals] for rank in range(4)]
    lacks = [_lacking(names, plan, knowledge, release) for plan in plans]
    for rank, plan in enumerate(plans):
        if plan and not lacks[rank]:
            return ("first" if rank == 0 else "rival"), plan
    if plans[0] and len(lacks[0]) < len(names):
        return "cures", plans[0]
    return "no", []


def _lacking(names: Iterable[str], plan: Iterable[Repair], knowledge: Knowledge, release: str) -> list[str]:
    have = {name for repair in plan for name in brought(repair)}
    known = knowledge.packages({*names, *have}, release=release)
    sources = {known[name].source for name in have if name in known and known[name].section in _LIBRARIES}
    return [
        name
        for name in names
        if not have.intersection(_forms(name))
        and knowledge.default(name, release=release) not in have
        and not (name in known and known[name].section in _LIBRARIES and known[name].source in sources)
    ]


def table(rows: Sequence[Row]) -> str:
    """As Markdown: one line a row, then the sums."""
    lines = ["| id | release | project | diagnosed | wanted | found | by | offered |", "|---|" + "---|" * 7]
    for row in rows:
        offered = ", ".join(f"{name} {probability:.2f}" for name, probability, _ in row.repairs)
        cells = (row.id, row.release, row.project, ", ".join(row.kinds), " ".join(row.wanted), row.found, row.source)
        lines.append(f"| {' | '.join(cells)} | {offered} |")
    lines += [
        "",
        "| release | project | asked | first | rival | cures | no | by index | by rule |",
        "|---|" + "---|" * 8,
    ]
    for release in dict.fromkeys(row.release for row in rows):
        for named in (False, True):
            some = [row for row in rows if row.release == release and bool(row.project) is named]
            lines.append(f"| {release} | {'known' if named else 'unknown'} | {_sums(some)} |")
    return "\n".join(lines)


def _sums(rows: Iterable[Row]) -> str:
    asked = [row for row in rows if row.found != "-"]
    ends = Counter(row.found for row in asked)
    ways = Counter("index" if "index" in row.source else row.source for row in asked if row.found != "no")
    return " | ".join(
        str(number)
        for number in (
            len(asked),
            *(ends[end] for end in ("first", "rival", "cures", "no")),
            ways["index"],
            ways["rule"],
        )
    )


async def _indexes(cache: Path, releases: Iterable[str], name: str) -> None:
    refresher = Refresher(cache, mirror=mirror_address(Settings().debian_mirror), architecture=name)
    for release in releases:
        await refresher.refresh(release)


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench repairs", description="Whether packages are found.")
    parser.add_argument("corpus", type=Path, help="a file of outputs and their repairs, or a folder with it")
    parser.add_argument("--releases", default="bookworm,bullseye,trixie", help="(default: %(default)s)")
    parser.add_argument("--sample", type=int, default=30, help="outputs on further releases (default: %(default)s)")
    parser.add_argument("--cache", type=Path, default=Settings().cache_dir, help="(default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write all rows to this file")
    options = parser.parse_args(arguments)
    file = options.corpus / "signatures.jsonl" if options.corpus.is_dir() else options.corpus
    corpus = [json.loads(line) for line in file.read_text().splitlines() if line.strip()]
    chosen = [row for row in corpus if row["repair_kind"] == "apt"]
    sample = sorted(random.Random(0).sample(chosen, min(options.sample, len(chosen))), key=lambda row: row["id"])
    releases = options.releases.split(",")
    anyio.run(_indexes, options.cache, releases, architecture())
    knowledge = Knowledge(options.cache, architecture=architecture())
    rows = [
        ask(row, release, knowledge, project)
        for place, release in enumerate(releases)
        for row in (sample if place else chosen)
        for project in dict.fromkeys(("", project_of(row["tool"], row["source"])))
    ]
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps({"schema_version": 1, "rows": [asdict(row) for row in rows]}, indent=2))
    return 0
