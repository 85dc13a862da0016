"""requirements*.txt and requirements/ folders, as pip reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from posixpath import basename, dirname, join, normpath

from specbuild.repo.facts import Evidence, Lock
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.requirement import is_pinned, strip_comment
from specbuild.repo.readers.tree import Tree

MAX_FILES = 60
MAX_NESTING = 10
_NAMED = re.compile(r"(^|/)([\w.-]*require?ments?[\w.-]*|[\w.-]*deps|constraints[\w.-]*)\.(txt|in|pip)$", re.IGNORECASE)
_ASIDE = re.compile(r"doc|lint|typ|mypy|build|bench|release|style|format|constraint|wheel|pre-?commit", re.IGNORECASE)
_URL = re.compile(r"^(git|hg|svn|bzr)\+|^https?://|^file:")


@dataclass(frozen=True, slots=True)
class Entry:
    """One requirement of a file."""

    requirement: str
    evidence: Evidence
    hashed: bool = False


def read(tree: Tree, found: Findings) -> None:
    """Every requirements file near the root, and which are locks: those for tests first, those of side jobs last."""
    locks: list[tuple[bool, bool, int, Lock]] = []
    for file in requirement_files(tree):
        entries = list(entries_of(tree, file))
        for entry in flattened(tree, file):
            found.add_dependency(entry.requirement, f"file:{file}", entry.evidence)
        if _is_lock(tree, file, entries):
            aside = _ASIDE.search(file) is not None
            locks.append(
                (
                    aside,
                    "test" not in file.lower(),
                    -len(entries),
                    Lock(kind="requirements", evidence=tree.evidence(file, 1)),
                )
            )
    found.locks.extend(lock for *_, lock in sorted(locks, key=lambda item: item[:3]))


def requirement_files(tree: Tree) -> list[str]:
    """Files that are named like requirements, at the root, in a requirements folder, or one folder down."""
    found: list[str] = []
    for path in tree.files:
        folders = path.lower().split("/")[:-1]
        if len(folders) > 3 or not path.lower().endswith((".txt", ".in", ".pip")):
            continue
        in_folder = any(re.fullmatch(r"(pip[-_]?)?require?ments?|reqs?|requires|pip-deps", f) for f in folders)
        if in_folder or (len(folders) <= 1 and _NAMED.search(path) and not path.endswith(".egg-info/requires.txt")):
            found.append(path)
    return found[:MAX_FILES]


def entries_of(tree: Tree, file: str) -> Iterator[Entry]:
    """The requirements of one file, `-r` not followed."""
    for number, line in logical_lines(tree, file):
        if requirement := requirement_of(line):
            yield Entry(requirement, tree.evidence(file, number), hashed="--hash" in line)


def flattened(tree: Tree, file: str) -> Iterator[Entry]:
    """The requirements of a file and, in their place, of those that it includes with `-r`, each file once."""
    return _flattened(tree, file, {file}, 0)


def _flattened(tree: Tree, file: str, seen: set[str], depth: int) -> Iterator[Entry]:
    for number, line in logical_lines(tree, file):
        include = re.match(r"(?:-r|--requirement)[\s=]*(\S+)", line)
        if include and depth < MAX_NESTING:
            target = normpath(join(dirname(file), include[1]))
            if tree.has(target) and target not in seen:
                seen.add(target)
                yield from _flattened(tree, target, seen, depth + 1)
        elif requirement := requirement_of(line):
            yield Entry(requirement, tree.evidence(file, number), hashed="--hash" in line)


def logical_lines(tree: Tree, file: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, continuations joined, each with the number of its first physical line."""
    pending, start = "", 0
    for number, raw in enumerate(tree.lines(file), start=1):
        if not pending:
            start = number
        if raw.endswith("\\") and not raw.lstrip().startswith("#"):
            pending += strip_comment(raw[:-1]) + " "
            continue
        line, pending = (pending + strip_comment(raw)).strip(), ""
        if line:
            yield start, line
    if pending.strip():
        yield start, pending.strip()


def requirement_of(line: str) -> str:
    """The requirement on a logical line, without pip's options; empty for lines that are options only."""
    editable = re.match(r"(?:-e|--editable)[\s=]*(.+)", line)
    if editable:
        return _from_url(editable[1].strip()) if _URL.match(editable[1].strip()) else ""
    if line.startswith("-"):
        return ""
    line = re.split(r"\s+--?[a-z][a-z-]*(?:[=\s]|$)", line, maxsplit=1)[0].strip()
    if _URL.match(line):
        return _from_url(line)
    return line if re.match(r"[A-Za-z0-9]", line) and not line.startswith(("./", "../", "/")) else ""


def _from_url(url: str) -> str:
    """A bare URL in PEP 508 form where it tells its name, as it is where it does not."""
    egg = re.search(r"#(?:.*&)?egg=([A-Za-z0-9._-]+(?:\[[^\]]*\])?)", url)
    if egg:
        return f"{egg[1]} @ {url.split('#')[0]}"
    return url


def _is_lock(tree: Tree, file: str, entries: list[Entry]) -> bool:
    """Whether a file pins a whole set: every line pinned, and either hashed, compiled by a tool, or of some length."""
    if not entries or not all(is_pinned(entry.requirement) or entry.hashed for entry in entries):
        return False
    if any(re.match(r"(-r|--requirement)\b", line) for _, line in logical_lines(tree, file)):
        return False
    head = "\n".join(tree.lines(file)[:12])
    compiled = re.search(r"autogenerated by|generated by|pip-compile|uv pip compile|uv export|poetry export", head)
    return (
        bool(compiled)
        or all(entry.hashed for entry in entries)
        or (len(entries) >= 4 and "constraints" not in basename(file))
    )
