"""Requirements that no release meets under the Recipe's interpreter and dates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from specbuild.failures import UnsatisfiableResolution, VersionOutOfRange
from specbuild.knowledge.releases import Release
from specbuild.predictors.foresee import chances
from specbuild.predictors.foresee.contract import Foreseen
from specbuild.predictors.foresee.resolution import Chosen, Resolution
from specbuild.predictors.foresee.target import Target
from specbuild.predictors.foresee.view import View
from specbuild.recipe import StepKind


def foresee(view: View) -> Iterable[Foreseen]:
    """What a resolver will refuse."""
    if view.target is None:
        return
    yield from _own(view, view.target)
    for resolution in (view.resolution, view.builds):
        for chosen in resolution:
            if chosen.release is None and not _avoidable(chosen, resolution):
                yield _refused(view, view.target, chosen)


def _avoidable(chosen: Chosen, resolution: Resolution) -> bool:
    """Whether a resolver may settle for another release of what asks for it."""
    asker = resolution.chosen.get(chosen.wanted.asked_by)
    return asker is not None and not asker.pinned


def _own(view: View, target: Target) -> Iterator[Foreseen]:
    wanted = view.facts.requires_python
    if wanted and view.contents.project and not target.allowed_by(wanted.value):
        yield Foreseen(
            failure=VersionOutOfRange(tool="python", required=wanted.value, found=target.python),
            probability=chances.REFUSED_INTERPRETER,
            at=view.first(StepKind.BUILD, StepKind.DEPENDENCIES),
            why=f"the project requires Python {wanted.value}",
            evidence=(wanted.evidence,),
        )


def _refused(view: View, target: Target, chosen: Chosen) -> Foreseen:
    wanted = chosen.wanted
    bounded = [one for one in chosen.releases if wanted.specifier.contains(one.version, prereleases=True)]
    requirement = f"{wanted.name}{wanted.specifier}"
    asker = f", which {wanted.asked_by} asks for" if wanted.asked_by else ""
    sure = chances.UNPINNED if wanted.asked_by else 1.0
    excluded = [one for one in bounded if not any(target.allowed_by(file.requires_python) for file in one.files)]
    if bounded and len(excluded) == len(bounded):
        ranges = sorted({file.requires_python for one in bounded for file in one.files if file.requires_python})
        return Foreseen(
            failure=VersionOutOfRange(tool="python", required=ranges[-1], found=target.python, because=requirement),
            probability=chances.REFUSED_INTERPRETER * sure,
            at=wanted.at,
            why=f"no release of {requirement}{asker} admits Python {target.python}",
            evidence=view.named(wanted.name),
        )
    return Foreseen(
        failure=UnsatisfiableResolution(tool="uv", requirement=requirement),
        probability=chances.NO_RELEASE * sure,
        at=wanted.at,
        why=f"{requirement}{asker} {_why(chosen, bounded)}",
        evidence=view.named(wanted.name),
    )


def _why(chosen: Chosen, bounded: list[Release]) -> str:
    if not bounded:
        return "has no such release on the index"
    until = chosen.wanted.policy.until(chosen.wanted.name)
    if until is None:
        return "has only releases that were withdrawn or admit another Python"
    undated = all(file.uploaded is None for one in bounded for file in one.files)
    reason = "its files have no upload dates" if undated else "they came later"
    return f"has no release before {until.date().isoformat()}: {reason}"
