"""Lock files, by name. What they hold is for the tool that wrote them."""

from __future__ import annotations

import json
import re
from posixpath import basename

from specbuild.repo.facts import Lock
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.toml import load, table_of
from specbuild.repo.readers.tree import Tree

_KINDS = {
    "uv.lock": "uv",
    "poetry.lock": "poetry",
    "pdm.lock": "pdm",
    "Pipfile.lock": "pipenv",
    "conda-lock.yml": "conda-lock",
    "conda-lock.yaml": "conda-lock",
}
_PYLOCK = re.compile(r"pylock(\.[^.]+)?\.toml$")
MAX_LOCK_BYTES = 16 * 1024 * 1024
"""Only Pipfile.lock is read, to tell one that is damaged."""


def read(tree: Tree, found: Findings) -> None:
    """Locks at the root (others belong to examples or subprojects), and the requirements of a Pipfile."""
    for path in tree.top("*"):
        kind = _KINDS.get(basename(path)) or ("pylock" if _PYLOCK.match(basename(path)) else None)
        if kind == "pipenv" and not _is_json(tree, path):
            continue
        if kind is not None:
            found.locks.append(Lock(kind=kind, evidence=tree.evidence(path)))
    _pipfile(tree, found)


def _is_json(tree: Tree, path: str) -> bool:
    try:
        json.loads(tree.text(path, limit=MAX_LOCK_BYTES) or "")
    except (ValueError, RecursionError) as error:
        tree.warn(path, f"is not valid JSON: {error}")
        return False
    return True


def _pipfile(tree: Tree, found: Findings) -> None:
    toml = load(tree, "Pipfile")
    if toml is None:
        return
    python = toml.string("requires", "python_version") or toml.string("requires", "python_full_version")
    if python:
        where = toml.evidence("requires", "python_version")
        found.offer_requires_python(f"=={python}.*" if python.count(".") == 1 else f"=={python}", where)
    for section, group in (("packages", ""), ("dev-packages", "group:dev")):
        for name, spec in toml.table(section).items():
            requirement = _requirement(name, spec)
            if requirement:
                found.add_dependency(requirement, group, toml.evidence(section, name))


def _requirement(name: str, spec: object) -> str:
    """PEP 508 for one line of a Pipfile; empty for a folder, as the project itself is listed there."""
    if isinstance(spec, str):
        return name if spec == "*" else f"{name}{spec}"
    table = table_of(spec)
    if "path" in table:
        return ""
    extras = [extra for extra in table.get("extras", []) if isinstance(extra, str)]
    full = f"{name}[{','.join(extras)}]" if extras else name
    version, git, ref = table.get("version", "*"), table.get("git"), table.get("ref")
    if isinstance(git, str):
        return f"{full} @ git+{git}" + (f"@{ref}" if isinstance(ref, str) else "")
    markers = table.get("markers")
    requirement = full if version == "*" or not isinstance(version, str) else f"{full}{version}"
    return f"{requirement} ; {markers}" if isinstance(markers, str) else requirement
