"""Plans of checks: always at least one, complete in themselves, and nothing of theirs in the source tree."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specbuild.recipe import Level, StepKind
from specbuild.repo.facts import Evidence, Extension, Fact, Facts, TestLayout
from specbuild.verify import checks_for
from specbuild.verify.programs import program_text

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r/"), min_size=1, max_size=12)
PATHS = st.lists(WORDS, min_size=1, max_size=3).map("/".join)


def fact(value: str, file: str) -> Fact[str]:
    return Fact(value=value, evidence=Evidence(file=file))


FACTS = st.builds(fact, WORDS, PATHS)
LAYOUTS = st.builds(
    TestLayout,
    runner=st.sampled_from(["pytest", "unittest", "django", "nose", "trial", "doctest", "none"]),
    paths=st.lists(PATHS | st.sampled_from(["manage.py", "tests/runtests.py", "tests"]), max_size=3).map(tuple),
    settings_module=st.none() | WORDS,
)
PROJECTS = st.builds(
    Facts,
    name=st.none() | FACTS,
    build_backend=st.none() | FACTS,
    packages=st.lists(FACTS, max_size=3).map(tuple),
    extensions=st.lists(
        st.builds(Extension, language=st.just("c"), evidence=st.just(Evidence(file="s"))), max_size=1
    ).map(tuple),
    tests=st.lists(LAYOUTS, max_size=3).map(tuple),
)
LEVELS = [level for level in Level if level is not Level.COMMAND]


@settings(deadline=None, max_examples=60)
@given(PROJECTS, st.sampled_from(LEVELS))
def test_every_project_has_checks_that_are_valid_shell(facts: Facts, level: Level) -> None:
    checks = checks_for(facts, level=level, test_command=None, network=False, timeout=5)
    assert checks
    assert len({check.digest for check in checks}) == len(checks)
    for check in checks:
        assert check.level is level
        assert check.step.kind is StepKind.TEST
        assert check.step.timeout == 5
        assert check.report is not None
        assert not check.report.startswith("/repo")
    parsed = subprocess.run(["sh", "-n", "-c", checks[0].step.run], capture_output=True, check=False)
    assert parsed.returncode == 0, parsed.stderr


@pytest.mark.parametrize(
    ("layout", "runners"),
    [
        (TestLayout(runner="pytest"), ["pytest", "pytest"]),
        (TestLayout(runner="none"), ["pytest", "pytest"]),
        (TestLayout(runner="doctest"), ["pytest", "pytest"]),
        (TestLayout(runner="unittest", paths=("tests",)), ["pytest", "unittest", "pytest"]),
        (TestLayout(runner="nose"), ["pytest", "nose", "unittest", "pytest"]),
        (TestLayout(runner="trial", paths=("pkg",)), ["pytest", "trial", "pytest"]),
        (
            TestLayout(runner="django", paths=("manage.py",), settings_module="site.settings"),
            ["django", "django", "pytest", "pytest"],
        ),
    ],
)
def test_the_most_telling_check_comes_first(layout: TestLayout, runners: list[str]) -> None:
    checks = checks_for(Facts(tests=(layout,)), level=Level.TESTS, test_command=None, network=True, timeout=5)
    assert [check.runner for check in checks] == runners


def test_the_second_check_differs_the_least_from_the_first() -> None:
    layouts = (TestLayout(runner="pytest", paths=("tests",)), TestLayout(runner="unittest", paths=("tests",)))
    checks = checks_for(Facts(tests=layouts), level=Level.TESTS, test_command=None, network=True, timeout=5)
    assert [check.runner for check in checks] == ["pytest", "pytest", "unittest"]
    assert "filterwarnings=" in checks[1].step.run


def test_the_network_is_as_the_user_says() -> None:
    for network in (True, False):
        checks = checks_for(Facts(), level=Level.TESTS, test_command=None, network=network, timeout=5)
        assert {check.step.network for check in checks} == {network}


def test_the_users_command_takes_the_place_of_the_tests() -> None:
    for level in (Level.TESTS, Level.COMMAND):
        checks = checks_for(Facts(), level=level, test_command="make check", network=True, timeout=5)
        assert [check.step.run.splitlines()[-1] for check in checks] == ["make check"]


@pytest.mark.parametrize("name", ["unittest", "imports", "collect", "wheel", "installed", "pytest"])
def test_programs_stay_readable_in_a_quoted_shell_word(name: str) -> None:
    text = program_text(name)
    assert "'" not in text
    compile(text, name, "exec")
