"""From a file that is missing to rival Repairs: the packages that own it, each with its share of the odds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specbuild.knowledge.kinds import Owner, PathKind
from specbuild.knowledge.ranking import fits, weight
from specbuild.repairs import apt, needs
from specbuild.repairs.contract import Case, Repair

FOUND = 0.85
"""Probability that a package cures what it alone owns: the rest is a version that does not fit, or more that lacks."""

_RIVALS = 3
_LEAST_SHARE = 0.05
_BESIDE = 0.5
"""What remains to a package alone, where a project's whole needs are offered too: they cure what it cures."""

DEVELOPMENT = frozenset(
    {PathKind.HEADER, PathKind.PKG_CONFIG, PathKind.LINK_LIBRARY, PathKind.CMAKE, PathKind.CMAKE_MODULE}
)

_STANDS_FOR = (
    (re.compile(r"(?:lib)?python3(?:\.\d+)?(?:-all)?-dev"), "python3-dev"),
    (re.compile(r"linux-libc-dev"), "libc6-dev"),
    (re.compile(r"libstdc\+\+-\d+-dev"), "g++"),
    (re.compile(r"libgcc-\d+-dev"), "gcc"),
    (re.compile(r"libgfortran-\d+-dev"), "gfortran"),
)
"""Parts of toolchains and the packages that bring them whole: a part alone does not compile."""


@dataclass(frozen=True, slots=True)
class Share:
    """A package with its part, between 0 and 1, of the odds to be the one that is meant."""

    package: str
    part: float


def shares(case: Case, kind: PathKind, name: str) -> tuple[Share, ...]:
    """The packages that own a file, by the names that are installed, likeliest first."""
    return share_out(case, kind, case.knowledge.owner(kind, name, release=case.release))


def share_out(case: Case, kind: PathKind, owners: Sequence[Owner]) -> tuple[Share, ...]:
    """The same for owners that were found; those of another role share only where there are no others."""
    chosen = [owner for owner in owners if fits(kind, owner)] or list(owners)
    odds: dict[str, float] = {}
    for place, owner in enumerate(chosen):
        package = chosen_name(case, owner.package)
        # The order of the ranking counts as well: it knows more than the uses.
        odds[package] = odds.get(package, 0.0) + 2.0 ** weight(kind, owner) * (1 + owner.own_uses) / (1 + place)
    total = sum(odds.values())
    return tuple(Share(package, part / total) for package, part in odds.items())


def chosen_name(case: Case, package: str) -> str:
    """The package that is asked for to get `package`: the distribution's choice of version, the toolchain whole."""
    for form, name in _STANDS_FOR:
        if form.fullmatch(package):
            return name
    return case.knowledge.default(package, release=case.release)


def owned(
    case: Case,
    found: Sequence[Share],
    *,
    what: str,
    builds: bool,
    along: Sequence[str] = (),
    probability: float = FOUND,
) -> Iterator[Repair]:
    """Rival Repairs that install what was found, `what` says of what in words.

    For what `builds`, compilers come along; and where the project that is built is known to need such a package, the
    rest of its needs is offered with it, since what lacks one header lacks the others too.
    """
    names = [share.package for share in found]
    whole = (needs.agreeing(case, names) or needs.own(case)) if builds and names else None
    factor = probability
    if whole:
        agreed = [share for share in found if share.package in whole.packages]
        found = agreed or found
        if needs.is_more(case, whole, [found[0].package]):
            yield from needs.together(case, whole, [share.package for share in found], why=_why(case, found[0], what))
            factor *= _BESIDE
    total = sum(share.part for share in found) if whole else 1.0
    for share in [each for each in found if each.part >= _LEAST_SHARE][:_RIVALS]:
        yield from apt.install(
            (share.package, *along),
            case,
            why=_why(case, share, what),
            probability=factor * share.part / total,
            source="index",
            along=apt.compilers(case) if builds else (),
        )


def _why(case: Case, share: Share, what: str) -> str:
    return f"{case.release}'s {share.package} has {what}"
