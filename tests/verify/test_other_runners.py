"""Runners that come from an index: Django's, trial, nose, and the oldest pytest that is still met."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from specbuild.recipe import Check, Level
from specbuild.repo.facts import Evidence, Facts, TestLayout
from specbuild.verify import Verdict, checks_for

pytestmark = [pytest.mark.network, pytest.mark.slow]

Judge = Callable[..., Awaitable[Verdict]]

REQUIREMENTS = ("django>=4.2,<5", "twisted>=24,<26", "pynose==1.5.5", "pytest==6.2.5", "tblib", "tzdata")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In place of the shared one: an environment that sees nothing of where these tests run."""
    folder = tmp_path_factory.mktemp("runners") / "venv"
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}") or "uv"
    subprocess.run([uv, "venv", "--quiet", str(folder)], check=True)
    subprocess.run([uv, "pip", "install", "--quiet", "--python", str(folder / "bin/python"), *REQUIREMENTS], check=True)
    return folder


def check(layout: TestLayout, runner: str) -> Check:
    found = checks_for(Facts(tests=(layout,)), level=Level.TESTS, test_command=None, network=False, timeout=120)
    return next(check for check in found if check.runner == runner)


SUITE = """
from {module} import {case} as TestCase


class Suite(TestCase):
    def test_a(self): self.assertEqual(1, 1)
    def test_b(self): self.assertEqual(1, 1)
    def test_c(self): self.assertEqual(1, 2)
    def test_d(self): self.skipTest("no")
"""

DJANGO = {
    "manage.py": "import os, sys\n"
    "os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'site_settings')\n"
    "from django.core.management import execute_from_command_line\n"
    "if __name__ == '__main__':\n    execute_from_command_line(sys.argv)\n",
    "site_settings.py": "SECRET_KEY = 'x'\nINSTALLED_APPS = ['app']\nUSE_TZ = True\n"
    "DATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': ':memory:'}}\n",
    "app/__init__.py": "",
    "app/tests.py": SUITE.format(module="django.test", case="TestCase"),
}


async def test_django_is_counted_by_what_each_test_did(judge: Judge) -> None:
    layout = TestLayout(runner="django", paths=("manage.py",), evidence=(Evidence(file="manage.py"),))
    verdict = await judge(DJANGO, check(layout, "django"), min_pass_ratio=0.6)
    assert (verdict.passed, verdict.failed, verdict.skipped) == (2, 1, 1), verdict
    assert verdict.ok


async def test_django_in_parallel_is_counted_alike(judge: Judge) -> None:
    more = DJANGO["app/tests.py"] + "\n\nclass More(Suite):\n    pass\n"
    script = DJANGO["manage.py"].replace("sys.argv)", "[*sys.argv, '--parallel', '2'])")
    layout = TestLayout(runner="django", evidence=(Evidence(file="manage.py"),))
    files = {**DJANGO, "app/tests.py": more, "manage.py": script}
    lines: list[str] = []
    verdict = await judge(files, check(layout, "django"), min_pass_ratio=0.6, on_line=lines.append)
    assert (verdict.passed, verdict.failed, verdict.skipped) == (4, 2, 2), "\n".join(lines)


async def test_django_without_tests_does_not_verify(judge: Judge) -> None:
    layout = TestLayout(runner="django", settings_module="site_settings")
    verdict = await judge({**DJANGO, "app/tests.py": ""}, check(layout, "django"))
    assert not verdict.ok
    assert "nothing ran" in verdict.reason


async def test_django_without_a_script_is_run_by_its_settings(judge: Judge) -> None:
    layout = TestLayout(runner="django", settings_module="site_settings")
    verdict = await judge(DJANGO, check(layout, "django"), min_pass_ratio=0.6)
    assert verdict.passed == 2, verdict


async def test_trial_is_counted_by_what_each_test_did(judge: Judge) -> None:
    files = {"pkg/__init__.py": "", "pkg/test_a.py": SUITE.format(module="twisted.trial.unittest", case="TestCase")}
    layout = TestLayout(runner="trial", paths=("pkg",))
    verdict = await judge(files, check(layout, "trial"), min_pass_ratio=0.6)
    assert (verdict.passed, verdict.failed, verdict.skipped) == (2, 1, 1), verdict


async def test_trial_with_a_module_that_does_not_load_does_not_verify(judge: Judge) -> None:
    files = {"pkg/__init__.py": "", "pkg/test_a.py": SUITE.format(module="unittest", case="TestCase")}
    files["pkg/test_b.py"] = "import nowhere\n"
    verdict = await judge(files, check(TestLayout(runner="trial", paths=("pkg",)), "trial"), min_pass_ratio=0.1)
    assert not verdict.ok
    assert "did not load" in verdict.reason, verdict


async def test_nose_is_counted_by_its_report(judge: Judge) -> None:
    files = {"tests/test_a.py": SUITE.format(module="unittest", case="TestCase")}
    verdict = await judge(files, check(TestLayout(runner="nose", paths=("tests",)), "nose"), min_pass_ratio=0.6)
    assert (verdict.passed, verdict.failed, verdict.skipped) == (2, 1, 1), verdict


async def test_nose_with_a_module_that_does_not_load_does_not_verify(judge: Judge) -> None:
    files = {"tests/test_a.py": SUITE.format(module="unittest", case="TestCase"), "tests/test_b.py": "import nowhere\n"}
    verdict = await judge(files, check(TestLayout(runner="nose", paths=("tests",)), "nose"), min_pass_ratio=0.1)
    assert not verdict.ok
    assert "did not load" in verdict.reason, verdict


async def test_an_old_pytest_understands_what_it_is_told(judge: Judge) -> None:
    files = {
        "tests/test_a.py": SUITE.format(module="unittest", case="TestCase"),
        "setup.cfg": "[tool:pytest]\naddopts = -x\n",
    }
    layout = TestLayout(runner="pytest", paths=("tests",))
    verdict = await judge(files, check(layout, "pytest"), min_pass_ratio=0.6)
    assert (verdict.passed, verdict.failed, verdict.skipped) == (2, 1, 1), verdict


async def test_an_old_pytest_refuses_an_option_and_is_run_without_it(judge: Judge) -> None:
    files = {"tests/test_a.py": "def test_a():\n    pass\n", "pytest.ini": "[pytest]\naddopts = -n auto --cov\n"}
    verdict = await judge(files, check(TestLayout(runner="pytest", paths=("tests",)), "pytest"))
    assert verdict.ok, verdict


@pytest.fixture
def without_pytest(environment: Path) -> Iterator[None]:
    site = next(environment.glob("lib/python*/site-packages"))
    (site / "pytest").rename(site / "hidden")
    yield
    (site / "hidden").rename(site / "pytest")


@pytest.mark.usefixtures("without_pytest")
async def test_without_pytest_the_reason_says_so(judge: Judge) -> None:
    verdict = await judge({"tests/test_a.py": ""}, check(TestLayout(runner="pytest", paths=("tests",)), "pytest"))
    assert verdict.reason == "pytest is not installed in the environment"
