"""What is installed for a Repo, chosen once for all variants of a route."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from specbuild.recipe import Level
from specbuild.repo.facts import Facts
from specbuild.strategies import odds, requirements
from specbuild.strategies.completion import Mode
from specbuild.strategies.contract import Request
from specbuild.strategies.requirements import Wanted

UNSEEDED = datetime(2023, 10, 2, tzinfo=UTC)
"""When Python 3.12 came, whose `venv` and `virtualenv` no longer put setuptools into new environments. Tests and
test tools of before then import `pkg_resources` without declaring it."""

LAST_PKG_RESOURCES = "setuptools<82"
"""setuptools 82 dropped `pkg_resources`."""

_NO_TESTS = Wanted((), "no tests are run")


@dataclass(frozen=True, slots=True)
class Needs:
    """Requirements for run time and for the tests."""

    runtime: Wanted
    tests: Wanted
    seeds: tuple[str, ...] = ()
    """What environments of the revision's time held without being asked."""
    tag: str = ""
    """What the choice adds to the names of routes."""
    kept: float = 1.0
    """Odds kept for the choice."""

    @classmethod
    def of(cls, request: Request) -> Needs:
        """From the facts, for the first way to verify."""
        check = request.checks[0]
        runs_tests = check.level is not Level.IMPORTS
        return cls(
            runtime=requirements.runtime(request.facts),
            tests=requirements.tests(request.facts, check.runner) if runs_tests else _NO_TESTS,
            seeds=_seeds(request.facts),
        )

    @classmethod
    def choices(cls, request: Request) -> tuple[Needs, ...]:
        """As declared, and with releases in place of what is declared to be fetched from elsewhere."""
        needs = cls.of(request)
        if not any(requirements.fetched(text) for text in needs.texts):
            return (needs,)
        return needs, cls(_released(needs.runtime), _released(needs.tests), needs.seeds, "+released", odds.RELEASED)

    @property
    def texts(self) -> tuple[str, ...]:
        """Every requirement, no two alike."""
        texts = tuple(dict.fromkeys((*self.runtime.requirements, *self.tests.requirements)))
        named = {requirements.name_of(text) for text in texts}
        return texts + tuple(seed for seed in self.seeds if requirements.name_of(seed) not in named)

    @property
    def modes(self) -> tuple[tuple[Mode, float], ...]:
        """How the tests' needs are completed, with the odds kept, likeliest first."""
        if self.tests.declared:
            return ("plugins", 1.0), ("imports", odds.MORE_THAN_DECLARED)
        return ("imports", odds.COMPLETED), ("plugins", odds.UNDECLARED)


def _seeds(facts: Facts) -> tuple[str, ...]:
    revision = facts.revision_date
    return (LAST_PKG_RESOURCES,) if revision and revision.value < UNSEEDED else ()


def _released(wanted: Wanted) -> Wanted:
    # The project's own extras are not asked for again, since their metadata names the addresses too.
    return replace(wanted, requirements=tuple(map(requirements.released, wanted.requirements)), extras=())
