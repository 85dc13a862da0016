"""Reads the reports of our own programs (`specbuild.verify.programs`), which are JSON of one shape."""

from __future__ import annotations

from pydantic import Field, NonNegativeInt, ValidationError

from specbuild.model import Frozen
from specbuild.verify.tally import NAMES_KEPT, ReportError, Tally, one_line


class ProgramReport(Frozen):
    """What a program leaves when it came to its end; one that was cut off leaves nothing."""

    schema_version: int = Field(ge=1, le=1)
    passed: NonNegativeInt = 0
    failed: NonNegativeInt = 0
    errors: NonNegativeInt = 0
    skipped: NonNegativeInt = 0
    expected_failures: NonNegativeInt = 0
    listed: NonNegativeInt = 0
    failing: tuple[str, ...] = ()
    blocking: tuple[str, ...] = ()
    first_message: str = ""


def read_program_report(data: bytes) -> Tally:
    """The counts of a program's report.

    Raises ReportError if it is not one.
    """
    try:
        report = ProgramReport.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise ReportError(f"the report is not one of ours ({first['msg']})") from error
    return Tally(
        passed=report.passed,
        failed=report.failed,
        errors=report.errors,
        skipped=report.skipped,
        expected_failures=report.expected_failures,
        listed=report.listed,
        failing=report.failing[:NAMES_KEPT],
        blocking=report.blocking[:NAMES_KEPT],
        first_message=one_line(report.first_message),
    )
