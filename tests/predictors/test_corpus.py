"""Real outputs of tools and the diagnosis of each, checked one by one against what cured it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specbuild.failures import FAILURE, Failure
from specbuild.predictors import reader

CASES: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("signatures.jsonl").read_text().splitlines()
]


def diagnosed(output: str) -> list[Failure]:
    one = reader()
    found = [failure for line in output.split("\n") for failure in one.feed(line)]
    return found + one.finish()


def bare(failures: list[Failure]) -> list[Failure]:
    return [failure.model_copy(update={"evidence": ""}) for failure in failures]


def test_no_case_is_lost() -> None:
    assert len({case["id"] for case in CASES}) == 181


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_real_output_is_diagnosed(case: dict[str, Any]) -> None:
    assert bare(diagnosed(case["output"])) == [FAILURE.validate_python(one) for one in case["expected"]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_diagnosis_survives_the_marks_of_a_wrapping_tool(case: dict[str, Any]) -> None:
    """BuildKit's times, the box of an installer, colours."""
    plain = bare(diagnosed(case["output"]))
    for wrapped in ("#12 34.567 {}", "    {}", "\x1b[31m{}\x1b[0m"):
        output = "\n".join(wrapped.format(line) for line in case["output"].split("\n"))
        assert bare(diagnosed(output)) == plain


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_quoting_an_error_is_not_having_it(case: dict[str, Any]) -> None:
    """As in documents that are printed, in assertions of tests, and in comments of sources."""
    for quoted in ('    assert "{}" in output', "README.md:12: users may see `{}`, which is harmless", "# {}"):
        output = "\n".join(quoted.format(line) for line in case["output"].split("\n"))
        assert diagnosed(output) == []
