"""Repairs of how the tests are run: from where, with which paths, options and limits."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from posixpath import basename

from specbuild.failures import (
    Failure,
    HollowPass,
    Hung,
    MissingModule,
    MissingProjectFile,
    ShadowedPackage,
    TestCollision,
    TimedOut,
)
from specbuild.predictors import stdlib
from specbuild.recipe import SOURCE_DIR, VENV_DIR, Check, Step, StepKind
from specbuild.repairs import python_odds as odds
from specbuild.repairs.contract import Case, Repair
from specbuild.repairs.edits import InsertSteps, ReplaceWork, SetVariables
from specbuild.repairs.import_names import is_own
from specbuild.repairs.python_steps import command, fresh, in_check, installed, option, rerun, runs_own_command
from specbuild.strategies import requirements
from specbuild.strategies.runners import RUNNERS
from specbuild.verify import pytest_commands
from specbuild.verify.checks import checks_for
from specbuild.verify.programs import program_command

_PYTEST = frozenset({"pytest", "collect"})
_OTHER_WAYS = 2
_TEST_FOLDERS = frozenset({"test", "tests", "testing"})
_SECONDS = 60
"""A limit a test, where one of them hangs: far more than most tests take."""

_ALL_FILES = "-o addopts= -o testpaths= -o 'python_files=test*.py *test.py *tests.py' -o 'python_classes=Test* *Test'"


def repair_running(failure: Failure, case: Case) -> Iterable[Repair]:
    """The repairs of this family that the recipe does not have yet."""
    return fresh(case, _repairs(failure, case))


def _repairs(failure: Failure, case: Case) -> Iterator[Repair]:
    pytest = in_check(case) and case.recipe.check.runner in _PYTEST
    match failure:
        case ShadowedPackage() if pytest and is_own(case, failure.module):
            yield _from_outside(failure, case)
        case TestCollision() if pytest:
            yield from _collision(failure, case)
        case HollowPass() if in_check(case) and not runs_own_command(case):
            yield from _hollow(case, pytest=pytest)
        case MissingProjectFile(tool="pip") if failure.path:
            yield from _requirements_file(failure, case)
        case MissingModule(language="python") if in_check(case):
            yield from _own_module(failure, case)
        case TimedOut() | Hung() if pytest:
            yield from _limits(failure, case)
        case _:
            return


def _from_outside(failure: ShadowedPackage, case: Case) -> Repair:
    paths = case.facts.tests[0].paths if case.facts.tests else ()
    packages = tuple(fact.value for fact in case.facts.packages)
    name = case.facts.name.value if case.facts.name else ""
    look = program_command("installed", name, *packages, isolated=True)
    run = f"{pytest_commands.FRESH_REPORT_DIR}{look}\n{pytest_commands.installed(paths, packages)}"
    return Repair(
        name="tests:outside",
        title="run the tests from outside of the source tree",
        why=f"there {failure.module} comes from what is installed",
        edits=(rerun(case, run=run),),
        probability=odds.OUTSIDE,
    )


def _collision(failure: TestCollision, case: Case) -> Iterator[Repair]:
    yield Repair(
        name="pytest:importlib",
        title="run pytest with --import-mode=importlib",
        why=f"modules called {failure.module} are then told apart by their paths",
        edits=(option(case, "--import-mode=importlib"),),
        probability=odds.IMPORT_MODE,
    )
    clean = Step(
        kind=StepKind.BUILD,
        run="find . -name __pycache__ -type d -prune -exec rm -rf {} +\nfind . -name '*.pyc' -exec rm -f {} +",
        title="remove compiled leftovers",
        network=False,
    )
    yield Repair(
        name="tests:fresh-caches",
        title="remove compiled leftovers from the tree",
        why="those of another place have its paths in them",
        edits=(InsertSteps(steps=(clean,)), SetVariables(env=(("PYTHONDONTWRITEBYTECODE", "1"),))),
        probability=odds.FRESH_CACHES,
    )


def _hollow(case: Case, *, pytest: bool) -> Iterator[Repair]:
    """Other ways to run the tests, as the facts know them; then pytest on everything that could be a test."""
    for rank, check in enumerate(_other_checks(case)):
        yield Repair(
            name=f"check:{check.runner}:{check.digest[:12]}",
            title=check.reason or f"run the tests with {check.runner}",
            why="the way that was tried found none",
            edits=(ReplaceWork(check=check),),
            probability=odds.OTHER_WAY * odds.RIVAL**rank,
            source="facts",
        )
    if pytest:
        yield Repair(
            name="pytest:all-files",
            title="let pytest take every file for a test that could be one",
            why="files and classes are called in ways that its defaults do not know",
            edits=(option(case, _ALL_FILES),),
            probability=odds.ALL_FILES,
        )


def _other_checks(case: Case) -> list[Check]:
    now = case.recipe.check
    ways = checks_for(
        case.facts, level=now.level, test_command=None, network=now.step.network, timeout=now.step.timeout
    )
    others = [check for check in ways if check.step.run != now.step.run]
    return [check.model_copy(update={"services": now.services}) for check in others[:_OTHER_WAYS]]


def _requirements_file(failure: MissingProjectFile, case: Case) -> Iterator[Repair]:
    """The same file in another folder; else what is declared instead."""
    files = {one.group.removeprefix("file:") for one in case.facts.dependencies if one.group.startswith("file:")}
    wanted = basename(failure.path)
    for rank, path in enumerate(sorted((one for one in files if basename(one) == wanted), key=len)[:2]):
        there = shlex.quote(f"{SOURCE_DIR}/{path}")
        missing = re.compile(rf"(?<![\w./-]){re.escape(failure.path)}(?![\w./-])")
        run = there.join(missing.split(case.step.run))
        yield Repair(
            name=f"file:{path}",
            title=f"use {path}",
            why=f"{failure.path} is not there, but {path} is",
            edits=(rerun(case, run=run),),
            probability=odds.OTHER_FOLDER * odds.RIVAL**rank,
            source="facts",
        )
    texts = requirements.tests(case.facts).requirements
    bare = re.sub(rf"\s(-r|--requirement)[ =]?\s*\S*{re.escape(failure.path)}", "", case.step.run)
    if texts and bare != case.step.run and not in_check(case):
        # An install of nothing at all would be an error of its own.
        kept = bare if re.search(r"\binstall\s+(?!-)\S|\s-r", bare) else ":"
        yield Repair(
            name="pip:test-group",
            title="install what is declared for the tests",
            why=f"{failure.path} is not in this release",
            edits=(rerun(case, run=f"{kept}\n{command(case, texts)}"),),
            probability=odds.UNLOCKED,
            source="facts",
        )


def _own_module(failure: MissingModule, case: Case) -> Iterator[Repair]:
    """Modules that lie in the tree: on the path, whatever folder pytest starts from."""
    top = failure.module.partition(".")[0]
    if not (is_own(case, failure.module) or top in _TEST_FOLDERS):
        yield from _in_tree(top, case)
        return
    inner = any(fact.evidence.file.startswith("src/") for fact in case.facts.packages)
    folders = [SOURCE_DIR, *([f"{SOURCE_DIR}/src"] if inner else [])]
    yield Repair(
        name="env:PYTHONPATH",
        title="put the source tree on the import path",
        why=f"{top} is the project's own",
        edits=(SetVariables(env=(("PYTHONPATH", ":".join(folders)),)),),
        probability=odds.OWN_PATH,
    )
    if is_own(case, failure.module) and case.facts.build_backend:
        yield Repair(
            name="python:installed",
            title="install the project",
            why=f"{top} is the project's own, and not installed",
            edits=(installed(case, (".",), "--no-cache", "--reinstall-package", _name(case)),),
            probability=odds.INSTALLED,
        )


def _in_tree(module: str, case: Case) -> Iterator[Repair]:
    """The folder of the tree that has a module of that name: a `.pth` file puts it on the path of every Python."""
    known = {need.name.partition(".")[0] for need in case.facts.test_needs} | RUNNERS.keys()
    if module in known or stdlib.is_standard(module) or not module.isidentifier():
        return
    run = (
        f"found=$(find {SOURCE_DIR} -path '*/.*' -prune -o "
        f"\\( -name {module}.py -o -path '*/{module}/__init__.py' \\) -print | sort | head -n 1)\n"
        f'[ -n "$found" ] || {{ echo "specbuild: the tree has no module {module}" >&2; exit 1; }}\n'
        f'folder=$(dirname "${{found%/__init__.py}}")\n'
        f"site=$({VENV_DIR}/bin/python -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))')\n"
        f'echo "$folder" >> "$site/specbuild-tree.pth"'
    )
    look = Step(kind=StepKind.BUILD, run=run, title=f"put the folder of {module} on the path", network=False)
    yield Repair(
        name=f"path:{module}",
        title=f"put the folder of the tree that has the module {module} on the import path",
        why="no test file imports it from elsewhere, so it lies in the tree",
        edits=(InsertSteps(steps=(look,)),),
        probability=odds.IN_TREE,
    )


def _name(case: Case) -> str:
    return case.facts.name.value if case.facts.name else case.facts.packages[0].value


def _limits(failure: TimedOut | Hung, case: Case) -> Iterator[Repair]:
    """Lifts the suite's own limit; or sets one, so that what hangs is one failure among passes."""
    if isinstance(failure, TimedOut) and failure.seconds:
        yield Repair(
            name="pytest:patience",
            title="lift the limit that the suite sets for each test",
            why=f"it allows {failure.seconds} seconds, on whatever machine",
            edits=(option(case, "-o timeout=0 --timeout=0"),),
            probability=odds.PATIENCE,
        )
    yield Repair(
        name="pytest:timeout",
        title=f"end each test after {_SECONDS} seconds",
        why="one test that hangs must not take the others with it",
        edits=(
            installed(case, ("pytest-timeout",), newest=("pytest-timeout",)),
            option(case, f"--timeout={_SECONDS}"),
            SetVariables(env=(("GIT_TERMINAL_PROMPT", "0"), ("PAGER", "cat"))),
        ),
        probability=odds.TIME_LIMIT,
    )
