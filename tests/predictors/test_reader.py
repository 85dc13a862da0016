from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbuild.failures import Failure, MissingHeader, VersionOutOfRange, Weight
from specbuild.predictors import FAMILIES, index, reader
from specbuild.predictors.reader import MOST
from specbuild.predictors.text import EVIDENCE, LINE, plain

REAL = [
    line
    for case in Path(__file__).with_name("signatures.jsonl").read_text().splitlines()
    for line in json.loads(case)["output"].split("\n")
]
LITERALS = sorted({literal for signatures in FAMILIES.values() for one in signatures for literal in one.literals})
NOISE = st.text(max_size=60) | st.sampled_from(["", "Collecting a", "ok", "[ 50%] Building C object a.o"])
PIECES = st.lists(st.sampled_from(LITERALS) | st.text(max_size=8), max_size=8).map("".join)
LINES = st.lists(st.sampled_from(REAL) | NOISE | PIECES, max_size=30)


def whole(lines: list[str]) -> list[Failure]:
    one = reader()
    return [failure for line in lines for failure in one.feed(line)] + one.finish()


@given(LINES)
def test_any_output_is_read(lines: list[str]) -> None:
    keys = [failure.key for failure in whole(lines)]
    assert len(keys) == len(set(keys))


@given(LINES)
def test_line_ends_do_not_matter(lines: list[str]) -> None:
    assert [one.key for one in whole([f"{line}\r\n" for line in lines])] == [one.key for one in whole(lines)]


@given(LINES, LINES)
def test_what_was_told_is_never_taken_back(lines: list[str], more: list[str]) -> None:
    """What a reader tells as lines come is the beginning of what it tells of longer output."""
    one = reader()
    told = [failure for line in lines for failure in one.feed(line)]
    assert whole(lines + more)[: len(told)] == told


@given(st.lists(st.sampled_from(REAL), max_size=6), st.lists(NOISE, max_size=6))
def test_harmless_lines_before_change_nothing(lines: list[str], noise: list[str]) -> None:
    if not whole(noise):
        assert whole(noise + lines) == whole(lines)


@given(PIECES, st.integers(1, 400))
def test_repeats_of_what_signatures_look_for_are_read(piece: str, times: int) -> None:
    whole([piece * times, f"error: {piece * times}"])


@pytest.mark.parametrize("literal", ["rror: ", "fatal error: ", "No module named '", "a.b.", "x x ", "////", "''"])
def test_a_line_of_a_megabyte_costs_no_more_than_its_beginning(literal: str) -> None:
    line = (literal * (1_000_000 // len(literal) + 1))[:1_000_000]
    assert whole([line]) == whole([line[:LINE]])
    assert calls_for(line) == calls_for(line[:LINE])


def calls_for(line: str) -> int:
    """How many calls, of Python and of C, reading a line makes: work without a clock."""
    calls: Counter[str] = Counter()

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        calls[event] += 1

    one = reader()
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        one.feed(line)
    finally:
        sys.setprofile(before)
    return calls["call"] + calls["c_call"]


@pytest.mark.parametrize("size", [LINE, 1_000_000])
def test_only_the_beginning_of_a_long_line_is_looked_at(size: int) -> None:
    assert whole(["x" * size + " fatal error: zlib.h: No such file or directory"]) == []


def test_candidates_of_an_ordinary_line_are_none() -> None:
    assert index().candidates("gcc -O2 -Wall -c src/a.c -o build/a.o") == []
    assert whole(["Requirement already satisfied: pip in /v/lib", "a.c:3:5: warning: unused variable ‘x’"]) == []


def test_a_diagnosis_is_told_once() -> None:
    line = "a.c:1:10: fatal error: zlib.h: No such file or directory"
    assert whole([line, "", line.replace("a.c", "b.c")]) == [MissingHeader(header="zlib.h", evidence=line)]


def test_evidence_is_plain_and_short() -> None:
    line = "\x1b[31mE   ModuleNotFoundError: No module named 'yaml'\x1b[0m" + " " * 10 + "#" * 2000 + "\n"
    (failure,) = whole([line])
    assert failure.evidence.startswith("ModuleNotFoundError: No module named 'yaml'")
    assert len(failure.evidence) == EVIDENCE


def test_memory_is_bounded_when_everything_fails() -> None:
    assert len(whole([f"fatal error: h{n}.h: No such file or directory" for n in range(MOST * 2)])) == MOST


def test_a_symptom_waits_for_a_cause() -> None:
    symptom = "error: command 'gcc' failed with exit status 1"
    cause = "x.c:1:10: fatal error: zlib.h: No such file or directory"
    one = reader()
    assert one.feed(symptom) == []
    assert [failure.kind for failure in one.feed(cause)] == ["missing-header"]
    assert one.finish() == []
    assert [(failure.kind, failure.weight) for failure in whole([symptom])] == [("compiler-failed", Weight.SYMPTOM)]


def test_a_warning_is_told_and_does_not_hide_a_symptom() -> None:
    found = whole(["perl: warning: Setting locale failed.", "error: command 'gcc' failed with exit status 1"])
    assert [failure.kind for failure in found] == ["missing-locale", "compiler-failed"]


def test_a_following_line_adds_to_what_was_seen() -> None:
    one = reader()
    assert one.feed("error: rustc 1.63.0 is not supported by the following package:") == []
    assert [str(failure) for failure in one.feed("  a@1.0.0 requires rustc 1.70")] == [
        "rust 1.63.0 does not fit: 1.70 a@1.0.0"
    ]


def test_a_following_line_that_does_not_come_is_not_waited_for_long() -> None:
    one = reader()
    one.feed("error: rustc 1.63.0 is not supported by the following package:")
    told = [failure for _ in range(4) for failure in one.feed("something else")]
    assert [failure.kind for failure in told] == ["version-out-of-range"]
    assert one.finish() == []


def test_progress_that_is_overwritten_is_not_output() -> None:
    assert plain("  10%\r  50%\r\x1b[Kerror: can't find Rust compiler\n") == "error: can't find Rust compiler"


def test_a_failure_knows_what_was_being_built_where_only_one_build_was_under_way() -> None:
    made = reader()
    made.feed("   Building psycopg2==2.9.10")
    (alone,) = made.feed("DEBUG Error: pg_config executable not found.")
    assert alone.building == "psycopg2"
    made.feed("   Building lxml @ file:///repo")
    (two,) = made.feed("DEBUG a.c:1:10: fatal error: nothere/x.h: No such file or directory")
    assert two.building == "", "it could be either"
    made.feed("      Built psycopg2==2.9.10")
    (left,) = made.feed("DEBUG b.c:1:10: fatal error: nothere/y.h: No such file or directory")
    assert left.building == "lxml"


def test_what_was_not_read_leaves_no_gap_in_the_words() -> None:
    assert str(VersionOutOfRange(tool="python", because="uuid._load")) == "python does not fit: uuid._load"
    assert str(VersionOutOfRange(tool="python", found="3.14")) == "python 3.14 does not fit"
