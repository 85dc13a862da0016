"""What the tests need beyond what is declared, by what their configuration and their files use."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from specbuild.repo.facts import Evidence, TestNeed, TestNeedKind
from specbuild.repo.readers import pytest_config
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.modules import distribution_part, local_modules, standard
from specbuild.repo.readers.pytest_config import PytestConfig
from specbuild.repo.readers.pytest_plugins import FIXTURES, INCLUDED, KEYS, MARKERS, OPTIONS, PLUGIN_MODULES
from specbuild.repo.readers.requirement import name_of
from specbuild.repo.readers.suite_files import sources
from specbuild.repo.readers.tree import Tree

MAX_NEEDS = 200

_PROVIDED = frozenset({"pytest", "_pytest", "py"})
"""Modules of the test runner itself."""


def read(tree: Tree, found: Findings) -> None:
    """Needs by configuration first, then by the files; the packages and layout readers come before this one."""
    own = local_modules(tree) | {fact.value for fact in found.packages}
    needs = _Needs(tree, found)
    config = pytest_config.read(tree)
    _options(config, needs)
    _plugins(config, own, needs)
    _source(own, needs)


@dataclass
class _Needs:
    """Adds needs to the findings, one of a kind and name, and not without bound."""

    tree: Tree
    found: Findings
    seen: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def add(self, kind: TestNeedKind, name: str, where: Evidence | tuple[str, int]) -> None:
        """Add a need with its evidence, or the file and line where that is."""
        key = (kind, name if kind == "import" else name_of(name))
        if key in self.seen or len(self.found.test_needs) >= MAX_NEEDS:
            return
        self.seen.add(key)
        evidence = where if isinstance(where, Evidence) else self.tree.evidence(*where)
        self.found.test_needs.append(TestNeed(kind=kind, name=name, evidence=evidence))


def _options(config: PytestConfig, needs: _Needs) -> None:
    for line in config.lines("addopts"):
        for word in line.words:
            if owner := _owner(word):
                needs.add("option", owner, line.evidence)
    for key, evidence in config.keys.items():
        if key in KEYS:
            needs.add("option", KEYS[key], evidence)


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
                needs.add("plugin", requirement, line.evidence)
    # A list in TOML has the option and its value in two items.
    words = [(word, line.evidence) for line in config.lines("addopts") for word in line.words]
    for (word, evidence), (after, _) in pairwise([*words, ("", Evidence(file=""))]):
        if word.startswith("-p"):
            _plugin(after if word == "-p" else word[2:], evidence, own, needs)


def _plugin(plugin: str, where: Evidence | tuple[str, int], own: frozenset[str], needs: _Needs) -> None:
    """Add the distribution of a plugin that is named as `-p` and `pytest_plugins` do; of `no:NAME` nothing."""
    top = plugin.split(".")[0]
    if not top or ":" in plugin or top in own or top in INCLUDED or top == "_pytest":
        return
    name = PLUGIN_MODULES.get(plugin) or PLUGIN_MODULES.get(top) or name_of(top)
    if name:
        needs.add("plugin", name, where)


def _source(own: frozenset[str], needs: _Needs) -> None:
    found = list(sources(needs.tree))
    defined = {name for source in found for name in source.uses.defined - source.uses.wrapped}
    for source in found:
        for text, line in source.uses.plugins:
            _plugin(text, (source.file, line), own, needs)
        for mark, line in source.uses.marks.items():
            needs.add("marker", MARKERS[mark], (source.file, line))
        for fixture, line in source.uses.fixtures.items():
            if fixture not in defined:
                needs.add("fixture", FIXTURES[fixture], (source.file, line))
    for source in found:
        for name, line in source.imports:
            if not _is_there(name.split(".")[0], own):
                needs.add("import", distribution_part(name), (source.file, line))


def _is_there(module: str, own: frozenset[str]) -> bool:
    """Whether a top-level module comes with Python, the tree or the test runner."""
    return module.startswith("_") or module in own or module in _PROVIDED or standard(module)
