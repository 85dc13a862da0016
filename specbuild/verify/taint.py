"""Finds the tracked files that a Recipe has changed or removed: such an environment is not one of this Repo."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from specbuild.errors import SandboxError
from specbuild.recipe import SOURCE_DIR, Step, StepKind
from specbuild.sandbox.contract import Command, Completed, End, Inside

FILES_A_BATCH = 5_000
"""Tracked files compared by one command: some 600 KB of its input."""

_SECONDS_A_BATCH = 300.0
_NAMES_KEPT = 50
_GONE = 93
_SUM_MISSING = 94
_DIFFERS = 95

# The exit status decides; the names are for people. A file that is gone, or cannot be read any more, differs too.
_COMPARE = f"""
cd {SOURCE_DIR} 2>/dev/null || exit {_GONE}
command -v sha256sum >/dev/null || exit {_SUM_MISSING}
export LC_ALL=C
found=$(sha256sum -c - 2>/dev/null) && exit 0
printf '%s\\n' "$found" | grep -v ': OK$' | head -n {_NAMES_KEPT}
exit {_DIFFERS}
"""


@dataclass(frozen=True, slots=True)
class Taint:
    """What was found of the source tree."""

    files: tuple[str, ...]
    """Tracked files that were changed or removed, sorted, at most 50."""
    problem: str = ""
    """Why the comparison itself had no result, in words."""


async def find_taint(
    sandbox: Inside, tracked: Mapping[str, str], command: Callable[[Step], Command], *, report: str | None = None
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
        found += (name for line in lines if (name := _failed_name(line)) in tracked)
        if problem := _problem(completed, named=bool(found)):
            return Taint(files=tuple(sorted(found)[:_NAMES_KEPT]), problem=problem)
        if len(found) >= _NAMES_KEPT:
            break
    return Taint(files=tuple(sorted(found)[:_NAMES_KEPT]))


async def _remove(sandbox: Inside, command: Callable[[Step], Command], step: Step, path: str) -> None:
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


def _problem(completed: Completed, *, named: bool) -> str:
    """What cannot be said by names of files; empty if they say it all."""
    match completed.end, completed.exit_code:
        case End.EXITED, 0:
            return ""
        case End.EXITED, code if code == _DIFFERS:
            return "" if named else "the Recipe changed tracked files whose names cannot be shown"
        case End.EXITED, code if code == _GONE:
            return f"the Recipe removed the source tree {SOURCE_DIR}"
        case End.EXITED, code if code == _SUM_MISSING:
            raise SandboxError("the base has no sha256sum to compare tracked files with", hint="install coreutils")
        case end, code:
            return f"the tracked files could not be compared ({end}, exit code {code})"


def _checksum_line(path: str, digest: str) -> bytes:
    """One line as sha256sum writes it: a name with a line end or a backslash is escaped and the line marked."""
    name = path.encode("utf-8", "surrogateescape")
    escaped = name.replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
    mark = b"\\" if escaped != name else b""
    return mark + digest.encode() + b"  " + escaped + b"\n"


def _failed_name(line: str) -> str:
    """The path in a line such as `src/a.py: FAILED` or `src/b.py: FAILED open or read`."""
    for ending in (": FAILED", ": FAILED open or read"):
        if line.endswith(ending):
            name = line.removesuffix(ending)
            return name[1:].replace("\\n", "\n").replace("\\\\", "\\") if name.startswith("\\") else name
    return ""
