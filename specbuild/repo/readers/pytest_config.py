"""The configuration that pytest would take: of several files the first that holds one."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from specbuild.repo.facts import Evidence
from specbuild.repo.readers import ini
from specbuild.repo.readers.toml import Toml, load
from specbuild.repo.readers.tree import Tree

_FILES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("pytest.toml", ("pytest",)),
    (".pytest.toml", ("pytest",)),
    ("pytest.ini", ("pytest",)),
    (".pytest.ini", ("pytest",)),
    ("pyproject.toml", ("tool", "pytest", "ini_options")),
    ("pyproject.toml", ("tool", "pytest")),
    ("tox.ini", ("pytest",)),
    ("setup.cfg", ("tool:pytest",)),
    ("setup.cfg", ("pytest",)),
)
"""Files and sections in the order in which pytest looks at them (its reference on configuration file formats); the
last one is what it read before version 4."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one line of a value, and where it stands."""

    words: tuple[str, ...]
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class PytestConfig:
    """Keys in lower case with `_` for `-`, and the lines of their values."""

    values: dict[str, tuple[Words, ...]] = field(default_factory=dict[str, tuple[Words, ...]])
    keys: dict[str, Evidence] = field(default_factory=dict[str, Evidence])

    def lines(self, key: str) -> tuple[Words, ...]:
        """The lines of a key's value; none if it is not set."""
        return self.values.get(key, ())


def read(tree: Tree) -> PytestConfig:
    """The configuration; an empty one if there is none, or none that can be read."""
    for file, section in _FILES:
        found = _from_toml(tree, file, section) if file.endswith(".toml") else _from_ini(tree, file, section[0])
        if found is not None:
            return found
    return PytestConfig()


def _from_toml(tree: Tree, file: str, section: tuple[str, ...]) -> PytestConfig | None:
    toml = load(tree, file) if tree.has(file) else None
    if toml is None or not toml.table(*section):
        return None
    config = PytestConfig()
    for key in toml.table(*section):
        name = _normal(key)
        config.keys[name] = toml.evidence(*section, key)
        config.values[name] = tuple(_toml_lines(toml, (*section, key)))
    return config


def _toml_lines(toml: Toml, path: tuple[str, ...]) -> Iterator[Words]:
    value = toml.get(*path)
    for item in cast("list[object]", value) if isinstance(value, list) else [value]:
        if isinstance(item, str):
            yield Words(_split(item), toml.evidence(*path, item=item))


def _from_ini(tree: Tree, file: str, section: str) -> PytestConfig | None:
    parsed = ini.parse(tree.text(file) or "") if tree.has(file) else {}
    if section not in parsed:
        return None
    config = PytestConfig()
    for name, lines in parsed[section].items():
        config.values[name] = tuple(Words(_split(line.text), tree.evidence(file, line.number)) for line in lines)
        config.keys[name] = config.values[name][0].evidence if lines else Evidence(file=file)
    return config


def _normal(key: str) -> str:
    return key.lower().replace("-", "_")


def _split(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text, comments=True))
    except ValueError:
        return tuple(text.split())
