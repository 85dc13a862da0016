"""Going on from environments of other revisions: what is shared with them, and what stays as it was."""

from __future__ import annotations

from itertools import takewhile

import pytest

from specbuild.recipe import Check, Level, Recipe, Step, StepKind
from specbuild.repo.facts import Facts
from specbuild.strategies import propose, steps
from specbuild.strategies.contract import Candidate, Earlier, Request
from specbuild.strategies.forward import MOST_INHERITED, TAG
from specbuild.testing.proposals import BOOKWORM, BULLSEYE, check, fact, names, needs, pick, request, revision
from specbuild.verify.checks import checks_for

DECLARED = "declared@2024-05-01"


def facts(*requirements: str, day: int = 1) -> Facts:
    return Facts(
        name=fact("mine"),
        build_backend=fact("setuptools.build_meta"),
        dependencies=tuple(needs(text) for text in (*requirements, "pytest")),
        revision_date=revision(2024, 5, day),
    )


def earlier(recipe: Recipe, strategy: str = DECLARED, *, alike: bool = False) -> Earlier:
    return Earlier(environment="b1", revision="1.0", recipe=recipe, strategy=strategy, alike=alike)


def environment(*requirements: str) -> Recipe:
    """What the first revision was committed with, its source tree another one."""
    first = request(facts(*requirements)).model_copy(update={"source_digest": "beef" * 16})
    return pick(propose(first), DECLARED).recipe


def next_request(*requirements: str, day: int = 9) -> Request:
    return request(facts(*requirements, day=day))


def on(asked: Request, *known: Earlier) -> tuple[Candidate, ...]:
    return propose(asked.model_copy(update={"earlier": known}))


def shared(one: Recipe, two: Recipe) -> int:
    """How many states both pass through."""
    pairs = zip(one.checkpoints, two.checkpoints, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def test_a_candidate_starts_where_the_earlier_environment_was_before_its_source_tree() -> None:
    before = environment("idna")
    made = pick(on(next_request("idna", "click"), earlier(before)), f"declared@2024-05-09{TAG}")
    placed = [step.kind for step in before.steps].index(StepKind.SOURCE)
    assert shared(made.recipe, before) == placed + 1
    assert "b1" in made.reason


def test_what_is_new_is_added_and_the_new_tree_placed_once() -> None:
    plain = pick(propose(next_request("idna", "click")), "declared@2024-05-09")
    made = pick(on(next_request("idna", "click"), earlier(environment("idna"))), f"declared@2024-05-09{TAG}")
    assert {step.digest for step in plain.recipe.steps} <= {step.digest for step in made.recipe.steps}
    placed = [step.run for step in made.recipe.steps if step.kind is StepKind.SOURCE]
    assert placed == ["feed" * 16]
    assert made.recipe.check == plain.recipe.check


def test_it_is_a_rival_of_those_that_begin_at_the_base() -> None:
    alone, together = propose(next_request("idna")), on(next_request("idna"), earlier(environment("idna")))
    assert set(names(alone)) <= set(names(together))
    assert together[0].strategy.endswith(TAG)
    assert together[0].prior > pick(together, "declared@2024-05-09").prior


def test_manifests_that_declare_the_same_leave_less_doubt() -> None:
    asked, before = next_request("idna"), environment("idna")
    alike, changed = (on(asked, earlier(before, alike=alike))[0] for alike in (True, False))
    assert alike.prior > changed.prior


def test_a_revision_of_the_same_day_and_needs_shares_all_of_it_without_another_candidate() -> None:
    before = environment("idna")
    found = on(next_request("idna", day=1), earlier(before))
    assert not [name for name in names(found) if name.endswith(TAG)]
    assert shared(pick(found, DECLARED).recipe, before) == 4


def test_packages_that_a_build_was_repaired_with_are_there_before_the_tree() -> None:
    before = environment("idna")
    repair = steps.packages(["libpq-dev"])
    placed = [step.kind for step in before.steps].index(StepKind.SOURCE)
    repaired = before.model_copy(update={"steps": (*before.steps[: placed + 1], repair, *before.steps[placed + 1 :])})
    made = on(next_request("idna"), earlier(repaired))[0].recipe
    kinds = [step.kind for step in made.steps]
    assert repair in made.steps[: kinds.index(StepKind.SOURCE)]


def test_the_environment_of_this_very_tree_is_taken_as_it_is() -> None:
    asked = next_request("idna", day=1)
    plain = pick(propose(asked), DECLARED).recipe
    repaired = plain.model_copy(update={"steps": (*plain.steps, steps.packages(["git"]))})
    first = on(asked, earlier(repaired))[0]
    assert first.recipe == repaired
    assert first.strategy == DECLARED
    assert first.reason == "environment b1 is of this very tree"


def test_what_was_verified_in_another_way_is_not_taken_as_it_is() -> None:
    asked = request(facts("idna"), checks=(check("unittest"),))
    before = pick(propose(request(facts("idna"))), DECLARED).recipe
    assert all(candidate.recipe.check.runner == "unittest" for candidate in on(asked, earlier(before)))


def test_only_the_same_command_of_a_users_own_is_verified_as_is_wanted() -> None:
    def own(command: str) -> Check:
        return checks_for(facts("idna"), level=Level.TESTS, test_command=command, network=False, timeout=60)[0]

    plain, mine = request(facts("idna")), request(facts("idna"), checks=(own("tox"),))
    others = request(facts("idna"), checks=(own("pytest -k fast"),))
    for before, now in [(plain, mine), (mine, plain), (mine, others)]:
        recipe = pick(propose(before), DECLARED).recipe
        assert all(candidate.recipe.check in now.checks for candidate in on(now, earlier(recipe)))
    repaired = pick(propose(mine), DECLARED).recipe
    repaired = repaired.model_copy(update={"steps": (*repaired.steps, steps.packages(["git"]))})
    assert on(mine, earlier(repaired))[0].recipe == repaired


@pytest.mark.parametrize(
    "other",
    [
        earlier(environment("idna").model_copy(update={"base": BULLSEYE})),
        earlier(environment("idna"), "locked:uv"),
    ],
)
def test_an_environment_of_another_base_or_way_is_no_start(other: Earlier) -> None:
    assert not [name for name in names(on(next_request("idna"), other)) if name.endswith(TAG)]


def test_the_way_of_an_environment_that_went_on_from_another_is_known() -> None:
    found = on(next_request("idna"), earlier(environment("idna"), DECLARED + TAG))
    assert f"declared@2024-05-09{TAG}" in names(found)


def test_environments_do_not_grow_without_end() -> None:
    before = environment("idna")
    steps_before = tuple(Step(kind=StepKind.DEPENDENCIES, run=f"true {n}", cwd="/") for n in range(MOST_INHERITED + 1))
    grown = before.model_copy(update={"steps": (*before.steps[:2], *steps_before, *before.steps[2:])})
    assert not [name for name in names(on(next_request("idna"), earlier(grown))) if name.endswith(TAG)]
    assert before.base == BOOKWORM
