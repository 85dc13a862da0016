"""What an error looks like to the user, and the exit code that it ends with."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import click

from specbuild.cli.output import Output
from specbuild.errors import SandboxError, SpecBuildError

SCHEMA_VERSION = 1
INTERRUPTED = 130


class Interrupted(Exception):  # noqa: N818 - not an error
    """The user, or the system, asked to stop; everything has been cleaned up."""


def report_failure(error: BaseException, output: Output, arguments: Sequence[str]) -> int:
    """Tell the user what happened, on stderr or as the JSON object on stdout, and return the exit code."""
    error = _first_cause(error)
    if isinstance(error, click.UsageError) and not output.json:
        output.json = _asks_for_json(arguments)
    code, message, hint = _describe(error, output)
    if output.json:
        details = {"class": type(error).__name__, "message": message, "hint": hint, "exit_code": code}
        output.result_object({"schema_version": SCHEMA_VERSION, "outcome": "error", "error": details})
    if output.quiet < 2:
        _show(error, message, hint, output)
    return code


def _asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether --json was among options that could not be read to their end."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in own


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _first_cause(error: BaseException) -> BaseException:
    """Out of a group of errors, ours before surprises, since those say what to do."""
    leaves = list(_leaves(error))
    return next((leaf for leaf in leaves if isinstance(leaf, SpecBuildError)), leaves[0])


def _describe(error: BaseException, output: Output) -> tuple[int, str, str]:
    """Exit code, message and hint."""
    match error:
        case SpecBuildError():
            return error.exit_code, error.message, error.hint
        case click.ClickException():
            return error.exit_code, error.format_message().rstrip("."), _usage_hint(error)
        case click.Abort() | KeyboardInterrupt() | Interrupted():
            trouble = f"; cleaning up went wrong: {error.__cause__}" if isinstance(error.__cause__, Exception) else ""
            return INTERRUPTED, f"interrupted{trouble}", ""
        case _:
            message = f"SpecBuild has a bug here: {type(error).__name__}: {error}"
            return SandboxError.exit_code, message, _bug_hint(error, output)


def _usage_hint(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"see `{context.command_path} --help`" if context else ""


def _bug_hint(error: BaseException, output: Output) -> str:
    where = _write_traceback(error)
    if output.verbose:
        output.err.line("".join(traceback.format_exception(error)).rstrip())
    shown = "" if output.verbose else "run it again with -v to see where; "
    return f"{shown}please report it with {where or 'the traceback'}, or try another --base or --strategy meanwhile"


def _write_traceback(error: BaseException) -> Path | None:
    """Keep the traceback in the user's log folder; None where that cannot be written."""
    try:
        import platformdirs

        folder = platformdirs.user_log_path("specbuild", ensure_exists=True)
        path = folder / "last-bug.txt"
        path.write_text("".join(traceback.format_exception(error)), encoding="utf-8", errors="backslashreplace")
    except (OSError, ImportError):  # an installation without its dependencies is such a bug
        return None
    return path


def _show(error: BaseException, message: str, hint: str, output: Output) -> None:
    err = output.err
    if isinstance(error, click.UsageError) and error.ctx is not None:
        err.line(error.ctx.get_usage())
    err.line(f"{err.paint('error', 'red', bold=True)}: {message}")
    if hint:
        err.line(f"{err.paint('hint', 'cyan')}: {hint}")
