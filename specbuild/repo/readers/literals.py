"""What Python source says by literals: assignments and call arguments, read from the syntax tree and never run."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from specbuild.repo.readers.conditions import holds, marker_of
from specbuild.repo.readers.tree import clean

MAX_DEPTH = 60
MAX_ITEMS = 5_000


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


class Scope:
    """Names that a module binds to literals, in the order of its statements."""

    def __init__(self, module: ast.Module, read_file: FileReader) -> None:
        self._names: dict[str, Value] = {}
        self._sources: dict[str, ast.expr] = {}
        self._read_file = read_file
        self._budget = 20_000
        self._marker: str | None = ""
        """The marker that stands for the conditions around a statement; None if they cannot be told."""
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
                return self._names.get(name)
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
                    return list(_split(text, self.value(node.args[0], depth + 1) if node.args else None))
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
            if not (isinstance(inner, ast.Constant) and isinstance(inner.value, str)):
                continue
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
                if (added := self._conditional(self.value(value))) is not None:
                    self._names[name] = _joined(self._names.get(name), added)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr=method), args=args)) if args:
                self._mutate(target, method, args)
            case ast.If():
                self._branches(statement, depth)
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

    def _branches(self, statement: ast.If, depth: int) -> None:
        """Run the branch that is taken; of an unknown condition both, since each may define a name that is used."""
        verdict, marker = holds(statement.test), marker_of(statement.test)
        for taken, body in ((verdict is not False, statement.body), (verdict is not True, statement.orelse)):
            outer = self._marker
            if verdict is None:
                self._marker = marker if body is statement.body and outer == "" else None
            if taken:
                self._run(body, depth + 1)
            self._marker = outer

    def _conditional(self, value: Value) -> Value:
        """A value that is added under the present condition: as it is, with a marker for the interpreter's version, or
        None below a condition of which nothing is known, as what is optional there is seldom wanted."""
        if self._marker == "" or value is None:
            return value
        if self._marker is None:
            return None
        if isinstance(value, Text) and ";" not in value.value:
            return Text(f"{value.value} ; {self._marker}", value.line, value.file)
        if isinstance(value, list):
            return [self._conditional(item) for item in value]
        return value

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
        container, value = self.value(target), self._conditional(self.value(args[0]))
        if value is None:
            return
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


def _joined(left: Value, right: Value) -> Value:
    if isinstance(left, list) or isinstance(right, list):
        return ((left if isinstance(left, list) else []) + (right if isinstance(right, list) else []))[:MAX_ITEMS]
    if isinstance(left, dict) or isinstance(right, dict):
        return {**(left if isinstance(left, dict) else {}), **(right if isinstance(right, dict) else {})}
    if isinstance(left, Text) and isinstance(right, Text):
        return Text((left.value + right.value)[:100_000], left.line)
    return None


def _split(text: Text, separator: Value) -> list[Text]:
    parts = text.value.split(separator.value) if isinstance(separator, Text) and separator.value else None
    if parts is None:
        parts = text.value.split("\n") if "\n" in text.value.strip() else text.value.split()
    return [Text(part.strip(), text.line + n * ("\n" in text.value)) for n, part in enumerate(parts) if part.strip()]
