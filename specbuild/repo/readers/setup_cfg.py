"""setup.cfg: declarative setuptools metadata, and pbr's."""

from __future__ import annotations

import re

from specbuild.repo.facts import Evidence
from specbuild.repo.readers import ini
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.pyproject import LEGACY_BACKEND
from specbuild.repo.readers.requirement import strip_comment
from specbuild.repo.readers.requirements import flattened
from specbuild.repo.readers.tree import Tree

FILE = "setup.cfg"


def read(tree: Tree, found: Findings) -> None:
    """Names, interpreters, dependencies and extras."""
    config = ini.parse(tree.text(FILE) or "")
    metadata, options = config.get("metadata", {}), config.get("options", {})
    if metadata and tree.has("pyproject.toml"):
        found.offer_backend(LEGACY_BACKEND, _section_evidence(tree, "metadata"))
    _scalars(tree, found, metadata, options)
    for line in ini.items(metadata.get("classifiers", metadata.get("classifier", []))):
        found.add_classifier(line.text, tree.evidence(FILE, line.number))
    for key, group in (("install_requires", ""), ("tests_require", "tests"), ("setup_requires", "build")):
        _requirements(tree, found, options.get(key, []), group)
    for extra, lines in config.get("options.extras_require", {}).items():
        _requirements(tree, found, lines, f"extra:{extra.replace('_', '-')}")
    if "versioneer" in config:
        found.offer_scm("versioneer", _section_evidence(tree, "versioneer"))
    if "pbr" in config or config.get("files", {}).get("packages"):
        _pbr(tree, found, config)


def _scalars(
    tree: Tree, found: Findings, metadata: dict[str, list[ini.Line]], options: dict[str, list[ini.Line]]
) -> None:
    for key, section, offer in (
        ("name", metadata, found.offer_name),
        ("version", metadata, found.offer_version),
        ("python_requires", options, found.offer_requires_python),
        ("requires_python", metadata, found.offer_requires_python),
        ("python_requires", metadata, found.offer_requires_python),
    ):
        lines = section.get(key, [])
        if lines and not re.match(r"(attr|file)\s*:", lines[0].text):
            offer(strip_comment(lines[0].text), tree.evidence(FILE, lines[0].number))


def _requirements(tree: Tree, found: Findings, lines: list[ini.Line], group: str) -> None:
    """A list of requirements, one a line or split by semicolons that are no markers; `file:` is followed."""
    for line in lines:
        if match := re.match(r"file\s*:\s*(.+)", line.text):
            for name in match[1].split(","):
                for entry in flattened(tree, name.strip()):
                    found.add_dependency(entry.requirement, group, entry.evidence)
            continue
        text = strip_comment(line.text)
        if text and re.match(r"[A-Za-z0-9]", text):
            found.add_dependency(text, group, tree.evidence(FILE, line.number))
            if group == "build":
                found.add_build_requirement(text, tree.evidence(FILE, line.number))


def _section_evidence(tree: Tree, section: str) -> Evidence:
    lines = tree.lines(FILE)
    return tree.evidence(FILE, next((n for n, line in enumerate(lines, 1) if line.strip() == f"[{section}]"), None))


def _pbr(tree: Tree, found: Findings, config: ini.Ini) -> None:
    """pbr takes the version from git, and requirements from requirements.txt and test-requirements.txt."""
    text = (tree.text("setup.py") or "") + (tree.text("pyproject.toml") or "")
    if "pbr" not in text:
        return
    found.offer_scm("pbr", _section_evidence(tree, "files"))
    for entry in flattened(tree, "requirements.txt"):
        found.add_dependency(entry.requirement, "", entry.evidence)
    for extra, lines in config.get("extras", {}).items():
        _requirements(tree, found, lines, f"extra:{extra.replace('_', '-')}")
