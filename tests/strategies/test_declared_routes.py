"""The routes that follow what a project declares: newest, dated, lowest."""

from __future__ import annotations

import shlex

import pytest

from specbuild.recipe import BaseRef, Check, Level, StepKind
from specbuild.repo.facts import Evidence, Extension, Facts, TestEnv
from specbuild.strategies import propose
from specbuild.strategies.needs import LAST_PKG_RESOURCES
from specbuild.testing.proposals import (
    BOOKWORM,
    BULLSEYE,
    TRIXIE,
    check,
    commands,
    fact,
    layout,
    names,
    needs,
    pick,
    request,
    revision,
    uses,
)

MODERN = Facts(
    name=fact("Shiny"),
    version=fact("2.1"),
    build_backend=fact("hatchling.build"),
    build_requires=(fact("hatchling>=1.6"), fact("hatch-vcs")),
    requires_python=fact(">=3.9"),
    classifier_pythons=(fact("3.11"), fact("3.12")),
    dependencies=(needs("idna>=2"), needs("pytest>=7", "extra:test"), needs("trustme", "extra:test")),
    tests=(layout(),),
    test_needs=(uses("idna"), uses("yaml"), uses("nosuch_a")),
    revision_date=revision(2024, 5, 1),
)

IMAGE = BaseRef(name="engine:mine:1", digest="sha256:" + "a" * 64)
"""Its interpreter is found when steps run in it."""

OLD = Facts(
    name=fact("rusty"),
    build_backend=fact("setuptools.build_meta:__legacy__"),
    classifier_pythons=(fact("2.7"), fact("3.6")),
    dependencies=(needs("Jinja2>=2.10"), needs("pytest", "tests")),
    revision_date=revision(2018, 5, 2),
)


def asked(install: str) -> list[str]:
    """The requirements of an install command, without what stands for the environments of the time."""
    return [word for word in shlex.split(install)[3:] if word != LAST_PKG_RESOURCES]


def test_a_project_that_declares_its_tests_gets_the_dated_and_the_newest_route_in_this_order() -> None:
    assert names(propose(request(MODERN)))[:2] == ["declared@2024-05-01", "declared"]


def test_steps_come_in_canonical_order() -> None:
    kinds = [step.kind for step in pick(propose(request(MODERN)), "declared").recipe.steps]
    assert kinds == [
        StepKind.SYSTEM,
        StepKind.TOOLCHAIN,
        StepKind.DEPENDENCIES,
        StepKind.SOURCE,
        StepKind.BUILD,
    ]


def test_what_another_revision_declares_alike_has_the_same_checkpoints_up_to_the_source_tree() -> None:
    one = request(MODERN)
    other = one.model_copy(update={"source_digest": "sha256:another"})
    first, second = (pick(propose(asked), "declared").recipe for asked in (one, other))
    assert first.checkpoints[:4] == second.checkpoints[:4]
    assert first.checkpoints[4] != second.checkpoints[4]


def test_a_requirement_that_is_a_path_in_the_tree_is_installed_once_the_tree_is_there() -> None:
    facts = MODERN.model_copy(update={"dependencies": (needs("mine @ file:///repo/vendor/mine"),)})
    kinds = [step.kind for step in pick(propose(request(facts)), "declared").recipe.steps]
    assert kinds.index(StepKind.SOURCE) < kinds.index(StepKind.DEPENDENCIES)


def test_candidates_of_one_base_share_their_first_checkpoints() -> None:
    candidates = propose(request(MODERN), only=["declared"])
    prefixes = {candidate.recipe.checkpoints[:3] for candidate in candidates}
    assert len(prefixes) == 1


def test_a_rival_that_adds_what_is_imported_shares_all_other_checkpoints() -> None:
    candidates = propose(request(MODERN))
    plain, completed = pick(candidates, "declared"), pick(candidates, "declared+imports")
    assert plain.recipe.checkpoints == completed.recipe.checkpoints[:-1]


def test_requirements_of_run_time_and_tests_are_installed_together() -> None:
    install = pick(propose(request(MODERN)), "declared").recipe.steps[2]
    assert asked(install.run)[-3:] == ["idna>=2", "pytest>=7", "trustme"]


def test_the_date_cuts_requirements_and_spares_what_builds_need() -> None:
    install = pick(propose(request(MODERN)), "declared@2024-05-01").recipe.steps[2].run
    assert "--exclude-newer 2024-05-02T00:00:00Z" in install
    for tool in ("setuptools", "wheel", "hatchling", "hatch-vcs"):
        assert f"--exclude-newer-package {tool}=false" in install


def test_the_date_does_not_depend_on_when_one_asks() -> None:
    today = request(MODERN)
    tomorrow = today.model_copy(update={"now": today.now.replace(year=2027)})
    digests = {candidate.recipe.digest for candidate in propose(today)}
    assert digests == {candidate.recipe.digest for candidate in propose(tomorrow)}


def test_an_old_project_on_a_younger_interpreter_gets_younger_test_tools_and_older_build_tools() -> None:
    candidate = pick(propose(request(OLD, BULLSEYE)), "declared@2018-05-02")
    install = candidate.recipe.steps[2].run
    resolve, final = install.splitlines()[2:4]
    assert "pip compile" in resolve
    assert "--exclude-newer 2018-05-03T00:00:00Z" in resolve
    assert "--exclude-newer 2021-07-03T00:00:00Z" in final
    assert "setuptools=2020-03-02T00:00:00Z" in final
    assert "test tools as of 2021-07-02" in candidate.reason


def test_an_old_project_gets_a_rival_of_the_time_of_its_interpreter() -> None:
    candidate = pick(propose(request(OLD, BULLSEYE)), "declared@2021-07-02")
    install = candidate.recipe.steps[2].run
    assert "--exclude-newer 2021-07-03T00:00:00Z" in install
    assert "pip compile" not in install
    assert "2023" not in str(names(propose(request(MODERN))))


def test_an_old_project_gets_a_rival_with_the_oldest_pytest_that_runs() -> None:
    for base, day in ((BULLSEYE, "2018-05-03"), (BOOKWORM, "2021-05-06")):
        install = pick(propose(request(OLD, base)), "declared@2018-05-02+old-pytest").recipe.steps[2].run
        assert f"--exclude-newer-package pytest={day}T00:00:00Z" in install.splitlines()[-1]
    assert "+old-pytest" not in str(names(propose(request(MODERN))))


def test_setuptools_that_cannot_make_editable_installs_is_not_asked_for_one() -> None:
    candidates = propose(request(OLD, BULLSEYE))
    assert pick(candidates, "declared@2018-05-02").recipe.steps[4].run.endswith("'.'")
    assert pick(candidates, "declared@2018-05-02+new-build").recipe.steps[4].run.endswith("-e '.'")


def test_the_oldest_setuptools_is_a_younger_one_where_the_interpreter_demands_it() -> None:
    candidate = pick(propose(request(OLD, TRIXIE)), "declared@2018-05-02+old-build")
    assert "setuptools=2023-06-02T00:00:00Z" in commands(candidate)


def test_dependencies_too_old_for_wheels_get_a_rival_with_compilers() -> None:
    candidates = propose(request(OLD, BULLSEYE))
    assert "gcc" in commands(pick(candidates, "declared@2018-05-02+compiler"))
    assert "declared@2024-05-01+compiler" not in names(propose(request(MODERN)))


def test_without_a_date_there_is_no_dated_route() -> None:
    facts = MODERN.model_copy(update={"revision_date": None})
    assert not [name for name in names(propose(request(facts))) if "@" in name]


def test_the_older_the_revision_the_lower_the_odds_of_the_newest_releases() -> None:
    old, new = (MODERN.model_copy(update={"revision_date": revision(year)}) for year in (2019, 2026))
    assert pick(propose(request(old)), "declared").prior < pick(propose(request(new)), "declared").prior


def test_undeclared_test_requirements_are_taken_from_the_imports_first() -> None:
    facts = MODERN.model_copy(update={"dependencies": (needs("idna>=2"),)})
    candidates = propose(request(facts), only=["declared"])
    assert names(candidates)[0] == "declared@2024-05-01+imports"
    assert "no test requirements are declared" in candidates[0].reason
    assert "completed by what the test files import (yaml, nosuch_a)" in candidates[0].reason


def test_required_extensions_bring_compilers_of_their_language() -> None:
    extension = Extension(language="c++", evidence=Evidence(file="setup.py", line=3))
    candidate = pick(propose(request(MODERN.model_copy(update={"extensions": (extension,)}))), "declared")
    system = [step.run for step in candidate.recipe.steps if step.kind is StepKind.SYSTEM]
    assert system[1].endswith("g++ pkg-config python3-dev")
    assert extension.evidence in candidate.evidence


def test_optional_extensions_are_tried_with_and_without_compilers() -> None:
    extension = Extension(language="c", optional=True, evidence=Evidence(file="setup.py"))
    candidates = propose(request(MODERN.model_copy(update={"extensions": (extension,)})))
    plain, built = pick(candidates, "declared"), pick(candidates, "declared+compiler")
    assert "gcc" not in commands(plain)
    assert "gcc" in commands(built)
    assert "the c code of setup.py" in plain.reason
    assert candidates.index(built) < candidates.index(plain)


def test_the_likeliest_route_with_compilers_is_tried_with_the_second_check_too() -> None:
    extension = Extension(language="c", optional=True, evidence=Evidence(file="setup.py"))
    facts = MODERN.model_copy(update={"extensions": (extension,)})
    candidates = propose(request(facts, checks=(check("pytest"), check("unittest"))))
    assert names(candidates).count("declared+compiler") == 2
    assert names(candidates).count("declared") == 1


def test_a_backend_that_compiles_at_import_is_not_installed_in_place() -> None:
    candidate = pick(propose(request(MODERN.model_copy(update={"build_backend": fact("mesonpy")}))), "declared")
    assert candidate.recipe.steps[4].run.endswith("'.[test]'")


def test_a_version_from_missing_tags_is_told() -> None:
    facts = MODERN.model_copy(update={"scm_version": fact("hatch-vcs")})
    step = pick(propose(request(facts)), "declared").recipe.steps[4]
    assert ("SETUPTOOLS_SCM_PRETEND_VERSION", "2.1") in step.env
    tagged = pick(propose(request(facts.model_copy(update={"has_tags": True}))), "declared")
    assert "SETUPTOOLS_SCM_PRETEND_VERSION" not in str([step.env for step in tagged.recipe.steps])
    assert "git" in tagged.recipe.steps[2].run.split()


def test_the_projects_own_build_keeps_out_of_the_shared_cache() -> None:
    build = pick(propose(request(MODERN)), "declared").recipe.steps[4]
    assert "--no-cache" in build.run
    assert build.caches == ()


def test_the_second_way_to_verify_shares_every_step() -> None:
    first, second = check("pytest"), check("unittest")
    candidates = [c for c in propose(request(MODERN, checks=(first, second))) if c.strategy == "declared"]
    assert [candidate.recipe.check for candidate in candidates] == [first, second]
    assert candidates[0].recipe.steps == candidates[1].recipe.steps
    assert candidates[0].prior > candidates[1].prior


def test_no_runner_is_installed_where_tests_are_not_run_by_it() -> None:
    facts = MODERN.model_copy(update={"dependencies": (needs("idna"),)})
    unittest = pick(propose(request(facts, checks=(check("unittest"), check("django")))), "declared")
    imports = pick(propose(request(facts, checks=(check("imports", Level.IMPORTS),))), "declared")
    assert "pytest" not in unittest.recipe.steps[2].run
    assert "pytest" not in imports.recipe.steps[2].run


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        ((check("collect"),), ["pytest"]),
        ((check("unittest"), check("pytest")), ["pytest"]),
        ((check("unittest"), check("django"), check("pytest")), []),
        ((check("trial"),), ["twisted"]),
        ((check("nose"),), ['nose; python_version < "3.10"', 'pynose; python_version >= "3.10"']),
        ((check("pytest").model_copy(update={"runner": "command"}),), ["pytest"]),
    ],
)
def test_runners_of_the_checks_that_are_crossed_are_installed(checks: tuple[Check, ...], expected: list[str]) -> None:
    facts = MODERN.model_copy(update={"dependencies": (needs("idna"),), "test_needs": ()})
    install = pick(propose(request(facts, checks=checks)), "declared").recipe.steps[2].run
    assert asked(install) == ["idna", *expected]


def test_what_configuration_and_fixtures_demand_joins_the_test_requirements() -> None:
    demands = (
        uses("pytest-cov", "option"),
        uses("pytest-mock", "fixture"),
        uses("pytest-cov>=4", "plugin"),
        uses("trustme", "plugin"),
    )
    dependencies = (*MODERN.dependencies, needs("pytest-mock>3", "group:dev"))
    facts = MODERN.model_copy(update={"test_needs": demands, "dependencies": dependencies})
    for name in ("declared", "declared@2024-05-01"):
        install = pick(propose(request(facts)), name).recipe.steps[2].run
        assert asked(install)[-5:] == ["idna>=2", "pytest>=7", "trustme", "pytest-cov>=4", "pytest-mock>3"]
    unittest = pick(propose(request(facts, checks=(check("unittest"),))), "declared")
    assert "pytest-cov" not in commands(unittest)


def test_imports_are_installed_one_by_one_under_the_same_date() -> None:
    candidate = pick(propose(request(MODERN)), "declared@2024-05-01+imports")
    wants = candidate.recipe.steps[-1].run.splitlines()
    assert wants[-2:] == ["want yaml pyyaml", "want nosuch_a nosuch-a"]
    assert "--exclude-newer 2024-05-02T00:00:00Z" in wants[1]
    assert "could not be had" in wants[1]


def test_where_nothing_else_is_imported_there_is_no_rival_for_it() -> None:
    facts = MODERN.model_copy(update={"dependencies": (needs("idna>=2"),), "test_needs": (uses("idna"),)})
    assert not [name for name in names(propose(request(facts))) if "+imports" in name]
    assert pick(propose(request(facts)), "declared").prior == pick(propose(request(MODERN)), "declared").prior


def test_lowest_versions_are_tried_where_lower_bounds_are_declared() -> None:
    candidate = pick(propose(request(MODERN)), "lowest-direct")
    assert "--resolution lowest-direct" in commands(candidate)
    unbounded = MODERN.model_copy(update={"dependencies": (needs("idna"),)})
    assert "lowest-direct" not in names(propose(request(unbounded)))


def test_a_tox_environment_tells_what_tests_need_through_its_files() -> None:
    env = TestEnv(tool="tox", name="py", deps=("-r requirements/tests.txt", "flaky"), evidence=Evidence(file="tox.ini"))
    facts = MODERN.model_copy(
        update={
            "dependencies": (needs("idna"), needs("pytest==8.1", "file:requirements/tests.txt", pinned=True)),
            "test_envs": (env,),
        }
    )
    install = pick(propose(request(facts)), "declared").recipe.steps[2].run
    assert asked(install)[-3:] == ["idna", "pytest==8.1", "flaky"]


def test_a_file_for_tests_as_such_comes_before_its_variants_and_before_support_for_users_of_pytest() -> None:
    dependencies = (
        needs("pytest-shiny", "extra:pytest"),
        needs("flaky", "file:requirements/test.txt"),
        needs("black", "file:requirements/test.txt"),
        needs("mypy", "file:requirements/test.txt"),
        needs("pyperf", "file:requirements/test-ci.txt"),
    )
    facts = MODERN.model_copy(update={"dependencies": dependencies, "test_needs": (uses("black"),)})
    install = pick(propose(request(facts)), "declared").recipe.steps[2].run
    assert asked(install) == ["flaky", "black", "pytest"]


def test_references_to_own_extras_are_followed_and_the_project_itself_is_left_out() -> None:
    dependencies = (
        needs("shiny[more]", "extra:test"),
        needs("shiny==1.9", "extra:test"),
        needs("flaky", "extra:more"),
        needs("Shiny[test]", "extra:more"),
    )
    facts = MODERN.model_copy(update={"dependencies": dependencies})
    install = pick(propose(request(facts, BOOKWORM)), "declared").recipe.steps[2].run
    assert asked(install) == ["flaky", "pytest"]


def test_an_image_that_tells_no_interpreter_is_said_to_tell_none() -> None:
    (first, *_) = propose(request(MODERN, IMAGE))
    assert "which Python engine:mine:1 has or gets is not known before it runs" in first.reason
    assert "names no versions" not in first.reason
