"""Runs a Check in a Sandbox and judges it by its report. No model, and no exit status alone, decides."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from specbuild.errors import SandboxError, UsageError
from specbuild.recipe import Check, Level, Step, StepKind
from specbuild.sandbox.contract import Command, Completed, End, Inside, LineSink
from specbuild.verify.jsonreport import read_program_report
from specbuild.verify.junit import read_junit
from specbuild.verify.programs import PYTHON, program_command
from specbuild.verify.taint import find_taint
from specbuild.verify.tally import ReportError, Tally, one_line
from specbuild.verify.verdict import Verdict

REPORT_LIMIT = 256 << 20
"""Bytes of the largest report that is read: some million test cases."""

FLAKY_SHARE = 0.01
"""Share of the passed tests by which two runs may differ and still be the same: tests that pass now and then."""

_READERS: dict[str, Callable[[bytes], Tally]] = {
    "pytest": read_junit,
    "nose": read_junit,
    "command": read_junit,
    "unittest": read_program_report,
    "django": read_program_report,
    "trial": read_program_report,
    "collect": read_program_report,
    "imports": read_program_report,
    "build": read_program_report,
}

_PYTEST_EXITS = {
    2: "it was interrupted",
    3: "it had an internal error",
    4: "it could not be started as configured",
    5: "it collected no tests",
}
"""https://docs.pytest.org/en/stable/reference/exit-codes.html"""

_CUT_SHORT = re.compile(r"^!{3,} (?P<why>\S.*\S) !{3,}$")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_NO_MODULE = re.compile(r"No module named '?(?P<name>[\w.]+)'?")


async def verify(
    sandbox: Inside,
    check: Check,
    *,
    command: Callable[[Step], Command],
    tracked: Mapping[str, str],
    min_pass_ratio: float,
    on_line: LineSink | None = None,
    log: Path | None = None,
) -> Verdict:
    """Compare the tracked files, run the check, count its report.

    `command` turns a Step into what the sandbox runs; `tracked` maps relative paths to the sha256 of what they must
    hold; `log` gets the whole output of the check.

    Raises SandboxError when the machinery failed; whatever the repository's side did is in the Verdict. Raises
    UsageError for a check that nothing here can read.
    """
    if check.runner not in _READERS:
        raise UsageError(f"no reader for the runner {check.runner!r}", hint=f"known: {', '.join(sorted(_READERS))}")
    taint = await find_taint(sandbox, tracked, command, report=check.report)
    if taint.files or taint.problem:
        return Verdict(level=check.level, ok=False, reason=taint.problem or _tainted(taint.files), tainted=taint.files)
    said = _Listener(on_line)
    completed = await sandbox.run(command(telling(check)), on_line=said, log=log)
    tally, problem = await _read(sandbox, check, command)
    problem = _trouble(check, completed, tally, problem, said)
    return _verdict(check, completed, tally, problem, min_pass_ratio)


def telling(check: Check) -> Step:
    """The check's Step, with pytest telling of failures as they happen: they are worth acting on before the end."""
    if check.runner != "pytest":
        return check.whole
    told = check.step.model_copy(update={"run": _telling(check.step.run, check.mark)})
    return check.model_copy(update={"step": told}).whole


def _telling(run: str, mark: str) -> str:
    """A command with every call of pytest, one within a last word for another shell included."""
    before, for_shell, word = run.rpartition(" -eu -c ")
    try:
        words = shlex.split(word) if for_shell and before.startswith("setpriv ") else []
    except ValueError:
        words = []
    if len(words) == 1 and shlex.quote(words[0]) == word:
        return f"{before}{for_shell}{shlex.quote(_telling(words[0], mark))}"
    return run.replace(f"{PYTHON} -m pytest", program_command("pytest", mark))


def same(a: Verdict, b: Verdict) -> bool:
    """Whether two runs found the same: both ok at the same level, and about as many tests passed.

    Up to `FLAKY_SHARE` of the passed tests, and at least one, may come and go between two runs.
    """
    if not (a.ok and b.ok and a.level == b.level):
        return False
    return abs(a.passed - b.passed) <= max(1, math.floor(FLAKY_SHARE * max(a.passed, b.passed)))


class _Listener:
    """Passes lines on and remembers what pytest and our programs say about the run itself."""

    def __init__(self, on_line: LineSink | None) -> None:
        self._on_line = on_line
        self.cut_short = ""
        self.remark = ""
        self.missing_module = ""

    def __call__(self, line: str) -> None:
        if self._on_line is not None:
            self._on_line(line)
        plain = _COLOURS.sub("", line)
        if found := _CUT_SHORT.match(plain):
            self.cut_short = found["why"]
        elif plain.startswith("specbuild: "):
            self.remark = plain.removeprefix("specbuild: ")
        elif found := _NO_MODULE.search(plain):
            self.missing_module = self.missing_module or found["name"]


async def _read(sandbox: Inside, check: Check, command: Callable[[Step], Command]) -> tuple[Tally | None, str]:
    """The report's counts, or why there are none; nothing at all for a check that has no report."""
    if check.report is None:
        return None, "" if check.runner == "command" else "says nothing of a report"
    size = await _report_size(sandbox, check.report, command)
    if size is None:
        return None, "wrote no report"
    if size > REPORT_LIMIT:
        return None, f"wrote a report of {size >> 20} MiB, above the limit of {REPORT_LIMIT >> 20}"
    try:
        data = await sandbox.read_file(check.report, limit=REPORT_LIMIT)
        return read_report(check, data), ""
    except (FileNotFoundError, IsADirectoryError):
        return None, "wrote no report"
    except ReportError as error:
        return None, f"left a report that cannot be read: {error}"


def read_report(check: Check, data: bytes) -> Tally:
    """The counts of a report that the Check wrote. Raises ReportError if they cannot be believed."""
    return _READERS[check.runner](data)


async def _report_size(sandbox: Inside, path: str, command: Callable[[Step], Command]) -> int | None:
    """Bytes of the report; None if there is no regular file. Asked for beforehand, since a sandbox may refuse to read
    a large file with the same error that it has for trouble of its own."""
    step = Step(kind=StepKind.TEST, run='[ ! -f "$1" ] || wc -c < "$1"', cwd="/", network=False, timeout=60)
    given = command(step)
    lines: list[str] = []
    asked = Command(argv=(*given.argv, "sh", path), cwd="/", env=given.env, network=False, timeout=60)
    completed = await sandbox.run(asked, on_line=lines.append)
    if not completed.ok:
        raise SandboxError(f"the report {path} could not be looked at: {completed.tail.strip()[-300:]}")
    return int(lines[-1]) if lines else None


def _trouble(check: Check, completed: Completed, tally: Tally | None, problem: str, said: _Listener) -> str:
    """What was wrong with the run itself, whatever its report says; empty if it came to its end."""
    match completed.end:
        case End.EXITED if completed.exit_code <= 128:
            pass
        case End.EXITED | End.SIGNALLED:
            return f"{check.runner} crashed: killed by signal {completed.exit_code - 128}"
        case End.TIMEOUT:
            return f"{check.runner} did not end within {check.step.timeout:.0f} s"
        case _:
            return f"{check.runner} was ended: {completed.end}{f' ({completed.note})' if completed.note else ''}"
    if check.runner == "command":
        return "" if completed.ok and not problem else _own_command(completed, problem)
    if tally is None:
        return _no_report(check, completed, problem, said)
    if check.runner == "pytest" and completed.exit_code in (0, 1) and said.cut_short:
        return f"pytest stopped before its end: {said.cut_short}"
    if tally.blocking or completed.exit_code in (0, 1) or (completed.exit_code == 5 and not tally.passed):
        return ""
    return f"{check.runner} ended with exit code {completed.exit_code}{_meaning(check, completed)}"


def _own_command(completed: Completed, problem: str) -> str:
    return f"the command {problem}" if completed.ok else f"the command ended with exit code {completed.exit_code}"


def _no_report(check: Check, completed: Completed, problem: str, said: _Listener) -> str:
    if said.missing_module in ("pytest", "nose", "twisted", "django"):
        return f"{said.missing_module} is not installed in the environment"
    why = said.remark or one_line(completed.tail.strip().rpartition("\n")[2])
    ended = f"{check.runner} ended with exit code {completed.exit_code}{_meaning(check, completed)}"
    return f"{ended} and {problem}" + (f": {why}" if why else "")


def _meaning(check: Check, completed: Completed) -> str:
    meaning = _PYTEST_EXITS.get(completed.exit_code) if check.runner in ("pytest", "collect") else None
    return f" ({meaning})" if meaning else ""


def _verdict(check: Check, completed: Completed, tally: Tally | None, problem: str, min_pass_ratio: float) -> Verdict:
    counts = tally or Tally()
    reason = problem or _shortcoming(check, tally, min_pass_ratio)
    return Verdict(
        level=check.level,
        ok=not reason,
        reason=reason or _success(check, tally),
        passed=counts.passed,
        failed=counts.failed,
        errors=counts.errors,
        skipped=counts.skipped,
        collected=counts.collected,
        ratio=counts.ratio,
        failing=counts.failing,
        seconds=completed.seconds,
    )


def _shortcoming(check: Check, tally: Tally | None, min_pass_ratio: float) -> str:
    """Why a run that came to its end does not reach the level; empty if it does."""
    if tally is None:
        return ""
    because = f" ({tally.first_message})" if tally.first_message else ""
    if tally.blocking:
        more = f" and {len(tally.blocking) - 3} more" if len(tally.blocking) > 3 else ""
        return f"did not load: {', '.join(tally.blocking[:3])}{more}{because}"
    if check.level is Level.COLLECT:
        return "" if tally.collected else "no tests were collected"
    ran = tally.passed + tally.failed + tally.errors
    if not ran:
        return f"nothing ran: {tally.collected} collected, {tally.skipped} of them skipped"
    if not tally.passed:
        return f"none of {ran} passed{because}"
    if tally.ratio < min_pass_ratio:
        return f"{tally.passed} of {ran} passed, which is below the ratio of {min_pass_ratio:g}{because}"
    return ""


def _success(check: Check, tally: Tally | None) -> str:
    if tally is None:
        return "the command ended with exit code 0"
    if check.level is Level.COLLECT:
        return f"{tally.collected} tests collected"
    ran = tally.passed + tally.failed + tally.errors
    things = {"imports": "modules imported", "build": "findings as they should be"}.get(check.runner, "tests passed")
    return f"{tally.passed} of {ran} {things}" + (f", {tally.skipped} skipped" if tally.skipped else "")


def _tainted(files: tuple[str, ...]) -> str:
    shown = ", ".join(files[:3]) + (", …" if len(files) > 3 else "")
    return f"the Recipe changed or removed tracked files: {shown}"
