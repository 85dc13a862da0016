"""What is offered for failures of a sandbox's surroundings; scripts of it are run for real where a git is enough."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from specbuild import failures
from specbuild.failures import (
    HollowPass,
    Hung,
    MissingData,
    MissingLocale,
    MissingModule,
    MissingProjectFile,
    MissingTimezone,
    PermissionRefused,
    PrivilegeNeeded,
    SettingNeeded,
    ShadowedPackage,
    TimedOut,
    VersionControlNeeded,
)
from specbuild.recipe import Level, Recipe, StepKind
from specbuild.repairs import Case, Repair
from specbuild.repairs.edits import apply
from specbuild.repairs.running import repair_running
from specbuild.repairs.surroundings import repair_surroundings
from specbuild.repo.facts import Evidence, Facts, TestEnv, TestLayout
from specbuild.testing.proposals import fact, needs
from specbuild.testing.python_cases import added, python_case
from specbuild.verify.checks import checks_for

PROJECT = Facts(
    name=fact("x"),
    version=fact("1.2"),
    packages=(fact("x", "x/__init__.py"),),
    tests=(TestLayout(runner="pytest", paths=("tests",), files=2),),
)


def recipe(case: Case, repair: Repair) -> Recipe:
    return apply(repair.edits, case.recipe, case.index).recipe


def sh(run: str, folder: Path) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_SYSTEM": str(folder / "gitconfig")}
    done = subprocess.run(["sh", "-eu", "-c", run], cwd=folder, env=env, check=True, capture_output=True, text=True)
    return done.stdout


def test_a_named_locale_is_generated() -> None:
    case = python_case()
    best = max(
        repair_surroundings(MissingLocale(locale="de_DE.UTF-8@euro"), case), key=lambda repair: repair.probability
    )
    runs = [step.run for step in added(case, recipe(case, best))]
    assert "locales" in runs[0]
    assert runs[1] == "localedef -i de_DE@euro -f UTF-8 de_DE.UTF-8@euro"


def test_an_encoding_is_a_matter_of_variables() -> None:
    case = python_case()
    (only,) = repair_surroundings(MissingLocale(locale="UTF-8"), case)
    env = dict(recipe(case, only).check.step.env)
    assert (env["LC_ALL"], env["PYTHONUTF8"]) == ("C.UTF-8", "1")
    assert dict(recipe(case, only).test_env)["LC_ALL"] == "C.UTF-8"


def test_zones_come_by_the_package_index_too() -> None:
    (one,) = repair_surroundings(MissingTimezone(zone="US/Eastern"), python_case())
    assert one.name == "pip:tzdata"


def test_a_version_is_told_to_the_tool_that_asks() -> None:
    case = python_case(PROJECT, at=StepKind.BUILD)
    (best, *_) = repair_surroundings(VersionControlNeeded(need="tags", by="pbr"), case)
    assert ("PBR_VERSION", "1.2") in recipe(case, best).steps[-1].env


def test_a_repository_is_made_with_a_tag_and_changes_no_file(tmp_path: Path) -> None:
    case = python_case(PROJECT)
    repairs = repair_surroundings(VersionControlNeeded(need="repository"), case)
    steps = added(case, recipe(case, next(iter(repairs))))
    (tmp_path / "a.py").write_text("1\n")
    made = next(step.run for step in steps if "git init" in step.run)
    sh(made, tmp_path)
    sh(made, tmp_path)
    assert sh("git describe --tags", tmp_path) == "v1.2\n"
    assert sh("git status --porcelain", tmp_path) == ""
    assert (tmp_path / "a.py").read_text() == "1\n"


def test_a_repository_that_is_there_gets_a_tag_alone(tmp_path: Path) -> None:
    case = python_case(PROJECT)
    repairs = {one.name: one for one in repair_surroundings(VersionControlNeeded(need="tags"), case)}
    made = next(step.run for step in added(case, recipe(case, repairs["git:init"])) if "git init" in step.run)
    sh("git init -q; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first", tmp_path)
    first = sh("git rev-parse HEAD", tmp_path)
    sh(made, tmp_path)
    assert sh("git rev-parse 'v1.2^{commit}'", tmp_path) == first


@pytest.mark.parametrize(
    ("need", "key"),
    [("ownership", "safe.directory"), ("identity", "user.email"), ("file-protocol", "protocol.file.allow")],
)
def test_settings_of_git_hold_for_every_user(need: str, key: str, tmp_path: Path) -> None:
    case = python_case()
    failure = VersionControlNeeded.model_validate({"need": need})
    (only,) = repair_surroundings(failure, case)
    (step,) = added(case, recipe(case, only))
    sh(step.run, tmp_path)
    assert sh(f"git config --system {key}", tmp_path).strip()


def test_a_variable_is_set_as_tox_sets_it_but_no_expression() -> None:
    env = (("MODE", "test"), ("HOME", "{envtmpdir}"), ("SECRET_TOKEN", "${{ secrets.T }}"))
    tox = TestEnv(tool="tox", name="py", env=env, evidence=Evidence(file="tox.ini", line=3))
    case = python_case(PROJECT.model_copy(update={"test_envs": (tox,)}))
    (best,) = repair_surroundings(SettingNeeded(variable="MODE"), case)
    assert ("MODE", "test") in recipe(case, best).check.step.env
    assert not list(repair_surroundings(SettingNeeded(variable="HOME"), case))
    (made_up,) = repair_surroundings(SettingNeeded(variable="SECRET_TOKEN"), case)
    assert made_up.probability < 0.5


def test_an_ordinary_user_owns_the_tree_and_runs_the_whole_command() -> None:
    case = python_case()
    (only,) = repair_surroundings(PrivilegeNeeded(user="ordinary"), case)
    run = recipe(case, only).check.step.run
    assert run.startswith("setpriv ")
    assert shlex.split(run)[-1] == case.step.run
    assert "chown" in added(case, recipe(case, only))[-1].run


def test_scripts_of_the_tree_are_made_executable_and_nothing_else() -> None:
    case = python_case()
    (only,) = repair_surroundings(PermissionRefused(path="./run me.sh"), case)
    assert added(case, recipe(case, only))[-1].run == "chmod a+x -- './run me.sh'"
    assert not list(repair_surroundings(PermissionRefused(path="/etc/shadow"), case))


def test_an_empty_file_is_made_in_a_home(tmp_path: Path) -> None:
    case = python_case()
    (only,) = repair_surroundings(MissingData(path="~/.ssh/known hosts"), case)
    sh(added(case, recipe(case, only))[-1].run, tmp_path)
    assert (tmp_path / ".ssh" / "known hosts").read_text() == ""


def test_compiled_modules_are_tested_from_outside_of_the_tree() -> None:
    case = python_case(PROJECT)
    (best, *_) = repair_running(ShadowedPackage(module="x._speed"), case)
    run = recipe(case, best).check.step.run
    assert "--import-mode=append" in run
    assert "cd /tmp/specbuild/elsewhere" in run


def test_modules_of_one_name_are_told_apart_beside_other_options() -> None:
    checks = checks_for(PROJECT, level=Level.TESTS, test_command="pytest -x", network=False, timeout=60.0)
    case = python_case(PROJECT, checks=checks)
    (best, *_) = repair_running(failures.TestCollision(module="test_a"), case)
    options = dict(recipe(case, best).check.step.env)["PYTEST_ADDOPTS"]
    assert options == f"{dict(case.step.env)['PYTEST_ADDOPTS']} --import-mode=importlib"


def test_a_hollow_pass_keeps_the_services_of_the_check() -> None:
    checks = checks_for(PROJECT, level=Level.TESTS, test_command=None, network=False, timeout=60.0)
    served = checks[0].model_copy(update={"services": (("redis", "redis-server"),)})
    case = python_case(PROJECT, checks=(served,))
    offered = [one for one in repair_running(HollowPass(what="no tests ran"), case) if one.name.startswith("check:")]
    assert offered
    assert all(recipe(case, one).check.services == served.services for one in offered)


def test_a_requirements_file_is_found_in_another_folder() -> None:
    facts = Facts(dependencies=(needs("six", "file:requirements/test.txt"),))
    case = python_case(facts, at=StepKind.DEPENDENCIES, requirements="-r test.txt")
    (best, *_) = repair_running(MissingProjectFile(path="test.txt", tool="pip"), case)
    assert recipe(case, best).steps[case.index].run == "/opt/uv/bin/uv pip install -r /repo/requirements/test.txt"


def test_a_module_of_the_tree_is_found_and_put_on_the_path(tmp_path: Path) -> None:
    case = python_case(PROJECT)
    (only,) = repair_running(MissingModule(language="python", module="canonical"), case)
    (tmp_path / "repo" / "tests" / "lib").mkdir(parents=True)
    (tmp_path / "repo" / "tests" / "lib" / "canonical.py").write_text("")
    (tmp_path / "bin").mkdir()
    (tmp_path / "site").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text(f"#!/bin/sh\necho {tmp_path}/site\n")
    python.chmod(0o755)
    run = (
        added(case, recipe(case, only))[-1].run.replace("/repo", f"{tmp_path}/repo").replace("/opt/venv", str(tmp_path))
    )
    sh(run, tmp_path)
    assert (tmp_path / "site" / "specbuild-tree.pth").read_text() == f"{tmp_path}/repo/tests/lib\n"


def test_a_suite_that_hangs_gets_a_limit_for_each_test() -> None:
    case = python_case(PROJECT)
    (only,) = repair_running(Hung(seconds=300.0), case)
    placed = recipe(case, only)
    assert "pytest-timeout" in added(case, placed)[0].run
    assert dict(placed.check.step.env)["PYTEST_ADDOPTS"] == "--timeout=60"


def test_a_limit_of_the_suite_s_own_is_lifted_first() -> None:
    (best, *_) = repair_running(TimedOut(seconds="5.0"), python_case(PROJECT))
    assert best.name == "pytest:patience"
