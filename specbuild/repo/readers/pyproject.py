"""pyproject.toml: the standard tables (PEP 518, 621, 639, 735)."""

from __future__ import annotations

import re
from typing import Any

from specbuild.repo.readers import pyproject_tools
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.requirement import canonical
from specbuild.repo.readers.toml import Toml, list_of, load, strings_of, table_of
from specbuild.repo.readers.tree import Tree

FILE = "pyproject.toml"
LEGACY_BACKEND = "setuptools.build_meta:__legacy__"
_SCM_TOOLS = {
    "setuptools-scm": "setuptools-scm",
    "vcs-versioning": "setuptools-scm",
    "setuptools-git-versioning": "setuptools-git-versioning",
    "hatch-vcs": "hatch-vcs",
    "pbr": "pbr",
    "versioneer": "versioneer",
    "versioningit": "versioningit",
    "dunamai": "dunamai",
    "uv-dynamic-versioning": "uv-dynamic-versioning",
    "poetry-dynamic-versioning": "poetry-dynamic-versioning",
    "flit-scm": "flit-scm",
    "miniver": "miniver",
    "setuptools-git-version": "setuptools-git-version",
    "hatch-regex-commit": "hatch-regex-commit",
    "incremental": "",
}
"""Build requirement → the tool that takes the version from version control."""


def read(tree: Tree, found: Findings) -> None:
    """All tables that say something about dependencies, interpreters, the build or packages."""
    toml = load(tree, FILE)
    if toml is None:
        return
    _build_system(toml, found)
    _project(tree, toml, found)
    _dependency_groups(tree, toml, found)
    pyproject_tools.read(tree, toml, found)


def scm_tool(requirement: str) -> str:
    """The tool for versions from version control that a build requirement names; empty for others."""
    match = re.match(r"\s*([A-Za-z0-9._-]+)", requirement)
    return _SCM_TOOLS.get(canonical(match[1]), "") if match else ""


def _build_system(toml: Toml, found: Findings) -> None:
    table = toml.table("build-system")
    if not table:
        # PEP 518's default, where there is something to build at all.
        if toml.table("project"):
            found.offer_backend(LEGACY_BACKEND, toml.evidence("project"))
        return
    backend = toml.string("build-system", "build-backend")
    where = ("build-system", "build-backend") if backend else ("build-system",)
    found.offer_backend(backend or LEGACY_BACKEND, toml.evidence(*where))
    for requirement in toml.strings("build-system", "requires"):
        evidence = toml.evidence("build-system", "requires", item=requirement)
        found.add_build_requirement(requirement, evidence)
        found.add_dependency(requirement, "build", evidence)
        if tool := scm_tool(requirement):
            found.offer_scm(tool, evidence)


def _project(tree: Tree, toml: Toml, found: Findings) -> None:
    found.offer_name(toml.string("project", "name"), toml.evidence("project", "name"))
    found.offer_version(toml.string("project", "version"), toml.evidence("project", "version"))
    found.offer_requires_python(toml.string("project", "requires-python"), toml.evidence("project", "requires-python"))
    for classifier in toml.strings("project", "classifiers"):
        found.add_classifier(classifier, toml.evidence("project", "classifiers", item=classifier))
    for requirement in toml.strings("project", "dependencies"):
        found.add_dependency(requirement, "", toml.evidence("project", "dependencies", item=requirement))
    for extra, requirements in toml.table("project", "optional-dependencies").items():
        for requirement in strings_of(requirements):
            evidence = toml.evidence("project", "optional-dependencies", extra, item=requirement)
            found.add_dependency(requirement, f"extra:{extra}", evidence)


def _dependency_groups(tree: Tree, toml: Toml, found: Findings) -> None:
    groups = toml.table("dependency-groups")
    names = {canonical(name): name for name in groups}
    for name in groups:
        for requirement, owner in _group(groups, names, name, ()):
            evidence = toml.evidence("dependency-groups", owner, item=requirement)
            found.add_dependency(requirement, f"group:{name}", evidence)


def _group(groups: dict[str, Any], names: dict[str, str], name: str, path: tuple[str, ...]) -> list[tuple[str, str]]:
    """Requirements of a group with those it includes, each with the group that spells it out."""
    if name in path or len(path) > 20:
        return []
    result: list[tuple[str, str]] = []
    for item in list_of(groups.get(name)):
        if isinstance(item, str):
            result.append((item, name))
        elif isinstance(included := table_of(item).get("include-group"), str):
            target = names.get(canonical(included))
            result += _group(groups, names, target, (*path, name)) if target else []
        if len(result) > 2_000:
            break
    return result
