"""The end of an output."""

from __future__ import annotations

from pathlib import Path

from specbuild.tail import END_BYTES, end_of, last_lines


def test_blank_lines_do_not_count() -> None:
    assert last_lines("one\n\ntwo\n  \nthree\n\n", 2) == ["two", "three"]


def test_a_short_text_is_shown_whole() -> None:
    assert last_lines("one", 5) == ["one"]
    assert last_lines("", 5) == []


def test_of_a_long_log_only_the_end_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * END_BYTES + b"\nthe \xff end\n")
    end = end_of(log)
    assert len(end) <= END_BYTES
    assert last_lines(end, 1) == ["the \ufffd end"]


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert end_of(tmp_path / "none") == ""
