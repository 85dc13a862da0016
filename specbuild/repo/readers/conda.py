"""conda environment files."""

from __future__ import annotations

from posixpath import basename

from specbuild.repo.readers import yaml
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.requirements import flattened, requirement_of
from specbuild.repo.readers.tree import Tree
from specbuild.repo.readers.yaml import Mapping, Str, mapping, sequence, strings

MAX_FILES = 20


def read(tree: Tree, found: Findings) -> None:
    """Match specifications as written (group `conda`), and the pip section with the file's own group."""
    for file in _files(tree)[:MAX_FILES]:
        for item in sequence(mapping(yaml.load(tree, file)).get("dependencies")):
            if isinstance(item, Str):
                found.add_dependency(item.split("::")[-1].split(" #")[0], "conda", tree.evidence(file, item.line))
            elif isinstance(item, Mapping):
                for line in strings(item.get("pip")):
                    _pip(tree, found, file, line)


def _files(tree: Tree) -> list[str]:
    return [
        path
        for path in tree.files
        if path.endswith((".yml", ".yaml"))
        and path.count("/") <= 2
        and (
            "environment" in basename(path)
            or basename(path).startswith(("env.", "conda-env"))
            or "/conda" in f"/{path}"
        )
        and not basename(path).startswith(("conda-lock", "meta."))
        and not path.startswith(".github/workflows/")
    ]


def _pip(tree: Tree, found: Findings, file: str, line: Str) -> None:
    if line.startswith("-r"):
        for entry in flattened(tree, line[2:].strip()):
            found.add_dependency(entry.requirement, f"file:{file}", entry.evidence)
    elif requirement := requirement_of(line):
        found.add_dependency(requirement, f"file:{file}", tree.evidence(file, line.line))
