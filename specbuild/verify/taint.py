"""Finds the tracked files that a Recipe has changed or removed: such an environment is not one of this Repo."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from specbuild.errors import SandboxError
from specbuild.recipe import SOURCE_DIR, Step, StepKind
from specbuild.sandbox.contract import Command, Completed, End, Sandbox

FILES_A_BATCH = 5_000
"""Tracked files compared by one command: some 600 KB of its input."""

_SECONDS_A_BATCH = 600.0
_NAMES_KEPT = 50
_GONE = 93
_SUM_MISSING = 94

# `sha256sum` says so of each file that differs; a file that is gone, or is not a regular file any more, differs too.
_COMPARE = f"""
cd {SOURCE_DIR} 2>/dev/null || exit {_GONE}
command -v sha256sum >/dev/null || exit {_SUM_MISSING}
LC_ALL=C sha256sum --check --quiet - 2>/dev/null | head -n {_NAMES_KEPT}
"""


@dataclass(frozen=True, slots=True)
class Taint:
    """What was found of the source tree."""

    files: tuple[str, ...]
    """Tracked files that were changed or removed, sorted, at most 50."""
    problem: str = ""
    """Why the comparison itself had no result, in words."""


async def find_taint(
    sandbox: Sandbox, tracked: Mapping[str, str], command: Callable[[Step], Command], *, report: str | None = None
) -> Taint:
    """Compare the tracked files (relative path → sha256) with those in `SOURCE_DIR`, and remove an old `report`.

    Raises SandboxError if the base has no `sha256sum`.
    """
    step = Step(kind=StepKind.TEST, run=_COMPARE, cwd="/", network=False, timeout=_SECONDS_A_BATCH)
    found: list[str] = []
    if report is not None:
        await _remove(sandbox, command, step, report)
    for batch in _batches(sorted(tracked.items())):
        lines: list[str] = []
        stdin = b"".join(_checksum_line(path, digest) for path, digest in batch)
        completed = await sandbox.run(replace(command(step), stdin=stdin), on_line=lines.append)
        if problem := _problem(completed):
            return Taint(files=tuple(found), problem=problem)
        found += (name for line in lines if (name := _failed_name(line)))
        if len(found) >= _NAMES_KEPT:
            break
    return Taint(files=tuple(sorted(found)[:_NAMES_KEPT]))


async def _remove(sandbox: Sandbox, command: Callable[[Step], Command], step: Step, path: str) -> None:
    """A report that was there before must not be taken for the one of the coming run."""
    remove = step.model_copy(update={"run": 'rm -rf -- "$1"'})
    given = command(remove)
    completed = await sandbox.run(replace(given, argv=(*given.argv, "sh", path)))
    if not completed.ok:
        raise SandboxError(f"an old report could not be removed from the sandbox: {completed.tail.strip()[-300:]}")


def _batches(items: list[tuple[str, str]]) -> Iterator[Iterable[tuple[str, str]]]:
    files = iter(items)
    while batch := list(itertools.islice(files, FILES_A_BATCH)):
        yield batch


def _problem(completed: Completed) -> str:
    if completed.end is End.EXITED and completed.exit_code == _GONE:
        return f"the Recipe removed the source tree {SOURCE_DIR}"
    if completed.end is End.EXITED and completed.exit_code == _SUM_MISSING:
        raise SandboxError("the base has no sha256sum, so tracked files cannot be compared", hint="install coreutils")
    if not completed.ok:
        return f"the tracked files could not be compared ({completed.end}, exit code {completed.exit_code})"
    return ""


def _checksum_line(path: str, digest: str) -> bytes:
    """One line as sha256sum writes it: a name with a line end or a backslash is escaped and the line marked."""
    name = path.encode("utf-8", "surrogateescape")
    escaped = name.replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
    mark = b"\\" if escaped != name else b""
    return mark + digest.encode() + b"  " + escaped + b"\n"


def _failed_name(line: str) -> str | None:
    """The path in a line such as `src/a.py: FAILED` or `src/b.py: FAILED open or read`."""
    for ending in (": FAILED", ": FAILED open or read"):
        if line.endswith(ending):
            name = line.removesuffix(ending)
            return name[1:].replace("\\n", "\n").replace("\\\\", "\\") if name.startswith("\\") else name
    return None
