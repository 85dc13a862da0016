"""What the tests need beyond what is declared, by what their configuration and their files use."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from posixpath import basename, dirname

from specbuild.repo.facts import Evidence, TestNeed
from specbuild.repo.readers import pytest_config
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.layout import TEST_FOLDERS, test_files
from specbuild.repo.readers.modules import distribution_part, local_modules, standard, top_imports
from specbuild.repo.readers.pytest_config import PytestConfig
from specbuild.repo.readers.pytest_plugins import FIXTURES, INCLUDED, KEYS, MARKERS, OPTIONS, PLUGIN_MODULES
from specbuild.repo.readers.python_source import parse_module
from specbuild.repo.readers.requirement import name_of
from specbuild.repo.readers.test_uses import uses
from specbuild.repo.readers.tree import Tree

MAX_FILES = 400
"""Test files that are parsed, spread evenly over all. One takes some milliseconds."""
MAX_FILE_BYTES = 256 * 1024
MAX_BYTES = 4 * 1024 * 1024
"""Of all files together: some seconds."""
MAX_NEEDS = 200

_ASIDE = frozenset({"data", "testdata", "test_data", "fixtures", "samples", "examples", "docs", "templates", "vendor"})
_PROVIDED = frozenset({"pytest", "_pytest", "py"})
"""Modules of the test runner itself."""


def read(tree: Tree, found: Findings) -> None:
    """Needs by configuration first, then by the files; the packages and layout readers come before this one."""
    own = local_modules(tree) | {fact.value for fact in found.packages}
    needs = _Needs(found)
    config = pytest_config.read(tree)
    _options(config, needs)
    _plugins(config, own, needs)
    _source(tree, own, needs)


@dataclass
class _Needs:
    """Adds needs to the findings, one of a kind and name, and not without bound."""

    found: Findings
    seen: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def add(self, need: TestNeed) -> None:
        key = (need.kind, name_of(need.name) if need.kind != "import" else need.name)
        if key not in self.seen and len(self.found.test_needs) < MAX_NEEDS:
            self.seen.add(key)
            self.found.test_needs.append(need)


def _options(config: PytestConfig, needs: _Needs) -> None:
    for line in config.lines("addopts"):
        for word in line.words:
            if owner := _owner(word):
                needs.add(TestNeed(kind="option", name=owner, evidence=line.evidence))
    for key, evidence in config.keys.items():
        if key in KEYS:
            needs.add(TestNeed(kind="option", name=KEYS[key], evidence=evidence))


def _owner(option: str) -> str:
    """The plugin that adds an option; empty for pytest's own."""
    return next((name for start, name in OPTIONS if _begins(option, start)), "")


def _begins(option: str, start: str) -> bool:
    if not option.startswith(start):
        return False
    rest = option.removeprefix(start)
    if start.startswith("--"):
        return start.endswith("-") or rest[:1] in ("", "=", "-")
    count = rest.removeprefix("=")
    return count in ("", "auto", "logical") or count.isdigit()


def _plugins(config: PytestConfig, own: frozenset[str], needs: _Needs) -> None:
    for line in config.lines("required_plugins"):
        for requirement in "\n".join(line.words).replace(",", "\n").split():
            if name_of(requirement):
                needs.add(TestNeed(kind="plugin", name=requirement, evidence=line.evidence))
    # A list in TOML has the option and its value in two items.
    words = [(word, line.evidence) for line in config.lines("addopts") for word in line.words]
    for (word, evidence), (after, _) in pairwise([*words, ("", Evidence(file=""))]):
        if word.startswith("-p"):
            _plugin(after if word == "-p" else word[2:], evidence, own, needs)


def _plugin(plugin: str, evidence: Evidence, own: frozenset[str], needs: _Needs) -> None:
    """Add the distribution of a plugin that is named as `-p` and `pytest_plugins` do; of `no:NAME` nothing."""
    top = plugin.split(".")[0]
    if not top or ":" in plugin or top in own or top in INCLUDED or top == "_pytest":
        return
    name = PLUGIN_MODULES.get(plugin) or PLUGIN_MODULES.get(top) or name_of(top)
    if name:
        needs.add(TestNeed(kind="plugin", name=name, evidence=evidence))


def _source(tree: Tree, own: frozenset[str], needs: _Needs) -> None:
    modules = dict(_parsed(tree))
    used = {file: uses(module) for file, module in modules.items()}
    defined = {name for one in used.values() for name in one.defined - one.wrapped}
    for file, one in used.items():
        for text, line in one.plugins:
            _plugin(text, tree.evidence(file, line), own, needs)
        for mark, line in one.marks.items():
            needs.add(TestNeed(kind="marker", name=MARKERS[mark], evidence=tree.evidence(file, line)))
        for fixture in one.fixtures.keys() - defined:
            evidence = tree.evidence(file, one.fixtures[fixture])
            needs.add(TestNeed(kind="fixture", name=FIXTURES[fixture], evidence=evidence))
    for file, module in modules.items():
        for name, line in top_imports(module):
            top = name.split(".")[0]
            if not (top.startswith("_") or top in own or top in _PROVIDED or standard(top)):
                evidence = tree.evidence(file, line)
                needs.add(TestNeed(kind="import", name=distribution_part(name), evidence=evidence))


def _parsed(tree: Tree) -> Iterator[tuple[str, ast.Module]]:
    """The test files that can be read, then the helpers beside them that they import, within all bounds."""
    tests = _files(tree)
    step = max(1, -(-len(tests) // MAX_FILES))
    budget = _Budget(tree)
    imported: set[str] = set()
    for file in tests[::step]:
        if module := budget.parse(file):
            imported |= {part for name in _imported(module) for part in name.split(".")}
            yield file, module
    known = set(tests)
    for file in _helpers(tree, tests):
        wanted = file not in known and basename(file).removesuffix(".py") in {*imported, "__init__"}
        if wanted and (module := budget.parse(file)):
            yield file, module


def _files(tree: Tree) -> list[str]:
    """Files named conftest.py first: what they import, every test needs."""
    conftests = [path for path in tree.files if basename(path) == "conftest.py" and not _aside(path)]
    return [*conftests, *test_files(tree)]


def _helpers(tree: Tree, tests: list[str]) -> list[str]:
    folders = {dirname(path) for path in tests} - {""}
    inside = (path for path in tree.files if path.endswith(".py") and not _aside(path))
    return [path for path in inside if dirname(path) in folders or TEST_FOLDERS.match(path.split("/")[0])]


def _aside(path: str) -> bool:
    return bool(_ASIDE.intersection(path.split("/")[:-1]))


def _imported(module: ast.Module) -> Iterator[str]:
    """Every name of an import statement, wherever it stands."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.name for alias in node.names)
            if isinstance(node, ast.ImportFrom) and node.module:
                yield node.module


@dataclass
class _Budget:
    """Parses files while there are bytes left."""

    tree: Tree
    left: int = MAX_BYTES

    def parse(self, file: str) -> ast.Module | None:
        text = self.tree.text(file)
        if text is None or len(text) > min(MAX_FILE_BYTES, self.left):
            return None
        self.left -= len(text)
        return parse_module(self.tree, file, quiet=True)
