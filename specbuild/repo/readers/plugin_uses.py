"""What one test file uses of pytest's plugins: fixtures, marks, and plugins that it names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from specbuild.repo.readers.pytest_plugins import FIXTURES, MARKERS

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Uses:
    """Names that are known to belong to plugins, and the lines where they stand first."""

    fixtures: dict[str, int] = field(default_factory=dict[str, int])
    marks: dict[str, int] = field(default_factory=dict[str, int])
    plugins: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """What `pytest_plugins` names."""
    defined: set[str] = field(default_factory=set[str])
    """Names of such fixtures that this file defines itself."""
    wrapped: set[str] = field(default_factory=set[str])
    """Those of them that are made from the plugin's own."""


def uses(module: ast.Module) -> Uses:
    """What the file uses; not what stands in strings that it runs elsewhere."""
    found = Uses()
    for node in ast.walk(module):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                _function(node, found)
            case ast.Attribute(attr=name, value=ast.Attribute(attr="mark")) if name in MARKERS:
                found.marks.setdefault(name, node.lineno)
            case ast.Assign(targets=[ast.Name(id="pytest_plugins")], value=value):
                found.plugins += [(text, node.lineno) for text in _texts(value)]
            case _:
                pass
    return found


def _function(node: _Function, found: Uses) -> None:
    if node.name in FIXTURES:
        found.defined.add(node.name)
    if not (node.name.startswith("test") or any(_names_fixture(d) for d in node.decorator_list)):
        return
    # Arguments that `parametrize` fills in are no fixtures, nor are those of patches.
    filled = {part.strip() for d in node.decorator_list for text in _texts(d) for part in text.split(",")}
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        if argument.arg in FIXTURES and argument.arg not in filled:
            found.fixtures.setdefault(argument.arg, argument.lineno)
            if argument.arg == node.name:  # it wraps the plugin's fixture of its own name
                found.wrapped.add(node.name)


def _names_fixture(decorator: ast.expr) -> bool:
    inner = decorator.func if isinstance(decorator, ast.Call) else decorator
    match inner:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name.endswith("fixture")
        case _:
            return False


def _texts(node: ast.expr) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value
