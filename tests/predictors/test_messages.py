"""What tools, libraries and tests print where something is missing, in many ecosystems; and what looks alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specbuild.failures import FAILURE, Failure, Weight
from specbuild.predictors import reader


def cases(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()]


def diagnosed(output: str) -> list[Failure]:
    one = reader()
    found = [failure for line in output.split("\n") for failure in one.feed(line)]
    return [failure.model_copy(update={"evidence": ""}) for failure in found + one.finish()]


@pytest.mark.parametrize("case", cases("messages.jsonl"), ids=lambda case: case["id"])
def test_a_message_is_diagnosed(case: dict[str, Any]) -> None:
    assert diagnosed(case["output"]) == [FAILURE.validate_python(one) for one in case["expected"]]


@pytest.mark.parametrize("case", cases("harmless.jsonl"), ids=lambda case: case["id"])
def test_what_looks_alike_is_no_cause(case: dict[str, Any]) -> None:
    """Checks that say no and go on, names of tests, warnings, what is skipped."""
    assert [one for one in diagnosed(case["output"]) if one.weight is Weight.CAUSE] == []
