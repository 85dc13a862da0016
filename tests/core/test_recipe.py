"""Digests: what names a Recipe, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind

BASE = BaseRef(name="debian:bookworm", digest="sha256:1")


def recipe(**changes: Any) -> Recipe:
    steps = (Step(kind=StepKind.SYSTEM, run="apt-get update"), Step(kind=StepKind.BUILD, run="make"))
    check = Check(level=Level.TESTS, runner="pytest", step=Step(kind=StepKind.TEST, run="pytest"))
    fields: dict[str, Any] = {"base": BASE, "steps": steps, "check": check}
    return Recipe(**(fields | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"base": BASE.model_copy(update={"digest": "sha256:2"})},
        {"steps": recipe().steps[:1]},
        {"steps": recipe().steps[::-1]},
        {"check": recipe().check.model_copy(update={"level": Level.COLLECT})},
    ],
)
def test_what_can_change_the_result_changes_the_digest(changes: dict[str, Any]) -> None:
    known = recipe()
    assert known.digest, "computed before the copy is made"
    assert recipe(**changes).digest != known.digest
    assert known.model_copy(update=changes).digest == recipe(**changes).digest


def test_another_base_of_the_same_name_is_another_beginning() -> None:
    known = recipe()
    other = known.model_copy(update={"base": BASE.model_copy(update={"digest": "sha256:2"})})
    assert not set(known.checkpoints) & set(other.checkpoints)


@pytest.mark.parametrize("changes", [{"run": "make all"}, {"cwd": "/"}, {"env": (("A", "1"),)}, {"network": False}])
def test_what_a_step_does_is_in_its_digest(changes: dict[str, Any]) -> None:
    known = Step(kind=StepKind.BUILD, run="make")
    assert known.model_copy(update=changes).digest != known.digest


@pytest.mark.parametrize("changes", [{"title": "build it"}, {"timeout": 5.0}, {"caches": ("uv",)}])
def test_how_a_step_is_run_and_shown_is_not(changes: dict[str, Any]) -> None:
    known = Step(kind=StepKind.BUILD, run="make")
    assert known.model_copy(update=changes).digest == known.digest


def test_the_order_of_variables_does_not_matter() -> None:
    one = Step(kind=StepKind.BUILD, run="make", env=(("A", "1"), ("B", "2")))
    assert Step(kind=StepKind.BUILD, run="make", env=(("B", "2"), ("A", "1"))).digest == one.digest
