"""What is installed for a Repo, chosen once for all variants of a route."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from specbuild.recipe import Level
from specbuild.repo.facts import Facts
from specbuild.strategies import odds, requirements, runners
from specbuild.strategies.contract import Request
from specbuild.strategies.imported import Imported, undeclared
from specbuild.strategies.requirements import Wanted

Mode = Literal["plain", "imports"]
"""Whether the tests get what is declared and configured alone, or also what their files import."""

PKG_RESOURCES_GONE = datetime(2026, 2, 8, tzinfo=UTC)
"""When setuptools 82 came, the first without `pkg_resources`. Tests and test tools of before then import it without
declaring it: new environments held setuptools until Python 3.12, and after that something mostly brought it."""

LAST_PKG_RESOURCES = "setuptools<82"

_NO_TESTS = Wanted((), "no tests are run")


@dataclass(frozen=True, slots=True)
class Needs:
    """Requirements for run time and for the tests."""

    runtime: Wanted
    tests: Wanted
    """What is declared for them, then `tools` as far as nobody declares them."""
    tools: tuple[str, ...] = ()
    """The test runner and the plugins that configuration, marks and fixtures demand, declared or not."""
    imports: tuple[Imported, ...] = ()
    """What the test files import and no requirement names."""
    read: bool = False
    """Whether there are test files whose imports could be read."""
    seeds: tuple[str, ...] = ()
    """What environments of the revision's time held without being asked."""
    tag: str = ""
    """What the choice adds to the names of routes."""
    kept: float = 1.0
    """Odds kept for the choice."""

    @classmethod
    def of(cls, request: Request) -> Needs:
        """From the facts, for the ways to verify that routes are crossed with."""
        facts = request.facts
        runtime = requirements.runtime(facts)
        if request.checks[0].level in (Level.IMPORTS, Level.BUILD):
            return cls(runtime, _NO_TESTS, seeds=_seeds(facts))
        tools = (*runners.needed(request.checks), *runners.plugins(facts, request.checks))
        tests = requirements.tests(facts)
        named = requirements.names((*runtime.requirements, *tests.requirements))
        missing = tuple(requirements.as_declared(facts, tool) for tool in tools if not runners.there(tool, named))
        tests = replace(tests, requirements=(*tests.requirements, *missing))
        return cls(
            runtime=runtime,
            tests=tests,
            tools=tools,
            imports=undeclared(facts, named | requirements.names(missing)),
            read=any(layout.files for layout in facts.tests),
            seeds=_seeds(facts),
        )

    @classmethod
    def choices(cls, request: Request) -> tuple[Needs, ...]:
        """As declared, and with releases in place of what is declared to be fetched from elsewhere."""
        needs = cls.of(request)
        if not any(requirements.fetched(text) for text in needs.texts):
            return (needs,)
        runtime, tests = _released(needs.runtime), _released(needs.tests)
        return needs, replace(needs, runtime=runtime, tests=tests, tag="+released", kept=odds.RELEASED)

    @property
    def texts(self) -> tuple[str, ...]:
        """Every requirement, no two alike."""
        texts = tuple(dict.fromkeys((*self.runtime.requirements, *self.tests.requirements)))
        named = requirements.names(texts)
        return texts + tuple(seed for seed in self.seeds if requirements.name_of(seed) not in named)

    @property
    def outside(self) -> bool:
        """Whether they can be installed without the source tree: none is a path in it."""
        return not any(requirements.in_tree(text) for text in self.texts)

    @property
    def modes(self) -> tuple[tuple[Mode, float], ...]:
        """How the tests' needs are completed, with the odds kept, likeliest first."""
        if not self.imports:
            return (("plain", 1.0 if self.tests.declared or self.read else odds.UNDECLARED),)
        if self.tests.declared:
            return ("plain", 1.0), ("imports", odds.MORE_THAN_DECLARED)
        return ("imports", odds.COMPLETED), ("plain", odds.UNDECLARED)

    def completed(self, mode: Mode | None = None) -> tuple[Imported, ...]:
        """The modules that a mode adds, by default the likeliest one."""
        return self.imports if (mode or self.modes[0][0]) == "imports" else ()


def _seeds(facts: Facts) -> tuple[str, ...]:
    revision = facts.revision_date
    return (LAST_PKG_RESOURCES,) if revision and revision.value < PKG_RESOURCES_GONE else ()


def _released(wanted: Wanted) -> Wanted:
    # The project's own extras are not asked for again, since their metadata names the addresses too.
    return replace(wanted, requirements=tuple(map(requirements.released, wanted.requirements)), extras=())
