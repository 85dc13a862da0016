"""Facts, bases and Requests made up for tests of strategies, one's own ones included."""

from __future__ import annotations

from datetime import UTC, datetime

from specbuild.recipe import BaseRef, Check, Level, Step, StepKind
from specbuild.repo.facts import Dependency, Evidence, Fact, Facts, TestLayout, TestNeed, TestNeedKind
from specbuild.strategies.contract import Candidate, Request

NOW = datetime(2026, 11, 30, tzinfo=UTC)
"""When every request is made."""

BULLSEYE = BaseRef(name="debian:bullseye", digest="sha256:11", python="3.9", release="bullseye")
BOOKWORM = BaseRef(name="debian:bookworm", digest="sha256:12", python="3.11", release="bookworm")
TRIXIE = BaseRef(name="debian:trixie", digest="sha256:13", python="3.13", release="trixie")
HOST = BaseRef(name="host", digest="sha256:aa", python="3.11", portable=False)


def fact(value: str, file: str = "pyproject.toml", line: int | None = 1) -> Fact[str]:
    """A text and where it was read."""
    return Fact(value=value, evidence=Evidence(file=file, line=line))


def revision(year: int, month: int = 1, day: int = 1) -> Fact[datetime]:
    """The date of a revision."""
    return Fact(value=datetime(year, month, day, tzinfo=UTC), evidence=Evidence(file="PKG-INFO"))


def needs(requirement: str, group: str = "", *, pinned: bool = False) -> Dependency:
    """A declared requirement."""
    return Dependency(
        requirement=requirement, group=group, pinned=pinned, evidence=Evidence(file="pyproject.toml", line=9)
    )


def uses(name: str, kind: TestNeedKind = "import") -> TestNeed:
    """Something that the tests use."""
    return TestNeed(kind=kind, name=name, evidence=Evidence(file="tests/test_x.py", line=2))


def layout(runner: str = "pytest", files: int = 3) -> TestLayout:
    """Tests in a folder `tests`."""
    return TestLayout(runner=runner, paths=("tests",), files=files)


def check(runner: str = "pytest", level: Level = Level.TESTS) -> Check:
    """A way to verify."""
    step = Step(kind=StepKind.TEST, run=f"python -m {runner}")
    return Check(level=level, runner=runner, step=step, report="/tmp/report.xml", reason=f"run {runner}")


def request(facts: Facts, *bases: BaseRef, checks: tuple[Check, ...] = ()) -> Request:
    """A Request for these facts, on bookworm and verified by pytest unless told otherwise."""
    return Request(
        facts=facts, bases=bases or (BOOKWORM,), checks=checks or (check(),), source_digest="feed" * 16, now=NOW
    )


def names(candidates: tuple[Candidate, ...]) -> list[str]:
    """The strategies of the candidates, in order."""
    return [candidate.strategy for candidate in candidates]


def commands(candidate: Candidate) -> str:
    """All that the candidate would run, as text."""
    return "\n".join(step.run for step in candidate.recipe.steps)


def pick(candidates: tuple[Candidate, ...], strategy: str) -> Candidate:
    """The first candidate of that strategy."""
    found = [candidate for candidate in candidates if candidate.strategy == strategy]
    assert found, f"{strategy} is not among {names(candidates)}"
    return found[0]
