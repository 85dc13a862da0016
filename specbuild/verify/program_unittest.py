"""Runs unittest suites in any way a project runs them, and reports what each test did.

usage: python -c PROGRAM REPORT discover PATH... | script FILE [ARG...] | module NAME [ARG...]

A program of `specbuild.verify.programs`: it travels as text, imports the standard library only, runs on Python 3.7 and
newer, and has no apostrophes in it, so that it stays readable inside of a quoted shell word. Whatever starts a
TextTestRunner in this process is watched (`manage.py test`, `python test.py`, `unittest.main()`, trial), so that
counts do not depend on what a runner prints or returns. The report is written last: a run that is cut off has none.
"""

from __future__ import annotations

import importlib
import json
import runpy
import sys
import unittest
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

RANKS = ("passed", "expected_failures", "skipped", "failed", "errors")
OUTCOMES = {
    "addSuccess": "passed",
    "addExpectedFailure": "expected_failures",
    "addSkip": "skipped",
    "addFailure": "failed",
    "addUnexpectedSuccess": "failed",
    "addError": "errors",
}
NAMES_KEPT = 50


def message_of(error: Any) -> str:
    """In words, from what unittest (a triple) or trial (a Failure) gives; a skip gives its reason, a string."""
    try:
        value = error[1]
    except (TypeError, IndexError):
        value = getattr(error, "value", error)
    if not isinstance(value, BaseException):
        return ""
    lines = str(value).strip().splitlines() or [""]
    # A module that did not load has its own traceback as the text, with the cause at the end.
    return lines[-1] if "Traceback" in str(value) else f"{type(value).__name__}: {lines[0]}"


class Watch:
    """Counts each test once, by the worst that is said of it between its start and its stop."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = dict.fromkeys(RANKS, 0)
        self.failing: list[str] = []
        self.blocking: list[str] = []
        self.first_message = ""
        self.current: str | None = None
        self.running = False

    def mark(self, outcome: str, test: Any, error: Any = None) -> None:
        """Take note of what was said of a test, or of a class or module fixture when no test is running."""
        if not self.running:
            self.counts[outcome] += 1
        elif self.current is None or RANKS.index(outcome) > RANKS.index(self.current):
            self.current = outcome
        if outcome in ("failed", "errors"):
            self.fail(test, error)

    def listener(self, outcome: str) -> Callable[..., None]:
        """What takes the arguments of an `add…` method, of whatever runner, and marks `outcome`."""

        def listen(test: Any, error: Any = None, *rest: Any, **named: Any) -> None:
            self.mark(outcome, test, error)

        return listen

    def fail(self, test: Any, error: Any) -> None:
        """Keep the name and the message of a failure."""
        name = (test.id() if hasattr(test, "id") else str(test)).replace("unittest.loader._FailedTest.", "")
        if len(self.failing) < NAMES_KEPT:
            self.failing.append(name)
        if type(test).__name__ in ("_FailedTest", "ModuleImportFailure", "LoadTestsFailure", "ErrorHolder"):
            self.blocking.append(name)
        if not self.first_message:
            self.first_message = message_of(error)

    def start(self, test: Any) -> None:
        """A test begins."""
        self.running, self.current = True, None

    def stop(self, test: Any) -> None:
        """A test has ended; one of which nothing was said did not pass."""
        if self.running and self.current is not None:
            self.counts[self.current] += 1
        self.running = False

    def subtest(self, test: Any, subtest: Any, error: Any = None) -> None:
        """A part of a test has ended."""
        if error is not None:
            failed = isinstance(error, tuple) and issubclass(error[0], test.failureException)
            self.mark("failed" if failed else "errors", subtest, error)


def watched(result: Any, watch: Watch) -> Any:
    """Make a result object, of whatever class, tell `watch` what it is told."""

    def tee(name: str, listener: Callable[..., None]) -> None:
        original = getattr(result, name, None)

        def both(*args: Any, **kwargs: Any) -> Any:
            listener(*args, **kwargs)
            return original(*args, **kwargs) if original else None

        setattr(result, name, both)

    tee("startTest", watch.start)
    tee("stopTest", watch.stop)
    for name, outcome in OUTCOMES.items():
        tee(name, watch.listener(outcome))
    if hasattr(result, "addSubTest"):
        tee("addSubTest", watch.subtest)
    return result


def watch_runner(runner_class: Any, entry: str, watch: Watch) -> None:
    """Make every runner of that class use watched results."""
    run = getattr(runner_class, entry)

    def watched_run(self: Any, *args: Any, **kwargs: Any) -> Any:
        kind: Any = self.__class__
        make = kind._makeResult
        results: list[Any] = []

        def make_watched(runner: Any) -> Any:
            results.append(watched(make(runner), watch))
            return results[-1]

        # On the class, for runners with slots have no room for it on the instance.
        kind._makeResult = make_watched
        try:
            outcome = run(self, *args, **kwargs)
        finally:
            kind._makeResult = make
        if any(result.shouldStop for result in results):
            watch.blocking.append("the run stopped before its end")
        return outcome

    setattr(runner_class, entry, watched_run)


def discover(paths: list[str]) -> None:
    """Find the tests below folders, or in files, and run them all in one suite."""
    suite = unittest.TestSuite()
    for path in paths or ["."]:
        folder, patterns = Path(path), ["test*.py", "*test*.py"]
        if folder.is_file():
            folder, patterns = folder.parent, [folder.name]
        top = str(Path.cwd() if is_package_path(folder) else folder)
        for pattern in patterns:
            found = unittest.TestLoader().discover(str(folder), pattern=pattern, top_level_dir=top)
            if found.countTestCases():
                suite.addTest(found)
                break
    unittest.TextTestRunner(verbosity=2).run(suite)


def is_package_path(folder: Path) -> bool:
    """Whether every folder from here down to `folder` is a package."""
    steps = [folder, *folder.parents][:-1]
    return bool(steps) and all((step / "__init__.py").exists() for step in steps)


def run_target(mode: str, target: list[str]) -> int:
    """Run what was asked for as if it had been started by itself; its exit status."""
    try:
        if mode == "discover":
            sys.path[0] = str(Path.cwd())
            discover(target)
        elif mode == "script":
            sys.argv = target
            sys.path[0] = str(Path(target[0]).resolve().parent)
            runpy.run_path(target[0], run_name="__main__")
        else:
            sys.argv = target
            sys.path[0] = str(Path.cwd())
            runpy.run_module(target[0], run_name="__main__", alter_sys=True)
    except SystemExit as stop:
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


def main() -> None:
    """Watch, run, then write the report."""
    report, mode, target = sys.argv[1], sys.argv[2], sys.argv[3:]
    watch = Watch()
    watch_runner(unittest.TextTestRunner, "run", watch)
    if target[:1] == ["twisted.trial"]:
        watch_runner(importlib.import_module("twisted.trial.runner").TrialRunner, "run", watch)
    code = run_target(mode, target)
    found: dict[str, Any] = {
        "schema_version": 1,
        **watch.counts,
        "failing": watch.failing,
        "blocking": watch.blocking[:NAMES_KEPT],
    }
    found["first_message"] = watch.first_message[:500]
    Path(report).write_text(json.dumps(found), encoding="utf-8")
    bad = watch.counts["failed"] + watch.counts["errors"] + len(watch.blocking)
    sys.exit(code or int(bad > 0))


if __name__ == "__main__":
    main()
