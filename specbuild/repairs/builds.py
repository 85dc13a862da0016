"""Repairs of how Python distributions are built and how the project itself gets installed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename

from specbuild.failures import (
    ArchiveRefused,
    DriftedBackend,
    DriftedDependency,
    Failure,
    ManagedInterpreter,
    MissingBuildDependency,
    MissingModule,
    NotBuilt,
    NotInstallable,
    ShadowedPackage,
    UnfitLock,
    VersionOutOfRange,
)
from specbuild.predictors import stdlib
from specbuild.recipe import SOURCE_DIR, UV, VENV_DIR, Step, StepKind
from specbuild.repairs import python_odds as odds
from specbuild.repairs.contract import Case, Repair
from specbuild.repairs.edits import Edit, InsertSteps, ReplaceWork, SetVariables
from specbuild.repairs.import_names import PKG_RESOURCES, bringers, distribution, for_build, is_own
from specbuild.repairs.python_steps import (
    build_constrained,
    build_extended,
    builds,
    command,
    fresh,
    in_check,
    installed,
    rerun,
    step,
)
from specbuild.strategies import project, requirements, steps
from specbuild.strategies.dated import EDITABLE_SETUPTOOLS, OLDEST_SETUPTOOLS, OLDEST_SETUPTOOLS_312

_BUILD_TOOLS = frozenset({"setuptools", "wheel", "meson", "ninja", "cmake", "cython", "numpy", "scikit-build-core"})
_BACKENDS = {"flit_core.buildapi": "flit-core", "mesonpy": "meson-python", "poetry.core.masonry.api": "poetry-core"}
_LOCKERS = frozenset({"uv", "poetry", "pdm", "pipenv"})
_INSTALLERS = frozenset({"pip", "uv", "setuptools", "poetry", "flit", "hatch", "hatchling", "build", "pdm"})
_EDITABLE_SETUPTOOLS = 64
"""The first that uv can ask for an editable install (PEP 660)."""

_NEW_PYTHONS = frozenset({"3.12", "3.13", "3.14"})
_TARGETS = ("build", "compile", "develop", "all")


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
        case ArchiveRefused(tool="uv"):
            yield from _refused(failure, case)
        case UnfitLock(tool=tool) if tool in _LOCKERS:
            yield from _lock(failure, case)
        case NotInstallable(tool=tool) if tool in _INSTALLERS:
            yield from _not_installable(failure, case)
        case ManagedInterpreter():
            yield from _managed(case)
        case NotBuilt():
            yield from _not_built(failure, case)
        case ShadowedPackage() if in_check(case):
            yield from _reinstalled(failure, case)
        case _:
            return


def _undeclared(case: Case, module: str, of: str) -> Iterator[Repair]:
    """A build requirement that was not declared: added to the builds of that distribution, or to all at once."""
    name = of or _subject(case)
    for rank, bringer in enumerate(bringers(case, module)[:2]):
        requirement = for_build(case, bringer)
        share = odds.RIVAL**rank
        if requirement == PKG_RESOURCES:
            yield _bounded(case, PKG_RESOURCES, f"{PKG_RESOURCES} is the last with {module}", odds.BUILD_BELOW, name)
        elif name:
            yield Repair(
                name=f"build-requires:{requirement}",
                title=f"build {name} with {requirement}",
                why=f"its build imports {module}; {bringer.why}",
                edits=build_extended(case, name, requirement),
                probability=odds.BUILD_EXTRA * share,
                source=bringer.source,
            )
        yield _without_isolation(case, requirement, module, odds.NO_ISOLATION * share)


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
            edits=(SetVariables(env=(("PYTHONPATH", _source_folder(case)),)),),
            probability=odds.OWN_PATH,
        )
    elif not stdlib.is_standard(failure.module) or failure.module.startswith("pkg_resources"):
        yield from _undeclared(case, failure.module, "")


def _subject(case: Case) -> str:
    """The distribution whose build fails: as the output names it, or the project in its own Step."""
    own = case.facts.name.value if case.facts.name and case.step.kind is StepKind.BUILD else ""
    return case.subject or own


def _source_folder(case: Case) -> str:
    inner = any(fact.evidence.file.startswith("src/") for fact in case.facts.packages)
    return f"{SOURCE_DIR}/src" if inner else SOURCE_DIR


def _drifted_in_build(failure: DriftedDependency, case: Case) -> Iterator[Repair]:
    if not failure.module or is_own(case, failure.module):
        return
    if failure.name == "pkg_resources":
        why = f"{PKG_RESOURCES} is the last with pkg_resources"
        yield _bounded(case, PKG_RESOURCES, why, odds.BUILD_BELOW, _subject(case))
    elif failure.below:
        name = distribution(case, failure.module)
        yield _bounded(
            case, f"{name}<{failure.below}", f"{name} {failure.below} removed {failure.name}", odds.BUILD_BELOW
        )


def _backend(failure: DriftedBackend, case: Case) -> Iterator[Repair]:
    name = str(canonicalize_name(_BACKENDS.get(failure.backend, failure.backend.partition(".")[0])))
    if failure.below:
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
        until = max(until, OLDEST_SETUPTOOLS_312 if case.recipe.base.python in _NEW_PYTHONS else OLDEST_SETUPTOOLS)
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


def _refused(failure: ArchiveRefused, case: Case) -> Iterator[Repair]:
    """pip takes what uv refuses; uv is then content with what is installed."""
    match = re.match(r"(?P<name>.+?)-(?P<version>\d[^-]*?)\.(?:tar\.\w+|tgz|tbz|zip|egg)$", failure.archive)
    try:
        name, version = parse_sdist_filename(failure.archive)
    except InvalidSdistFilename:
        if match is None:
            return
        name, version = canonicalize_name(match["name"]), match["version"]
    pin = f"{name}=={version}"
    pip = f"{VENV_DIR}/bin/python -m pip install --quiet --no-deps --no-build-isolation {shlex.quote(pin)}"
    # Archives of such names are from before PEP 517 was common, and of the set-up scripts of then.
    run = f"{command(case, ('pip', 'setuptools<58', 'wheel'))}\n{pip}"
    yield Repair(
        name=f"pip:by-pip-{name}",
        title=f"install {pin} with pip",
        why=f"pip takes {failure.archive}, and uv what is installed",
        edits=(InsertSteps(steps=(step(case, run, f"install {pin} with pip"),)),),
        probability=odds.OTHER_TOOL,
    )
    yield Repair(
        name=f"pip:{name}!={version}",
        title=f"take another release of {name}",
        why="others have archives that uv takes",
        edits=(installed(case, (f"{name}!={version}",)),),
        probability=odds.WITHOUT_DATE,
    )


def _lock(failure: UnfitLock, case: Case) -> Iterator[Repair]:
    if failure.tool == "uv" and failure.problem == "stale" and "--locked" in case.step.run:
        yield Repair(
            name="uv:frozen",
            title="use the lock file as it stands",
            why="only its agreement with the manifest was asked for with --locked",
            edits=(rerun(case, run=case.step.run.replace("--locked", "--frozen")),),
            probability=odds.FROZEN,
        )
    if failure.tool == "uv" and failure.problem == "missing":
        run = case.step.run.replace(" --frozen", "").replace(" --locked", "")
        yield Repair(
            name="uv:unlocked",
            title="let uv resolve anew",
            why="there is no lock file",
            edits=(rerun(case, run=run),),
            probability=odds.FROZEN,
        )
    # Locking anew would write the lock file, which is tracked.
    wanted = requirements.runtime(case.facts), requirements.tests(case.facts)
    texts = tuple(dict.fromkeys(text for one in wanted for text in one.requirements))
    if texts and not in_check(case):
        declared = step(case, command(case, texts), "install what is declared, not what is locked")
        yield Repair(
            name="pip:declared",
            title="install what is declared instead of what is locked",
            why=f"the lock file of {failure.tool} is {failure.problem}",
            edits=(ReplaceWork(step=declared),),
            probability=odds.UNLOCKED,
            source="facts",
        )


def _not_installable(failure: NotInstallable, case: Case) -> Iterator[Repair]:
    """The tree used from where it lies: a `.pth` file makes its folder a part of the environment."""
    if in_check(case):
        return
    texts = requirements.runtime(case.facts).requirements
    lines = [command(case, texts)] if texts else []
    lines.append(
        f"echo {_source_folder(case)} > \"$({VENV_DIR}/bin/python -c 'import sysconfig; "
        'print(sysconfig.get_path("purelib"))\')/specbuild-tree.pth"'
    )
    run = step(case, "\n".join(lines), "use the source tree where it lies")
    yield Repair(
        name="python:from-tree",
        title="put the source tree on the environment's path instead of installing it",
        why=f"{failure.tool} cannot install it: {failure.problem}",
        edits=(ReplaceWork(step=run.model_copy(update={"kind": case.step.kind})),),
        probability=odds.FROM_TREE,
    )


def _managed(case: Case) -> Iterator[Repair]:
    seed = Step(
        kind=StepKind.TOOLCHAIN,
        run=f"[ -e {VENV_DIR}/bin/pip ] || python3 -m venv --clear {VENV_DIR}",
        title="make a virtual environment with pip",
        cwd="/",
    )
    yield Repair(
        name="python:venv",
        title="use a virtual environment",
        why="the distribution's interpreter takes no packages",
        edits=(InsertSteps(steps=(seed,)), SetVariables(env=steps.ACTIVE, kept=True)),
        probability=odds.ENVIRONMENT,
    )
    yield Repair(
        name="env:PIP_BREAK_SYSTEM_PACKAGES",
        title="let pip install beside the distribution's packages",
        why="nothing else uses this sandbox's interpreter",
        edits=(SetVariables(env=(("PIP_BREAK_SYSTEM_PACKAGES", "1"), ("UV_BREAK_SYSTEM_PACKAGES", "1"))),),
        probability=odds.BREAK_SYSTEM,
    )


def _not_built(failure: NotBuilt, case: Case) -> Iterator[Repair]:
    targets = {fact.value for fact in case.facts.make_targets}
    target = next((name for name in _TARGETS if name in targets), None)
    if target:
        make = step(case, f"make {target}", f"make {target}").model_copy(update={"kind": StepKind.BUILD})
        yield Repair(
            name=f"make:{target}",
            title=f"run `make {target}` first",
            why=f"a build step makes {failure.path}",
            edits=(InsertSteps(steps=(make,)),),
            probability=odds.MAKE_TARGET,
            source="facts",
        )
    if case.facts.extensions and project.uses_setuptools(case.facts):
        yield _in_place(case, f"the build makes {failure.path}", odds.BUILT_IN_PLACE)


def _in_place(case: Case, why: str, chance: float) -> Repair:
    editable = step(case, f"{UV} pip install --no-cache -e .", "install the project in editable form")
    return Repair(
        name="python:editable",
        title="install the project in editable form",
        why=why,
        edits=(InsertSteps(steps=(editable.model_copy(update={"kind": StepKind.BUILD, "caches": ()}),)),),
        probability=chance,
    )


def _reinstalled(failure: ShadowedPackage, case: Case) -> Iterator[Repair]:
    """What gives the tree, or the installed copy, its compiled modules; see `running` for tests from outside."""
    own = is_own(case, failure.module)
    if own and project.editable(case.facts):
        yield _in_place(case, f"an editable install puts {failure.module} beside its sources", odds.EDITABLE)
    name = case.facts.name.value if own and case.facts.name else distribution(case, failure.module)
    target = "." if own else name
    again = step(
        case,
        f"{UV} pip install --no-cache --reinstall-package {name} --no-binary-package {name} --no-deps {target}"
        if not own
        else f"{UV} pip install --no-cache --reinstall-package {name} --no-deps {target}",
        f"build {name} anew",
    ).model_copy(update={"kind": StepKind.BUILD, "caches": ()})
    compilers = project.compilers(case.facts) or project.PLAIN_COMPILER
    yield Repair(
        name=f"compile:{name}",
        title=f"install a compiler and build {name} anew",
        why=f"{failure.module} is left out where there is no compiler",
        edits=(InsertSteps(steps=(steps.packages(compilers), again)),),
        probability=odds.COMPILED,
    )
