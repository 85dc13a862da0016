"""Repairs of how Python distributions and the project itself get installed: locks, archives, trees, environments."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from specbuild.failures import (
    ArchiveRefused,
    Failure,
    ManagedInterpreter,
    NotBuilt,
    NotInstallable,
    ShadowedPackage,
    UnfitLock,
)
from specbuild.recipe import UV, VENV_DIR, Step, StepKind
from specbuild.repairs import python_odds as odds
from specbuild.repairs.contract import Case, Repair
from specbuild.repairs.edits import InsertSteps, ReplaceWork, SetVariables
from specbuild.repairs.import_names import distribution, is_name, is_own, source_folder
from specbuild.repairs.python_steps import command, fresh, in_check, installed, rerun, step
from specbuild.strategies import project, requirements, steps

_LOCKERS = frozenset({"uv", "poetry", "pdm", "pipenv"})
_INSTALLERS = frozenset({"pip", "uv", "setuptools", "poetry", "flit", "hatch", "hatchling", "build", "pdm"})
_TARGETS = ("build", "compile", "develop", "all")


def repair_installing(failure: Failure, case: Case) -> Iterable[Repair]:
    """The repairs of this family that the recipe does not have yet."""
    return fresh(case, _repairs(failure, case))


def _repairs(failure: Failure, case: Case) -> Iterator[Repair]:
    match failure:
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


def _refused(failure: ArchiveRefused, case: Case) -> Iterator[Repair]:
    """pip takes what uv refuses; uv is then content with what is installed."""
    parts = re.match(r"(?P<name>.+?)-(?P<version>\d[^-]*?)\.(?:tar\.\w+|tgz|tbz|zip|egg)$", failure.archive)
    if parts is None or not is_name(parts["name"]) or not _is_version(parts["version"]):
        return
    name, version = canonicalize_name(parts["name"]), parts["version"]
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
        f"echo {source_folder(case)} > \"$({VENV_DIR}/bin/python -c 'import sysconfig; "
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
    if not is_name(name):
        return
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


def _is_version(text: str) -> bool:
    try:
        return bool(Version(text))
    except InvalidVersion:
        return False
