from __future__ import annotations

import pytest

from specbuild.failures import Failure
from specbuild.predictors import FAMILIES, Signature, reader
from specbuild.predictors.reader import Index, Reader, gates_of
from specbuild.predictors.signature import Found

ALL = [(family, number, one) for family, signatures in FAMILIES.items() for number, one in enumerate(signatures)]
IDS = [f"{family}-{number}-{one.literals[0].strip()}" for family, number, one in ALL]
SIGNATURES = [one for _, _, one in ALL]


def read(one: Reader, output: str) -> list[Failure]:
    found = [failure for line in output.split("\n") for failure in one.feed(line)]
    return [failure.model_copy(update={"evidence": ""}) for failure in found + one.finish()]


def listed(found: Found) -> list[Failure]:
    return [] if found is None else list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("one", SIGNATURES, ids=IDS)
def test_examples_are_read_by_their_own_signature(one: Signature) -> None:
    assert one.examples
    for output, expected in one.examples:
        assert read(Reader(Index([one])), output) == listed(expected)


@pytest.mark.parametrize("one", SIGNATURES, ids=IDS)
def test_examples_are_read_the_same_among_all_signatures(one: Signature) -> None:
    for output, expected in one.examples:
        assert read(reader(), output) == listed(expected)


@pytest.mark.parametrize("one", [one for one in SIGNATURES if one.near], ids=lambda one: one.literals[0])
def test_near_misses_are_read_as_nothing(one: Signature) -> None:
    for output in one.near:
        assert read(reader(), output) == []


@pytest.mark.parametrize("one", SIGNATURES, ids=IDS)
def test_a_quoted_example_is_read_as_nothing(one: Signature) -> None:
    """Every signature has this near-miss: the same words within a sentence."""
    for output, _ in one.examples:
        quoted = "\n".join(f"docs/faq.rst:7: should you see ``{line.strip()}`` then" for line in output.split("\n"))
        assert read(reader(), quoted) == []


@pytest.mark.parametrize("one", SIGNATURES, ids=IDS)
def test_patterns_repeat_within_bounds(one: Signature) -> None:
    """No unbounded repeat, as those are what makes a match slow."""
    for pattern in (one.pattern.pattern, one.follow.pattern if one.follow else ""):
        plain = pattern.replace(r"\*", "").replace(r"\+", "")
        assert "*" not in plain
        assert "+" not in without_classes(plain)


def without_classes(pattern: str) -> str:
    """The pattern without its classes of characters, in which a plus means itself."""
    kept: list[str] = []
    inside = escaped = False
    for character in pattern:
        if not inside:
            kept.append(character)
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in "[]":
            inside = character == "["
    return "".join(kept)


def test_a_literal_without_a_word_is_refused() -> None:
    with pytest.raises(ValueError, match="no gate"):
        gates_of("?! is (")
