"""`specbuild explain`, from a journal to what is shown of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from specbuild.cli import main
from specbuild.events import (
    BuildEnded,
    BuildStarted,
    CandidateProposed,
    Event,
    FailureSeen,
    RepairJudged,
    RepairMade,
    StepEnded,
    StepStarted,
)
from specbuild.failures import MissingHeader
from specbuild.journal import Journal
from specbuild.library import Library, Place

HEADER = MissingHeader(header="cairo.h", evidence="fatal error: cairo.h: No such file or directory")
BUILD = "install the project"


def events() -> Iterable[Event]:
    yield BuildStarted(at=0, build="b1", repo="pypi:thing", wall_time="2026-11-30T00:00:00Z", version="0")
    yield StepStarted(at=1, node="n1", title=BUILD, step_kind="build", candidates=("c1",))
    yield FailureSeen(
        at=4,
        node="n1",
        title=BUILD,
        step_kind="build",
        candidates=("c1",),
        failure=HEADER,
        words=str(HEADER),
        probability=0.9,
    )
    repair = RepairMade(
        failure=HEADER, name="apt:cairo", title="install libcairo2-dev", why="it owns cairo.h", probability=0.9
    ).model_copy(update={"foreseen": True})
    yield CandidateProposed(
        at=4,
        candidate="c1.1",
        strategy="declared",
        base="debian:test",
        prior=0.5,
        reason="it is declared",
        steps=(BUILD,),
        repairs=(repair,),
        of="c1",
    )
    yield StepEnded(at=6, node="n1", title=BUILD, ok=False, seconds=5)
    yield RepairJudged(at=9, candidate="c1.1", failure=HEADER, name="apt:cairo", worked=True, why="it was gone")
    yield BuildEnded(at=10, outcome="failed", seconds=10, message="none of 2 candidates verified")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A build that has failed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECBUILD_CACHE_DIR", str(tmp_path / "cache"))
    place = Library(tmp_path / "cache").new_place()
    place.journal.write_text("".join(f"{event.model_dump_json()}\n" for event in events()))
    return place


def test_a_build_that_failed_is_explained_by_default(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "pypi:thing: failed" in shown.out
    assert "evidence  fatal error: cairo.h" in shown.out
    assert "it came, 2.0s before the step ended" in shown.out
    assert "install libcairo2-dev (c1.1, forked ahead; it owns cairo.h): worked" in shown.out


@pytest.mark.parametrize("name", ["id", "folder", "file"])
def test_a_build_is_found_by_its_id_its_folder_and_its_journal(
    name: str, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    refs = {"id": place.id[:6], "folder": str(place.folder), "file": str(place.journal)}
    assert main(["explain", refs[name]]) == 0
    assert "pypi:thing: failed" in capsys.readouterr().out


def test_json_is_one_object(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", place.id, "--json"]) == 0
    story = json.loads(capsys.readouterr().out)
    assert (story["schema_version"], story["repo"], story["outcome"]) == (1, "pypi:thing", "failed")
    (failure,) = story["failures"]
    assert (failure["came"], failure["lead"], failure["repairs"][0]["outcome"]) == (True, 2.0, "worked")


def test_a_build_that_is_not_there_is_a_mistake_of_the_request(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "nothing"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "there is no build 'nothing' here" in shown.err


def test_a_build_that_goes_on_is_said_to(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    with Journal(place.journal) as journal:
        for event in list(events())[:3]:
            journal.emit(event)
        assert main(["explain"]) == 0
        assert "pypi:thing: running after" in capsys.readouterr().out
    assert main(["explain", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "interrupted"


@pytest.mark.parametrize("name", ["folder", "missing.jsonl", "torn.jsonl", "binary.jsonl", "last"])
def test_where_there_is_no_journal_it_is_a_mistake_of_the_request(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECBUILD_CACHE_DIR", str(tmp_path / "none"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "torn.jsonl").write_text('{"kind": "noti\n{"kind": "notice"}\n')
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\x00\n")
    assert main(["explain", name]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Traceback" not in shown.err


def test_the_schema_holds_of_what_json_prints(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "story", "--json"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert main(["explain", place.id, "--json"]) == 0
    story = json.loads(capsys.readouterr().out)
    assert set(schema["required"]) <= set(story) <= set(schema["properties"])
    told = schema["$defs"]["Told"]
    assert set(told["required"]) <= set(story["failures"][0]) <= set(told["properties"])
