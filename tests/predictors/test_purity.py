from __future__ import annotations

import ast
from pathlib import Path

import pytest

import specbuild.predictors

MODULES = sorted(Path(specbuild.predictors.__file__).parent.glob("*.py"))
PURE = {"__future__", "collections", "dataclasses", "functools", "re", "string", "sys", "typing", "specbuild"}


def imported(module: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_readers_of_output_do_no_input_or_output(module: Path) -> None:
    """What reads lines imports nothing that opens files, sockets or processes, or asks a clock."""
    assert imported(module) <= PURE
    assert "open(" not in module.read_text()
