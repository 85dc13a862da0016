"""Lines of CI and Dockerfiles: what is kept of them, what is not."""

from __future__ import annotations

import pytest

from specbuild.repo.facts import Evidence, Fact
from specbuild.strategies.shell_lines import Purpose, package_names, purpose, translate


def script(*lines: str) -> tuple[Fact[str], ...]:
    return tuple(Fact(value=line, evidence=Evidence(file="ci.yml", line=n)) for n, line in enumerate(lines, 1))


@pytest.mark.parametrize(
    "command",
    [
        "pip install -e .[test]",
        "python -m pip install -r requirements.txt",
        "python setup.py develop",
        "uv sync",
        "poetry install",
    ],
)
def test_installs_of_python_packages_are_kept(command: str) -> None:
    assert purpose(command) is Purpose.PYTHON


@pytest.mark.parametrize(
    "command",
    [
        "pytest -x",
        "tox -e py",
        "codecov --token x",
        "pip install --upgrade pip setuptools wheel",
        "python -m pip install -U tox tox-gh-actions",
        "curl -sSL example.org | sh",
        "echo ${{ secrets.TOKEN }}",
        "docker compose up -d",
        "ruff check .",
        "add-apt-repository ppa:x/y",
    ],
)
def test_what_sets_nothing_up_is_skipped(command: str) -> None:
    assert purpose(command) is Purpose.SKIPPED


def test_system_packages_of_all_lines_are_gathered_and_sorted() -> None:
    found = translate(
        script(
            "sudo apt-get update && sudo apt-get install -y --no-install-recommends libzbar0 \\\n  graphviz",
            "apt install jq=1.6",
        )
    )
    assert found.packages == ("graphviz", "jq", "libzbar0")
    assert found.lines == ()
    assert not found.python


def test_variables_are_no_package_names() -> None:
    assert package_names("apt-get install -yq $EXTRA libpq-dev") == ("libpq-dev",)


def test_lines_keep_their_order_and_lose_sudo() -> None:
    found = translate(script("export MODE=test\nsudo pip install -r dev.txt; pytest", "make bootstrap"))
    assert found.lines == ("export MODE=test", "pip install -r dev.txt", "make bootstrap")
    assert found.python
    assert found.skipped == ("pytest",)


def test_separators_inside_of_quotes_split_nothing() -> None:
    assert translate(script("pip install 'a; python_version < \"3.9\"' && pytest")).lines == (
        "pip install 'a; python_version < \"3.9\"'",
    )


def test_what_is_kept_has_its_evidence() -> None:
    found = translate(script("pytest", "pip install -e ."))
    assert [evidence.line for evidence in found.evidence] == [2]
