"""Breaks between eras: the source is older than what the Recipe is going to install."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime

from packaging.version import Version

from specbuild.predictors.foresee import chances
from specbuild.predictors.foresee.contract import Foreseen
from specbuild.predictors.foresee.eras import BREAKS, INTERPRETERS, NOSE, Break
from specbuild.predictors.foresee.view import View
from specbuild.recipe import StepKind
from specbuild.repo.facts import Evidence

_YEAR = 365.25


def foresee(view: View) -> Iterable[Foreseen]:
    """Breaks that came after the revision, in what the project itself uses."""
    revision = view.facts.revision_date
    if revision is None:
        return
    yield from _interpreter(view, revision.value)
    for one in BREAKS:
        aged = _aged(revision.value, one.day)
        version = _used(view, one) if aged else None
        if version is not None and version >= Version(one.version):
            yield _told(view, one, version, aged)


def _told(view: View, one: Break, version: Version, aged: float) -> Foreseen:
    return Foreseen(
        failure=one.failure,
        probability=one.share * aged,
        at=view.first(StepKind.BUILD, StepKind.DEPENDENCIES) if one.role == "build" else StepKind.TEST,
        why=f"{one.distribution} {version} will be used, and since {one.version} of {one.day.isoformat()} "
        f"it lacks what older sources use ({one.source})",
        evidence=view.named(one.distribution) or _revision(view),
    )


def _used(view: View, one: Break) -> Version | None:
    """The version of the distribution that will be there, if the project itself uses it."""
    if view.own_name == one.distribution:
        return None
    installed = view.builds if one.role == "build" else view.resolution
    chosen = installed.chosen.get(one.distribution)
    if chosen is None:
        return None if one.role == "build" else view.packaged(one.distribution)
    # What others ask for is theirs to bear; of runners it does not matter who asks.
    direct = not chosen.wanted.asked_by or one.role == "tests"
    return chosen.release.version if direct and chosen.release else None


def _interpreter(view: View, revision: datetime) -> Iterator[Foreseen]:
    if view.target is None or _names_interpreter(view):
        return
    nose = "nose" in (view.own_name, view.outlook.candidate.recipe.check.runner)
    for one in (*INTERPRETERS, *((NOSE,) if nose else ())):
        aged = 1.0 if one is NOSE else _aged(revision, one.day)
        if view.target.version >= one.python and aged:
            yield Foreseen(
                failure=one.failure,
                probability=one.share * aged,
                at=StepKind.TEST,
                why=f"Python {view.target.python} no longer has {one.gone}, and the revision is older ({one.source})",
                evidence=_revision(view),
            )


def _names_interpreter(view: View) -> bool:
    """Whether the project says that it runs on this interpreter."""
    return view.target is not None and any(fact.value == view.target.python for fact in view.facts.classifier_pythons)


def _aged(revision: datetime, day: date) -> float:
    """Factor in (0, 1] for sources from before `day`; 0 for those that came after it."""
    years = (datetime(day.year, day.month, day.day, tzinfo=UTC) - revision).days / _YEAR
    if years <= 0:
        return 0.0
    return min(chances.OLD, chances.ONE_YEAR * 2 ** (years - 1))


def _revision(view: View) -> tuple[Evidence, ...]:
    revision = view.facts.revision_date
    return (revision.evidence,) if revision and revision.evidence.file else ()
