"""CI files: matrices, expressions, scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbuild.repo.facts import CiJob
from specbuild.repo.inspect import inspect
from specbuild.repo.readers.commands import looks_like_install, looks_like_test, split_script
from specbuild.repo.readers.expressions import evaluate, expand, is_excluded
from specbuild.repo.readers.matrix import preferred, version_key


def github(root: Path, workflow: str) -> tuple[CiJob, ...]:
    path = root / ".github" / "workflows" / "ci.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(workflow)
    return inspect(root).ci


CONTEXT = {"matrix.python": "3.12", "matrix.*": "", "env.A": "x", "runner.os": "Linux"}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("matrix.python", "3.12"),
        ("matrix.tox || format('py{0}', matrix.python)", "py3.12"),
        ("matrix.python == '3.12' && 'new' || 'old'", "new"),
        ("matrix.python == '3.8' && 'new' || 'old'", "old"),
        ("!startsWith(runner.os, 'win')", "true"),
        ("contains(matrix.python, '3.1')", "true"),
        ("'it''s'", "it's"),
        ("secrets.TOKEN", None),
        ("hashFiles('**/lock')", None),
        ("secrets.TOKEN && 'a'", None),
        ("matrix.absent", ""),
    ],
)
def test_expressions_give_what_is_known(expression: str, expected: str | None) -> None:
    assert evaluate(expression, CONTEXT) == expected


def test_expressions_that_are_unknown_stay_as_written() -> None:
    assert (
        expand("pip install x==${{ secrets.V }} py${{ matrix.python }}", CONTEXT)
        == "pip install x==${{ secrets.V }} py3.12"
    )


def test_names_of_a_computed_matrix_stay_as_written() -> None:
    assert expand("tox -e ${{ matrix.env }}", {}) == "tox -e ${{ matrix.env }}"


@pytest.mark.parametrize(
    ("condition", "excluded"),
    [
        ("runner.os == 'Windows'", True),
        ("${{ runner.os == 'Linux' }}", False),
        ("failure()", True),
        ("always()", False),
        ("github.ref == 'refs/heads/main'", False),
        ("matrix.python != '3.12'", True),
    ],
)
def test_conditions_exclude_only_what_is_certainly_false(condition: str, excluded: bool) -> None:
    assert is_excluded(condition, CONTEXT) is excluded


def test_the_newest_final_cpython_is_preferred() -> None:
    assert preferred(["3.9", "pypy3.11", "3.12", "3.14-dev", "3.13t", "", "3.12"]) == 2


@pytest.mark.parametrize("newer", ["3.10", "3.10.4", "py310", "python3.10", "v3.10"])
def test_versions_compare_as_numbers(newer: str) -> None:
    old, new = version_key("3.9"), version_key(newer)
    assert old is not None
    assert new is not None
    assert old < new


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("pip install x\n\n# note\npytest -q\n", [(0, "pip install x"), (3, "pytest -q")]),
        ("pip install \\\n  x\npytest", [(0, "pip install x"), (2, "pytest")]),
        ("a &&\nb\n", [(0, "a && b")]),
        ("a\n&& b\n", [(0, "a && b")]),
        ("cd x\npytest\n", [(0, "cd x\npytest")]),
        ("if true; then\n  pytest\nfi", [(0, "if true; then\n  pytest\nfi")]),
        ("cat <<EOF\na\nEOF\n", [(0, "cat <<EOF\na\nEOF")]),
    ],
)
def test_scripts_are_split_unless_their_lines_depend_on_each_other(
    script: str, expected: list[tuple[int, str]]
) -> None:
    assert split_script(script) == expected


@pytest.mark.parametrize(
    "command",
    [
        *("pytest", "python -m pytest -q", "tox -e py312", "nox -s tests-3.12", "./manage.py test", "make check"),
        *(
            "python -m unittest discover",
            "coverage run -m pytest",
            "poetry run pytest",
            "uv run pytest",
            "trial twisted",
        ),
        *(
            "hatch run test:run",
            "python setup.py test",
            "./scripts/test.sh",
            "python tests/runtests.py",
            "xvfb-run pytest",
        ),
    ],
)
def test_test_commands_are_recognised(command: str) -> None:
    assert looks_like_test(command)


@pytest.mark.parametrize(
    "command",
    [
        *("pip install pytest", "python -m pip install tox nox", "tox -e docs", "nox -s lint", "echo pytest"),
        *("uv pip install pytest", "tox -e lint,mypy", "# pytest", "sudo apt-get install python3-pytest"),
    ],
)
def test_other_commands_are_not_taken_for_tests(command: str) -> None:
    assert not looks_like_test(command)


@pytest.mark.parametrize(
    "command", ["pip install .", "uv sync", "poetry install", "sudo apt-get -y install gcc", "make deps"]
)
def test_install_commands_are_recognised(command: str) -> None:
    assert looks_like_install(command)


def test_lines_of_evidence_point_into_block_scripts(tmp_path: Path) -> None:
    jobs = github(
        tmp_path,
        "jobs:\n  t:\n    runs-on: ubuntu-22.04\n    steps:\n    - run: |\n        pip install x\n        pytest\n",
    )
    assert [(fact.value, fact.evidence.line, fact.evidence.text) for fact in jobs[0].run] == [
        ("pip install x", 6, "pip install x"),
        ("pytest", 7, "pytest"),
    ]


def test_jobs_for_other_systems_and_other_repositories_are_left_out(tmp_path: Path) -> None:
    jobs = github(
        tmp_path,
        """
jobs:
  win: {runs-on: windows-latest, steps: [{run: pytest}]}
  call: {uses: ./.github/workflows/other.yml}
  downstream:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with: {repository: other/project}
      - run: pytest
""",
    )
    assert jobs == ()


def test_the_on_key_and_unquoted_versions_keep_their_text(tmp_path: Path) -> None:
    jobs = github(
        tmp_path,
        """
on:
  workflow_call:
    inputs:
      py: {default: 3.10}
jobs:
  t:
    runs-on: ubuntu-latest
    container: python:${{ inputs.py }}
    steps:
      - uses: actions/setup-python@v5
        with:
          python-version: |
            3.9
            ${{ inputs.py }}
      - run: pytest
""",
    )
    assert jobs[0].pythons == ("3.9", "3.10")
    assert jobs[0].image == "python:3.10"


def test_a_test_runner_behind_a_variable_is_seen(tmp_path: Path) -> None:
    jobs = github(
        tmp_path, "jobs: {t: {runs-on: ubuntu-latest, env: {RUN: python -m pytest}, steps: [{run: '${RUN} -q'}]}}"
    )
    assert jobs[0].tests
