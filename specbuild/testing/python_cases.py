"""Places in a Python recipe where something fails, for tests of repairs."""

from __future__ import annotations

from specbuild.knowledge.query import NOTHING, Knowledge
from specbuild.recipe import UV, BaseRef, Check, Recipe, Step, StepKind
from specbuild.repairs.contract import Case
from specbuild.repo.facts import Facts
from specbuild.strategies import steps
from specbuild.strategies.compose import Route, candidates
from specbuild.strategies.interpreters import Site
from specbuild.testing.proposals import BOOKWORM, check, request


def python_case(
    facts: Facts | None = None,
    *,
    at: StepKind = StepKind.TEST,
    base: BaseRef = BOOKWORM,
    install: str = f"{UV} pip install",
    requirements: str = "pytest",
    build: str = f"{UV} pip install --no-cache -e .",
    checks: tuple[Check, ...] = (),
    knowledge: Knowledge = NOTHING,
    subject: str = "",
) -> Case:
    """A recipe that installs `requirements` and the project and runs pytest, and its first Step of the kind `at`."""
    known = facts or Facts()
    inside = (
        steps.uv(f"{install} {requirements}", "install the requirements"),
        steps.uv(build, "install the project", kind=StepKind.BUILD),
    )
    route = Route(
        name="declared",
        site=Site(base=base, python=base.python or "", fit=1.0, why="a test"),
        odds=0.5,
        reason="a test",
        inside=inside,
        install=install,
    )
    (candidate,) = candidates(request(known, base, checks=checks or (check(),)), route)
    index = next((i for i, step in enumerate(candidate.recipe.steps) if step.kind is at), len(candidate.recipe.steps))
    return Case(
        recipe=candidate.recipe,
        index=index,
        facts=known,
        knowledge=knowledge,
        install=candidate.install,
        subject=subject,
    )


def repaired(case: Case, recipe: Recipe, index: int) -> Case:
    """The same place in a repaired recipe."""
    return Case(
        recipe=recipe,
        index=index,
        facts=case.facts,
        knowledge=case.knowledge,
        install=case.install,
        subject=case.subject,
    )


def added(case: Case, recipe: Recipe) -> list[Step]:
    """The Steps that a repair has inserted."""
    before = {step.digest for step in case.recipe.steps}
    return [step for step in recipe.steps if step.digest not in before]
