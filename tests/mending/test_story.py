"""The story that a journal tells of failures and repairs."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from specbuild.cli.explain import story_lines
from specbuild.cli.terminal import Terminal
from specbuild.environment import Predictions
from specbuild.errors import UsageError
from specbuild.events import (
    BuildEnded,
    BuildStarted,
    CandidateEnded,
    CandidateProposed,
    Event,
    FailureSeen,
    RepairJudged,
    RepairMade,
    StepEnded,
    StepOutput,
    StepStarted,
)
from specbuild.failures import Failure, MissingCommand, MissingHeader, Weight
from specbuild.story import Memory, Story, predictions, read_journal, tell

HEADER = MissingHeader(header="sql.h", evidence="fatal error: sql.h: No such file or directory")
LESS = MissingCommand(command="less", evidence="less: not found")


def started() -> BuildStarted:
    return BuildStarted(at=0, build="b1", repo="pypi:thing", wall_time="2026-11-30T00:00:00Z", version="0")


def seen(at: float, node: str, failure: Failure, *, probability: float = 0.9, kind: str = "build") -> FailureSeen:
    return FailureSeen(
        at=at,
        node=node,
        title="install the project",
        step_kind=kind,
        candidates=("c1",),
        failure=failure,
        words=str(failure),
        probability=probability,
    )


def ran(node: str, begin: float, end: float, *, ok: bool, cancelled: bool = False, who: str = "c1") -> list[Event]:
    title = "install the project"
    return [
        StepStarted(at=begin, node=node, title=title, step_kind="build", candidates=(who,)),
        StepEnded(at=end, node=node, title=title, ok=ok, cancelled=cancelled, seconds=end - begin),
    ]


def repaired(at: float, name: str, failure: Failure, *, foreseen: bool = True) -> CandidateProposed:
    made = RepairMade(failure=failure, name=name, title=f"install {name}", why="it owns it", probability=0.8)
    made = made.model_copy(update={"foreseen": foreseen})
    return CandidateProposed(
        at=at, candidate="c1.1", strategy="s", base="b", prior=0.5, reason="r", steps=(), repairs=(made,), of="c1"
    )


def story(*events: Event) -> Story:
    return tell(sorted(events, key=lambda event: event.at))


def test_a_failure_that_output_told_of_has_its_lead_and_what_its_repair_did() -> None:
    first, last = ran("n1", 1, 9, ok=False)
    judged = RepairJudged(at=14, candidate="c1.1", failure=HEADER, name="apt:x", worked=True, why="it was gone")
    told = story(started(), first, seen(3, "n1", HEADER), repaired(3.1, "apt:x", HEADER), last, judged)
    (failure,) = told.failures
    assert (failure.source, failure.came, failure.lead) == ("output", True, 6.0)
    (tried,) = failure.repairs
    assert (tried.repair.name, tried.outcome, tried.what) == ("apt:x", "worked", "it was gone")
    assert tried.repair.foreseen


def test_a_prediction_whose_step_ends_well_did_not_come() -> None:
    told = story(started(), *ran("n1", 1, 9, ok=True), seen(3, "n1", HEADER))
    assert [(one.came, one.lead) for one in told.failures] == [(False, None)]


def test_of_a_step_that_was_cancelled_nobody_knows() -> None:
    told = story(started(), *ran("n1", 1, 9, ok=False, cancelled=True), seen(3, "n1", HEADER))
    assert told.failures[0].came is None


def test_what_was_foreseen_before_anything_ran_is_held_against_what_came() -> None:
    foreseen = seen(0.5, "", HEADER, probability=0.8)
    came = story(started(), foreseen, *ran("n1", 1, 9, ok=False), seen(8, "n1", HEADER))
    assert [(one.source, one.came, one.lead) for one in came.failures] == [("before", True, 8.5), ("output", True, 1.0)]
    passed = story(started(), foreseen, *ran("n1", 1, 9, ok=True))
    assert [one.came for one in passed.failures] == [False]
    other = story(started(), foreseen, *ran("n1", 1, 9, ok=True, who="c2"))
    assert [one.came for one in other.failures] == [None], "another candidate's success says nothing"


def test_predictions_are_counted_by_what_came_of_them() -> None:
    events = [
        started(),
        seen(0.5, "", HEADER, probability=0.8),
        *ran("n1", 1, 9, ok=False),
        seen(8, "n1", HEADER),
        *ran("n2", 10, 12, ok=True),
        seen(11, "n2", LESS),
        *ran("n3", 12, 14, ok=False, cancelled=True),
        seen(13, "n3", LESS),
        *ran("n4", 14, 16, ok=False),
        seen(16, "n4", LESS, probability=1.0),
    ]
    assert predictions(sorted(events, key=lambda event: event.at)) == Predictions(
        told=4, hit=2, missed=1, open=1, unforeseen=1, lead_seconds=9.5
    )


def test_lines_of_output_are_not_remembered() -> None:
    memory = Memory()
    for event in (started(), StepOutput(at=1, node="n1", line="x"), *ran("n1", 1, 9, ok=True)):
        memory.emit(event)
    assert [event.kind for event in memory.events] == ["build-started", "step-started", "step-ended"]


def test_warnings_of_steps_that_ended_well_are_no_part_of_it() -> None:
    warning = LESS.model_copy(update={"weight": Weight.WARNING})
    assert story(started(), *ran("n1", 1, 9, ok=True), seen(3, "n1", warning)).failures == ()
    assert len(story(started(), *ran("n1", 1, 9, ok=False), seen(3, "n1", warning)).failures) == 1


def test_a_repair_that_never_showed_says_how_its_candidate_ended() -> None:
    first, last = ran("n1", 1, 9, ok=False)
    end = CandidateEnded(at=20, candidate="c1.1", end="cancelled", why="another candidate verified first")
    told = story(started(), first, seen(3, "n1", HEADER), repaired(3.1, "apt:x", HEADER), last, end)
    assert told.failures[0].repairs[0].outcome == "unknown"
    assert "another candidate verified first" in told.failures[0].repairs[0].what


def test_it_is_told_in_words() -> None:
    first, last = ran("n1", 1, 9, ok=False)
    ended = BuildEnded(at=30, outcome="failed", seconds=30)
    told = story(started(), first, seen(3, "n1", HEADER), repaired(3.1, "apt:x", HEADER), last, ended)
    text = "\n".join(story_lines(told, Terminal(io.StringIO())))
    for part in ("the header sql.h is missing", "fatal error: sql.h", "6.0s before the step ended", "forked ahead"):
        assert part in text
    assert "no failure" in "\n".join(story_lines(story(started(), ended), Terminal(io.StringIO())))


def test_a_journal_that_was_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    whole = started().model_dump_json()
    file.write_text(whole + "\n" + whole[: len(whole) // 2])
    assert tell(read_journal(file)).outcome == "interrupted"


def test_what_is_no_journal_is_refused_with_a_hint(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    file.write_text('{"kind": "unheard-of"}\n')
    with pytest.raises(UsageError, match="no journal"):
        list(read_journal(file))
    with pytest.raises(UsageError, match="cannot be read"):
        list(read_journal(tmp_path / "nothing"))
    with pytest.raises(UsageError, match="cannot be read"):
        list(read_journal(tmp_path))


def test_whatever_signs_output_holds_a_journal_is_read(tmp_path: Path) -> None:
    odd = MissingCommand(command="less", evidence="a\u2028b\x85c\x0bd\x1ee\rf")
    file = tmp_path / "journal.jsonl"
    file.write_text(f"{started().model_dump_json()}\n{seen(1, 'n', odd).model_dump_json()}\n", encoding="utf-8")
    (told,) = tell(read_journal(file)).failures
    assert told.failure == odd


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_last_line_that_is_not_whole_is_left_out(cut: int, tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    whole = f"{started().model_dump_json()}\n"
    file.write_text(whole + repaired(1, "apt:x", HEADER).model_dump_json()[:-cut])
    assert tell(read_journal(file)).build == "b1"
    file.write_bytes(whole.encode() + b'{"kind": "notice", "message": "\xe2\x80')
    assert tell(read_journal(file)).build == "b1"


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    file.write_bytes(bytes(range(256)) * 9 + b"\n")
    with pytest.raises(UsageError, match="no journal"):
        list(read_journal(file))
