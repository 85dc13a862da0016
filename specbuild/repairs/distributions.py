"""Repairs by Python distributions beside the project: missing modules and test extras."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from packaging.utils import canonicalize_name

from specbuild.failures import (
    DependenciesNotInstalled,
    Failure,
    MissingModule,
    MissingTestExtra,
)
from specbuild.predictors import stdlib
from specbuild.repairs import python_odds as odds
from specbuild.repairs.contract import Case, Repair
from specbuild.repairs.import_names import bringers, is_name, is_own
from specbuild.repairs.python_steps import (
    builds,
    fresh,
    has,
    in_check,
    installed,
    option,
)
from specbuild.strategies import requirements

_ASYNC = ("pytest-asyncio", "anyio", "pytest-trio", "pytest-aiohttp", "pytest-tornasync", "pytest-twisted")
_INSTALLERS = frozenset({"pip", "uv", "poetry", "pdm", "pipenv", "hatch", "python"})


def repair_distributions(failure: Failure, case: Case) -> Iterable[Repair]:
    """The repairs of this family that the recipe does not have yet."""
    return fresh(case, _repairs(failure, case))


def _repairs(failure: Failure, case: Case) -> Iterator[Repair]:
    match failure:
        case MissingModule(language="python"):
            yield from _module(failure, case)
        case MissingTestExtra():
            yield from _test_extra(failure, case)
        case DependenciesNotInstalled(tool=tool) if tool in _INSTALLERS:
            yield from _everything(case)
        case _:
            return


def _module(failure: MissingModule, case: Case) -> Iterator[Repair]:
    """Installs what brings the module; of what an isolated build misses see `builds`."""
    top = failure.module.partition(".")[0]
    if builds(case) or is_own(case, failure.module) or (stdlib.is_standard(top) and top != "pkg_resources"):
        return
    for rank, module in enumerate((failure.module, *failure.alternatives)):
        for bringer in bringers(case, module)[:3]:
            if has(case, (bringer.requirement,)):
                continue
            edits = (installed(case, (bringer.requirement,)),)
            yield Repair(
                name=f"pip:{bringer.name}",
                title=f"install {bringer.requirement}",
                why=bringer.why,
                edits=edits,
                probability=bringer.probability * odds.RIVAL**rank,
                source=bringer.source,
            )
    yield from _group(case)


def _group(case: Case) -> Iterator[Repair]:
    """The project's own test group, where a route has overlooked it."""
    wanted = requirements.tests(case.facts)
    if in_check(case) and wanted.requirements and not has(case, wanted.requirements):
        yield Repair(
            name="pip:test-group",
            title=f"install the {wanted.why}",
            why="the project names it for its tests",
            edits=(installed(case, wanted.requirements),),
            probability=odds.GROUP,
            source="facts",
        )


def _everything(case: Case) -> Iterator[Repair]:
    texts = declared(case)
    if texts and not has(case, texts):
        yield Repair(
            name="pip:declared",
            title="install what the project declares",
            why="nothing has installed it before",
            edits=(installed(case, texts),),
            probability=odds.DECLARED,
            source="facts",
        )


def _test_extra(failure: MissingTestExtra, case: Case) -> Iterator[Repair]:
    if failure.distribution == "pytest-asyncio" and failure.name.startswith("async"):
        yield from _async(case)
    elif is_name(failure.distribution):
        requirement = requirements.as_declared(case.facts, str(canonicalize_name(failure.distribution)))
        yield Repair(
            name=f"pip:{canonicalize_name(failure.distribution)}",
            title=f"install {requirement}",
            why=f"it brings {failure.name}" if failure.name else "the tests use it",
            edits=(installed(case, (requirement,)),),
            probability=odds.PLUGIN,
        )
    if failure.name.startswith("-") or failure.name == "required_plugins":
        yield Repair(
            name="pytest:without-options",
            title="run pytest without the project's own options",
            why=f"its configuration demands {failure.name}, which no plugin brings",
            edits=(option(case, "-o addopts= -o required_plugins="),),
            probability=odds.WITHOUT_OPTIONS,
        )
    yield from _group(case)


def _async(case: Case) -> Iterator[Repair]:
    """The framework that the project names, else the one that most use."""
    named = requirements.names(one.requirement for one in case.facts.dependencies)
    declared = [name for name in _ASYNC if name in named]
    for rank, name in enumerate(declared or _ASYNC[:2]):
        requirement = requirements.as_declared(case.facts, name)
        yield Repair(
            name=f"pip:{name}",
            title=f"install {requirement}",
            why="it runs tests that are coroutines" + (", and the project names it" if declared else ""),
            edits=(installed(case, (requirement,)),),
            probability=(odds.DECLARED if declared else odds.ASYNC_PLUGIN) * odds.RIVAL**rank,
            source="facts" if declared else "rule",
        )
    if not declared or "pytest-asyncio" in declared:
        requirement = requirements.as_declared(case.facts, "pytest-asyncio")
        yield Repair(
            name="pip:pytest-asyncio+auto",
            title=f"install {requirement} and let it take every coroutine for a test",
            why="its first releases did so without marks",
            edits=(installed(case, (requirement,)), option(case, "-o asyncio_mode=auto")),
            probability=odds.ASYNC_AUTO,
        )


def declared(case: Case) -> tuple[str, ...]:
    """What the project and its tests are declared to need."""
    wanted = requirements.runtime(case.facts), requirements.tests(case.facts)
    return tuple(dict.fromkeys(text for one in wanted for text in one.requirements))
