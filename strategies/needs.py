"""What is installed for a Repo, chosen once for all variants of a route."""

from __future__ import annotations

from dataclasses import dataclass

from specbuild.recipe import Level
from specbuild.strategies import odds, requirements
from specbuild.strategies.completion import Mode
from specbuild.strategies.contract import Request
from specbuild.strategies.requirements import Wanted

_NO_TESTS = Wanted((), "no tests are run")


@dataclass(frozen=True, slots=True)
class Needs:
    """Requirements for run time and for the tests."""

    runtime: Wanted
    tests: Wanted

    @classmethod
    def of(cls, request: Request) -> Needs:
        """From the facts, for the first way to verify."""
        check = request.checks[0]
        runs_tests = check.level is not Level.IMPORTS
        return cls(
            runtime=requirements.runtime(request.facts),
            tests=requirements.tests(request.facts, check.runner) if runs_tests else _NO_TESTS,
        )

    @property
    def texts(self) -> tuple[str, ...]:
        """Every requirement, no two alike."""
        return tuple(dict.fromkeys((*self.runtime.requirements, *self.tests.requirements)))

    @property
    def modes(self) -> tuple[tuple[Mode, float], ...]:
        """How the tests' needs are completed, with the odds kept, likeliest first."""
        if self.tests.declared:
            return ("plugins", 1.0), ("imports", odds.MORE_THAN_DECLARED)
        return ("imports", odds.COMPLETED), ("plugins", odds.UNDECLARED)
