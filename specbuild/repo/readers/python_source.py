"""Python source as a syntax tree, also where it was written for Python 2."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from specbuild.repo.readers.tree import Tree

MAX_MENDED_LINES = 60
MAX_MENDED_QUIETLY = 4


def parse_module(tree: Tree, file: str, *, quiet: bool = False) -> ast.Module | None:
    """The syntax tree of a Python file, with Python 2's commonest forms mended; None otherwise, with a warning unless
    `quiet`: of many files, as those of tests, some are broken on purpose, and mending takes too long."""
    warn = _silent if quiet else tree.warn
    text = tree.text(file)
    if text is None:
        return None
    lines = text.split("\n")
    for _ in range(MAX_MENDED_QUIETLY if quiet else MAX_MENDED_LINES):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse("\n".join(lines))
        except SyntaxError as error:
            if not _mend(lines, error):
                warn(file, f"is not valid Python: {error.msg}", error.lineno)
                return None
        except (ValueError, RecursionError, MemoryError) as error:
            warn(file, f"is not valid Python: {error}")
            return None
    warn(file, "is not valid Python 3, nor near it")
    return None


def _silent(file: str, message: str, line: int | None = None) -> None:
    """Say nothing."""


def _mend(lines: list[str], error: SyntaxError) -> bool:
    """Rewrite the line at fault from Python 2 to 3, or blank a print or exec statement; False if that can't help."""
    number = error.lineno or 0
    if not 0 < number <= len(lines):
        return False
    line = lines[number - 1]
    mended = re.sub(r"^(\s*except\s+[^,:]+?)\s*,\s*(\w+)\s*:", r"\1 as \2:", line)
    mended = re.sub(r"(?<![\w.])0([0-7]+)\b", r"0o\1", mended)
    mended = re.sub(r"(?<!\w)[uU][rR](?=[\"'])", "r", mended)
    if re.search(r"(^|[\s:;])(print|exec|raise)\b", line):
        mended = re.sub(r"(^|[\s:;])(print|exec|raise)\b.*$", r"\1pass", line)
    lines[number - 1] = mended
    return mended != line


def calls(module: ast.AST, *names: str) -> Iterator[ast.Call]:
    """Calls of functions by the last part of their names (`setup` finds `setuptools.setup` too)."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and callee(node) in names:
            yield node


def callee(node: ast.Call) -> str:
    """The last part of a called name; empty when it has none."""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
