"""System packages as edits of a Recipe: one transaction, no recommends, nothing that is there already."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from specbuild.recipe import Recipe, Step, StepKind
from specbuild.repairs.contract import Case, Repair, Source
from specbuild.repairs.edits import Edit, InsertSteps
from specbuild.strategies import steps
from specbuild.strategies.project import PLAIN_COMPILER

_DEBIAN = ("debian:", "ubuntu:")
_INSTALL = re.compile(r"\b(?:apt|apt-get|aptitude)\b(?P<words>[^;&|\n]*?\binstall\b[^;&|\n]*)")
_EACH = re.compile(r"\bfor name in (?P<words>[^;\n]*);")
"""How `steps.fresh_packages` names what it installs where it is there."""
_NAME = re.compile(r"(?P<name>[a-z0-9][a-z0-9.+-]+)(?::[a-z0-9]+)?(?:[=/].*)?")
_LEAST, _MOST = 0.02, 0.97


def installed(recipe: Recipe, index: int) -> frozenset[str]:
    """The system packages that the Steps before `index` install by name."""
    found: set[str] = set()
    for step in recipe.steps[:index]:
        if step.kind is not StepKind.SOURCE:
            run = step.run.replace("\\\n", " ")
            for form in (_INSTALL, _EACH):
                found.update(name for match in form.finditer(run) for name in _names(match["words"]))
    return frozenset(found)


def missing(names: Iterable[str], case: Case) -> tuple[str, ...]:
    """Those of the names that no Step of the Recipe installs so far, sorted."""
    return tuple(sorted(set(names) - installed(case.recipe, case.index)))


def step(names: Iterable[str], case: Case) -> Step:
    """The Step that installs them. Where the package lists may be absent or old, it fetches them if need be."""
    plain = steps.packages(names)
    if case.recipe.base.name.startswith(_DEBIAN) and _has_lists(case.recipe, case.index):
        return plain
    return plain.model_copy(update={"run": f"{plain.run} || {{\napt-get update -qq\n{plain.run}\n}}"})


def install(
    names: Iterable[str],
    case: Case,
    *,
    why: str,
    probability: float,
    source: Source,
    along: Iterable[str] = (),
    name: str = "",
    then: tuple[Edit, ...] = (),
) -> Iterator[Repair]:
    """The Repair that installs packages, with those of `along` beside them and more edits behind.

    None where the base has no packages of Debian's, or where all of `names` are there and nothing comes `then`.
    """
    wanted = tuple(sorted(set(names)))
    absent = missing(wanted, case)
    if not case.release or not (absent or then):
        return
    edits: list[Edit] = [*then]
    if absent:
        edits.insert(0, InsertSteps(steps=(step(missing((*wanted, *along), case), case),)))
    yield Repair(
        name=name or f"apt:{','.join(wanted)}",
        title=f"install {', '.join(absent or wanted)}",
        why=why,
        edits=tuple(edits),
        probability=clamp(probability),
        source=source,
    )


def compilers(case: Case) -> tuple[str, ...]:
    """What a build needs beside the development files of a library; nothing for Steps that build nothing.

    The recipes of routes that expect a build have compilers, those of others have none: then all are needed at once.
    """
    if case.step.kind is StepKind.TEST or {"gcc", "g++"} & installed(case.recipe, case.index):
        return ()
    return PLAIN_COMPILER


def clamp(probability: float) -> float:
    """Inside of what a Repair admits."""
    return round(min(max(probability, _LEAST), _MOST), 4)


def _names(text: str) -> Iterator[str]:
    try:
        found = shlex.split(text, comments=True)
    except ValueError:
        found = text.split()
    for word in found:
        match = _NAME.fullmatch(word)
        if match and match["name"] != "install":
            yield match["name"]


def _has_lists(recipe: Recipe, index: int) -> bool:
    return any("apt-get update" in step.run for step in recipe.steps[:index] if step.kind is StepKind.SYSTEM)
