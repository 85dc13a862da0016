"""Repairs of how Python distributions are built: requirements that are missing or drifted, and isolation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from packaging.utils import canonicalize_name

from specbuild.failures import (
    DriftedBackend,
    DriftedDependency,
    Failure,
    MissingBuildDependency,
    MissingModule,
    VersionOutOfRange,
)
from specbuild.predictors import stdlib
from specbuild.recipe import StepKind
from specbuild.repairs import python_odds as odds
from specbuild.repairs.contract import Case, Repair
from specbuild.repairs.edits import Edit, SetVariables
from specbuild.repairs.import_names import (
    PKG_RESOURCES,
    bringers,
    distribution,
    for_build,
    is_name,
    is_own,
    source_folder,
)
from specbuild.repairs.python_steps import (
    build_constrained,
    build_extended,
    builds,
    fresh,
    installed,
    rerun,
    setuptools_day,
)
from specbuild.strategies import requirements, steps
from specbuild.strategies.dated import EDITABLE_SETUPTOOLS

_BUILD_TOOLS = frozenset({"setuptools", "wheel", "meson", "ninja", "cmake", "cython", "numpy", "scikit-build-core"})
_BACKENDS = {"flit_core.buildapi": "flit-core", "mesonpy": "meson-python", "poetry.core.masonry.api": "poetry-core"}
_EDITABLE_SETUPTOOLS = 64
"""The first that uv can ask for an editable install (PEP 660)."""


def repair_builds(failure: Failure, case: Case) -> Iterable[Repair]:
    """The repairs of this family that the recipe does not have yet."""
    return fresh(case, _repairs(failure, case))


def _repairs(failure: Failure, case: Case) -> Iterator[Repair]:
    match failure:
        case MissingBuildDependency():
            yield from _undeclared(case, failure.module, failure.of)
        case MissingModule(language="python") if builds(case):
            yield from _missing_in_build(failure, case)
        case DriftedDependency() if builds(case):
            yield from _drifted_in_build(failure, case)
        case DriftedBackend():
            yield from _backend(failure, case)
        case VersionOutOfRange(tool=tool) if tool in _BUILD_TOOLS:
            yield from _tool_version(failure, case)
        case _:
            return


def _undeclared(case: Case, module: str, of: str) -> Iterator[Repair]:
    """A build requirement that was not declared: added to the builds of that distribution, or to all at once."""
    name = of if is_name(of) else _subject(case)
    for rank, bringer in enumerate(bringers(case, module)[:2]):
        requirement = for_build(case, bringer)
        share = odds.RIVAL**rank
        if requirement == PKG_RESOURCES:
            yield _bounded(case, PKG_RESOURCES, f"{PKG_RESOURCES} is the last with {module}", odds.BUILD_BELOW, name)
        elif name and _known_by_name(case, name):
            yield Repair(
                name=f"build-requires:{requirement}",
                title=f"build {name} with {requirement}",
                why=f"its build imports {module}; {bringer.why}",
                edits=build_extended(case, name, requirement),
                probability=odds.BUILD_EXTRA * share,
                source=bringer.source,
            )
        alone = odds.NO_ISOLATION if name and _known_by_name(case, name) else odds.NO_ISOLATION_ALONE
        yield _without_isolation(case, requirement, module, alone * share)


def _known_by_name(case: Case, name: str) -> bool:
    """Whether uv knows a distribution by its name before it is built: of a tree, only where pyproject.toml has it."""
    own = case.facts.name
    ours = own is not None and canonicalize_name(own.value) == canonicalize_name(name)
    return not ours or (own is not None and own.evidence.file == "pyproject.toml")


def _bounded(case: Case, requirement: str, why: str, chance: float, of: str = "") -> Repair:
    """A bound on builds; for the distribution `of` also a requirement, since it may not ask for any release of it."""
    edits = _as_copy(case) if _too_old_for_editables(requirement) else ()
    edits += build_constrained(case, requirement)
    if of:
        edits += build_extended(case, of, requirement)
    return Repair(
        name=f"build-constraint:{requirement}",
        title=f"build with {requirement}",
        why=why,
        edits=edits,
        probability=chance,
    )


def _too_old_for_editables(requirement: str) -> bool:
    below = re.fullmatch(r"setuptools<(\d+)", requirement)
    return below is not None and int(below[1]) <= _EDITABLE_SETUPTOOLS


def _as_copy(case: Case) -> tuple[Edit, ...]:
    """The edit that installs as a copy what the failing work installs in editable form."""
    run = re.sub(r"(?<=\s)(?:-e|--editable)\s+", "", case.step.run)
    return (rerun(case, run=run),) if run != case.step.run else ()


def _without_isolation(case: Case, requirement: str, module: str, chance: float) -> Repair:
    declared = [fact.value for fact in case.facts.build_requires] or ["setuptools", "wheel"]
    texts = tuple(dict.fromkeys((*declared, requirement)))
    return Repair(
        name=f"no-isolation:{requirement}",
        title=f"install {', '.join(texts)} and build without isolation",
        why=f"builds then see {module} in the environment",
        edits=(
            installed(case, texts, newest=requirements.names(texts)),
            SetVariables(env=(("PIP_NO_BUILD_ISOLATION", "0"), ("UV_NO_BUILD_ISOLATION", "1"))),
        ),
        probability=chance,
    )


def _missing_in_build(failure: MissingModule, case: Case) -> Iterator[Repair]:
    if is_own(case, failure.module):
        # A set-up script that imports its own package, which PEP 517 no longer puts on the path.
        yield Repair(
            name="env:PYTHONPATH",
            title="put the source tree on the import path",
            why="the set-up script imports the project's own modules",
            edits=(SetVariables(env=(("PYTHONPATH", source_folder(case)),)),),
            probability=odds.OWN_PATH,
        )
    elif not stdlib.is_standard(failure.module) or failure.module.startswith("pkg_resources"):
        yield from _undeclared(case, failure.module, "")


def _subject(case: Case) -> str:
    """The distribution whose build fails: as the output names it, or the project in its own Step."""
    own = case.facts.name.value if case.facts.name and case.step.kind is StepKind.BUILD else ""
    return next((name for name in (case.subject, own) if is_name(name)), "")


def _drifted_in_build(failure: DriftedDependency, case: Case) -> Iterator[Repair]:
    if not is_name(failure.module) or is_own(case, failure.module):
        return
    if failure.name == "pkg_resources":
        why = f"{PKG_RESOURCES} is the last with pkg_resources"
        yield _bounded(case, PKG_RESOURCES, why, odds.BUILD_BELOW, _subject(case))
    elif is_name(failure.below):
        name = distribution(case, failure.module)
        yield _bounded(
            case, f"{name}<{failure.below}", f"{name} {failure.below} removed {failure.name}", odds.BUILD_BELOW
        )


def _backend(failure: DriftedBackend, case: Case) -> Iterator[Repair]:
    name = str(canonicalize_name(_BACKENDS.get(failure.backend, failure.backend.partition(".")[0])))
    if not is_name(name):
        return
    if is_name(failure.below):
        text = f"{name}<{failure.below}"
        yield _bounded(case, text, f"{name} {failure.below} dropped {failure.name}", odds.BUILD_BELOW)
    elif failure.name == "build_editable":
        yield from _not_editable(case)
    yield from _backend_dated(name, failure, case)


def _not_editable(case: Case) -> Iterator[Repair]:
    if edits := _as_copy(case):
        yield Repair(
            name="pip:not-editable",
            title="install the project as a copy",
            why="its build backend makes no editable installs",
            edits=edits,
            probability=odds.OTHER_TOOL,
        )


def _backend_dated(name: str, failure: DriftedBackend, case: Case) -> Iterator[Repair]:
    """The backend of the revision's time, where the command has no date for it yet."""
    revision = case.facts.revision_date
    if revision is None or not re.search(r"\buv(\S*) pip install\b", case.step.run):
        return
    until = revision.value
    if name == "setuptools":
        until = setuptools_day(case, until)
    cut = f"--exclude-newer-package {name}={steps.end_of(until)}"
    bare = re.sub(rf" --exclude-newer-package {re.escape(name)}=\S+", "", case.step.run)
    run = re.sub(r"(\buv(?:\S*) pip install)\b", rf"\1 {cut}", bare)
    if name == "setuptools" and until < EDITABLE_SETUPTOOLS:
        run = re.sub(r"(?<=\s)(?:-e|--editable)\s+", "", run)
    day = until.date().isoformat()
    yield Repair(
        name=f"build-constraint:{name}@{day}",
        title=f"build with {name} as of {day}",
        why=f"some release since then dropped {failure.name}",
        edits=(rerun(case, run=run),),
        probability=odds.BUILD_UNKNOWN,
    )


def _tool_version(failure: VersionOutOfRange, case: Case) -> Iterator[Repair]:
    """A build tool by PyPI: newer than Debian's, or older than today's."""
    bounds = failure.required if re.match(r"[<>=!~]", failure.required) else f">={failure.required}"
    if not failure.required or not requirements.name_of(f"{failure.tool}{bounds}"):
        return
    text = f"{failure.tool}{bounds}".replace(" ", "")
    if failure.tool == "cmake" and bounds.startswith("<"):
        yield Repair(
            name="env:CMAKE_POLICY_VERSION_MINIMUM",
            title="let CMake take the source for one of its release 3.5",
            why=f"CMake 4 no longer takes sources of before {failure.because or '3.5'}",
            edits=(SetVariables(env=(("CMAKE_POLICY_VERSION_MINIMUM", "3.5"),)),),
            probability=odds.GIT_SETTING,
        )
    yield _bounded(case, text, f"{failure.tool} {failure.found} does not do", odds.BUILD_UNKNOWN)
    yield Repair(
        name=f"pip:{text}",
        title=f"install {text} from the package index",
        why=f"{failure.tool} {failure.found} is not {failure.required}, and the environment's programs come first",
        edits=(installed(case, (text,), newest=(failure.tool,)),),
        probability=odds.OTHER_TOOL,
    )
