"""Census of programming languages by file extension."""

from __future__ import annotations

from collections import Counter
from posixpath import basename, splitext

from specbuild.repo.facts import Evidence, Fact
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.tree import Tree

BY_EXTENSION = {
    ".py": "python", ".pyi": "python", ".pyw": "python", ".pyx": "cython", ".pxd": "cython", ".pxi": "cython",
    ".c": "c", ".h": "c", ".cc": "c++", ".cpp": "c++", ".cxx": "c++", ".hpp": "c++", ".hh": "c++", ".hxx": "c++",
    ".rs": "rust", ".go": "go", ".java": "java", ".kt": "kotlin", ".scala": "scala", ".rb": "ruby", ".php": "php",
    ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascript", ".ts": "typescript",
    ".tsx": "typescript", ".f": "fortran", ".f77": "fortran", ".f90": "fortran", ".f95": "fortran", ".for": "fortran",
    ".cs": "c#", ".swift": "swift", ".lua": "lua", ".pl": "perl", ".pm": "perl", ".r": "r", ".jl": "julia",
    ".hs": "haskell", ".ex": "elixir", ".exs": "elixir", ".sh": "shell", ".bash": "shell", ".cu": "cuda",
}  # fmt: skip

NOT_OWN = frozenset(
    {
        "vendor", "vendored", "_vendor", "third_party", "third-party", "thirdparty", "external", "extern",
        "subprojects", "deps", "doc", "docs", "static", "testdata", "test_data", "data", "fixtures",
        "examplefiles", "build", "dist",
    }
)  # fmt: skip
"""Folders whose code is someone else's, generated, or data of tests."""


def read(tree: Tree, found: Findings) -> None:
    """Languages by bytes of the project's own source, most first."""
    found.languages.extend(_census(tree, own=True) or _census(tree, own=False))


def _census(tree: Tree, *, own: bool) -> list[Fact[str]]:
    sizes: Counter[str] = Counter()
    largest: dict[str, tuple[int, str]] = {}
    generated = {splitext(path)[0] for path in tree.files if path.endswith(".pyx")}
    for path in tree.files:
        stem, extension = splitext(path)
        language = BY_EXTENSION.get(extension.lower())
        # C next to a .pyx of its name is Cython's output; minified scripts are nobody's source.
        skip = (stem in generated and extension in (".c", ".cpp", ".h")) or basename(path).endswith(".min.js")
        if language is None or skip or (own and NOT_OWN.intersection(path.lower().split("/")[:-1])):
            continue
        try:
            size = (tree.root / path).stat().st_size
        except OSError:
            continue
        sizes[language] += size
        largest[language] = max(largest.get(language, (-1, "")), (size, path))
    ranked = [(language, size) for language, size in sizes.most_common() if size]
    return [Fact(value=language, evidence=Evidence(file=largest[language][1])) for language, _ in ranked]
