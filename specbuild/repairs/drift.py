"""Repairs by other releases: of dependencies and test tools that moved on, and of what no index can serve together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from specbuild.failures import DriftedDependency, DriftedTestTool, Failure, UnsatisfiableResolution, VersionOutOfRange
from specbuild.repairs import python_odds as odds
from specbuild.repairs.contract import Case, Repair
from specbuild.repairs.distributions import declared
from specbuild.repairs.edits import InsertSteps, SetVariables
from specbuild.repairs.import_names import PKG_RESOURCES, distribution, is_name, is_own
from specbuild.repairs.python_steps import (
    builds,
    dated,
    fresh,
    installed,
    option,
    overridden,
    pinned,
    rerun,
    setuptools_day,
    step,
    undated,
)
from specbuild.strategies import requirements, steps
from specbuild.strategies.dated import EDITABLE_SETUPTOOLS, OLDEST_PYTEST

_TOOLS = frozenset({"pytest", "tox", "nox", "sphinx"})
_PYTHON_TOOLS = frozenset({"pip", "uv"})
_BUILD_TOOLS = ("pip", "setuptools", "wheel")


def repair_drift(failure: Failure, case: Case) -> Iterable[Repair]:
    """The repairs of this family that the recipe does not have yet."""
    return fresh(case, _repairs(failure, case))


def _repairs(failure: Failure, case: Case) -> Iterator[Repair]:
    match failure:
        case DriftedDependency() if not builds(case):
            yield from _drifted(failure, case)
        case DriftedTestTool():
            yield from _test_tool(failure, case)
        case VersionOutOfRange(tool=tool) if tool in _TOOLS:
            yield from _tool_version(failure, case)
        case UnsatisfiableResolution(tool=tool) if tool in _PYTHON_TOOLS:
            yield from _resolution(failure, case)
        case _:
            return


def _drifted(failure: DriftedDependency, case: Case) -> Iterator[Repair]:
    if is_name(failure.module) and not is_own(case, failure.module):
        if failure.name == "pkg_resources":
            yield _pin(case, "setuptools", PKG_RESOURCES, f"{PKG_RESOURCES} is the last with pkg_resources", odds.BELOW)
        elif is_name(failure.below):
            name = distribution(case, failure.module)
            text, why = f"{name}<{failure.below}", f"{name} {failure.below} removed {failure.name}"
            yield _pin(case, name, text, why, odds.BELOW)
        if failure.name != "pkg_resources":
            # Beside a bound too: the last release before a break warns of it, which suites may take for an error.
            yield from _pin_dated(failure, case)
    yield from _as_of_date(case)


def _pin(case: Case, name: str, requirement: str, why: str, chance: float, *others: str) -> Repair:
    return Repair(
        name=f"pip:{requirement}",
        title=f"install {requirement}",
        why=why,
        edits=pinned(case, requirement, *(text for text in others if requirements.name_of(text) != name)),
        probability=chance,
    )


def _pin_dated(failure: DriftedDependency, case: Case) -> Iterator[Repair]:
    """The dependency alone as of the revision's date: whatever release made the break, it was not there yet.

    uv keeps what is installed even when it is to upgrade and a date forbids it; only reinstalling lets go of it.
    """
    revision = case.facts.revision_date
    if revision is None or dated(case):
        return
    name, day = distribution(case, failure.module), revision.value.date().isoformat()
    cut = f"--exclude-newer-package {name}={steps.end_of(revision.value)}"
    run = f"{case.install} {cut} --reinstall-package {name} {name}"
    yield Repair(
        name=f"pip:{name}@{day}",
        title=f"install {name} as of {day}",
        why=f"some release since then removed {failure.name}",
        edits=(InsertSteps(steps=(step(case, run, f"install {name} as of {day}"),)),),
        probability=odds.DATED_ALONE if failure.below else odds.BELOW_UNKNOWN,
    )


def _as_of_date(case: Case) -> Iterator[Repair]:
    """Everything as of the revision's date; build tools apart, which have an era of their own (see `dated`)."""
    revision, texts = case.facts.revision_date, declared(case)
    if revision is None or dated(case) or not texts:
        return
    day = revision.value.date().isoformat()
    old = setuptools_day(case, revision.value)
    until = steps.end_of(old) if old < EDITABLE_SETUPTOOLS else "false"
    exempt = [f"--exclude-newer-package {name}={until}" for name in _build_tools(case)]
    options = ("--reinstall", f"--exclude-newer {steps.end_of(revision.value)}", *exempt)
    yield Repair(
        name=f"pip:declared@{day}",
        title=f"install the declared requirements as of {day}",
        why="what moved since the revision moved together",
        edits=(installed(case, texts, *options),),
        probability=odds.AS_OF_DATE,
        source="facts",
    )


def _build_tools(case: Case) -> list[str]:
    return sorted({*_BUILD_TOOLS, *requirements.names(fact.value for fact in case.facts.build_requires)})


def _test_tool(failure: DriftedTestTool, case: Case) -> Iterator[Repair]:
    tool, plugins = failure.tool, _plugins(case, failure.tool)
    if not is_name(tool):
        return
    if is_name(failure.below):
        text = f"{tool}<{failure.below}"
        yield _pin(case, tool, text, f"{failure.name} is an error since then", odds.TOOL_BELOW, *plugins)
    revision = case.facts.revision_date
    if revision and not dated(case):
        day = revision.value.date().isoformat()
        cut = f"--exclude-newer-package {tool}={steps.end_of(max(revision.value, _oldest_pytest(case)))}"
        run = f"{case.install} {cut} --reinstall-package {tool} {steps.words((tool, *plugins))}"
        yield Repair(
            name=f"pip:{tool}@{day}",
            title=f"install {tool} as of {day}",
            why=f"the suite was written for the {tool} of its time",
            edits=(InsertSteps(steps=(step(case, run, f"install {tool} as of {day}"),)),),
            probability=odds.TOOL_DATED,
        )
    if tool == "pytest" and failure.name.endswith("Warning") and is_name(failure.name):
        yield Repair(
            name="pytest:without-filters",
            title="run pytest without the project's own warning filters",
            why=f"{failure.name} is only a warning that these make an error",
            edits=(option(case, f"-o filterwarnings= -W default::pytest.{failure.name.removeprefix('pytest.')}"),),
            probability=odds.WITHOUT_FILTERS,
        )


def _plugins(case: Case, tool: str) -> tuple[str, ...]:
    """The tool's plugins that the tests are declared to need: they must fit the release that is chosen."""
    texts = requirements.tests(case.facts).requirements
    return tuple(text for text in texts if requirements.name_of(text).startswith(f"{tool}-"))


def _oldest_pytest(case: Case) -> datetime:
    return OLDEST_PYTEST.get(case.recipe.base.python or "", datetime(2016, 1, 1, tzinfo=UTC))


def _tool_version(failure: VersionOutOfRange, case: Case) -> Iterator[Repair]:
    """Another release of a test tool; a bare version is the least that will do."""
    bounds = _bounds(failure.required)
    if bounds is None:
        return
    text, plugins = f"{failure.tool}{bounds}", _plugins(case, failure.tool)
    newest = (failure.tool,) if ">" in bounds else ()
    yield Repair(
        name=f"pip:{text}",
        title=f"install {text}",
        why=f"{failure.tool} {failure.found} is asked to be {failure.required}",
        edits=(installed(case, (text, *plugins), newest=newest),),
        probability=odds.TOOL_BELOW,
    )


def _bounds(required: str) -> str | None:
    """A specifier in the words of PEP 440, of a specifier or a bare version."""
    text = required.strip().removeprefix("v")
    try:
        return f">={Version(text)}"
    except InvalidVersion:
        pass
    try:
        return str(SpecifierSet(text)) or None
    except InvalidSpecifier:
        return None


def _resolution(failure: UnsatisfiableResolution, case: Case) -> Iterator[Repair]:
    """Lifts the pin that was named; lifts the date, or brings one in."""
    name = requirements.name_of(failure.requirement)
    if name and failure.requirement != name:
        yield Repair(
            name=f"pip:any-{name}",
            title=f"take any release of {name}",
            why=f"no index has {failure.requirement} for this interpreter",
            edits=overridden(case, name),
            probability=odds.RELAXED,
        )
    if "--exclude-newer" in case.step.run:
        yield Repair(
            name="pip:without-date",
            title="resolve without dates",
            why="the releases of that day do not fit together on this interpreter",
            edits=(rerun(case, run=undated(case.step.run)),),
            probability=odds.WITHOUT_DATE,
        )
    revision = case.facts.revision_date
    if revision and not dated(case):
        day = revision.value.date().isoformat()
        # pip has an option of its own for it since 26.0.
        end = steps.end_of(revision.value)
        yield Repair(
            name=f"policy:as-of-{day}",
            title=f"resolve as of {day}",
            why="on that day the requirements fitted together",
            edits=(SetVariables(env=(("PIP_UPLOADED_PRIOR_TO", end), ("UV_EXCLUDE_NEWER", end))),),
            probability=odds.AS_OF_DATE,
        )
