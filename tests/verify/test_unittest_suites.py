"""unittest suites in all the ways that projects run them, counted by what each test did."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from specbuild.recipe import Check, Level
from specbuild.repo.facts import Evidence, Facts, TestLayout
from specbuild.verify import Verdict, checks_for

Judge = Callable[..., Awaitable[Verdict]]

OUTCOMES = """
import unittest


class Outcomes(unittest.TestCase):
    def test_passes(self): pass
    def test_passes_too(self): pass
    def test_fails(self): self.fail("no")
    def test_breaks(self): raise ValueError("broken")
    @unittest.skip("no")
    def test_skipped(self): pass
    @unittest.expectedFailure
    def test_expected(self): self.fail("announced")
    @unittest.expectedFailure
    def test_unexpected(self): pass
    def test_parts(self):
        for n in range(4):
            with self.subTest(n=n):
                self.assertNotIn(n, (1, 2))
    def test_good_parts(self):
        for n in range(4):
            with self.subTest(n=n):
                pass
"""

GOOD = "import unittest\nclass T(unittest.TestCase):\n    def test_good(self): pass\n"


def check(*paths: str, files: tuple[str, ...] = ()) -> Check:
    """The check that runs a suite by unittest itself: of a named script, or by discovery."""
    evidence = tuple(Evidence(file=file) for file in files)
    facts = Facts(tests=(TestLayout(runner="unittest", paths=paths, evidence=evidence),))
    found = checks_for(facts, level=Level.TESTS, test_command=None, network=False, timeout=60)
    return next(check for check in found if check.runner == "unittest")


async def test_every_outcome_is_counted_once(judge: Judge) -> None:
    verdict = await judge({"tests/test_a.py": OUTCOMES}, check("tests"), min_pass_ratio=0.4)
    # test_parts failed in two of its parts and counts once; test_unexpected counts as a failure.
    assert (verdict.passed, verdict.failed, verdict.errors, verdict.skipped) == (3, 3, 1, 1), verdict
    assert verdict.collected == 9
    assert verdict.ok


@pytest.mark.parametrize(
    "paths",
    [("tests",), ("tests/test_a.py",), ("tests/deep",), (".",), (), ("tests", "more")],
    ids=["folder", "file", "package", "dot", "nothing", "several"],
)
async def test_suites_are_found_wherever_they_are(judge: Judge, paths: tuple[str, ...]) -> None:
    relative = "from . import helper\n" + GOOD
    files = {
        "tests/__init__.py": "",
        "tests/helper.py": "",
        "tests/test_a.py": relative,
        "tests/deep/__init__.py": "",
        "tests/deep/test_b.py": "from .. import helper\n" + GOOD,
        "more/test_c.py": "import other\n" + GOOD,
        "more/other.py": "",
    }
    verdict = await judge(files, check(*paths))
    assert verdict.ok, verdict
    assert verdict.failed + verdict.errors == 0


async def test_a_module_that_does_not_load_blocks(judge: Judge) -> None:
    files = {"tests/test_a.py": "import nowhere\n", **{f"tests/test_{n}.py": GOOD for n in range(20)}}
    verdict = await judge(files, check("tests"))
    assert not verdict.ok
    assert "did not load" in verdict.reason
    assert "nowhere" in verdict.reason


async def test_a_class_fixture_that_breaks_is_an_error(judge: Judge) -> None:
    broken = GOOD + "    @classmethod\n    def setUpClass(cls): raise OSError('no server')\n"
    verdict = await judge({"tests/test_a.py": broken, "tests/test_b.py": GOOD}, check("tests"), min_pass_ratio=0.5)
    assert (verdict.passed, verdict.errors) == (1, 1), verdict


async def test_a_class_fixture_that_skips_leaves_nothing(judge: Judge) -> None:
    skipping = GOOD + "    @classmethod\n    def setUpClass(cls): raise unittest.SkipTest('no server')\n"
    verdict = await judge({"tests/test_a.py": skipping}, check("tests"))
    assert not verdict.ok
    assert "nothing ran" in verdict.reason


RUNNER = "import sys, unittest\nfrom test_a import *\n{}\n"
SCRIPTS = {
    "a script with main": (RUNNER.format("unittest.main()"), True, ""),
    "a script that hides its outcome": (RUNNER.format("unittest.main(exit=False)\nsys.exit(0)"), True, ""),
    "a script with two runs": (
        RUNNER.format(
            "for n in (1, 2):\n"
            "    unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromName('test_a'))"
        ),
        True,
        "",
    ),
    "a script that runs nothing": ("print('OK')\n", False, "nothing ran"),
    "a script that ends the process": (RUNNER.format("import os; os._exit(0)"), False, "wrote no report"),
    "a script that breaks": ("raise SystemExit('no database')\n", False, "nothing ran"),
    "a script that crashes": ("1/0\n", False, "wrote no report: ZeroDivisionError"),
    "a script that passes and then breaks": (RUNNER.format("unittest.main(exit=False)\n1/0"), False, "wrote no report"),
}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_the_projects_own_script_is_watched(judge: Judge, name: str) -> None:
    text, ok, why = SCRIPTS[name]
    files = {"tests/run_tests.py": text, "tests/test_a.py": GOOD}
    verdict = await judge(files, check("tests", files=("tests/run_tests.py",)))
    assert verdict.ok is ok, verdict
    assert why in verdict.reason, verdict


async def test_a_script_that_hides_failures_does_not_verify(judge: Judge) -> None:
    files = {
        "tests/run_tests.py": RUNNER.format("unittest.main(exit=False)\nsys.exit(0)"),
        "tests/test_a.py": "import unittest\nclass T(unittest.TestCase):\n    def test_bad(self): self.fail()\n",
    }
    verdict = await judge(files, check("tests", files=("tests/run_tests.py",)))
    assert not verdict.ok
    assert verdict.failed == 1


async def test_a_run_that_stops_early_does_not_verify(judge: Judge) -> None:
    bad = "".join(f"    def test_{n:02}(self): {'self.fail()' if n == 10 else 'pass'}\n" for n in range(20))
    files = {
        "tests/run_tests.py": RUNNER.format("unittest.main(failfast=True)"),
        "tests/test_a.py": f"import unittest\nclass T(unittest.TestCase):\n{bad}",
    }
    verdict = await judge(files, check("tests", files=("tests/run_tests.py",)), min_pass_ratio=0.5)
    assert not verdict.ok
    assert "stopped before its end" in verdict.reason


async def test_a_custom_result_class_is_watched(judge: Judge) -> None:
    script = RUNNER.format(
        "class Mine(unittest.TestResult):\n    def addSuccess(self, test): pass\n    def printErrors(self): pass\n"
        "    separator2 = ''\n    def __init__(self, *rest, **named): super().__init__()\n"
        "unittest.TextTestRunner(resultclass=Mine).run(unittest.defaultTestLoader.loadTestsFromName('test_a'))"
    )
    verdict = await judge({"tests/run_tests.py": script, "tests/test_a.py": GOOD}, check(files=("tests/run_tests.py",)))
    assert verdict.passed == 1, verdict


async def test_pytest_runs_a_unittest_suite_first(judge: Judge) -> None:
    facts = Facts(tests=(TestLayout(runner="unittest", paths=("tests",)),))
    verdict = await judge({"tests/test_a.py": GOOD}, facts=facts)
    assert verdict.ok, verdict
