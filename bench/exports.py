"""`python -m bench exports`: what is exported of real projects rebuilds, loads, and passes its tests in real engines.

Each project is built, then `specbuild replay --docker` and `specbuild export` make what users get; Docker and Podman,
private ones that are started for it, load it and run the tests as the image says. Needs root, `docker.io`, `podman` and
`runc`, and package registries.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench.exported import Bench, Outcome, measure
from bench.inside import NotSameError, in_words
from bench.race import Project, corpus
from specbuild.config import load_settings
from specbuild.environment import Environment
from specbuild.testing.clients import docker_client, podman_client

SETS: Mapping[str, tuple[str, ...]] = {
    "one": ("itsdangerous",),
    "ten": (
        "itsdangerous",
        "pycairo",
        "pylibmc",
        "Jinja2==2.10",
        "Flask",
        "click",
        "markupsafe",
        "pluggy",
        "python-snappy",
        "plyvel",
    ),
}
"""Beginnings of names of the corpus of races: repairs, services and dated resolutions among them."""

ENGINES = {"docker": docker_client, "podman": podman_client}
_INDEXES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL")


@dataclass(frozen=True)
class Row:
    """One project."""

    base: str
    strategy: str = ""
    repairs: tuple[str, ...] = ()
    verdict: str = ""
    seconds: float | None = None
    """Until the commit."""
    outcomes: Mapping[str, Outcome] | None = None
    """None if it was not built."""
    why: str = ""


def projects(wanted: str, only: str | None) -> list[Project]:
    """The projects of a set, in its order."""
    known = corpus("full")
    found = [next(one for one in known if one.name.startswith(name)) for name in SETS[wanted]]
    return [one for one in found if not only or any(part.lower() in one.name.lower() for part in only.split(","))]


def run(bench: Bench, project: Project, *, builders: Sequence[str], every: bool) -> Row:
    """Build it, and take its exports."""
    print(project.name, flush=True)
    with tempfile.TemporaryDirectory() as out:
        words = ["build", project.spec, "--base", project.base, "--no-replay", "--output", f"{out}/out", "--json"]
        try:
            made = Environment.model_validate_json(bench.specbuild(*words))
        except NotSameError as error:
            return Row(project.base, why=str(error))
    assert made.verdict is not None
    row = Row(
        project.base,
        made.strategy or "",
        tuple(repair.name for repair in made.repairs),
        in_words(made.verdict),
        made.seconds.to_commit,
    )
    print(f"  built: {row.seconds} s {row.strategy} {' '.join(row.repairs)} {row.verdict}", flush=True)
    return replace(row, outcomes=measure(bench, made, builders=builders, every=every))


def markdown(rows: Mapping[str, Row]) -> str:
    """A row for each project: seconds of each export, or that it failed."""
    names = list(dict.fromkeys(name for row in rows.values() for name in row.outcomes or {}))
    lines = [f"| project | base | repairs | tests | {' | '.join(names)} |", "|---|---|---|---|" + "---|" * len(names)]
    for project, row in rows.items():
        cells = [_cell((row.outcomes or {}).get(name)) for name in names]
        about = (
            f"{project} | {row.base.removeprefix('debian:')} | {', '.join(row.repairs)} | {row.verdict or 'not built'}"
        )
        lines.append(f"| {about} | {' | '.join(cells)} |")
    totals = [_total(name, rows) for name in names]
    return "\n".join([*lines, f"| good | | | | {' | '.join(totals)} |"])


def _cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    return f"{outcome.seconds:.0f} s" if outcome.ok else "failed"


def _total(name: str, rows: Mapping[str, Row]) -> str:
    found = [row.outcomes[name] for row in rows.values() if row.outcomes and name in row.outcomes]
    return f"{sum(one.ok for one in found)} of {len(found)}"


def as_json(rows: Mapping[str, Row]) -> dict[str, object]:
    """What `--json` writes."""
    return {
        "schema_version": 1,
        "machine": {"cores": len(os.sched_getaffinity(0)), "kernel": platform.release()},
        "projects": {name: asdict(row) for name, row in rows.items()},
    }


def anchors() -> str:
    """Certificates that an administrator of this machine has added to those that everybody trusts."""
    return "\n".join(path.read_text() for path in sorted(Path("/usr/local/share/ca-certificates").rglob("*.crt")))


def good(rows: Iterable[Row]) -> bool:
    """Whether everything was built, and every export is what it should be."""
    return all(row.outcomes is not None and all(one.ok for one in row.outcomes.values()) for row in rows)


def main(arguments: list[str]) -> int:
    """Measure and print; 0 if everything is good."""
    parser = argparse.ArgumentParser(
        prog="python -m bench exports", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", choices=list(SETS), default="ten")
    parser.add_argument("--only", help="projects whose name holds one of these, comma-separated")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--builders", default=",".join(ENGINES), help="those of the engines that build Dockerfiles")
    parser.add_argument("--every", type=int, default=2, help="take all formats of that many projects")
    parser.add_argument("--cache", type=Path, help="default: the user's own")
    parser.add_argument("--certificates", type=Path, help="PEM; default: those added to this machine")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args(arguments)
    if unknown := set(given.engines.split(",")) - set(ENGINES):
        parser.error(f"no engine is called {', '.join(sorted(unknown))}; known are {', '.join(ENGINES)}")
    rows: dict[str, Row] = {}
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the engines end with it
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="specbuild-bench-", dir="/var/tmp")))
        engines = [stack.enter_context(ENGINES[name]()) for name in given.engines.split(",")]
        certificates = given.certificates.read_text() if given.certificates else anchors()
        indexes = {name: os.environ[name] for name in _INDEXES if os.environ.get(name)}
        bench = Bench(given.cache or load_settings().cache_dir, work, engines, certificates, indexes)
        for number, project in enumerate(projects(given.set, given.only)):
            builders = given.builders.split(",")
            rows[project.name] = run(bench, project, builders=builders, every=number < given.every)
            if given.json:
                given.json.write_text(json.dumps(as_json(rows), indent=2) + "\n")
    text = markdown(rows)
    print(f"\n{text}")
    if given.markdown:
        given.markdown.write_text(text + "\n")
    return 0 if good(rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
