"""What is offered for failures inside the Python world, and what it makes of a recipe."""

from __future__ import annotations

import pytest

from specbuild.failures import (
    ArchiveRefused,
    DriftedBackend,
    DriftedDependency,
    DriftedTestTool,
    MissingBuildDependency,
    MissingModule,
    MissingTestExtra,
    NotBuilt,
    UnfitLock,
    UnsatisfiableResolution,
    VersionOutOfRange,
)
from specbuild.recipe import StepKind
from specbuild.repairs import Case, Repair
from specbuild.repairs.builds import repair_builds
from specbuild.repairs.distributions import repair_distributions
from specbuild.repairs.drift import repair_drift
from specbuild.repairs.edits import MoveToBase, apply
from specbuild.repairs.installing import repair_installing
from specbuild.repairs.running import repair_running
from specbuild.repairs.standard import repair_standard
from specbuild.repo.facts import Evidence, Extension, Facts
from specbuild.testing.proposals import BOOKWORM, TRIXIE, fact, needs, revision, uses
from specbuild.testing.python_cases import added, python_case, repaired

PKG_RESOURCES = DriftedDependency(module="setuptools", name="pkg_resources", below="82")


def named(repairs: list[Repair], name: str) -> Repair:
    return next(repair for repair in repairs if repair.name == name)


def after(case: Case, repair: Repair) -> Case:
    placed = apply(repair.edits, case.recipe, case.index)
    return repaired(case, placed.recipe, placed.index)


def test_a_module_is_installed_within_the_bounds_that_the_project_declares() -> None:
    facts = Facts(dependencies=(needs("PyYAML>=5,<7", "extra:docs"),))
    case = python_case(facts)
    (best, *_) = repair_distributions(MissingModule(language="python", module="yaml"), case)
    (step,) = added(case, after(case, best).recipe)
    assert (best.name, best.source) == ("pip:pyyaml", "facts")
    assert step.run == "/opt/uv/bin/uv pip install 'PyYAML>=5,<7'"


def test_further_modules_keep_to_the_dates_of_the_recipe() -> None:
    facts = Facts(test_needs=(uses("hypothesis"),))
    case = python_case(facts, install="/opt/uv/bin/uv pip install --exclude-newer 2020-01-01T00:00:00Z")
    (best, *_) = repair_distributions(MissingModule(language="python", module="hypothesis"), case)
    (step,) = added(case, after(case, best).recipe)
    assert step.run == "/opt/uv/bin/uv pip install --exclude-newer 2020-01-01T00:00:00Z hypothesis"


@pytest.mark.parametrize("module", ["x", "x.inner", "tests.helpers", "test_parser"])
def test_the_project_s_own_modules_are_no_distributions(module: str) -> None:
    facts = Facts(packages=(fact("x", "x/__init__.py"),))
    failure = MissingModule(language="python", module=module)
    assert not list(repair_distributions(failure, python_case(facts)))
    assert list(repair_running(failure, python_case(facts)))


def test_a_name_that_nothing_imports_from_elsewhere_is_looked_for_in_the_tree_first() -> None:
    failure, case = MissingModule(language="python", module="canonical"), python_case()
    (guess,) = repair_distributions(failure, case)
    (look,) = repair_running(failure, case)
    assert look.name == "path:canonical"
    assert guess.probability < look.probability / 2


def test_what_an_isolated_build_misses_is_not_installed_beside_it() -> None:
    failure = MissingModule(language="python", module="numpy")
    case = python_case(Facts(name=fact("x"), revision_date=revision(2020)), at=StepKind.BUILD)
    assert not list(repair_distributions(failure, case))
    (best, *_) = repair_builds(failure, case)
    assert best.name == "build-requires:numpy<2"


def test_a_repair_that_the_recipe_has_is_not_offered_again() -> None:
    failure, case = MissingTestExtra(distribution="pytest-mock", name="mocker"), python_case()
    (best, *_) = repair_distributions(failure, case)
    again = after(case, best)
    assert best.name not in [repair.name for repair in repair_distributions(failure, again)]


def test_a_group_that_is_installed_is_not_offered_again() -> None:
    facts = Facts(dependencies=(needs("six", "extra:test"),))
    failure = MissingTestExtra(distribution="pytest-mock", name="mocker")
    with_group = [one.name for one in repair_distributions(failure, python_case(facts))]
    without = [one.name for one in repair_distributions(failure, python_case(facts, requirements="six pytest"))]
    assert "pip:test-group" in with_group
    assert "pip:test-group" not in without


def test_a_pin_holds_for_later_installs_too() -> None:
    case = python_case()
    first = DriftedDependency(module="flask", name="Markup", below="3")
    pinned = after(case, next(iter(repair_drift(first, case))))
    second = after(pinned, next(iter(repair_distributions(MissingModule(language="python", module="yaml"), pinned))))
    (step,) = added(pinned, second.recipe)
    assert ("UV_CONSTRAINT", "/opt/specbuild/pins.txt") in step.env


def test_limits_that_a_recipe_made_for_itself_do_not_contradict_a_pin() -> None:
    case = python_case(install="/opt/uv/bin/uv pip install -c /opt/specbuild/limits.txt")
    (best, *_) = repair_drift(DriftedDependency(module="numpy", name="int", below="1.24"), case)
    (step,) = added(case, after(case, best).recipe)
    assert step.run.endswith("/opt/uv/bin/uv pip install 'numpy<1.24'")


def test_drift_in_an_isolated_build_bounds_the_build() -> None:
    case = python_case(Facts(name=fact("x")), at=StepKind.BUILD)
    assert not list(repair_drift(PKG_RESOURCES, case))
    (best, *_) = repair_builds(PKG_RESOURCES, case)
    assert best.name == "build-constraint:setuptools<82"
    assert ("UV_BUILD_CONSTRAINT", "/opt/specbuild/build-constraints.txt") in after(case, best).step.env


def test_bounds_on_builds_compose() -> None:
    case = python_case(Facts(name=fact("x")), at=StepKind.BUILD)
    for failure in (DriftedBackend(backend="cython", name="y", below="3"), PKG_RESOURCES):
        case = after(case, next(iter(repair_builds(failure, case))))
    text = "\n".join(step.run for step in case.recipe.steps)
    assert ("cython<3" in text, "setuptools<82" in text) == (True, True)
    assert text.count(">> /opt/specbuild/build-constraints.txt") == 2
    assert "> /opt/specbuild/build-constraints.txt" not in text.replace(">> ", "")


def test_a_setuptools_before_editable_installs_installs_a_copy_and_keeps_its_bound() -> None:
    case = python_case(at=StepKind.BUILD)
    failure = DriftedBackend(backend="setuptools", name="use_2to3", below="58")
    fixed = after(case, next(iter(repair_builds(failure, case))))
    assert fixed.step.run == "/opt/uv/bin/uv pip install --no-cache ."
    assert "UV_BUILD_CONSTRAINT" in dict(fixed.step.env)


def test_builds_of_one_distribution_get_two_undeclared_requirements() -> None:
    case = python_case(at=StepKind.DEPENDENCIES)
    for module in ("numpy", "cython"):
        failure = MissingBuildDependency(module=module, of="pyx")
        repairs = list(repair_builds(failure, case))
        case = after(case, named(repairs, f"build-requires:{module}"))
    assert dict(case.step.env)["UV_CONFIG_FILE"] == "/opt/specbuild/uv.toml"


def test_the_subject_of_the_output_is_built_with_what_its_build_misses() -> None:
    case = python_case(at=StepKind.DEPENDENCIES, subject="pyemd")
    (best, *_) = repair_builds(MissingModule(language="python", module="numpy"), case)
    assert best.title == "build pyemd with numpy"


def test_pytest_is_chosen_together_with_its_plugins() -> None:
    facts = Facts(dependencies=(needs("pytest-asyncio>=0.20", "extra:test"), needs("six", "extra:test")))
    case = python_case(facts)
    failure = DriftedTestTool(tool="pytest", name="PytestRemovedIn9Warning", below="9")
    (best, *_) = repair_drift(failure, case)
    (step,) = added(case, after(case, best).recipe)
    assert step.run.endswith("'pytest<9' 'pytest-asyncio>=0.20'")


def test_a_newer_pytest_is_exempt_from_the_recipe_s_dates() -> None:
    case = python_case(install="/opt/uv/bin/uv pip install --exclude-newer 2020-01-01T00:00:00Z")
    (best, *_) = repair_drift(VersionOutOfRange(tool="pytest", required="8.0", found="6.2"), case)
    (step,) = added(case, after(case, best).recipe)
    assert "--exclude-newer-package pytest=false 'pytest>=8.0'" in step.run


def test_everything_is_taken_as_of_the_revision_but_build_tools() -> None:
    facts = Facts(dependencies=(needs("flask"),), revision_date=revision(2019, 5, 1))
    case = python_case(facts)
    failure = DriftedDependency(module="flask", name="whatever")
    repairs = list(repair_drift(failure, case))
    (step,) = added(case, after(case, named(repairs, "pip:declared@2019-05-01")).recipe)
    assert "--exclude-newer 2019-05-02T00:00:00Z" in step.run
    assert "--exclude-newer-package setuptools=2020-03-02T00:00:00Z" in step.run
    assert "--reinstall" in step.run


def test_a_recipe_of_a_date_is_not_dated_again() -> None:
    facts = Facts(dependencies=(needs("flask"),), revision_date=revision(2019, 5, 1))
    case = python_case(facts, install="/opt/uv/bin/uv pip install --exclude-newer 2019-05-02T00:00:00Z")
    assert not list(repair_drift(DriftedDependency(module="flask", name="whatever"), case))


def test_a_resolution_that_a_date_spoils_is_tried_without() -> None:
    install = "/opt/uv/bin/uv pip install --exclude-newer 2019-05-02T00:00:00Z --exclude-newer-package pip=false"
    case = python_case(install=install, at=StepKind.DEPENDENCIES)
    (best,) = repair_drift(UnsatisfiableResolution(tool="uv"), case)
    assert after(case, best).step.run == "/opt/uv/bin/uv pip install pytest"


def test_a_removed_module_has_a_backport_and_older_bases() -> None:
    case = python_case(base=TRIXIE)
    failure = VersionOutOfRange(tool="python", required="<3.12", because="imp")
    repairs = list(repair_standard(failure, case))
    assert [one.name for one in repairs] == ["pip:zombie-imp", "base:debian:bookworm", "base:debian:bullseye"]
    assert repairs[1].edits == (MoveToBase(base="debian:bookworm"),)


def test_no_base_is_offered_where_the_present_one_is_the_only_one() -> None:
    failure = VersionOutOfRange(tool="python", required="==3.11.*", because="x")
    assert not list(repair_standard(failure, python_case(base=BOOKWORM)))


def test_a_lock_is_never_written_anew_in_the_tree() -> None:
    facts = Facts(dependencies=(needs("six"),))
    case = python_case(facts, at=StepKind.DEPENDENCIES)
    (best,) = repair_installing(UnfitLock(tool="poetry", problem="stale"), case)
    assert after(case, best).step.run == "/opt/uv/bin/uv pip install six"


def test_an_archive_that_uv_refuses_is_left_to_pip() -> None:
    case = python_case(at=StepKind.DEPENDENCIES)
    (best, *_) = repair_installing(ArchiveRefused(tool="uv", archive="feedparser-5.2.1.tar.bz2"), case)
    (step,) = added(case, after(case, best).recipe)
    assert "-m pip install --quiet --no-deps --no-build-isolation feedparser==5.2.1" in step.run


def test_a_missing_extension_is_built_in_place() -> None:
    extension = Extension(language="c", evidence=Evidence(file="setup.py"))
    facts = Facts(build_backend=fact("setuptools.build_meta"), extensions=(extension,))
    (best,) = repair_installing(NotBuilt(path="x/_speed.so"), python_case(facts, build="uv pip install ."))
    assert best.name == "python:editable"


@pytest.mark.parametrize("odd", ["", "..", "a b", "é", "x;rm -rf /", "$(id)"])
def test_odd_payloads_raise_nothing_and_reach_no_shell_unquoted(odd: str) -> None:
    facts = Facts(revision_date=revision(2020), dependencies=(needs("flask"),))
    case = python_case(facts, at=StepKind.BUILD)
    for failure in (
        MissingModule(language="python", module=odd),
        MissingBuildDependency(module=odd, of=odd),
        DriftedBackend(backend=odd, name=odd, below=odd),
        DriftedDependency(module=odd, name=odd, below=odd),
        DriftedTestTool(tool="pytest", name=odd, below=odd),
        VersionOutOfRange(tool="pytest", required=odd),
        UnsatisfiableResolution(tool="uv", requirement=odd),
        ArchiveRefused(tool="uv", archive=odd),
    ):
        for place in (case, python_case(facts)):
            offered = [*repair_builds(failure, place), *repair_distributions(failure, place)]
            offered += [*repair_drift(failure, place), *repair_installing(failure, place)]
            offered += repair_running(failure, place)
            for repair in offered:
                for step in added(place, after(place, repair).recipe):
                    unquoted = "".join(step.run.split("'")[::2])
                    assert "$(id)" not in unquoted
                    assert ";rm" not in unquoted
