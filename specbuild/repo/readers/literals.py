"""What Python source says by literals: assignments and call arguments, read from the syntax tree and never run."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from specbuild.repo.readers.tree import Tree, clean

MAX_DEPTH = 60
MAX_ITEMS = 5_000
MAX_MENDED_LINES = 60


@dataclass(frozen=True, slots=True)
class Text:
    """A string of the source, and where it stands."""

    value: str
    line: int
    file: str = ""
    """Of another file, if it was read from one."""


Value = Text | bool | list["Value"] | dict[str, "Value"] | None
"""What can be known of an expression; None for all else."""

FileReader = Callable[[str], list[Text]]
"""Lines of a requirements-like file by its path in the tree."""


def parse_module(tree: Tree, file: str) -> ast.Module | None:
    """The syntax tree of a Python file, with Python 2's commonest forms mended; None with a warning otherwise."""
    text = tree.text(file)
    if text is None:
        return None
    lines = text.split("\n")
    for _ in range(MAX_MENDED_LINES):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse("\n".join(lines))
        except SyntaxError as error:
            if not _mend(lines, error):
                tree.warn(file, f"is not valid Python: {error.msg}", error.lineno)
                return None
        except (ValueError, RecursionError, MemoryError) as error:
            tree.warn(file, f"is not valid Python: {error}")
            return None
    tree.warn(file, "is not valid Python 3, nor near it")
    return None


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


class Scope:
    """Names that a module binds to literals, in the order of its statements."""

    def __init__(self, module: ast.Module, read_file: FileReader) -> None:
        self._names: dict[str, Value] = {}
        self._sources: dict[str, ast.expr] = {}
        self._read_file = read_file
        self._budget = 20_000
        self._run(module.body, 0)

    def value(self, node: ast.expr | None, depth: int = 0) -> Value:
        """What an expression evaluates to, as far as literals, names, concatenation and requirement files tell."""
        self._budget -= 1
        if node is None or depth > MAX_DEPTH or self._budget < 0:
            return None
        match node:
            case ast.Constant(value=str() as text):
                return Text(clean(text), node.lineno)
            case ast.Constant(value=bool() as flag):
                return flag
            case ast.Name(id=name):
                return self._names[name] if name in self._names else None
            case ast.List() | ast.Tuple() | ast.Set():
                return self._list(node.elts, depth)
            case ast.Dict():
                return self._dict(node, depth)
            case ast.BinOp(op=ast.Add() | ast.BitOr()):
                return _joined(self.value(node.left, depth + 1), self.value(node.right, depth + 1))
            case ast.IfExp():
                body, other = self.value(node.body, depth + 1), self.value(node.orelse, depth + 1)
                verdict = holds(node.test)
                return other if verdict is False or (verdict is None and body in (None, [])) else body
            case ast.Subscript():
                return self._item(node, depth)
            case ast.Call():
                return self._call(node, depth)
            case ast.ListComp() | ast.GeneratorExp():
                return self._comprehension(node, depth)
            case ast.Starred():
                return self.value(node.value, depth + 1)
            case _:
                return self._from_files(node)

    def texts(self, node: ast.expr | None) -> list[Text]:
        """All strings of a value that is a list, or one string."""
        return texts_of(self.value(node))

    def _list(self, nodes: list[ast.expr], depth: int) -> Value:
        result: list[Value] = []
        for node in nodes[:MAX_ITEMS]:
            value = self.value(node, depth + 1)
            result += value if isinstance(node, ast.Starred) and isinstance(value, list) else [value]
        return result

    def _dict(self, node: ast.Dict, depth: int) -> Value:
        result: dict[str, Value] = {}
        for key, item in zip(node.keys[:MAX_ITEMS], node.values, strict=False):
            value = self.value(item, depth + 1)
            if key is None:
                result.update(value if isinstance(value, dict) else {})
            elif isinstance(name := self.value(key, depth + 1), Text):
                result[name.value] = value
        return result

    def _item(self, node: ast.Subscript, depth: int) -> Value:
        container, key = self.value(node.value, depth + 1), self.value(node.slice, depth + 1)
        if isinstance(container, dict) and isinstance(key, Text):
            return container.get(key.value)
        return None

    def _call(self, node: ast.Call, depth: int) -> Value:
        match node.func:
            case ast.Name(id="dict"):
                base = self.value(node.args[0], depth + 1) if node.args else {}
                result = dict(base) if isinstance(base, dict) else {}
                for keyword in node.keywords:
                    value = self.value(keyword.value, depth + 1)
                    result.update({keyword.arg: value} if keyword.arg else value if isinstance(value, dict) else {})
                return result
            case ast.Name(id="list" | "tuple" | "set" | "sorted" | "frozenset") if node.args:
                return self.value(node.args[0], depth + 1)
            case ast.Attribute(attr="split" | "splitlines", value=inner):
                text = self.value(inner, depth + 1)
                if isinstance(text, Text):
                    return _split(text, self.value(node.args[0], depth + 1) if node.args else None)
                return text if isinstance(text, list) else self._from_files(node)
            case ast.Attribute(attr="strip" | "rstrip" | "lstrip" | "copy", value=inner):
                return self.value(inner, depth + 1)
            case ast.Attribute(attr="format" | "join"):
                return self._from_files(node)
            case _:
                return self._from_files(node)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp, depth: int) -> Value:
        source = self.value(node.generators[0].iter, depth + 1)
        plain = isinstance(node.elt, ast.Name | ast.Call | ast.Subscript | ast.Attribute)
        return source if plain and isinstance(source, list) else self._from_files(node)

    def _from_files(self, node: ast.expr, depth: int = 0) -> Value:
        """The lines of a requirements-like file that an expression names, directly or through names it uses."""
        if depth > 3:
            return None
        for inner in ast.walk(node):
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                if lines := self._read_file(clean(inner.value)):
                    return list(lines)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and inner.id in self._sources:
                source = self._sources[inner.id]
                if source is not node and (value := self._from_files(source, depth + 1)) is not None:
                    return value
        return None

    def _run(self, body: list[ast.stmt], depth: int) -> None:
        if depth > MAX_DEPTH:
            return
        for statement in body:
            self._statement(statement, depth)

    def _statement(self, statement: ast.stmt, depth: int) -> None:
        match statement:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assign(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, value)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                self._names[name] = _joined(self._names.get(name), self.value(value))
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr=method), args=args)) if args:
                self._mutate(target, method, args)
            case ast.If(test=test):
                verdict = holds(test)
                if verdict is not False:
                    self._run(statement.body, depth + 1)
                if verdict is not True:
                    self._run(statement.orelse, depth + 1)
            case ast.With(items=items):
                for item in items:
                    if isinstance(item.optional_vars, ast.Name):
                        self._sources[item.optional_vars.id] = item.context_expr
                self._run(statement.body, depth + 1)
            case ast.For(target=ast.Name(id=name), iter=iterated):
                self._sources[name] = iterated
                self._run(statement.body, depth + 1)
            case ast.Try():
                for part in (statement.body, statement.orelse, statement.finalbody):
                    self._run(part, depth + 1)
            case ast.FunctionDef():
                # The bodies of functions bind names of their own, but a setup.py uses few: one scope serves.
                self._sources.setdefault(statement.name, ast.Constant(value=""))
                self._run([s for s in statement.body if not isinstance(s, ast.Return)], depth + 1)
            case _:
                pass

    def _assign(self, target: ast.expr, node: ast.expr) -> None:
        match target:
            case ast.Name(id=name):
                self._sources[name] = node
                self._names[name] = self.value(node)
            case ast.Subscript(value=ast.Name(id=name), slice=key):
                container, key_value = self._names.get(name), self.value(key)
                if isinstance(container, dict) and isinstance(key_value, Text):
                    container[key_value.value] = self.value(node)
            case _:
                pass

    def _mutate(self, target: ast.expr, method: str, args: list[ast.expr]) -> None:
        container, value = self.value(target), self.value(args[0])
        if isinstance(container, list) and len(container) < MAX_ITEMS:
            if method == "append":
                container.append(value)
            elif method == "extend" and isinstance(value, list) and value is not container:
                container.extend(value[:MAX_ITEMS])
        elif isinstance(container, dict) and method == "update" and isinstance(value, dict):
            container.update(value)


def texts_of(value: Value) -> list[Text]:
    """The strings of a list, or the one string, lines of a multi-line string apart."""
    if isinstance(value, Text):
        return _split(value, None) if "\n" in value.value else [value]
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, Text)]


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


def holds(test: ast.expr) -> bool | None:
    """Whether a condition on the interpreter or platform holds on Linux with Python 3; None if it is about something else."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = holds(operand)
            return None if inner is None else not inner
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compare(ast.unparse(left), op, right)
        case ast.Call(func=ast.Attribute(attr="startswith", value=inner), args=[ast.Constant(value=str() as prefix)]):
            return "linux".startswith(prefix) if ast.unparse(inner) == "sys.platform" else None
        case ast.Name(id="PY2" | "IS_WINDOWS" | "WINDOWS" | "is_windows"):
            return False
        case ast.Name(id="PY3"):
            return True
        case _:
            return None


def _compare(left: str, op: ast.cmpop, right: ast.expr) -> bool | None:
    try:
        value: object = ast.literal_eval(right)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if left in ("sys.platform", "platform.system()", "os.name") and isinstance(value, str):
        actual = {"sys.platform": "linux", "platform.system()": "Linux", "os.name": "posix"}[left]
        return {ast.Eq: value == actual, ast.NotEq: value != actual}.get(type(op))
    if not left.startswith("sys.version_info"):
        return None
    return _old_version(op, value)


def _old_version(op: ast.cmpop, value: object) -> bool | None:
    """A comparison of the running version with one that no supported Python has (3.6 or older)."""
    numbers = (value,) if isinstance(value, int) else value
    if not isinstance(numbers, tuple) or not all(isinstance(n, int) for n in numbers) or not numbers:
        return None
    if numbers > (3,) and numbers[:2] > (3, 6):
        return None
    # `sys.version_info[0] == 3` and `>= (3,)` hold; `< (3,)` and `== 2` do not.
    if numbers == (3,):
        return {ast.Eq: True, ast.GtE: True, ast.Lt: False, ast.NotEq: False}.get(type(op))
    return {ast.Lt: False, ast.LtE: False, ast.Eq: False, ast.Gt: True, ast.GtE: True, ast.NotEq: True}.get(type(op))


def _joined(left: Value, right: Value) -> Value:
    if isinstance(left, list) or isinstance(right, list):
        return ((left if isinstance(left, list) else []) + (right if isinstance(right, list) else []))[:MAX_ITEMS]
    if isinstance(left, dict) or isinstance(right, dict):
        return {**(left if isinstance(left, dict) else {}), **(right if isinstance(right, dict) else {})}
    if isinstance(left, Text) and isinstance(right, Text):
        return Text((left.value + right.value)[:100_000], left.line)
    return None


def _split(text: Text, separator: Value) -> list[Value]:  # type: ignore[misc]
    parts = text.value.split(separator.value) if isinstance(separator, Text) and separator.value else None
    if parts is None:
        parts = text.value.split("\n") if "\n" in text.value.strip() else text.value.split()
    return [Text(part.strip(), text.line + n * ("\n" in text.value)) for n, part in enumerate(parts) if part.strip()]
