"""The test files of a tree, read within bounds and reduced to what matters of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from posixpath import basename, dirname

from specbuild.repo.readers.layout import TEST_FOLDERS, test_files
from specbuild.repo.readers.modules import top_imports
from specbuild.repo.readers.plugin_uses import Uses, uses
from specbuild.repo.readers.python_source import parse_module
from specbuild.repo.readers.tree import Tree

MAX_FILES = 400
"""Test files that are parsed, spread evenly over all; files named conftest.py come besides. One takes some
milliseconds."""
MAX_FILE_BYTES = 256 * 1024
MAX_BYTES = 4 * 1024 * 1024
"""Of all files together: some seconds."""

_ASIDE = frozenset({"data", "testdata", "test_data", "fixtures", "samples", "examples", "docs", "templates", "vendor"})


@dataclass(frozen=True, slots=True)
class Source:
    """What is kept of one file: syntax trees are a hundred times as large as their text."""

    file: str
    uses: Uses
    imports: tuple[tuple[str, int], ...]
    """Unguarded absolute names at its top, and their lines."""
    mentioned: frozenset[str]
    """All parts of all names that it imports anywhere."""


def sources(tree: Tree) -> Iterator[Source]:
    """Files named conftest.py first, for every test needs what they import; then the tests; then the helpers beside
    them that one of these imports."""
    tests = test_files(tree)
    step = max(1, -(-len(tests) // MAX_FILES))
    named = [path for path in tree.files if basename(path) == "conftest.py" and not _aside(path)]
    chosen = dict.fromkeys((*named[:MAX_FILES], *tests[::step]))
    mentioned = {"__init__"}
    left = MAX_BYTES
    for file in (*chosen, *_helpers(tree, {*named, *tests})):
        if file not in chosen and basename(file).removesuffix(".py") not in mentioned:
            continue
        size = len(tree.text(file) or "")
        if size <= min(MAX_FILE_BYTES, left) and (module := parse_module(tree, file, quiet=True)):
            left -= size
            source = Source(file, uses(module), tuple(top_imports(module)), frozenset(_mentioned(module)))
            mentioned |= source.mentioned
            yield source


def _helpers(tree: Tree, tests: set[str]) -> list[str]:
    folders = {dirname(path) for path in tests} - {""}
    others = (path for path in tree.files if path.endswith(".py") and path not in tests and not _aside(path))
    return [path for path in others if dirname(path) in folders or TEST_FOLDERS.match(path.split("/")[0])]


def _aside(path: str) -> bool:
    return bool(_ASIDE.intersection(path.split("/")[:-1]))


def _mentioned(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            from_name = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            yield from (part for name in (*names, from_name) for part in name.split("."))
