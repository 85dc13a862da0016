"""What foresight reads of recipes, targets and releases."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from specbuild.knowledge.releases import releases_of
from specbuild.predictors.foresee.commands import arguments, commands
from specbuild.predictors.foresee.contents import Contents, Policy, contents_of
from specbuild.predictors.foresee.resolution import MOST_REQUESTS, Resolution, Wanted, choose, resolve
from specbuild.predictors.foresee.target import Target
from specbuild.recipe import UV, Step, StepKind
from specbuild.repo.facts import Facts
from specbuild.repo.index_page import IndexFile
from specbuild.strategies import propose, steps
from specbuild.testing.proposals import BOOKWORM, TRIXIE, fact, needs, pick, request, revision
from specbuild.testing.python_cases import python_case
from specbuild.testing.releases import FakeReleases, sdist, wheel

TARGET = Target("3.11", 36)
NEW = datetime(2024, 6, 1, tzinfo=UTC)


def read(*lines: str, facts: Facts | None = None, env: tuple[tuple[str, str], ...] = ()) -> Contents:
    """What a recipe of these lines holds."""
    case = python_case()
    step = Step(kind=StepKind.DEPENDENCIES, run="\n".join(lines), env=env)
    return contents_of(case.recipe.model_copy(update={"steps": (step,)}), facts or Facts())


def names(contents: Contents) -> list[str]:
    return [root.name for root in contents.roots]


def test_commands_are_told_apart_whatever_joins_them() -> None:
    script = "a 1 && b '2;3' || { c; }\nfor x in y z; do d \\\n  e; done"
    assert list(commands(script)) == [("a", "1"), ("b", "2;3"), ("c",), ("for", "x", "in", "y", "z"), ("d", "e")]


def test_lines_that_are_no_shell_are_left_out() -> None:
    assert list(commands("it's half a quote\ntrue")) == [("true",)]


@given(st.text())
def test_no_text_is_too_odd_to_be_read(text: str) -> None:
    read(text, f"{UV} pip install {text}")


def test_options_take_their_values_with_them() -> None:
    given = arguments(("-r", "a.txt", "--exclude-newer=2020", "--quiet", "x", ">", "y"))
    assert given.values("-r") == ("a.txt",)
    assert given.values("--exclude-newer") == ("2020",)
    assert given.words == ("x",)


def test_system_packages_are_what_apt_is_told_to_install() -> None:
    contents = read(
        "apt-get update -qq",
        "apt-get install -y -qq --no-install-recommends gcc libpq-dev=15.1-1",
        "apt-get remove vim",
    )
    assert contents.packages == {"gcc", "libpq-dev"}


def test_system_packages_that_a_loop_looks_for_count_too() -> None:
    step = steps.fresh_packages(["git", "less"])
    case = python_case()
    contents = contents_of(case.recipe.model_copy(update={"steps": (step,)}), Facts())
    assert {"git", "less"} <= contents.packages


def test_the_meta_package_of_compilers_is_understood() -> None:
    assert "g++" in read("apt-get install -y build-essential").packages


def test_requirements_carry_the_dates_of_their_command() -> None:
    contents = read(
        f"{UV} pip install --exclude-newer 2020-01-02T00:00:00Z --exclude-newer-package pip=false 'flask<2' pip"
    )
    flask, pip = contents.roots
    assert str(flask.requirement) == "flask<2"
    assert flask.policy.until("flask") == datetime(2020, 1, 2, tzinfo=UTC)
    assert pip.policy.until("pip") is None


def test_dates_may_come_by_the_environment() -> None:
    (root,) = read(f"{UV} pip install x", env=(("UV_EXCLUDE_NEWER", "2020-01-02"),)).roots
    assert root.policy.until("x") == datetime(2020, 1, 2, tzinfo=UTC)


def test_tools_with_an_environment_of_their_own_are_not_the_projects() -> None:
    assert names(read(f"{UV} pip install --python /opt/locktool poetry")) == []


def test_files_of_requirements_are_looked_up_in_the_facts() -> None:
    facts = Facts(dependencies=(needs("attrs==19.1", "file:dev.txt"), needs("other", "file:docs.txt")))
    assert names(read("pip install -r ./dev.txt", facts=facts)) == ["attrs"]


def test_installing_the_tree_asks_for_what_it_declares() -> None:
    facts = Facts(dependencies=(needs("a"), needs("b", "extra:test"), needs("c", "extra:docs")))
    contents = read(f"{UV} pip install --no-cache -e '.[test]'", facts=facts)
    assert names(contents) == ["a", "b"]
    assert contents.project is not None
    assert read(f"{UV} pip install --no-deps .", facts=facts).roots == ()


def test_constraints_of_builds_are_read_from_the_files_that_the_recipe_writes() -> None:
    contents = read(
        "printf '%s\\n' 'cython<3' > /opt/c.txt", f"{UV} pip install --build-constraint /opt/c.txt --no-cache ."
    )
    assert [str(limit) for limit in contents.limits] == ["cython<3"]


def test_dated_strategies_ask_for_the_run_time_of_the_day_and_test_tools_of_the_interpreter_s_time() -> None:
    facts = Facts(
        languages=(fact("python"),),
        build_backend=fact("setuptools.build_meta"),
        dependencies=(needs("jinja2>=2.10"), needs("pytest", "extra:test")),
        revision_date=revision(2018, 5, 2),
    )
    candidate = pick(propose(request(facts)), "declared@2018-05-02")
    contents = contents_of(candidate.recipe, facts)
    jinja = next(root for root in contents.roots if root.name == "jinja2")
    pytest_root = next(root for root in contents.roots if root.name == "pytest")
    assert jinja.policy.until("jinja2") == datetime(2018, 5, 3, tzinfo=UTC)
    assert (pytest_root.policy.until("pytest") or NEW).year == 2023


@pytest.mark.parametrize(
    ("tag", "runs"),
    [
        ("py3-none-any", True),
        ("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", True),
        ("cp38-abi3-manylinux_2_28_x86_64", True),
        ("cp311-cp311-manylinux_2_39_x86_64", False),
        ("cp312-cp312-manylinux_2_17_x86_64", False),
        ("cp311-cp311-musllinux_1_1_x86_64", False),
        ("cp311-cp311-macosx_11_0_arm64", False),
        ("cp311-cp311-win_amd64", False),
    ],
)
def test_a_wheel_runs_where_its_tags_say(tag: str, runs: bool) -> None:
    assert TARGET.runs(wheel("x", "1", tag)) is runs


def test_a_file_with_a_broken_name_is_no_wheel() -> None:
    assert not TARGET.runs(IndexFile("x.whl", ""))


def test_the_base_tells_interpreter_and_c_library() -> None:
    target = Target.of(TRIXIE)
    assert target is not None
    assert (target.python, target.glibc) == ("3.13", 41)
    assert Target.of(BOOKWORM.model_copy(update={"python": None})) is None


def test_interpreters_are_held_against_specifiers() -> None:
    assert TARGET.allowed_by(">=3.11.2")
    assert not TARGET.allowed_by("<3.11")
    assert TARGET.allowed_by("nonsense")


def test_markers_are_judged_for_the_target_and_its_extras() -> None:
    assert not TARGET.applies(Requirement('x; python_version < "3"'))
    assert not TARGET.applies(Requirement('x; extra == "a"'))
    assert TARGET.applies(Requirement('x; extra == "a"'), ["a"])
    assert TARGET.applies(Requirement('x; sys_platform == "linux"'))
    assert TARGET.applies(Requirement('x; python_version ~= "nonsense"'))


def wanted(specifier: str = "", policy: Policy | None = None) -> Wanted:
    return Wanted("x", SpecifierSet(specifier), policy or Policy(), StepKind.DEPENDENCIES)


def chosen(ask: Wanted, *files: IndexFile) -> tuple[str, bool] | None:
    """Version, and whether it is built from source."""
    found = choose(ask, releases_of(files, "x"), Contents(), TARGET)
    return (str(found.release.version), found.built) if found.release else None


def test_the_newest_release_that_bounds_dates_and_interpreter_admit_is_chosen() -> None:
    files = (
        wheel("x", "4", uploaded=NEW),
        wheel("x", "3", requires_python=">=3.12"),
        wheel("x", "2"),
        wheel("x", "1"),
    )
    cut = datetime(2020, 1, 1, tzinfo=UTC)
    assert chosen(wanted(), *files) == ("4", False)
    assert chosen(wanted("", Policy(cut=cut)), *files) == ("2", False)
    assert chosen(wanted("<2"), *files) == ("1", False)
    assert chosen(wanted("", Policy(cut=cut, cuts={"x": None})), *files) == ("4", False)
    assert chosen(wanted("", Policy(lowest=True)), *files) == ("1", False)
    assert chosen(wanted(">=5"), *files) is None


def test_files_without_a_date_are_not_there_when_dates_count() -> None:
    assert chosen(wanted("", Policy(cut=NEW)), wheel("x", "1", uploaded=None)) is None


def test_prereleases_are_chosen_only_where_there_is_nothing_else() -> None:
    assert chosen(wanted(), wheel("x", "2b1"), wheel("x", "1")) == ("1", False)
    assert chosen(wanted(), wheel("x", "2b1")) == ("2b1", False)


def test_withdrawn_releases_are_chosen_only_by_name() -> None:
    files = (wheel("x", "2", yanked=""), wheel("x", "1"))
    assert chosen(wanted(), *files) == ("1", False)
    assert chosen(wanted("==2"), *files) == ("2", False)


def test_without_a_wheel_that_runs_the_source_is_built() -> None:
    assert chosen(wanted(), wheel("x", "1", "cp312-cp312-win32"), sdist("x", "1")) == ("1", True)
    assert chosen(wanted("", Policy(sources=frozenset({"x"}))), wheel("x", "1"), sdist("x", "1")) == ("1", True)


def test_a_release_with_neither_is_passed_over() -> None:
    assert chosen(wanted(), wheel("x", "2", "cp312-cp312-win32"), wheel("x", "1")) == ("1", False)


async def resolved(index: FakeReleases, *lines: str) -> dict[str, str]:
    contents = read(*lines)
    into = Resolution()
    await resolve(contents.roots, contents, TARGET, index, into)
    return {one.wanted.name: f"{one.release.version} for {one.wanted.asked_by or '-'}" for one in into if one.release}


async def test_requirements_of_requirements_are_followed() -> None:
    index = FakeReleases(
        [wheel("a", "1"), wheel("b", "1"), wheel("b", "2"), wheel("c", "1"), wheel("d", "1"), wheel("e", "1")],
        {"a-1": ["b<2", 'd; extra == "more"'], "b-1": ["c"], "c-1": ["e"]},
    )
    assert await resolved(index, f"{UV} pip install a") == {"a": "1 for -", "b": "1 for a", "c": "1 for b"}
    assert "d" in await resolved(index, f"{UV} pip install 'a[more]'")


async def test_those_who_ask_for_the_same_are_heard_together() -> None:
    index = FakeReleases([wheel("x", "1"), wheel("x", "2"), wheel("x", "3")])
    assert await resolved(index, f"{UV} pip install 'x<3'", f"{UV} pip install 'x!=2'") == {"x": "1 for -"}


async def test_the_number_of_questions_is_bounded() -> None:
    many = [f"p{n}" for n in range(200)]
    index = FakeReleases([wheel(name, "1") for name in many])
    await resolved(index, f"{UV} pip install {' '.join(many)}")
    assert len(index.asked) <= MOST_REQUESTS


async def test_what_is_fetched_from_elsewhere_is_not_asked_for() -> None:
    index = FakeReleases()
    await resolved(index, f"{UV} pip install 'x @ https://example.org/x.zip'")
    assert index.asked == []
