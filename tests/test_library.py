"""Finding environments: what is said of those that are missing, ambiguous or damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbuild.environment import Environment, RepoInfo, Seconds
from specbuild.errors import UsageError
from specbuild.library import Library
from specbuild.repo.facts import Facts


@pytest.mark.parametrize("content", ["", "{", "{}", "null", "[]", '{"schema_version": 99}', "\0"])
def test_a_damaged_environment_is_told_in_one_line(content: str, tmp_path: Path) -> None:
    (tmp_path / "environment.json").write_text(content)
    with pytest.raises(UsageError, match="is not an environment of this version") as told:
        Library(tmp_path / "cache").find(str(tmp_path))
    assert "\n" not in told.value.message
    assert "pydantic" not in told.value.message


def test_an_empty_name_stands_for_no_build(tmp_path: Path) -> None:
    place = Library(tmp_path).new_place()
    (place.folder / "environment.json").write_text("{}")
    with pytest.raises(UsageError, match="there is no environment ''"):
        Library(tmp_path).find("")


def test_a_beginning_that_fits_several_lists_them(tmp_path: Path) -> None:
    places = [Library(tmp_path).new_place() for _ in range(2)]
    for place in places:
        (place.folder / "environment.json").write_text("{}")
    with pytest.raises(UsageError, match="could be any of") as told:
        Library(tmp_path).find("b")
    assert all(place.id in told.value.message for place in places)


def test_the_environment_of_another_schema_is_not_guessed_at(tmp_path: Path) -> None:
    made = Environment(
        id="b1",
        outcome="failed",
        specbuild_version="0.1.0",
        created="2026-11-30T00:00:00+00:00",
        repo=RepoInfo(origin="x", kind="folder", revision=None, digest="sha256:0", date=None, fetch=""),
        seconds=Seconds(total=1.0, to_commit=None),
        facts=Facts(),
    )
    (tmp_path / "environment.json").write_text(made.model_dump_json())
    assert Library(tmp_path / "cache").find(str(tmp_path)) == made
    later = made.model_dump_json().replace('"schema_version":1', '"schema_version":2', 1)
    (tmp_path / "environment.json").write_text(later)
    with pytest.raises(UsageError, match="schema_version"):
        Library(tmp_path / "cache").find(str(tmp_path))
