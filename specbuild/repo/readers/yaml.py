"""YAML as nested text with line numbers.

Scalars stay as they are written: `3.10` is no float and `on` no truth value, and every string knows its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

import yaml

from specbuild.repo.readers.tree import Tree, clean

MAX_BYTES = 512 * 1024
"""Workflow files are a few kB; PyYAML without libyaml reads some 100 kB a second."""
MAX_NODES = 50_000
"""Nodes after aliases are expanded: stops exponential growth."""
MAX_DEPTH = 60
MAX_FLOW_DEPTH = 1_000
MAX_INDENT = 400
"""Bounds on nesting that are cheap to see beforehand: libyaml's composer recurses in C, where nothing else stops it."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Str(str):
    """A scalar, and the line (from 1) on which its text starts."""

    line: int = 0
    block: bool = False
    """Whether it is a literal block, so that line n of the text stands n lines further down in the file."""

    def __new__(cls, text: str, line: int = 0, block: bool = False) -> Str:
        self = super().__new__(cls, text)
        self.line = line
        self.block = block
        return self


class Mapping(dict[str, "Node"]):
    """A mapping and the line where it starts."""

    line: int = 0


class Sequence(list["Node"]):
    """A sequence and the line where it starts."""

    line: int = 0


Node: TypeAlias = Str | Mapping | Sequence


class _TooLargeError(Exception):
    """The document expands beyond the limits."""


def load(tree: Tree, file: str) -> Node | None:
    """The first document of a file; None, with a warning where it is there but cannot be read."""
    text = tree.text(file)
    if text is None:
        return None
    if len(text) > MAX_BYTES:
        tree.warn(file, f"is larger than {MAX_BYTES} bytes and was not read")
        return None
    if _is_too_deep(text):
        tree.warn(file, "is not valid YAML: nested too deeply")
        return None
    try:
        node = yaml.compose(text, Loader=_LOADER)
        return _Converter().convert(node, 0) if node is not None else None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        message = re.sub(r"\s+", " ", str(getattr(error, "problem", None) or error))
        tree.warn(file, f"is not valid YAML: {message}", mark.line + 1 if isinstance(mark, yaml.Mark) else None)
    except (_TooLargeError, ValueError, RecursionError) as error:
        tree.warn(file, f"is not valid YAML: {error or 'nested too deeply'}")
    return None


def _is_too_deep(text: str) -> bool:
    """Whether the text may nest too deeply; brackets in strings count too, which real files never have so many of."""
    depth = deepest = 0
    for match in re.finditer(r"[\[\]{}]", text):
        depth = max(0, depth + (1 if match[0] in "[{" else -1))
        deepest = max(deepest, depth)
    return deepest > MAX_FLOW_DEPTH or re.search(rf"^[ \t?:-]{{{MAX_INDENT}}}", text, re.MULTILINE) is not None


def mapping(node: object) -> Mapping:
    """The node if it is a mapping, else an empty one."""
    return node if isinstance(node, Mapping) else Mapping()


def sequence(node: object) -> Sequence:
    """The node if it is a sequence, a sequence of it if it is a scalar, else an empty one."""
    if isinstance(node, Sequence):
        return node
    result = Sequence()
    if isinstance(node, Str) and node:
        result.append(node)
    return result


def strings(node: object) -> list[Str]:
    """The scalars of a sequence, or the one scalar; nested sequences are flattened, as GitLab does."""
    return list(_strings(node))


def _strings(node: object) -> Iterator[Str]:
    if isinstance(node, Str):
        yield node
    elif isinstance(node, Sequence):
        for item in node:
            yield from _strings(item)


def line_of(node: object) -> int | None:
    """Where a node starts."""
    line = node.line if isinstance(node, Str | Mapping | Sequence) else 0
    return line or None


class _Converter:
    """Turns PyYAML's nodes into ours, with aliases expanded, merge keys applied, and a bound on all of it."""

    def __init__(self) -> None:
        self._left = MAX_NODES

    def convert(self, node: yaml.Node, depth: int) -> Node:
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            raise _TooLargeError("it expands to too many or too deep nodes")
        line = node.start_mark.line + 1
        match node:
            case yaml.MappingNode():
                return self._mapping(node, depth, line)
            case yaml.SequenceNode():
                result = Sequence(self.convert(item, depth + 1) for item in node.value)
                result.line = line
                return result
            case _:
                block = getattr(node, "style", None) in ("|", ">")
                plain_null = getattr(node, "style", None) is None and node.value in ("null", "~", "Null", "NULL")
                return Str("" if plain_null else clean(str(node.value)), line + block, block)

    def _mapping(self, node: yaml.MappingNode, depth: int, line: int) -> Mapping:
        result, merged = Mapping(), Mapping()
        result.line = line
        for key_node, value_node in node.value:
            key, value = self.convert(key_node, depth + 1), self.convert(value_node, depth + 1)
            if key == "<<":
                for part in value if isinstance(value, Sequence) else [value]:
                    merged.update(mapping(part))
            elif isinstance(key, Str):
                result[key] = value
        for name, inherited in merged.items():
            result.setdefault(name, inherited)
        return result
