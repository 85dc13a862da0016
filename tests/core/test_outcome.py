"""What the end of an execution says: of the state that it was to leave, and of the work itself."""

from __future__ import annotations

import pytest

from specbuild.environment import TimelineEntry
from specbuild.execution import Execution
from specbuild.outcome import Outcome
from specbuild.recipe import Step, StepKind

WORK = Step(kind=StepKind.BUILD, run="make")


def execution(outcome: Outcome, error: str = "") -> Execution:
    return Execution("key", WORK, start=0, end=1, outcome=outcome, candidates=("c1",), error=error)


def test_what_is_there_afterwards_was_made_or_taken_over() -> None:
    assert [outcome for outcome in Outcome if outcome.is_good] == [Outcome.OK, Outcome.REUSED, Outcome.GRAFTED]
    assert [outcome for outcome in Outcome if outcome.is_taken_over] == [Outcome.REUSED, Outcome.GRAFTED]


def test_only_what_ran_to_its_own_end_tells_how_such_work_fares() -> None:
    assert [outcome for outcome in Outcome if execution(outcome).is_telling] == [Outcome.OK, Outcome.FAILED]
    assert not any(execution(outcome, error="the disk is full").is_telling for outcome in Outcome)


@pytest.mark.parametrize("outcome", Outcome)
def test_results_hold_it_as_a_word(outcome: Outcome) -> None:
    row = TimelineEntry(title="make", kind="build", node="n", start=0, end=1, outcome=outcome, candidates=())
    assert f'"outcome":"{outcome.value}"' in row.model_dump_json()
    assert TimelineEntry.model_validate_json(row.model_dump_json()) == row
