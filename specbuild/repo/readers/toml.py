"""TOML documents that know where their keys stand; tomllib itself keeps no line numbers."""

from __future__ import annotations

import re
import tomllib
from typing import Any, cast

from specbuild.repo.facts import Evidence
from specbuild.repo.readers.tree import Tree

Table = dict[str, Any]

_HEADER = re.compile(r"\s*\[\[?\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")


class Toml:
    """A parsed file with look-ups that accept any type on the way, and evidence for keys and items."""

    def __init__(self, tree: Tree, file: str, data: Table) -> None:
        self.file = file
        self.data = data
        self._tree = tree
        self._lines = tree.lines(file)
        self._keys = _key_lines(self._lines)

    def get(self, *path: str) -> Any:
        """The value at a path of keys; None where a step is missing or no table."""
        value: Any = self.data
        for key in path:
            value = cast("Table", value).get(key) if isinstance(value, dict) else None
        return value

    def table(self, *path: str) -> Table:
        """The table at a path; empty if there is none."""
        value = self.get(*path)
        return cast("Table", value) if isinstance(value, dict) else {}

    def string(self, *path: str) -> str:
        """The string at a path; empty if there is none."""
        value = self.get(*path)
        return value if isinstance(value, str) else ""

    def strings(self, *path: str) -> list[str]:
        """The strings of an array at a path (or the one string there); empty if there is none."""
        return strings_of(self.get(*path))

    def array(self, *path: str) -> list[object]:
        """The array at a path; empty if there is none."""
        return list_of(self.get(*path))

    def evidence(self, *path: str, item: str = "") -> Evidence:
        """Where a key stands, or an item of its value."""
        start = next((self._keys[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self._keys), None)
        if start is None:
            return self._tree.evidence(self.file, self._find(item, 1) if item else None)
        return self._tree.evidence(self.file, (self._find(item, start) if item else None) or start)

    def _find(self, item: str, start: int) -> int | None:
        """The first line at or after `start` that holds the item, as far as quoting leaves it recognisable."""
        needle = re.split(r"""["'\\]""", item, maxsplit=1)[0] or item
        for number in range(start, len(self._lines) + 1):
            if needle in self._lines[number - 1]:
                return number
        return None


def load(tree: Tree, file: str) -> Toml | None:
    """A TOML file of the tree; None, with a warning when it is there but malformed."""
    text = tree.text(file)
    if text is None:
        return None
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        tree.warn(file, f"is not valid TOML: {error}")
        return None
    return Toml(tree, file, data)


def list_of(value: object) -> list[object]:
    """The value if it is an array, else nothing."""
    return cast("list[object]", value) if isinstance(value, list) else []


def table_of(value: object) -> Table:
    """The value if it is a table, else an empty one."""
    return cast("Table", value) if isinstance(value, dict) else {}


def strings_of(value: object) -> list[str]:
    """The strings of an array, or the one string."""
    if isinstance(value, str):
        return [value]
    return [item for item in list_of(value) if isinstance(item, str)]


def _key_lines(lines: tuple[str, ...]) -> dict[tuple[str, ...], int]:
    """Full key path → first line. Text inside multi-line strings may add keys that do not exist: harmless."""
    found: dict[tuple[str, ...], int] = {}
    prefix: tuple[str, ...] = ()
    for number, line in enumerate(lines, start=1):
        if len(line) > 10_000:
            continue
        if header := _HEADER.match(line) if line.lstrip().startswith("[") else None:
            prefix = _split(header[1])
            found.setdefault(prefix, number)
        elif pair := _KEY.match(line):
            found.setdefault(prefix + _split(pair[1]), number)
    return found


def _split(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in re.findall(r'"[^"]*"|\'[^\']*\'|[^.]+', dotted))
