"""What pytest is made to tell while tests run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from specbuild.verify.programs import program_text

MARK = "0123456789abcdef"

SUITE = """\
import sys
import unittest


class TestParts(unittest.TestCase):
    def test_many_parts(self):
        for number in range(5):
            with self.subTest(number=number):
                self.assertLess(number, 1)

    def test_whole(self):
        pass

    def test_arguments(self):
        self.assertNotIn("0123456789abcdef", sys.argv)


def test_that_fails():
    assert 1 == 2, "no such luck"
"""


def told(folder: Path, *args: str) -> tuple[list[str], int]:
    (folder / "test_it.py").write_text(SUITE)
    command = [sys.executable, "-c", program_text("pytest"), MARK, "-q", "-p", "no:cacheprovider", *args]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stderr.splitlines(), done.returncode


def test_a_test_of_which_many_parts_fail_is_one_that_fails(tmp_path: Path) -> None:
    lines, exit_code = told(tmp_path)
    assert exit_code == 1
    tallies = [line.split() for line in lines if line.startswith("specbuild-tally ")]
    assert {mark for _, mark, *_ in tallies} == {MARK}
    assert [failed for *_, failed, _ in tallies][-1] == "2", tallies
    assert {collected for *_, collected in tallies} == {"4"}
    assert "E   AssertionError: no such luck" in lines


def test_no_tally_is_told_where_others_have_collected_the_tests(tmp_path: Path) -> None:
    # As the process does that gives tests to the workers of pytest-xdist.
    (tmp_path / "conftest.py").write_text(
        "import pytest\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_collection(session):\n"
        "    return True\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_runtestloop(session):\n"
        "    report = pytest.TestReport('a::b', ('a', 0, 'b'), {}, 'failed', 'E   ImportError: x', 'call')\n"
        "    session.config.hook.pytest_runtest_logreport(report=report)\n"
        "    return True\n"
    )
    lines, _ = told(tmp_path)
    assert "E   ImportError: x" in lines
    assert not [line for line in lines if line.startswith("specbuild-tally")]
