"""What is missing on the system, and the packages that bring it."""

from __future__ import annotations

import pytest

from specbuild.failures import (
    CompilerFailed,
    Failure,
    MissingBrowser,
    MissingCMakePackage,
    MissingCommand,
    MissingConfigTool,
    MissingData,
    MissingDevelopmentFiles,
    MissingHeader,
    MissingLibrary,
    MissingMacro,
    MissingModule,
    MissingPkgConfig,
    MissingTimezone,
    MissingToolchain,
    WrongArchitecture,
)
from specbuild.knowledge.query import Knowledge
from specbuild.recipe import VENV_DIR, BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.repairs import Case, Repair, apt, interpreter, system, toolchains
from specbuild.repairs.edits import apply
from specbuild.repo.facts import Dependency, Evidence, Fact, Facts
from specbuild.strategies import steps

HERE = Evidence(file="pyproject.toml")
DEBIAN = BaseRef(name="debian:bookworm", digest="sha256:0", release="bookworm")
COMPILERS = ("gcc", "libc6-dev", "pkg-config", "python3-dev")


def recipe(*packages: str, base: BaseRef = DEBIAN) -> Recipe:
    before = [steps.system(base), *([steps.packages(packages)] if packages else [])]
    build = Step(kind=StepKind.BUILD, run=f"{VENV_DIR}/bin/pip install .")
    test = Step(kind=StepKind.TEST, run="pytest")
    return Recipe(base=base, steps=(*before, build), check=Check(level=Level.TESTS, runner="pytest", step=test))


def at_build(
    debian: Knowledge, *packages: str, name: str = "", dependencies: tuple[str, ...] = (), base: BaseRef = DEBIAN
) -> Case:
    facts = Facts(
        name=Fact(value=name, evidence=HERE) if name else None,
        build_backend=Fact(value="setuptools.build_meta", evidence=HERE),
        dependencies=tuple(Dependency(requirement=each, evidence=HERE) for each in dependencies),
    )
    made = recipe(*packages, base=base)
    return Case(made, len(made.steps) - 1, facts, debian, "pip install")


def at_check(debian: Knowledge, *packages: str, name: str = "") -> Case:
    case = at_build(debian, *packages, name=name)
    return Case(case.recipe, case.index + 1, case.facts, debian, case.install)


def offered(failure: Failure, case: Case) -> list[Repair]:
    families = (system.repair, toolchains.repair, interpreter.repair)
    found = [repair for family in families for repair in family(failure, case)]
    return sorted(found, key=lambda repair: -repair.probability)


def brought(repair: Repair, case: Case) -> set[str]:
    """The packages that the edited recipe installs and the recipe did not."""
    done = apply(repair.edits, case.recipe, case.index)
    return set(apt.installed(done.recipe, done.index) - apt.installed(case.recipe, case.index))


def best(failure: Failure, case: Case) -> set[str]:
    return brought(offered(failure, case)[0], case)


BUILDS: list[tuple[Failure, str]] = [
    (MissingHeader(header="libpq-fe.h"), "libpq-dev"),
    (MissingHeader(header="Python.h"), "python3-dev"),
    (MissingHeader(header="linux/input.h"), "libc6-dev"),
    (MissingHeader(header="vector"), "g++"),
    (MissingHeader(header="jni.h"), "default-jdk-headless"),
    (MissingHeader(header="fuse.h"), "libfuse3-dev"),
    (MissingLibrary(library="pq", when="link"), "libpq-dev"),
    (MissingLibrary(library="libpq.so", when="link"), "libpq-dev"),
    (MissingLibrary(library="libclang-14", when="load"), "libclang-dev"),
    (MissingPkgConfig(module="libxml-2.0"), "libxml2-dev"),
    (MissingPkgConfig(module="unheard-of", alternatives=("libxml-2.0",)), "libxml2-dev"),
    (MissingConfigTool(tool="pg_config"), "libpq-dev"),
    (MissingCMakePackage(package="GTest"), "libgtest-dev"),
    (MissingCMakePackage(package="PostgreSQL"), "libpq-dev"),
    (MissingCMakePackage(package="JNI"), "default-jdk-headless"),
    (MissingDevelopmentFiles(name="PostgreSQL"), "libpq-dev"),
    (MissingCommand(command="swig"), "swig"),
]


@pytest.mark.parametrize(("failure", "package"), BUILDS, ids=lambda value: str(value)[:60])
def test_what_a_build_misses_comes_with_compilers_where_there_are_none(
    debian: Knowledge, failure: Failure, package: str
) -> None:
    assert best(failure, at_build(debian)) >= {package, *COMPILERS}


@pytest.mark.parametrize(("failure", "package"), BUILDS, ids=lambda value: str(value)[:60])
def test_a_package_that_is_installed_is_not_offered_again(debian: Knowledge, failure: Failure, package: str) -> None:
    case = at_build(debian, package, "pkg-config", *COMPILERS)
    for repair in offered(failure, case):
        assert package not in brought(repair, case)
        assert brought(repair, case), "a repair that changes nothing is a loop"


RUNS: list[tuple[Failure, set[str]]] = [
    (MissingLibrary(library="libGL.so.1", when="load"), {"libgl1"}),
    (MissingLibrary(library="libgobject-2.0-0", when="load"), {"libglib2.0-0"}),
    (MissingCommand(command="/usr/bin/convert"), {"imagemagick"}),
    (MissingCommand(command="autoreconf"), {"autoconf", "automake", "libtool"}),
    (MissingCommand(command="python"), {"python-is-python3"}),
    (MissingTimezone(zone="Europe/Berlin"), set()),
    (MissingData(path="/etc/mime.types"), {"media-types"}),
    (MissingData(path="/usr/lib/x86_64-linux-gnu/libGL.so.1"), {"libgl1"}),
    (MissingMacro(macro="LT_INIT"), {"libtool"}),
    (MissingMacro(macro="AX_BOOST_BASE"), {"autoconf-archive"}),
    (MissingMacro(macro="GTK_DOC_CHECK"), {"gtk-doc-tools"}),
    (MissingModule(language="python", module="tkinter"), {"python3-tk"}),
    (MissingModule(language="python", module="ensurepip"), set()),
    (MissingModule(language="perl", module="XML::Parser"), {"libxml-parser-perl"}),
    (MissingModule(language="php", module="dom"), {"php-xml"}),
    (MissingModule(language="python", module="gi.repository.Gtk", evidence="for version 4.0"), {"gir1.2-gtk-4.0"}),
]


@pytest.mark.parametrize(("failure", "packages"), RUNS, ids=[str(failure)[:60] for failure, _ in RUNS])
def test_what_tests_miss_is_all_that_is_installed(debian: Knowledge, failure: Failure, packages: set[str]) -> None:
    case = at_check(debian)
    found = offered(failure, case)
    assert (brought(found[0], case) if found else set()) == packages


def test_what_no_package_has_is_not_guessed_at(debian: Knowledge) -> None:
    nothing: list[Failure] = [
        MissingHeader(header="generated/config.h"),
        MissingPkgConfig(module=""),
        MissingCommand(command="frobnicate"),
        MissingData(path="tests/data/a.bin"),
        MissingDevelopmentFiles(name="Frobnicate"),
        MissingMacro(macro="XYZ"),
        MissingModule(language="python", module="frobnicate"),
        MissingModule(language="node", module="frobnicate"),
        MissingBrowser(browser="netscape"),
        WrongArchitecture(subject="x.so"),
    ]
    assert [offered(failure, at_build(debian)) for failure in nothing] == [[]] * len(nothing)


def test_a_base_that_is_not_of_debian_s_family_gets_no_packages(debian: Knowledge) -> None:
    other = BaseRef(name="host", digest="sha256:0", release=None)
    for failure, _ in BUILDS:
        assert offered(failure, at_build(debian, base=other)) == []


def test_several_owners_are_rivals_with_the_likeliest_first(debian: Knowledge) -> None:
    found = offered(MissingConfigTool(tool="curl-config"), at_build(debian))
    assert [repair.name for repair in found] == ["apt:libcurl4-openssl-dev", "apt:libcurl4-gnutls-dev"]
    assert found[0].probability > found[1].probability


def test_the_project_that_is_built_tells_which_owner_is_meant_and_what_else_it_needs(debian: Knowledge) -> None:
    case = at_build(debian, name="pycurl")
    found = offered(MissingConfigTool(tool="curl-config"), case)
    assert [repair.name for repair in found] == ["build-needs:pycurl", "apt:libcurl4-gnutls-dev"]
    assert brought(found[0], case) == {"libcurl4-gnutls-dev", "libgnutls28-dev", *COMPILERS}


def test_a_dependency_is_known_by_the_package_that_it_misses_even_under_its_former_name(debian: Knowledge) -> None:
    case = at_build(debian, name="mine", dependencies=("requests", "python-ldap>=3"))
    found = offered(MissingHeader(header="lber.h"), case)
    assert [repair.name for repair in found] == ["build-needs:python-ldap", "apt:libldap-dev"]
    assert brought(found[0], case) >= {"libldap2-dev", "libsasl2-dev"}
    assert not {"dpkg-dev", "debhelper", "libpython3-all-dev"} & brought(found[0], case)


def test_foreseen_and_seen_the_needs_of_a_project_are_the_same_steps(debian: Knowledge) -> None:
    """Or the one would not be ahead when the other comes: `libldap2-dev` brings `libldap-dev`, its later name."""
    case = at_build(debian, dependencies=("python-ldap",))
    foreseen = offered(MissingDevelopmentFiles(name="python-ldap"), case)[0]
    seen = offered(MissingHeader(header="lber.h"), case)[0]
    assert foreseen.name == seen.name == "build-needs:python-ldap"
    assert foreseen.edits == seen.edits


def test_a_name_that_is_a_project_s_is_taken_for_a_library_s_where_debian_builds_it_with_nothing(
    debian: Knowledge,
) -> None:
    case = at_build(debian, dependencies=("curl",))
    assert offered(MissingDevelopmentFiles(name="pycurl"), case)[0].name == "build-needs:pycurl"
    assert offered(MissingDevelopmentFiles(name="curl"), case)[0].name == "apt:libcurl4-openssl-dev,pkg-config"


def test_needs_that_are_no_more_than_the_missing_file_are_not_offered_twice(debian: Knowledge) -> None:
    found = offered(MissingHeader(header="libpq-fe.h"), at_build(debian, name="psycopg2"))
    assert [repair.name for repair in found] == ["apt:libpq-dev"]


def test_once_its_needs_are_there_they_are_not_offered_again(debian: Knowledge) -> None:
    case = at_build(debian, name="m2crypto")
    first = offered(MissingCommand(command="swig"), case)[0]
    assert first.name == "build-needs:m2crypto"
    done = apply(first.edits, case.recipe, case.index)
    after = Case(done.recipe, done.index, case.facts, debian, case.install)
    assert offered(MissingHeader(header="ssl.h"), after) == []
    assert offered(MissingCommand(command="swig"), after) == []


def test_who_misses_the_compiler_gets_the_rest_of_the_project_s_needs_first(debian: Knowledge) -> None:
    case = at_build(debian, name="m2crypto")
    found = offered(MissingToolchain(language="c", program="gcc"), case)
    assert [repair.name for repair in found] == ["build-needs:m2crypto", "apt:gcc,libc6-dev,make"]
    assert brought(found[0], case) == {"libssl-dev", "swig", *COMPILERS}
    assert brought(found[1], case) == {"make", *COMPILERS}


def test_libraries_that_tests_load_come_together_where_the_project_is_known(debian: Knowledge) -> None:
    found = offered(MissingLibrary(library="libgobject-2.0-0", when="load"), at_check(debian, name="weasyprint"))
    assert [repair.name for repair in found] == ["apt:libglib2.0-0,libpango-1.0-0", "apt:libglib2.0-0"]


def test_a_program_of_an_ecosystem_is_left_to_its_package_manager_in_the_main(debian: Knowledge) -> None:
    case = at_check(debian)
    (jest,) = offered(MissingCommand(command="jest"), case)
    (convert,) = offered(MissingCommand(command="convert"), case)
    assert jest.probability < convert.probability / 2


def test_the_distribution_s_build_of_the_project_itself_never_stands_in_for_it(debian: Knowledge) -> None:
    """A suite that passes against another build of the same project proves nothing."""
    case = at_check(debian, name="psycopg2")
    assert offered(MissingModule(language="python", module="psycopg2._psycopg"), case) == []
    assert offered(MissingCommand(command="psycopg2-tool"), case) == []
    own = Facts(packages=(Fact(value="apt_pkg", evidence=HERE),))
    mine = Case(case.recipe, case.index, own, debian, case.install)
    assert offered(MissingModule(language="python", module="apt_pkg"), mine) == []


def test_make_is_missed_by_who_misses_compilers_too(debian: Knowledge) -> None:
    assert "g++" in best(MissingCommand(command="make"), at_build(debian))
    assert best(MissingCommand(command="make"), at_build(debian, "gcc", "libc6-dev")) == {"make"}


def test_a_failed_compiler_is_installed_only_where_there_is_none(debian: Knowledge) -> None:
    assert "gcc" in best(CompilerFailed(compiler="gcc"), at_build(debian))
    assert offered(CompilerFailed(compiler="gcc"), at_build(debian, "gcc", "libc6-dev", "make")) == []


def test_a_browser_comes_with_what_lets_test_tools_find_it(debian: Knowledge) -> None:
    case = at_check(debian)
    (repair,) = offered(MissingBrowser(browser="chrome"), case)
    done = apply(repair.edits, case.recipe, case.index)
    assert brought(repair, case) == {"chromium", "chromium-driver"}
    assert dict(done.recipe.check.step.env)["CHROME_BIN"] == "/usr/bin/chromium"
    assert dict(done.recipe.test_env)["CHROME_BIN"] == "/usr/bin/chromium"
    again = Case(done.recipe, done.index, case.facts, debian, case.install)
    assert offered(MissingBrowser(browser="chrome"), again) == []


def test_a_module_of_the_system_s_interpreter_is_made_visible_to_the_environment(debian: Knowledge) -> None:
    case = at_check(debian)
    (only,) = offered(MissingModule(language="python", module="apt_pkg"), case)
    (also,) = offered(MissingModule(language="python", module="psycopg2.extras"), case)
    assert only.probability > also.probability, "what an installer has too is its business"
    done = apply(only.edits, case.recipe, case.index)
    inserted = done.recipe.steps[case.index : done.index]
    assert [step.kind for step in inserted] == [StepKind.SYSTEM, StepKind.TOOLCHAIN]
    assert ".pth" in inserted[1].run


def test_the_distribution_s_choice_of_a_version_is_asked_for_but_no_other_version_is_taken_for_it(
    debian: Knowledge,
) -> None:
    chosen = {"libclang-14-dev": "libclang-dev", "python3.11-venv": "python3-venv", "php8.2-xml": "php-xml"}
    others = {name: name for name in ("libfuse3-dev", "libpq-dev", "libglib2.0-0", "unheard-of-1-dev")}
    for package, name in (chosen | others).items():
        assert debian.default(package, release="bookworm") == name
