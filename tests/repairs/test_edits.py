"""Edits of recipes: whatever is composed in whatever order, what was before the place stays as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind, source_step
from specbuild.repairs.edits import (
    Edit,
    InsertSteps,
    MoveToBase,
    Placed,
    ReplaceWork,
    SetVariables,
    StartService,
    apply,
)

KINDS = st.sampled_from([kind for kind in StepKind if kind is not StepKind.SOURCE])
NAMES = st.sampled_from(["A", "B", "C"])
VARIABLES = st.dictionaries(NAMES, st.sampled_from(["1", "2"]), min_size=1).map(lambda env: tuple(env.items()))
STEPS = st.builds(Step, kind=KINDS, run=st.sampled_from("abcdef"), env=VARIABLES)
SINCE = st.none() | KINDS


def check(run: str = "pytest") -> Check:
    return Check(level=Level.TESTS, runner="pytest", step=Step(kind=StepKind.TEST, run=run))


RECIPES = st.builds(
    Recipe,
    base=st.just(BaseRef(name="debian:bookworm", digest="sha256:0")),
    steps=st.lists(STEPS | st.just(source_step("tree")), max_size=6).map(tuple),
    check=st.just(check()),
    test_env=VARIABLES,
)
EDITS: st.SearchStrategy[Edit] = st.one_of(
    st.builds(InsertSteps, steps=st.lists(STEPS, min_size=1, max_size=2).map(tuple), before=SINCE),
    st.builds(SetVariables, env=VARIABLES, since=SINCE, kept=st.booleans()),
    st.builds(ReplaceWork, step=st.none() | STEPS, check=st.none() | st.just(check("tox"))),
    st.builds(StartService, name=NAMES, script=st.sampled_from(["x", "y"])),
    st.builds(MoveToBase, base=st.just("debian:trixie")),
)
ADAPTER: TypeAdapter[Edit] = TypeAdapter(Edit)


@st.composite
def places(draw: st.DrawFn) -> Placed:
    recipe = draw(RECIPES)
    return Placed(recipe, draw(st.integers(0, len(recipe.steps))))


def reaches(edit: Edit, place: Placed) -> int:
    """The first Step that an edit may change, or that it comes before."""
    kind = edit.before if isinstance(edit, InsertSteps) else edit.since if isinstance(edit, SetVariables) else None
    kinds = [step.kind for step in place.recipe.steps[: place.index]]
    return kinds.index(kind) if kind and kind in kinds else place.index


@given(places(), EDITS)
def test_what_ran_before_the_reach_of_an_edit_need_not_run_again(place: Placed, edit: Edit) -> None:
    first = reaches(edit, place)
    done = apply([edit], place.recipe, place.index)
    assert done.recipe.checkpoints[: first + 1] == place.recipe.checkpoints[: first + 1]


@given(places(), EDITS)
def test_nothing_that_an_edit_brings_starts_in_the_source_tree_before_it_is_there(place: Placed, edit: Edit) -> None:
    old = place.recipe.steps
    if isinstance(edit, SetVariables) or any(step.kind is StepKind.SOURCE for step in old[: place.index]):
        return
    done = apply([edit], place.recipe, place.index).recipe.steps
    placed = next((at for at, step in enumerate(done) if step.kind is StepKind.SOURCE), 0)
    assert all(step.cwd == "/" for step in done[:placed] if step not in old)


@given(places(), st.lists(EDITS, max_size=4))
def test_edits_made_one_by_one_are_the_edits_made_together(place: Placed, edits: list[Edit]) -> None:
    one_by_one = place
    for edit in edits:
        one_by_one = apply([edit], one_by_one.recipe, one_by_one.index)
    assert apply(edits, place.recipe, place.index) == one_by_one


@given(places(), st.lists(EDITS, max_size=4))
def test_the_work_keeps_its_place_behind_all_that_is_inserted(place: Placed, edits: list[Edit]) -> None:
    inserted = sum(len(edit.steps) for edit in edits if isinstance(edit, InsertSteps))
    done = apply(edits, place.recipe, place.index)
    assert done.index == place.index + inserted
    assert len(done.recipe.steps) == len(place.recipe.steps) + inserted
    if not any(isinstance(edit, ReplaceWork) for edit in edits):
        works = [(*each.recipe.steps, each.recipe.check.step)[each.index].run for each in (place, done)]
        assert works[0] == works[1]


@given(places(), st.lists(EDITS, min_size=1, max_size=4))
def test_the_original_is_left_alone_and_digests_tell_recipes_apart(place: Placed, edits: list[Edit]) -> None:
    before, digest = place.recipe.model_dump_json(), place.recipe.digest
    done = apply(edits, place.recipe, place.index).recipe
    assert place.recipe.model_dump_json() == before
    fresh = Recipe.model_validate_json(done.model_dump_json())
    assert done.digest == fresh.digest, "no digest is kept from before the edit"
    same_work = (done.steps, done.check.model_dump(exclude={"reason"})) == (
        place.recipe.steps,
        place.recipe.check.model_dump(exclude={"reason"}),
    )
    assert (done.digest == digest) == same_work


@given(places(), VARIABLES, SINCE, st.booleans())
def test_variables_reach_the_work_and_all_after_it_and_nothing_before(
    place: Placed, env: tuple[tuple[str, str], ...], since: StepKind | None, kept: bool
) -> None:
    edit = SetVariables(env=env, since=since, kept=kept)
    first = reaches(edit, place)
    done = apply([edit], place.recipe, place.index).recipe
    assert done.steps[:first] == place.recipe.steps[:first]
    for old, new in zip(place.recipe.steps[first:], done.steps[first:], strict=True):
        expected = dict(old.env) if old.kind is StepKind.SOURCE else dict(old.env) | dict(env)
        assert dict(new.env) == expected
        assert list(new.env) == sorted(new.env)
    assert dict(env).items() <= dict(done.check.step.env).items()
    assert dict(done.test_env) == dict(place.recipe.test_env) | (dict(env) if kept else {})


@given(places(), st.permutations(["redis", "mysql", "ldap"]))
def test_the_order_in_which_services_are_found_to_be_missing_makes_no_difference(
    place: Placed, names: list[str]
) -> None:
    edits = [StartService(name=name, script=f"start {name}") for name in names]
    done = apply(edits, place.recipe, place.index).recipe
    assert [name for name, _ in done.check.services] == ["ldap", "mysql", "redis"]
    assert done.checkpoints == place.recipe.checkpoints


@given(EDITS)
def test_edits_survive_being_written_down(edit: Edit) -> None:
    assert ADAPTER.validate_json(ADAPTER.dump_json(edit)) == edit


@given(places(), EDITS)
def test_an_edited_recipe_survives_being_written_down(place: Placed, edit: Edit) -> None:
    done = apply([edit], place.recipe, place.index).recipe
    assert Recipe.model_validate_json(done.model_dump_json()) == done


@pytest.mark.parametrize("index", [-1, 1])
def test_there_is_no_place_outside_of_a_recipe(index: int) -> None:
    bare = Recipe(base=BaseRef(name="host", digest="sha256:0"), steps=(), check=check())
    with pytest.raises(ValueError, match="no place"):
        apply([], bare, index)


def test_what_failed_late_is_mended_before_the_build_that_spoilt_it() -> None:
    steps = tuple(Step(kind=kind, run=kind.value) for kind in (StepKind.SYSTEM, StepKind.DEPENDENCIES, StepKind.BUILD))
    recipe = Recipe(base=BaseRef(name="debian:bookworm", digest="sha256:0"), steps=steps, check=check())
    library = Step(kind=StepKind.SYSTEM, run="install it")
    done = apply([InsertSteps(steps=(library,), before=StepKind.BUILD)], recipe, len(steps))
    assert [step.run for step in done.recipe.steps] == ["system", "dependencies", "install it", "build"]
    assert done.index == 4


def test_a_check_is_replaced_only_by_a_check_and_a_step_by_a_step() -> None:
    step = Step(kind=StepKind.BUILD, run="make")
    recipe = Recipe(base=BaseRef(name="debian:bookworm", digest="sha256:0"), steps=(step,), check=check())
    other = step.model_copy(update={"run": "make all"})
    edit = ReplaceWork(step=other, check=check("tox"))
    assert apply([edit], recipe, 0).recipe.steps == (other,)
    assert apply([edit], recipe, 0).recipe.check == recipe.check
    assert apply([edit], recipe, 1).recipe.check == check("tox")
    assert apply([edit], recipe, 1).recipe.steps == recipe.steps
