"""PKG-INFO of a source distribution: what the manifests leave to be computed at build time."""

from __future__ import annotations

import re

from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.tree import Tree


def read(tree: Tree, found: Findings) -> None:
    """Name, version and interpreters; requirements only where no manifest gave any. Comes after the manifests."""
    if tree.has("PKG-INFO"):
        _fields(tree, found)
    if not found.has_runtime_dependencies():
        for file in tree.match("*.egg-info/requires.txt")[:1]:
            _requires(tree, found, file)


def _fields(tree: Tree, found: Findings) -> None:
    wanted = not found.has_runtime_dependencies()
    for number, line in enumerate(tree.lines("PKG-INFO"), start=1):
        if not line:
            return  # the description follows
        if line[0].isspace():
            continue
        key, _, value = line.partition(":")
        value, evidence = value.strip(), tree.evidence("PKG-INFO", number)
        match key.strip().lower():
            case "name":
                found.offer_name(value, evidence)
            case "version":
                found.offer_version(value, evidence)
            case "requires-python":
                found.offer_requires_python(value, evidence)
            case "classifier":
                found.add_classifier(value, evidence)
            case "requires-dist" if wanted:
                extra = re.search(r"""extra\s*==\s*["']([^"']+)["']""", value)
                requirement = re.sub(r"""\s*(and\s+)?\(?extra\s*==\s*["'][^"']+["']\)?""", "", value)
                found.add_dependency(requirement.rstrip("; "), f"extra:{extra[1]}" if extra else "", evidence)
            case _:
                pass


def _requires(tree: Tree, found: Findings, file: str) -> None:
    """setuptools' own list: requirements under headers of the form `[extra:marker]`."""
    group = marker = ""
    for number, line in enumerate(tree.lines(file), start=1):
        text = line.strip()
        if header := re.fullmatch(r"\[([^:\]]*)(?::(.*))?\]", text):
            group, marker = (f"extra:{header[1]}" if header[1] else ""), header[2] or ""
        elif re.match(r"[A-Za-z0-9]", text):
            requirement = f"{text} ; {marker}" if marker else text
            found.add_dependency(requirement, group, tree.evidence(file, number))
