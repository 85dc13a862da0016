"""setup.py, by its syntax tree."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from posixpath import basename

from specbuild.repo.facts import Evidence
from specbuild.repo.readers import python_source
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.literals import Scope, Text, Value, texts_of
from specbuild.repo.readers.pyproject import LEGACY_BACKEND, scm_tool
from specbuild.repo.readers.requirements import flattened
from specbuild.repo.readers.tree import Tree

FILE = "setup.py"
_REQUIREMENTS_LIKE = re.compile(
    r"(requires?|require?ments?|deps|dependencies|reqs?|default|dev|tests?)[\w./-]*\.(txt|in|pip)$|\.(txt|pip)$"
)


def read(tree: Tree, found: Findings) -> None:
    """The keyword arguments of setup(), as far as literals tell; a warning for those that they don't."""
    if not tree.has(FILE):
        return
    found.offer_backend(LEGACY_BACKEND, tree.evidence(FILE))
    module = python_source.parse_module(tree, FILE)
    if module is None:
        return
    scope = Scope(module, lambda path: _file_lines(tree, path))
    _imports(tree, found, module)
    for call in _calls(module, scope):
        _Setup(tree, found, call.arguments, call.line).add()


@dataclass(frozen=True)
class SetupCall:
    """A call of setup(): its arguments as far as they are known, and where it stands."""

    arguments: dict[str, Value]
    line: int
    find_roots: tuple[str, ...]
    """Folders given to find_packages()."""
    complete: bool
    """Whether all of `**mapping` was known."""


def setup_calls(tree: Tree) -> list[SetupCall]:
    """The calls of setup() in setup.py; none when it cannot be parsed."""
    module = python_source.parse_module(tree, FILE)
    return _calls(module, Scope(module, lambda path: _file_lines(tree, path))) if module else []


def _calls(module: ast.Module, scope: Scope) -> list[SetupCall]:
    roots: list[str] = []
    for finder in python_source.calls(module, "find_packages", "find_namespace_packages", "find"):
        where = [*finder.args[:1], *(k.value for k in finder.keywords if k.arg == "where")]
        roots += [text.value for node in where for text in scope.texts(node)]
    result: list[SetupCall] = []
    for call in python_source.calls(module, "setup", "run_setup"):
        if arguments := _arguments(scope, call):
            complete = all(k.arg or isinstance(scope.value(k.value), dict) for k in call.keywords)
            result.append(SetupCall(arguments, call.lineno, tuple(roots), complete))
    return result


class _Setup:
    """One call of setup(), turned into findings."""

    def __init__(self, tree: Tree, found: Findings, arguments: dict[str, Value], line: int) -> None:
        self.tree, self.found, self.arguments, self.line = tree, found, arguments, line

    def add(self) -> None:
        found, arguments = self.found, self.arguments
        for key, offer in (
            ("name", found.offer_name),
            ("version", found.offer_version),
            ("python_requires", found.offer_requires_python),
        ):
            if isinstance(text := arguments.get(key), Text):
                offer(text.value, self._at(text))
        for text in texts_of(arguments.get("classifiers")):
            found.add_classifier(text.value, self._at(text))
        self._requirements("install_requires", "")
        if "install_requires" not in arguments:
            self._requirements("requires", "")
        self._requirements("tests_require", "tests")
        self._requirements("setup_requires", "build")
        self._extras()
        self._scm()

    def _at(self, text: Text) -> Evidence:
        return self.tree.evidence(text.file or FILE, text.line or self.line)

    def _requirements(self, key: str, group: str) -> None:
        if key in self.arguments and self.arguments[key] is None and not self.found.has_runtime_dependencies():
            self.tree.warn(FILE, f"{key} is computed in a way that cannot be read", self.line)
        for text in texts_of(self.arguments.get(key)):
            self._requirement(text, group)

    def _requirement(self, text: Text, group: str) -> None:
        requirement = text.value.split("#")[0].strip() if "://" not in text.value else text.value.strip()
        if not re.match(r"[A-Za-z0-9]", requirement):
            return
        self.found.add_dependency(requirement, group, self._at(text))
        if group == "build":
            self.found.add_build_requirement(requirement, self._at(text))
            if tool := scm_tool(requirement):
                self.found.offer_scm(tool, self._at(text))

    def _extras(self) -> None:
        extras = self.arguments.get("extras_require")
        if "extras_require" in self.arguments and extras is None and not self.found.has_runtime_dependencies():
            self.tree.warn(FILE, "extras_require is computed in a way that cannot be read", self.line)
        for key, value in (extras if isinstance(extras, dict) else {}).items():
            extra, _, marker = key.partition(":")
            group = f"extra:{extra.strip()}" if extra.strip() else ""
            for text in texts_of(value):
                joined = f"{text.value} ; {marker.strip()}" if marker.strip() else text.value
                self._requirement(Text(joined, text.line, text.file), group)

    def _scm(self) -> None:
        for key, tool in (("use_scm_version", "setuptools-scm"), ("pbr", "pbr"), ("use_incremental", "")):
            if tool and self.arguments.get(key, False) is not False:
                self.found.offer_scm(tool, self.tree.evidence(FILE, self._line_of(key)))

    def _line_of(self, key: str) -> int:
        lines = self.tree.lines(FILE)
        return next((n for n, line in enumerate(lines, 1) if key in line), self.line)


def _arguments(scope: Scope, call: ast.Call) -> dict[str, Value]:
    """Keyword arguments of setup(), `**mapping` included."""
    result: dict[str, Value] = {}
    for keyword in call.keywords:
        value = scope.value(keyword.value)
        if keyword.arg is not None:
            result[keyword.arg] = value
        elif isinstance(value, dict):
            result = {**value, **result}
    return result


def _imports(tree: Tree, found: Findings, module: ast.Module) -> None:
    for node in ast.walk(module):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if "versioneer" in names:
            found.offer_scm("versioneer", tree.evidence(FILE, node.lineno if isinstance(node, ast.Import) else None))


def _file_lines(tree: Tree, path: str) -> list[Text]:
    """Requirements of the file that a string in setup.py names; setup.py may add the folder on its own."""
    if not _REQUIREMENTS_LIKE.search(path) or len(path) > 200:
        return []
    name = path.removeprefix("./").lstrip("/")
    candidates = [name, f"requirements/{name}", *(p for p in tree.files if p.count("/") == 1 and basename(p) == name)]
    for candidate in candidates:
        if tree.has(candidate) and re.search(r"req|dep|default|dev|test", candidate):
            return [
                Text(entry.requirement, entry.evidence.line or 0, entry.evidence.file)
                for entry in flattened(tree, candidate)
            ]
    return []
