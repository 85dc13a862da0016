"""Results of `bench race` that are kept, and gone on from."""

from __future__ import annotations

import json
from pathlib import Path

from bench.race import Run, as_json, read_json, summary


def results() -> dict[str, dict[str, list[Run]]]:
    def run(seconds: float, *repairs: str) -> list[Run]:
        return [Run(seconds, committed=True, commands=3, repairs=repairs, predictions={"told": 1.0})]

    return {
        "one": {"sequential": run(20.0), "full": run(10.0, "apt:gcc"), "oracle": run(9.0)},
        "two": {"sequential": run(40.0), "oracle": run(30.0)},
    }


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    made = {"one": results()["one"]}
    (tmp_path / "race.json").write_text(json.dumps(as_json(made, summary(made, 60.0), 60.0)))
    assert read_json(tmp_path / "race.json", ["sequential", "full"]) == made


def test_projects_that_lack_a_mode_are_measured_again(tmp_path: Path) -> None:
    made = results()
    (tmp_path / "race.json").write_text(json.dumps(as_json(made, {}, 60.0)))
    assert list(read_json(tmp_path / "race.json", ["full"])) == ["one"]
    assert list(read_json(tmp_path / "race.json", ["sequential"])) == ["one", "two"]


def test_a_first_run_has_nothing_to_go_on_from(tmp_path: Path) -> None:
    assert read_json(tmp_path / "race.json", ["full"]) == {}
