"""Distributions that have no wheel for the Recipe's interpreter and platform, and what building them will want."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from specbuild.failures import MissingDevelopmentFiles, MissingToolchain
from specbuild.knowledge.kinds import BuildNeeds
from specbuild.predictors.foresee import chances, compilers
from specbuild.predictors.foresee.compilers import Language
from specbuild.predictors.foresee.contract import Foreseen
from specbuild.predictors.foresee.resolution import Chosen
from specbuild.predictors.foresee.view import View, linked

_NEAREST = 5
"""Releases on either side that may tell whether a distribution has compiled code."""


def foresee(view: View) -> Iterable[Foreseen]:
    """Compilers and libraries that are missing for what will be built from source."""
    if not view.bare:
        return
    for chosen in (*view.resolution, *view.builds):
        if chosen.built and chosen.wanted.name != view.own_name:
            yield from _of(view, chosen)


@dataclass(frozen=True, slots=True)
class _Compiled:
    """How it is known that a distribution has compiled code."""

    chance: float
    why: str


def _of(view: View, chosen: Chosen) -> Iterator[Foreseen]:
    needs = view.needs(chosen.wanted.name)
    compiled = _compiled(chosen, needs)
    if compiled is None:
        return
    told = f"{_title(chosen)} has no wheel for Python {view.target.python if view.target else '?'} here"
    sure = 1.0 if chosen.pinned else chances.UNPINNED ** (2 if chosen.wanted.asked_by else 1)
    for language in compilers.absent(view, _languages(needs)):
        yield Foreseen(
            failure=MissingToolchain(language=language),
            probability=compiled.chance * sure,
            at=chosen.wanted.at,
            why=f"{told}, {compiled.why}, and the recipe installs no compiler for {language}",
            evidence=view.named(chosen.wanted.name),
            subject=chosen.wanted.name,
        )
    if needs is not None and (missing := view.missing(needs.libraries)):
        some = chances.NOT_ALL_LIBRARIES if len(missing) < len(linked(needs.libraries)) else 1.0
        yield Foreseen(
            failure=MissingDevelopmentFiles(name=chosen.wanted.name),
            probability=chances.SOURCE_LIBRARIES * sure * some,
            at=chosen.wanted.at,
            why=f"{told}, and Debian builds it with {', '.join(missing)}",
            evidence=view.named(chosen.wanted.name),
            subject=chosen.wanted.name,
        )


def _languages(needs: BuildNeeds | None) -> tuple[Language, ...]:
    return (compilers.by_debian(needs) if needs else ()) or ("c",)


def _compiled(chosen: Chosen, needs: BuildNeeds | None) -> _Compiled | None:
    """Whether it has compiled code: by its own wheels, those of the releases around it, Debian; None if it has none."""
    release = chosen.release
    if release is None:
        return None
    if chosen.wanted.name in compilers.SPEEDUPS:
        return _Compiled(chances.SPEEDUPS, "its compiled code only makes it faster")
    if release.native is not None:
        told = _Compiled(chances.SOURCE_WITHOUT_COMPILER, "its wheels for others hold compiled code")
        return told if release.native else None
    place = chosen.releases.index(release)
    around = chosen.releases[max(0, place - _NEAREST) : place + _NEAREST + 1]
    known = [other.native for other in around if other.native is not None]
    if known:
        told = _Compiled(chances.SOURCE_LIKE_OTHERS, "wheels of other releases hold compiled code")
        return told if any(known) else None
    if needs is not None and compilers.by_debian(needs):
        return _Compiled(chances.SOURCE_BY_DEBIAN, "Debian compiles it")
    return None


def _title(chosen: Chosen) -> str:
    return f"{chosen.wanted.name} {chosen.release.version}" if chosen.release else chosen.wanted.name
