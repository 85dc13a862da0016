"""Suites that prove nothing must not verify, however they end. All of them are run by a real pytest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from specbuild.recipe import Level
from specbuild.repo.facts import Facts, TestLayout
from specbuild.verify import Verdict, checks_for

Judge = Callable[..., Awaitable[Verdict]]

GOOD = "def test_good():\n    pass\n"


async def test_a_suite_that_passes_verifies(judge: Judge) -> None:
    verdict = await judge({"tests/test_a.py": GOOD})
    assert verdict.ok, verdict
    assert (verdict.passed, verdict.failed, verdict.collected) == (1, 0, 1)


HOLLOW = {
    "all skipped": ({"tests/test_a.py": f"import pytest\n@pytest.mark.skip\n{GOOD}"}, "nothing ran"),
    "all skipped as modules": (
        {"tests/test_a.py": "import pytest\npytest.skip('no', allow_module_level=True)\n"},
        "nothing ran",
    ),
    "all fail as expected": (
        {"tests/test_a.py": "import pytest\n@pytest.mark.xfail\ndef test_a():\n    assert 0\n"},
        "nothing ran",
    ),
    "no tests": ({"tests/test_a.py": "x = 1\n"}, "nothing ran"),
    "no files": ({"tests/readme": ""}, "nothing ran"),
    "no folder": ({"readme": ""}, "exit code 4"),
    "ends at import": ({"tests/test_a.py": f"import os\nos._exit(0)\n{GOOD}"}, "wrote no report"),
    "ends in the middle": (
        {"tests/test_a.py": f"{GOOD}def test_b():\n    import os\n    os._exit(0)\n"},
        "wrote no report",
    ),
    "leaves pytest early with success": (
        {"tests/test_a.py": f"import pytest\n{GOOD}def test_b():\n    pytest.exit('enough', returncode=0)\n"},
        "stopped before its end",
    ),
    "deselects all": (
        {"tests/test_a.py": GOOD, "conftest.py": "def pytest_collection_modifyitems(items):\n    items.clear()\n"},
        "nothing ran",
    ),
    "claims success without tests": (
        {"conftest.py": "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n", "tests/test_a.py": ""},
        "nothing ran",
    ),
    "hides failures behind exit 0": (
        {
            "conftest.py": "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n",
            "tests/test_a.py": "def test_a():\n    assert 0\n",
        },
        "none of 1 passed",
    ),
    "stops at the first failure": (
        {
            "tests/test_a.py": f"{GOOD}def test_b():\n    assert 0\ndef test_c():\n    assert 0\n",
            "pytest.ini": "[pytest]\naddopts = -x\n",
        },
        "1 of 3 passed",
    ),
    "does not load": ({"tests/test_a.py": "import nowhere\n", "tests/test_b.py": GOOD}, "did not load"),
    "does not load but goes on": (
        {
            "tests/test_a.py": "import nowhere\n",
            "tests/test_b.py": GOOD * 1,
            "pytest.ini": "[pytest]\naddopts = --continue-on-collection-errors\n",
        },
        "did not load",
    ),
    "has a conftest that does not load": ({"conftest.py": "import nowhere\n", "tests/test_a.py": GOOD}, "exit code 4"),
    "crashes": (
        {"tests/test_a.py": f"{GOOD}def test_b():\n    import os, signal\n    os.kill(os.getpid(), signal.SIGSEGV)\n"},
        "killed by signal 11",
    ),
    "is interrupted": ({"tests/test_a.py": f"{GOOD}def test_b():\n    raise KeyboardInterrupt\n"}, "interrupted"),
    "breaks the runner": (
        {"tests/test_a.py": GOOD, "conftest.py": "def pytest_runtest_protocol(item):\n    raise RuntimeError('x')\n"},
        "internal error",
    ),
    "only lists": ({"tests/test_a.py": GOOD, "pytest.ini": "[pytest]\naddopts = --collect-only\n"}, "nothing ran"),
}


@pytest.mark.parametrize("name", HOLLOW)
async def test_a_hollow_suite_does_not_verify(judge: Judge, name: str) -> None:
    files, why = HOLLOW[name]
    verdict = await judge(files)
    assert not verdict.ok, verdict
    assert why in verdict.reason, verdict


async def test_a_report_from_before_is_not_taken_for_a_new_one(judge: Judge) -> None:
    assert (await judge({"tests/test_a.py": GOOD})).ok
    verdict = await judge({"tests/test_a.py": "import os\nos._exit(0)\n"})
    assert not verdict.ok
    assert "wrote no report" in verdict.reason


async def test_a_missing_module_is_named_in_the_reason(judge: Judge) -> None:
    verdict = await judge({"tests/test_a.py": "import nowhere\n"})
    assert "No module named 'nowhere'" in verdict.reason
    assert verdict.failing == ("tests.test_a",)


async def test_documentation_tests_count(judge: Judge) -> None:
    facts = Facts(tests=(TestLayout(runner="doctest"),))
    files = {"demo.py": 'def f():\n    """\n    >>> f()\n    1\n    """\n    return 1\n', "a.rst": ">>> 1 + 1\n2\n"}
    verdict = await judge({**files, "setup.py": "import setuptools\nraise SystemExit('no')\n"}, facts=facts)
    assert (verdict.passed, verdict.ok) == (2, True), verdict


async def test_warnings_made_errors_are_left_out_by_the_second_check(judge: Judge) -> None:
    files = {
        "pytest.ini": "[pytest]\nfilterwarnings = error:old:DeprecationWarning\naddopts = --strict-markers\n",
        "tests/test_a.py": f"import warnings\nwarnings.warn('old', DeprecationWarning)\n{GOOD}",
    }
    facts = Facts(tests=(TestLayout(runner="pytest", paths=("tests",)),))
    first, second, *_ = checks_for(facts, level=Level.TESTS, test_command=None, network=False, timeout=60)
    assert "did not load" in (await judge(files, first)).reason
    assert (await judge(files, second)).ok
