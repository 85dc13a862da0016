"""Modules of interpreters that packages of the distribution bring."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from specbuild.failures import Failure, MissingModule
from specbuild.knowledge.kinds import Owner, PathKind
from specbuild.recipe import VENV_DIR, Step, StepKind
from specbuild.repairs import apt, needs
from specbuild.repairs.contract import Case, Repair
from specbuild.repairs.edits import InsertSteps
from specbuild.repairs.owners import owned, share_out, shares

_OWN = 0.9
"""Probability for a part of the interpreter's own library, which nothing else brings."""

_ONLY_HERE = 0.7
_ALSO_HERE = 0.3
"""Probability for a module of a package, without and with a distribution that an installer would bring."""

_SPLIT = {"distutils": "distutils.core", "lib2to3": "lib2to3.main"}
"""Modules of which a stub stays with the interpreter, by what lies in the package of the rest."""

_DIST_PACKAGES = "usr/lib/python3/dist-packages"
_NAMESPACE = "gi.repository."
_VERSION = re.compile(r"version '?(?P<version>\d[\d.]*)")

_SEE_SYSTEM = f"""\
{VENV_DIR}/bin/python -c 'import pathlib, site
pathlib.Path(site.getsitepackages()[0], "zz-system.pth").write_text("/{_DIST_PACKAGES}\\n")'
"""
"""The system's packages come last on the module path, so that they fill gaps and hide nothing."""

_KINDS = {
    "ruby": PathKind.RUBY_LIBRARY,
    "perl": PathKind.PERL_MODULE,
    "php": PathKind.PHP_EXTENSION,
}
_NAMES = {"ruby": "ruby-{}", "perl": "lib{}-perl", "php": "php-{}", "node": "node-{}"}
"""How Debian's teams name the packages of a module."""


def repair(failure: Failure, case: Case) -> Iterable[Repair]:
    """Repairs of a module that the distribution has."""
    if not isinstance(failure, MissingModule):
        return ()
    if failure.language != "python":
        return _foreign(failure, case)
    if failure.module.startswith(_NAMESPACE):
        return _namespace(failure, case)
    return _python(failure, case)


def _python(failure: MissingModule, case: Case) -> Iterator[Repair]:
    for module in (failure.module, *failure.alternatives):
        owners = _owners(_SPLIT.get(module, module), case)
        if not owners or needs.is_own(case, owners[0].package) or module.partition(".")[0] in _own_modules(case):
            continue
        inside = [owner for owner in owners if owner.folder != _DIST_PACKAGES]
        what = f"Python's module {module}"
        if inside:
            found = share_out(case, PathKind.PYTHON_MODULE, inside)
            yield from owned(case, found, what=what, builds=False, probability=_OWN)
        elif _sees_system(case):
            found = share_out(case, PathKind.PYTHON_MODULE, owners)
            yield from owned(case, found, what=what, builds=False, probability=_ONLY_HERE)
        else:
            yield from _beside(module, owners[0].package, case)


def _own_modules(case: Case) -> set[str]:
    return {package.value for package in case.facts.packages}


def _owners(name: str, case: Case) -> tuple[Owner, ...]:
    """Who owns a module, or what it is in: the index has the first two levels."""
    owners: tuple[Owner, ...] = ()
    while name and not owners:
        owners = case.knowledge.owner(PathKind.PYTHON_MODULE, name, release=case.release)
        name = name.rpartition(".")[0]
    return owners


def _beside(module: str, package: str, case: Case) -> Iterator[Repair]:
    """A package of the system's interpreter, made visible to the environment that was made of it."""
    if not apt.missing((package,), case):
        return
    known = case.knowledge.distributions(module, release=case.release)
    title = "let the environment see the system's Python packages"
    see = Step(kind=StepKind.TOOLCHAIN, run=_SEE_SYSTEM, title=title, cwd="/", network=False)
    yield from apt.install(
        (package,),
        case,
        why=f"{case.release}'s {package} has Python's module {module}",
        probability=_ALSO_HERE if known else _ONLY_HERE,
        source="index",
        then=(InsertSteps(steps=(see,)),) if any(VENV_DIR in step.run for step in case.recipe.steps) else (),
    )


def _sees_system(case: Case) -> bool:
    return any("--system-site-packages" in step.run for step in case.recipe.steps[: case.index])


def _namespace(failure: MissingModule, case: Case) -> Iterator[Repair]:
    """Bindings that GObject makes of a description of the library: `gi.repository.Gtk` is of `Gtk-3.0`."""
    namespace = failure.module.removeprefix(_NAMESPACE).partition(".")[0]
    version = _VERSION.search(failure.evidence)
    name = f"{namespace}-{version['version']}" if version else namespace
    what = f"the description of {name}"
    yield from owned(case, shares(case, PathKind.TYPELIB, name), what=what, builds=False)


def _foreign(failure: MissingModule, case: Case) -> Iterator[Repair]:
    for module in (failure.module, *failure.alternatives):
        kind = _KINDS.get(failure.language)
        found = shares(case, kind, module) if kind else ()
        what = f"the {failure.language} module {module}"
        yield from owned(case, found, what=what, builds=False)
        if not found:
            plain = re.sub(r"[^a-z0-9.+]+", "-", module.lower()).strip("-")
            package = _NAMES[failure.language].format(plain)
            if case.knowledge.packages((package,), release=case.release):
                why = f"{case.release}'s {package} is named like {what}"
                yield from apt.install((package,), case, why=why, probability=_ALSO_HERE, source="index")
