"""Repairs where source uses what a newer Python removed: backports, setuptools in place of distutils, an older base."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from specbuild.bases.releases import RELEASES
from specbuild.failures import Failure, VersionOutOfRange
from specbuild.repairs import python_odds as odds
from specbuild.repairs.contract import Case, Repair
from specbuild.repairs.edits import MoveToBase
from specbuild.repairs.import_names import PKG_RESOURCES
from specbuild.repairs.python_steps import build_constrained, builds, fresh, installed

BACKPORTS: dict[str, str] = {
    "asynchat": "pyasynchat",
    "asyncore": "pyasyncore",
    "audioop": "audioop-lts",
    "cgi": "legacy-cgi",
    "cgitb": "legacy-cgi",
    "crypt": "crypt-r",
    "imp": "zombie-imp",
    **{
        name: f"standard-{name}"
        for name in ("aifc", "chunk", "imghdr", "mailcap", "nntplib", "pipes", "smtpd", "sndhdr", "sunau")
    },
    **{name: f"standard-{name}" for name in ("telnetlib", "uu", "xdrlib")},
}
"""Modules that Python removed and the distributions that bring them back."""

PKGUTIL_SETUPTOOLS = "setuptools>=66.1"
"""The first release without `pkgutil.ImpImporter`, by its change log."""

_MOST_BASES = 2


def repair_standard(failure: Failure, case: Case) -> Iterable[Repair]:
    """The repairs of this family that the recipe does not have yet."""
    if isinstance(failure, VersionOutOfRange) and failure.tool == "python":
        return fresh(case, _repairs(failure, case))
    return ()


def _repairs(failure: VersionOutOfRange, case: Case) -> Iterator[Repair]:
    removed = failure.because.partition(".")[0]
    if removed == "distutils":
        yield from _setuptools(case, PKG_RESOURCES, odds.SHIM, "setuptools brings a distutils of its own")
    elif failure.because.startswith("pkgutil.Imp"):
        yield from _setuptools(case, PKGUTIL_SETUPTOOLS, odds.SHIM, "older ones use what Python 3.12 removed")
    elif failure.because in BACKPORTS and not builds(case):
        name = BACKPORTS[failure.because]
        yield Repair(
            name=f"pip:{name}",
            title=f"install {name}",
            why=f"it brings back the module {failure.because}",
            edits=(installed(case, (name,), newest=(name,)),),
            probability=odds.BACKPORT,
        )
    if "nose" in failure.evidence.lower():
        yield Repair(
            name="pip:pynose",
            title="install pynose in place of nose",
            why="nose ends with Python 3.9; pynose has its module",
            edits=(installed(case, ("pynose",), newest=("pynose",)),),
            probability=odds.BACKPORT,
        )
    yield from _older(failure, case)


def _setuptools(case: Case, requirement: str, chance: float, why: str) -> Iterator[Repair]:
    inside = builds(case)
    beside = (installed(case, (requirement,), newest=("setuptools",)),)
    yield Repair(
        name=f"build-constraint:{requirement}" if inside else "pip:setuptools",
        title=f"build with {requirement}" if inside else f"install {requirement}",
        why=why,
        edits=build_constrained(case, requirement) if inside else beside,
        probability=chance,
    )


def _older(failure: VersionOutOfRange, case: Case) -> Iterator[Repair]:
    """Debian's releases whose interpreter is in range, newest first."""
    try:
        wanted = SpecifierSet(failure.required)
    except InvalidSpecifier:
        return
    if not failure.required:
        return
    fitting = [one for one in reversed(RELEASES) if one.python and one.python in wanted and one.name != case.release]
    for rank, release in enumerate(fitting[:_MOST_BASES]):
        minor = ".".join((release.python or "").split(".")[:2])
        yield Repair(
            name=f"base:debian:{release.name}",
            title=f"move to debian:{release.name}",
            why=f"its Python {minor} is {failure.required}"
            + (f", so it still has {failure.because}" if failure.because else ""),
            edits=(MoveToBase(base=f"debian:{release.name}"),),
            probability=odds.OLDER_BASE * odds.RIVAL**rank,
        )
