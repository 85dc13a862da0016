"""The program that completes what tests need, run for real on small trees, with an installer that only notes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from specbuild.strategies import complete_tests
from specbuild.strategies.completion import complete

INSTALLER = (
    "import pathlib, sys; pathlib.Path('asked').open('a').write(sys.argv[-1] + '\\n'); sys.exit('nope' in sys.argv[-1])"
)


def asked(tree: Path, mode: str) -> list[str]:
    """What the program wanted to install, in order."""
    program = Path(complete_tests.__file__)
    command = [sys.executable, "-", mode, sys.executable, "-c", INSTALLER]
    done = subprocess.run(command, cwd=tree, input=program.read_bytes(), capture_output=True, check=True)
    (tree / "output").write_bytes(done.stdout)
    notes = tree / "asked"
    return notes.read_text().split() if notes.exists() else []


def write(tree: Path, **files: str) -> None:
    for name, text in files.items():
        path = tree / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pytest_dot_ini", "[pytest]\naddopts = --benchmark-skip --reruns 2\n"),
        ("setup_dot_cfg", "[tool:pytest]\naddopts = --benchmark-skip\n  --reruns 2\n"),
        (
            "pyproject_dot_toml",
            '[tool.pytest.ini_options]\naddopts = ["--benchmark-skip", "--reruns=2"]\n[tool.x]\na = 1\n',
        ),
    ],
)
def test_options_of_the_configuration_ask_for_their_plugins(tmp_path: Path, file: str, text: str) -> None:
    write(tmp_path, **{file: text})
    assert asked(tmp_path, "plugins") == ["pytest-benchmark", "pytest-rerunfailures"]


def test_required_plugins_are_asked_for(tmp_path: Path) -> None:
    write(tmp_path, pytest_dot_ini="[pytest]\nrequired_plugins = pytest-nosuch>=2\ntestpaths = tests\n")
    assert asked(tmp_path, "plugins") == ["pytest-nosuch"]


def test_comments_and_installed_plugins_ask_for_nothing(tmp_path: Path) -> None:
    write(tmp_path, pytest_dot_ini="[pytest]\n# addopts = --cov\nasyncio_mode = auto\n")
    assert asked(tmp_path, "plugins") == []


def test_unguarded_imports_of_test_files_are_asked_for_one_by_one(tmp_path: Path) -> None:
    write(
        tmp_path,
        tests__conftest_dot_py="import os, nosuch_a.inner\nfrom nosuch_b import x\n",
        tests__helpers_dot_py="import nosuch_c\n",
    )
    assert asked(tmp_path, "imports") == ["nosuch_a", "nosuch_b", "nosuch_c"]


def test_guarded_relative_and_own_imports_are_not(tmp_path: Path) -> None:
    text = (
        "try:\n    import nosuch_a\nexcept ImportError:\n    pass\nfrom . import other\nimport shiny\nimport pytest\n"
    )
    write(tmp_path, tests__test_x_dot_py=text, shiny____init___dot_py="")
    (tmp_path / "shiny").mkdir(exist_ok=True)
    (tmp_path / "shiny" / "__init__.py").write_text("")
    assert asked(tmp_path, "imports") == []


def test_fixtures_that_nobody_defines_ask_for_their_plugin(tmp_path: Path) -> None:
    write(tmp_path, tests__test_x_dot_py="def test_x(mocker, benchmark): pass\ndef benchmark(): pass\n")
    assert asked(tmp_path, "imports") == ["pytest-mock"]


def test_one_that_cannot_be_had_hinders_no_other_and_is_said(tmp_path: Path) -> None:
    write(tmp_path, tests__test_x_dot_py="import nope_a\nimport nosuch_b\n")
    assert asked(tmp_path, "imports") == ["nope_a", "nosuch_b"]
    assert "could not be had: nope_a" in (tmp_path / "output").read_text()


def test_files_that_are_no_python_are_passed_over(tmp_path: Path) -> None:
    write(
        tmp_path,
        tests__test_x_dot_py="print 'old'\n",
        tests__test_y_dot_py="import nosuch_b\n",
        setup_dot_cfg="]broken",
    )
    assert asked(tmp_path, "imports") == ["nosuch_b"]


def test_the_step_holds_the_whole_program(tmp_path: Path) -> None:
    step = complete("imports", options="--exclude-newer 2020-01-01")
    assert Path(complete_tests.__file__).read_text() in step.run
    assert "pip install --exclude-newer 2020-01-01 <<'COMPLETE_TESTS'" in step.run
