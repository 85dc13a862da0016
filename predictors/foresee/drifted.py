"""Breaks between eras: the source is older than what the Recipe is going to install."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime

from packaging.version import Version

from specbuild.predictors.foresee import chances
from specbuild.predictors.foresee.contract import Foreseen
from specbuild.predictors.foresee.eras import BREAKS, INTERPRETERS, NOSE, Break
from specbuild.predictors.foresee.resolution import Chosen
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
        if aged and (chosen := _user(view, one)):
            told = _told(view, one, chosen, aged)
            if told:
                yield told


def _told(view: View, one: Break, chosen: Chosen, aged: float) -> Foreseen | None:
    release = chosen.release
    if release is None or release.version < Version(one.version):
        return None
    return Foreseen(
        failure=one.failure,
        probability=one.share * aged,
        at=view.first(StepKind.BUILD, StepKind.DEPENDENCIES) if one.role == "build" else StepKind.TEST,
        why=f"{one.distribution} {release.version} will be used, and since {one.version} of {one.day.isoformat()} "
        f"it lacks what older sources use ({one.source})",
        evidence=view.named(one.distribution) or _revision(view),
    )


def _user(view: View, one: Break) -> Chosen | None:
    """What will be installed of the distribution, if the project itself uses it."""
    if one.role == "build":
        return view.builds.chosen.get(one.distribution)
    chosen = view.resolution.chosen.get(one.distribution)
    # What others ask for is theirs to bear; of runners it does not matter who asks.
    direct = chosen and (not chosen.wanted.asked_by or one.role == "tests")
    own = view.own_name == one.distribution
    return chosen if direct and not own else None


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
