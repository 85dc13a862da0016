"""What is foreseen of candidates, from facts, a package index in memory and a small archive of Debian."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from specbuild.failures import (
    DriftedBackend,
    DriftedDependency,
    DriftedTestTool,
    Failure,
    MissingBuildDependency,
    MissingCommand,
    MissingDevelopmentFiles,
    MissingLibrary,
    MissingLocale,
    MissingToolchain,
    ServiceNeeded,
    UnsatisfiableResolution,
    VersionControlNeeded,
    VersionOutOfRange,
)
from specbuild.knowledge.index_file import write_index
from specbuild.knowledge.query import Knowledge
from specbuild.knowledge.releases import Release
from specbuild.predictors.foresee import Foreseen, NoIndex, Outlook, Releases, foresee, view
from specbuild.predictors.foresee.chances import LEAST
from specbuild.recipe import UV, BaseRef, StepKind
from specbuild.repo.facts import CiJob, Dependency, Evidence, Extension, Facts, Service
from specbuild.repo.index_page import IndexFile
from specbuild.strategies import steps
from specbuild.strategies.compose import Route, candidates
from specbuild.strategies.contract import Earlier, Needed
from specbuild.strategies.interpreters import Site
from specbuild.testing.debian_packages import CONTENTS, CONTENTS_ALL, SOURCES
from specbuild.testing.proposals import BOOKWORM, NOW, TRIXIE, check, fact, needs, request, revision, uses
from specbuild.testing.releases import FakeReleases, sdist, wheel

MORE_SOURCES = """
Package: python-magic
Version: 2:0.4.26-3
Build-Depends: debhelper-compat (= 13), libmagic1, python3-all
Package-List:
 python3-magic deb python optional arch=all

Package: drawing
Version: 1
Build-Depends: python3-all, libodd1, libenchant-2-2
Package-List:
 python3-drawing deb python optional arch=all

Package: numerics
Version: 1
Build-Depends: python3-all-dev, cython3, python3-numpy, graphviz, redis-server
Package-List:
 python3-numerics deb python optional arch=any

Package: markupsafe
Version: 2.1.2-1
Build-Depends: python3-all-dev
Package-List:
 python3-markupsafe deb python optional arch=any

Package: plain
Version: 1
Build-Depends: python3-all
Package-List:
 python3-plain deb python optional arch=all
"""

EXTENSION = Extension(language="c", evidence=Evidence(file="setup.py", line=7))
WINDOWS = "cp311-cp311-win_amd64"


@pytest.fixture(name="known", scope="module")
def make_knowledge(tmp_path_factory: pytest.TempPathFactory) -> Knowledge:
    cache = tmp_path_factory.mktemp("cache")
    files = {"Contents-amd64": CONTENTS, "Contents-all": CONTENTS_ALL, "Sources": SOURCES + MORE_SOURCES}
    for name, text in files.items():
        (cache / name).write_text(text)
    known = Knowledge(cache, architecture="amd64")
    known.index("bookworm").parent.mkdir()
    write_index(known.index("bookworm"), [cache / "Contents-amd64", cache / "Contents-all"], [cache / "Sources"])
    return known


class Setting:
    """A recipe on bookworm that installs what it is given, and what is foreseen of it."""

    def __init__(self, known: Knowledge) -> None:
        self.known = known

    async def __call__(
        self,
        facts: Facts,
        *files: IndexFile,
        install: str = "",
        packages: tuple[str, ...] = (),
        base: BaseRef = BOOKWORM,
        runner: str = "pytest",
        env: tuple[tuple[str, str], ...] = (),
        services: tuple[tuple[str, str], ...] = (),
        index: Releases | None = None,
        project: bool = True,
        earlier: tuple[Earlier, ...] = (),
    ) -> tuple[Foreseen, ...]:
        inside = [steps.uv(f"{UV} pip install {install}", "install the requirements")]
        if project:
            build = f"{UV} pip install --no-cache -e ."
            inside.append(steps.uv(build, "install the project", kind=StepKind.BUILD, env=env))
        route = Route("declared", Site(base, base.python or "", 1.0, ""), 0.5, "", tuple(inside), packages=packages)
        verify = check(runner).model_copy(update={"services": services})
        (candidate,) = candidates(request(facts, base, checks=(verify,)), route)
        asked = index or FakeReleases(files)
        return await foresee(Outlook(candidate, facts, self.known, NOW, asked, earlier))


@pytest.fixture(name="setting")
def make_setting(known: Knowledge) -> Setting:
    return Setting(known)


def failures(told: tuple[Foreseen, ...]) -> list[Failure]:
    return [one.failure for one in told]


def missing(told: tuple[Foreseen, ...]) -> list[str]:
    """The modules that a build misses."""
    return [failure.module for failure in failures(told) if isinstance(failure, MissingBuildDependency)]


def project(name: str = "mine", *dependencies: Dependency, **more: object) -> Facts:
    facts = Facts(name=fact(name), build_backend=fact("setuptools.build_meta"), dependencies=dependencies)
    return facts.model_copy(update=more)


# Distributions that are built from source


async def test_a_dependency_without_a_wheel_here_wants_the_compiler_that_is_missing(setting: Setting) -> None:
    files = (wheel("fast", "1", WINDOWS), sdist("fast", "1"))
    (told,) = await setting(project("mine", needs("fast==1", pinned=True)), *files, install="fast==1")
    assert told.failure == MissingToolchain(language="c")
    assert told.at is StepKind.DEPENDENCIES
    assert told.probability > 0.8
    assert [one.line for one in told.evidence] == [9]
    assert "fast 1 has no wheel for Python 3.11" in told.why
    assert told.subject == "fast"


async def test_what_is_pinned_is_surer_than_what_is_not(setting: Setting) -> None:
    files = (wheel("fast", "1", WINDOWS), sdist("fast", "1"))
    (pinned,) = await setting(project(), *files, install="fast==1")
    (free,) = await setting(project(), *files, install="fast")
    assert pinned.probability > free.probability


async def test_nothing_is_foreseen_once_the_compiler_is_there(setting: Setting) -> None:
    files = (wheel("fast", "1", WINDOWS), sdist("fast", "1"))
    assert await setting(project(), *files, install="fast", packages=("gcc", "libc6-dev")) == ()


async def test_a_wheel_that_fits_needs_nothing(setting: Setting) -> None:
    files = (wheel("fast", "1", "cp311-cp311-manylinux_2_17_x86_64"), sdist("fast", "1"))
    assert await setting(project(), *files, install="fast") == ()


async def test_sources_without_compiled_code_need_no_compiler(setting: Setting) -> None:
    assert await setting(project(), wheel("x", "2"), sdist("x", "1"), install="x==1") == ()
    assert await setting(project(), sdist("plain", "1"), install="plain") == ()
    assert await setting(project(), sdist("unknown-everywhere", "1"), install="unknown-everywhere") == ()


async def test_other_releases_tell_whether_code_is_compiled(setting: Setting) -> None:
    (told,) = await setting(project(), wheel("x", "2", WINDOWS), sdist("x", "1"), install="x==1")
    assert told.failure == MissingToolchain(language="c")


async def test_debian_tells_what_a_dependency_is_built_with(setting: Setting) -> None:
    told = await setting(project(), sdist("psycopg2", "2.9"), install="psycopg2")
    assert failures(told) == [MissingToolchain(language="c"), MissingDevelopmentFiles(name="psycopg2")]
    cured = await setting(project(), sdist("psycopg2", "2.9"), install="psycopg2", packages=("gcc", "libpq-dev"))
    assert cured == ()


async def test_no_binary_means_built_from_source(setting: Setting) -> None:
    files = (wheel("fast", "1", "cp311-cp311-manylinux_2_17_x86_64"), sdist("fast", "1"))
    told = await setting(project(), *files, install="--no-binary fast fast")
    assert MissingToolchain(language="c") in failures(told)


async def test_what_only_gets_faster_by_compiling_is_hardly_a_failure(setting: Setting) -> None:
    (told,) = await setting(
        project(), sdist("markupsafe", "1.0"), wheel("markupsafe", "3", WINDOWS), install="markupsafe<2"
    )
    assert told.probability < 0.3


async def test_of_bases_that_bring_their_own_tools_nothing_is_said_to_be_missing(setting: Setting) -> None:
    base = BaseRef(name="python:3.11", digest="sha256:1", python="3.11")
    assert await setting(project(), sdist("psycopg2", "2.9"), install="psycopg2", base=base) == ()


# The project itself


async def test_the_projects_own_code_wants_compiler_and_libraries(setting: Setting) -> None:
    told = await setting(project("psycopg2", extensions=(EXTENSION,)))
    assert {MissingToolchain(language="c").key, MissingDevelopmentFiles(name="psycopg2").key} <= {
        one.failure.key for one in told if one.at is StepKind.BUILD
    }


async def test_optional_code_is_less_likely_to_fail(setting: Setting) -> None:
    (must,) = await setting(project(extensions=(EXTENSION,)))
    (may,) = await setting(project(extensions=(EXTENSION.model_copy(update={"optional": True}),)))
    assert must.probability > 2 * may.probability


@pytest.mark.parametrize(
    ("backend", "requires", "language"),
    [("maturin", "maturin>=1", "rust"), ("setuptools.build_meta", "setuptools-rust", "rust"), ("mesonpy", "", "c")],
)
async def test_backends_tell_what_they_compile(setting: Setting, backend: str, requires: str, language: str) -> None:
    facts = Facts(name=fact("x"), build_backend=fact(backend), build_requires=(fact(requires),) if requires else ())
    told = [one.failure for one in await setting(facts)]
    assert language in [one.language for one in told if isinstance(one, MissingToolchain)]


async def test_an_application_that_is_not_built_wants_no_compiler(setting: Setting) -> None:
    assert await setting(project(extensions=(EXTENSION,)), project=False) == ()


async def test_a_binding_that_debian_lacks_is_called_after_its_library(setting: Setting) -> None:
    told = await setting(project("pylibpq", extensions=(EXTENSION,)), packages=("gcc",))
    assert failures(told) == [MissingDevelopmentFiles(name="libpq")]


async def test_modules_that_a_set_up_script_imports_may_be_undeclared(setting: Setting) -> None:
    told = await setting(project("numerics", extensions=(EXTENSION,)), packages=("gcc",))
    assert MissingBuildDependency(module="numpy", of="numerics") in failures(told)
    uv = "-q attrs\necho 'extra-build-dependencies.numerics = [\"numpy<2\"]' >> /opt/uv.toml"
    given = await setting(project("numerics", extensions=(EXTENSION,)), packages=("gcc",), install=uv)
    assert missing(given) == ["Cython"]
    shared = (("UV_NO_BUILD_ISOLATION", "1"),)
    facts = project("numerics", extensions=(EXTENSION,))
    assert missing(await setting(facts, packages=("gcc",), install="'numpy<2' cython", env=shared)) == []
    assert missing(await setting(facts, packages=("gcc",), env=shared)) == ["numpy", "Cython"]
    declared = project("numerics", extensions=(EXTENSION,), build_requires=(fact("numpy"),))
    assert missing(await setting(declared)) == []


# Companions


async def test_libraries_that_pure_code_loads_are_missed_at_run_time(setting: Setting) -> None:
    told = await setting(project("python-magic"))
    assert failures(told) == [MissingLibrary(library="magic", when="load")]
    assert await setting(project("python-magic"), packages=("libmagic1",)) == ()


async def test_dependencies_load_libraries_as_well(setting: Setting) -> None:
    (told,) = await setting(project("mine"), wheel("python-magic", "1"), install="python-magic")
    assert told.failure == MissingLibrary(library="magic", when="load")


async def test_of_several_libraries_one_stands_for_all(setting: Setting) -> None:
    told = [f for f in failures(await setting(project("drawing"))) if isinstance(f, MissingLibrary)]
    assert told == [MissingLibrary(library="enchant-2", when="load")]


async def test_programs_and_servers_that_debian_has_at_hand_are_missed_by_tests(setting: Setting) -> None:
    told = await setting(project("numerics"), packages=("gcc",))
    assert {MissingCommand(command="dot").key, ServiceNeeded(service="redis").key} <= {f.key for f in failures(told)}
    cured = await setting(project("numerics"), packages=("gcc", "graphviz"), services=(("redis", "true"),))
    assert cured == ()


# Bounds


async def test_a_dependency_that_excludes_the_interpreter_is_refused(setting: Setting) -> None:
    files = (wheel("x", "1", requires_python="<3.10"), wheel("x", "2"))
    (told,) = await setting(project("mine", needs("x==1")), *files, install="x==1")
    assert told.failure == VersionOutOfRange(tool="python", required="<3.10", found="3.11", because="x==1")
    assert told.probability > 0.9


async def test_a_date_before_all_releases_leaves_none(setting: Setting) -> None:
    cut = "--exclude-newer 2010-01-01T00:00:00Z"
    (told,) = await setting(project(), wheel("x", "1"), install=f"{cut} x")
    assert told.failure == UnsatisfiableResolution(tool="uv", requirement="x")
    assert "they came later" in told.why
    (undated,) = await setting(project(), wheel("x", "1", uploaded=None), install=f"{cut} x")
    assert "no upload dates" in undated.why


async def test_a_version_that_is_not_there_leaves_none(setting: Setting) -> None:
    (told,) = await setting(project(), wheel("x", "1"), install="x==7")
    assert told.failure == UnsatisfiableResolution(tool="uv", requirement="x==7")


async def test_what_others_ask_for_in_vain_is_left_to_the_resolver(setting: Setting) -> None:
    index = FakeReleases([wheel("a", "2"), wheel("b", "1")], {"a-2": ["b>=3"]})
    assert await setting(project(), install="a", index=index) == ()
    assert len(await setting(project(), install="a==2", index=index)) == 1


async def test_requires_python_of_the_project_is_held_against_the_base(setting: Setting) -> None:
    (told,) = await setting(project(requires_python=fact(">=3.12")))
    assert told.failure == VersionOutOfRange(tool="python", required=">=3.12", found="3.11")


# Eras


async def test_a_break_after_the_revision_shows_with_the_newest_release(setting: Setting) -> None:
    facts = project("mine", needs("markupsafe"), revision_date=revision(2019))
    told = await setting(facts, wheel("markupsafe", "3.0"), install="markupsafe")
    assert DriftedDependency(module="markupsafe", name="soft_unicode", below="2.1") in failures(told)


async def test_what_debian_packages_bring_is_of_their_version(setting: Setting) -> None:
    facts = project("mine", needs("markupsafe"), revision_date=revision(2019))
    files = (wheel("markupsafe", "1.0"),)
    told = await setting(facts, *files, install="markupsafe", packages=("python3-markupsafe",))
    assert DriftedDependency(module="markupsafe", name="soft_unicode", below="2.1") in failures(told)


async def test_a_bound_or_a_date_before_the_break_avoids_it(setting: Setting) -> None:
    facts = project("mine", needs("markupsafe"), revision_date=revision(2019))
    files = (wheel("markupsafe", "3.0"), wheel("markupsafe", "2.0"))
    told = await setting(facts, *files, install="'markupsafe<2.1'")
    assert not [f for f in failures(told) if isinstance(f, DriftedDependency)]


async def test_a_revision_after_the_break_bears_it(setting: Setting) -> None:
    facts = project("mine", needs("markupsafe"), revision_date=revision(2025))
    assert await setting(facts, wheel("markupsafe", "3.0"), install="markupsafe") == ()


async def test_what_only_dependencies_use_is_theirs_to_bear(setting: Setting) -> None:
    index = FakeReleases([wheel("jinja2", "3.1"), wheel("markupsafe", "3.0")], {"jinja2-3": ["markupsafe"]})
    told = await setting(project("mine", revision_date=revision(2019)), install="jinja2", index=index)
    assert "markupsafe" not in [f.module for f in failures(told) if isinstance(f, DriftedDependency)]


async def test_the_older_the_source_the_likelier_the_break(setting: Setting) -> None:
    async def chance(year: int) -> float:
        facts = project("mine", needs("pydantic"), revision_date=revision(year))
        return max(one.probability for one in await setting(facts, wheel("pydantic", "2.5"), install="pydantic"))

    assert await chance(2020) > await chance(2023) > LEAST


async def test_new_test_tools_break_old_suites(setting: Setting) -> None:
    facts = project("mine", revision_date=revision(2023))
    told = await setting(facts, wheel("pytest", "9.0"), install="pytest")
    assert DriftedTestTool(tool="pytest", name="PytestRemovedIn9Warning", below="9") in failures(told)


async def test_what_builds_breaks_too_unless_it_is_constrained(setting: Setting) -> None:
    facts = project("mine", revision_date=revision(2021), build_requires=(fact("cython"),))
    files = (wheel("cython", "3.0"), wheel("cython", "0.29"))
    drifted = DriftedBackend(backend="cython", name="cython_sources", below="3")
    assert drifted in failures(await setting(facts, *files))
    held = "attrs\nprintf '%s\\n' 'cython<3' > /opt/c.txt"
    env = (("UV_BUILD_CONSTRAINT", "/opt/c.txt"),)
    assert drifted not in failures(await setting(facts, *files, install=held, env=env))


async def test_the_interpreter_drops_things_unless_the_project_names_it(setting: Setting) -> None:
    old = project("mine", revision_date=revision(2015))
    gone = VersionOutOfRange(tool="python", required="<3.12", because="distutils")
    assert gone in failures(await setting(old, base=TRIXIE))
    assert gone not in failures(await setting(old, base=BOOKWORM))
    named = old.model_copy(update={"classifier_pythons": (fact("3.13"),)})
    assert await setting(named, base=TRIXIE) == ()


async def test_nose_does_not_run_on_todays_python(setting: Setting) -> None:
    told = await setting(project("mine", revision_date=revision(2024)), runner="nose")
    assert told[0].failure == VersionOutOfRange(tool="python", required="<3.10", because="collections.Callable")


# Surroundings


def ci(*, services: tuple[str, ...] = (), run: tuple[str, ...] = ()) -> CiJob:
    where = Evidence(file=".github/workflows/test.yml", line=3)
    servers = tuple(Service(name=name, image=name, evidence=where) for name in services)
    return CiJob(
        provider="github",
        name="test",
        services=servers,
        run=tuple(fact(line, where.file) for line in run),
        tests=True,
        evidence=where,
    )


async def test_services_of_ci_are_needed_until_they_are_started(setting: Setting) -> None:
    facts = project(ci=(ci(services=("postgres:15",)),))
    (told,) = await setting(facts)
    assert (told.failure, told.at) == (ServiceNeeded(service="postgresql"), StepKind.TEST)
    assert told.evidence[0].file == ".github/workflows/test.yml"
    assert await setting(facts, services=(("postgresql", "true"),)) == ()


async def test_clients_test_against_their_server(setting: Setting) -> None:
    (told,) = await setting(project("redis"))
    assert told.failure == ServiceNeeded(service="redis")


async def test_suites_that_start_their_server_need_its_programs_alone(setting: Setting) -> None:
    (told,) = await setting(project("gssapi"))
    assert told.failure == ServiceNeeded(service="kdc")
    assert await setting(project("gssapi"), packages=("krb5-kdc", "krb5-user")) == ()


async def test_a_version_from_tags_needs_tags_or_to_be_told(setting: Setting) -> None:
    facts = project(scm_version=fact("setuptools-scm"))
    (told,) = await setting(facts)
    assert told.failure == VersionControlNeeded(need="tags", by="setuptools-scm")
    assert await setting(facts, env=(("SETUPTOOLS_SCM_PRETEND_VERSION", "1"),)) == ()
    assert await setting(facts.model_copy(update={"has_tags": True})) == ()


async def test_tests_that_use_git_want_git(setting: Setting) -> None:
    (told,) = await setting(project(test_needs=(uses("git"),)))
    assert told.failure == MissingCommand(command="git")
    assert await setting(project(test_needs=(uses("git"),)), packages=("git",)) == ()


async def test_locales_and_displays_of_ci_are_needed(setting: Setting) -> None:
    facts = project(ci=(ci(run=("sudo locale-gen de_DE.UTF-8", "xvfb-run pytest")),))
    assert {f.key for f in failures(await setting(facts))} == {
        MissingLocale(locale="de_DE.UTF-8").key,
        ServiceNeeded(service="display").key,
    }


# All together


async def test_of_one_diagnosis_the_likeliest_is_told(setting: Setting) -> None:
    facts = project(extensions=(EXTENSION,))
    (told,) = await setting(facts, wheel("fast", "1", WINDOWS), sdist("fast", "1"), install="fast")
    assert told.at is StepKind.BUILD


async def test_without_any_index_facts_still_tell(tmp_path: Path) -> None:
    blind = Setting(Knowledge(tmp_path, architecture="amd64"))
    told = await blind(project(extensions=(EXTENSION,)), install="x", index=NoIndex())
    assert failures(told) == [MissingToolchain(language="c")]


class HalfDeaf(FakeReleases):
    """Never answers about some projects."""

    async def releases(self, project: str) -> Sequence[Release]:
        if project == "slow":
            await anyio.sleep_forever()
        return await super().releases(project)


async def test_an_index_that_is_slow_is_waited_for_until_the_deadline(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "DEADLINE", 0.2)
    index = HalfDeaf([wheel("fast", "1", WINDOWS), sdist("fast", "1")])
    told = await setting(project(), install="slow fast", index=index)
    assert failures(told) == [MissingToolchain(language="c")]


async def test_a_damaged_index_of_packages_tells_nothing(tmp_path: Path) -> None:
    known = Knowledge(tmp_path, architecture="amd64")
    known.index("bookworm").parent.mkdir()
    known.index("bookworm").write_text("no database at all" * 100)
    assert await Setting(known)(project("numerics")) == ()


async def test_the_likeliest_comes_first(setting: Setting) -> None:
    told = await setting(project("psycopg2", extensions=(EXTENSION,), ci=(ci(services=("postgres",)),)))
    chances = [one.probability for one in told]
    assert chances == sorted(chances, reverse=True)
    assert len(chances) == 3


# Environments of other revisions


def environment(need: Needed, *packages: str, base: BaseRef = BOOKWORM) -> Earlier:
    """One that was repaired of something; with packages that came after its source tree."""
    inside = (steps.uv("build", "build it", kind=StepKind.BUILD), *([steps.packages(packages)] if packages else []))
    route = Route("declared", Site(base, "", 1.0, ""), 0.5, "", inside)
    (made,) = candidates(request(project(), base), route)
    return Earlier(
        environment="b1", revision="1.0", recipe=made.recipe, strategy="declared", alike=True, needed=(need,)
    )


DRIFTED = DriftedBackend(backend="setuptools", name="use_2to3")
NEEDED = Needed(failure=DRIFTED, at=StepKind.BUILD, packages=False, repair="bound builds")
PACKAGES = Needed(failure=MissingCommand(command="swig"), at=StepKind.BUILD, packages=True, repair="install swig")


async def test_what_an_earlier_environment_was_repaired_of_is_foreseen(setting: Setting) -> None:
    (told,) = [one for one in await setting(project(), earlier=(environment(NEEDED),)) if one.failure == DRIFTED]
    assert told.at is StepKind.BUILD
    assert "b1" in told.why
    assert told.probability > 0.5


async def test_what_it_was_repaired_of_on_another_base_is_not(setting: Setting) -> None:
    assert DRIFTED not in failures(await setting(project(), earlier=(environment(NEEDED, base=TRIXIE),)))


async def test_packages_that_a_recipe_has_are_not_foreseen_to_be_missing(setting: Setting) -> None:
    known = (environment(PACKAGES, "swig"),)
    assert PACKAGES.failure in failures(await setting(project(), earlier=known))
    assert PACKAGES.failure not in failures(await setting(project(), earlier=known, packages=("swig",)))
