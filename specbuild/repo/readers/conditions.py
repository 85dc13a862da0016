"""Conditions of a setup.py on the interpreter and the platform, judged for Linux and Python 3."""

from __future__ import annotations

import ast
import re

_SYMBOLS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_PLATFORM = {"sys.platform": "linux", "platform.system()": "Linux", "os.name": "posix"}
OLDEST = (3, 7)
"""Older interpreters are not expected: comparisons with versions before it have one outcome."""


def holds(test: ast.expr) -> bool | None:
    """Whether a condition holds on Linux with Python 3; None if it depends on the minor or on something else."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = holds(operand)
            return None if inner is None else not inner
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compare(ast.unparse(left), _SYMBOLS.get(type(op), ""), right)
        case ast.Call(func=ast.Attribute(attr="startswith", value=inner), args=[ast.Constant(value=str() as prefix)]):
            return "linux".startswith(prefix) if ast.unparse(inner) == "sys.platform" else None
        case ast.Name(id="PY2" | "IS_WINDOWS" | "WINDOWS" | "is_windows"):
            return False
        case ast.Name(id="PY3"):
            return True
        case _:
            return None


def marker_of(test: ast.expr) -> str | None:
    """The environment marker that says the same as a comparison of `sys.version_info` with a tuple; None for others."""
    match test:
        case ast.Compare(left=left, ops=[op], comparators=[ast.Tuple(elts=elements)]):
            numbers = [e.value for e in elements if isinstance(e, ast.Constant) and isinstance(e.value, int)]
            symbol = _SYMBOLS.get(type(op), "") if ast.unparse(left).startswith("sys.version_info") else ""
            if symbol and len(numbers) == len(elements) and 2 <= len(numbers) <= 3:
                return f"python_version {symbol} '{numbers[0]}.{numbers[1]}'"
            return None
        case _:
            return None


def _compare(left: str, symbol: str, right: ast.expr) -> bool | None:
    if left in _PLATFORM and isinstance(right, ast.Constant) and isinstance(right.value, str):
        equal = right.value == _PLATFORM[left]
        return {"==": equal, "!=": not equal}.get(symbol)
    if not re.match(r"sys\.version_info(\[(0|:\d)\]|\.major)?$", left):
        return None
    nodes = right.elts if isinstance(right, ast.Tuple) else [right]
    numbers = tuple(n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, int))
    return _compare_version(symbol, numbers) if numbers and len(numbers) == len(nodes) else None


def _compare_version(symbol: str, numbers: tuple[int, ...]) -> bool | None:
    """The running version against one that is older than any expected; None for newer ones."""
    if numbers == (3,):
        return {"==": True, ">=": True, "<": False, "!=": False}.get(symbol)
    if numbers[:2] >= OLDEST:
        return None
    return {"<": False, "<=": False, "==": False, ">": True, ">=": True, "!=": True}.get(symbol)
