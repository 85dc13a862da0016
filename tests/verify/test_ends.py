"""How a run ended: what the machinery says comes before what a report says, and its own trouble is never a Verdict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from specbuild.errors import SandboxError
from specbuild.recipe import Check, Level, Step
from specbuild.repo.facts import Facts, TestLayout
from specbuild.sandbox.contract import Command, Completed, End, LineSink
from specbuild.testing.fakes import Behaviour, FakeBackend, FakeSandbox, Files
from specbuild.verify import Verdict, checks_for, same, verify
from specbuild.verify.judge import telling

Judge = Callable[..., Awaitable[Verdict]]

FACTS = Facts(tests=(TestLayout(runner="pytest", paths=("tests",)),))
CHECK = checks_for(FACTS, level=Level.TESTS, test_command=None, network=False, timeout=7)[0]
REPORT = CHECK.report or ""
GOOD = b"<testsuites><testsuite><testcase classname='c' name='a'/></testsuite></testsuites>"


class EndingSandbox(FakeSandbox):
    """A fake whose check ends in a given way; other commands do what their script says."""

    end = End.EXITED
    exit_code = 0

    async def run(self, command: Command, *, on_line: LineSink | None = None, log: Path | None = None) -> Completed:
        if command.argv[-1] != telling(CHECK).run:
            return await super().run(command, on_line=on_line, log=log)
        self.files[REPORT] = GOOD
        completed = await super().run(command, on_line=on_line, log=log)
        return replace(completed, end=self.end, exit_code=self.exit_code, note="12 MiB of 10")


def command(step: Step) -> Command:
    return Command(argv=("/bin/sh", "-eu", "-c", step.run))


def script(text: str, files: Files) -> Behaviour:
    """Answers the size of the report, its path being the last word of the command; everything else succeeds."""
    if text == REPORT and REPORT in files:
        return Behaviour(output=(str(len(files[REPORT])),))
    return Behaviour()


async def judged(end: End, exit_code: int, answers: Callable[[str, Files], Behaviour] = script) -> Verdict:
    backend = FakeBackend(answers)
    sandbox = EndingSandbox(backend, backend.store("base", None, {}), "one")
    sandbox.end, sandbox.exit_code = end, exit_code
    return await verify(sandbox, CHECK, command=command, tracked={}, min_pass_ratio=0.9)


async def test_a_run_that_came_to_its_end_verifies() -> None:
    assert (await judged(End.EXITED, 0)).ok


ENDS: Sequence[tuple[End, int, str]] = (
    (End.TIMEOUT, 137, "did not end within 7 s"),
    (End.SILENT, 137, "silent"),
    (End.OUT_OF_MEMORY, 137, "out of memory (12 MiB of 10)"),
    (End.OUT_OF_DISK, 137, "out of disk"),
    (End.OUT_OF_PROCESSES, 1, "out of processes"),
    (End.SIGNALLED, 139, "killed by signal 11"),
    (End.EXITED, 137, "killed by signal 9"),
    (End.EXITED, 3, "internal error"),
)


@pytest.mark.parametrize(("end", "exit_code", "why"), ENDS)
async def test_a_good_report_does_not_make_up_for_a_bad_end(end: End, exit_code: int, why: str) -> None:
    verdict = await judged(end, exit_code)
    assert not verdict.ok
    assert why in verdict.reason, verdict
    assert verdict.passed == 1  # the counts are told all the same


async def test_trouble_of_the_machinery_is_not_a_verdict() -> None:
    with pytest.raises(SandboxError, match="mount lost"):
        await judged(End.EXITED, 0, lambda text, files: Behaviour(breaks="mount lost"))


async def test_a_report_above_the_limit_is_refused_without_reading_it() -> None:
    def huge(text: str, files: Files) -> Behaviour:
        return Behaviour(output=(str(1 << 40),)) if text == REPORT and REPORT in files else Behaviour()

    verdict = await judged(End.EXITED, 0, huge)
    assert not verdict.ok
    assert "above the limit" in verdict.reason


async def test_a_check_that_hangs_ends_with_its_timeout(judge: Judge) -> None:
    hanging = {"tests/test_a.py": "def test_a():\n    pass\ndef test_b():\n    import time; time.sleep(600)\n"}
    step = CHECK.step.model_copy(update={"timeout": 6.0})
    verdict = await judge(hanging, CHECK.model_copy(update={"step": step}))
    assert not verdict.ok
    assert "did not end within 6 s" in verdict.reason


@pytest.mark.parametrize(
    "report",
    ["", "<testsuites>", "[]", "<!DOCTYPE a [<!ENTITY b 'c'>]><testsuites/>"],
    ids=["empty", "cut", "json", "doctype"],
)
async def test_a_garbled_report_does_not_verify(judge: Judge, report: str) -> None:
    write = f"mkdir -p /tmp/specbuild; printf %s {report!r} > {REPORT}".replace('"', "'") if "'" not in report else ""
    write = write or f'mkdir -p /tmp/specbuild; printf %s "{report}" > {REPORT}'
    check = Check(level=Level.TESTS, runner="pytest", report=REPORT, step=CHECK.step.model_copy(update={"run": write}))
    verdict = await judge({"a": ""}, check)
    assert not verdict.ok
    assert "left a report that cannot be read" in verdict.reason


@pytest.mark.parametrize("kind", ["mkdir -p", "mkfifo"])
async def test_a_report_that_is_no_file_does_not_verify(judge: Judge, kind: str) -> None:
    run = f"mkdir -p /tmp/specbuild; {kind} {REPORT}"
    check = Check(level=Level.TESTS, runner="pytest", report=REPORT, step=CHECK.step.model_copy(update={"run": run}))
    assert "wrote no report" in (await judge({"a": ""}, check)).reason


async def test_the_ratio_decides_between_passed_and_failed(judge: Judge) -> None:
    files = {"tests/test_a.py": "".join(f"def test_{n}():\n    assert {n}\n" for n in range(10))}
    assert (await judge(files, min_pass_ratio=0.9)).ok
    below = await judge(files, min_pass_ratio=0.91)
    assert not below.ok
    assert (below.passed, below.failed, below.ratio) == (9, 1, 0.9)
    assert below.failing == ("tests.test_a::test_0",)


def verdict(passed: int, *, ok: bool = True) -> Verdict:
    return Verdict(level=Level.TESTS, ok=ok, reason="", passed=passed)


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (verdict(10), verdict(10), True),
        (verdict(10), verdict(9), True),
        (verdict(10), verdict(8), False),
        (verdict(1000), verdict(990), True),
        (verdict(1000), verdict(989), False),
        (verdict(10), verdict(10, ok=False), False),
        (verdict(10), verdict(10).model_copy(update={"level": Level.IMPORTS}), False),
    ],
)
def test_two_runs_are_the_same_up_to_a_few_flaky_tests(a: Verdict, b: Verdict, equal: bool) -> None:
    assert same(a, b) is equal
    assert same(b, a) is equal
