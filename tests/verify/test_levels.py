"""Levels other than `tests`: imports, collect, build, and the user's own command."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from specbuild.errors import ConfigError
from specbuild.recipe import Check, Level
from specbuild.repo.facts import Evidence, Extension, Fact, Facts, TestLayout
from specbuild.verify import Verdict, checks_for

Judge = Callable[..., Awaitable[Verdict]]
HERE = Evidence(file="demo/__init__.py")
GOOD = "def test_good():\n    pass\n"


def project(*, installable: bool = True, extension: bool = False, runner: str = "pytest") -> Facts:
    """Facts of a project `demo` in a flat layout."""
    return Facts(
        name=Fact(value="demo", evidence=HERE),
        build_backend=Fact(value="setuptools.build_meta", evidence=HERE) if installable else None,
        packages=(Fact(value="demo", evidence=HERE),),
        extensions=(Extension(language="c", name="demo._fast", evidence=HERE),) if extension else (),
        tests=(TestLayout(runner=runner, paths=("tests",)),),
    )


def check(level: Level, command: str | None = None, facts: Facts | None = None) -> Check:
    return checks_for(facts or project(), level=level, test_command=command, network=False, timeout=60)[0]


@pytest.fixture
def installed(environment: Path) -> Iterator[None]:
    """Installs `demo` as its source tree, as an editable install does; undone afterwards."""
    site = next(environment.glob("lib/python*/site-packages"))
    link = site / "demo.pth"
    link.write_text("/repo\n")
    yield
    link.unlink()


async def test_tests_against_a_bare_source_tree_do_not_verify(judge: Judge) -> None:
    files = {"demo/__init__.py": "", "tests/test_a.py": f"import demo\n{GOOD}"}
    verdict = await judge(files, facts=project())
    assert not verdict.ok
    assert "nothing of this project is installed" in verdict.reason


@pytest.mark.usefixtures("installed")
async def test_tests_of_an_installed_project_verify(judge: Judge) -> None:
    verdict = await judge({"demo/__init__.py": "", "tests/test_a.py": f"import demo\n{GOOD}"}, facts=project())
    assert verdict.ok, verdict


async def test_an_application_is_tested_in_its_tree(judge: Judge) -> None:
    files = {"demo/__init__.py": "", "tests/test_a.py": f"import demo\n{GOOD}"}
    assert (await judge(files, facts=project(installable=False))).ok


@pytest.fixture
def compiled(environment: Path) -> Iterator[None]:
    """Installs `demo` with a module that its source tree lacks, as a build of extensions does."""
    package = next(environment.glob("lib/python*/site-packages")) / "demo"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "_fast.py").write_text("answer = 42\n")
    yield
    shutil.rmtree(package)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("extension", [True, False])
async def test_compiled_modules_are_not_hidden_by_the_source_tree(judge: Judge, extension: bool) -> None:
    files = {
        "demo/__init__.py": "",
        "tests/__init__.py": "",
        "tests/util.py": "",
        "tests/test_a.py": f"from . import util\nfrom demo._fast import answer\n{GOOD}",
    }
    verdict = await judge(files, facts=project(extension=extension))
    assert verdict.ok is extension, verdict


IMPORTABLE = {
    "demo/__init__.py": "",
    "demo/a.py": "",
    "demo/deep/__init__.py": "",
    "demo/deep/b.py": "",
    "demo/__main__.py": "raise SystemExit(1)\n",
    "demo/_win32.py": "import winreg\n",
    "demo/tests/__init__.py": "import nowhere\n",
}


@pytest.mark.usefixtures("installed")
async def test_imports_verify_when_all_modules_resolve(judge: Judge) -> None:
    verdict = await judge(IMPORTABLE, check(Level.IMPORTS))
    assert verdict.ok, verdict
    assert (verdict.passed, verdict.failed, verdict.skipped) == (4, 0, 3)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("module", "text", "why"),
    [
        ("demo/__init__.py", "import nowhere\n", "did not load: demo"),
        ("demo/c.py", "import nowhere\n", "4 of 5 passed, which is below"),
        ("demo/c.py", "import sys\nsys.exit()\n", "4 of 5 passed, which is below"),
        ("demo/c.py", "import os\nos._exit(0)\n", "wrote no report: importing demo.c"),
    ],
)
async def test_imports_that_do_not_resolve_do_not_verify(judge: Judge, module: str, text: str, why: str) -> None:
    verdict = await judge({**IMPORTABLE, module: text}, check(Level.IMPORTS))
    assert not verdict.ok
    assert why in verdict.reason, verdict


async def test_imports_are_not_taken_from_the_source_tree(judge: Judge) -> None:
    verdict = await judge(IMPORTABLE, check(Level.IMPORTS))
    assert "No module named 'demo'" in verdict.reason, verdict


async def test_imports_of_an_application_are_taken_from_its_tree(judge: Judge) -> None:
    assert (await judge(IMPORTABLE, check(Level.IMPORTS, facts=project(installable=False)))).ok


COLLECT = {
    "some tests": ({"tests/test_a.py": GOOD}, True, "1 tests collected"),
    "an option of a plugin that is missing": (
        {"tests/test_a.py": GOOD, "pytest.ini": "[pytest]\naddopts = --no-such-option\n"},
        True,
        "1 tests collected",
    ),
    "no tests": ({"tests/a.py": ""}, False, "no tests were collected"),
    "a module that does not load": (
        {"tests/test_a.py": GOOD, "tests/test_b.py": "import nowhere\n"},
        False,
        "No module named 'nowhere'",
    ),
    "a module that ends pytest": ({"tests/test_a.py": "import os\nos._exit(0)\n"}, False, "wrote no report"),
}


@pytest.mark.parametrize("name", COLLECT)
async def test_collect_verifies_when_everything_loads(judge: Judge, name: str) -> None:
    files, ok, why = COLLECT[name]
    verdict = await judge(files, check(Level.COLLECT, facts=project(installable=False)))
    assert verdict.ok is ok, verdict
    assert why in verdict.reason, verdict


async def test_collect_does_not_run_tests(judge: Judge) -> None:
    verdict = await judge(
        {"tests/test_a.py": "def test_bad():\n    assert 0\n"}, check(Level.COLLECT, facts=project(installable=False))
    )
    assert verdict.ok
    assert (verdict.collected, verdict.passed) == (1, 0)


@pytest.mark.parametrize(
    ("command", "ok", "passed", "why"),
    [
        ("true", True, 0, "exit code 0"),
        ("false", False, 0, "exit code 1"),
        ("kill -9 $$", False, 0, "killed by signal 9"),
        ("python -m pytest", True, 1, "exit code 0"),
        ("python -m pytest --junitxml=out/r.xml", True, 1, "1 of 1 tests passed"),
        ("python -m pytest --junit-xml /tmp/r.xml -k nothing || true", False, 0, "nothing ran"),
        ("true # --junitxml=/tmp/r.xml", False, 0, "the command wrote no report"),
    ],
)
async def test_the_users_command_is_judged_by_its_exit(
    judge: Judge, command: str, ok: bool, passed: int, why: str
) -> None:
    verdict = await judge({"tests/test_a.py": GOOD}, check(Level.COMMAND, command))
    assert verdict.ok is ok, verdict
    assert why in verdict.reason
    if "junit" in command:
        assert verdict.passed == passed


async def test_at_the_level_tests_a_users_pytest_is_counted(judge: Judge) -> None:
    verdict = await judge({"tests/test_a.py": GOOD}, check(Level.TESTS, "cd tests && python -m pytest -q"))
    assert verdict.ok, verdict
    assert verdict.passed == 1


async def test_at_the_level_tests_an_exit_status_is_not_enough(judge: Judge) -> None:
    verdict = await judge({"tests/test_a.py": GOOD}, check(Level.TESTS, "true"))
    assert not verdict.ok
    assert "wrote no report" in verdict.reason


def test_the_level_command_needs_a_command() -> None:
    with pytest.raises(ConfigError, match="needs a command"):
        check(Level.COMMAND)
