"""Install and test commands in the code blocks of README and of the pages for contributors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from specbuild.repo.facts import Fact
from specbuild.repo.readers.commands import looks_like_install, looks_like_test
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.tree import Tree

MAX_COMMANDS = 60
MAX_LINES = 5_000
_PAGES = (
    "readme*",
    "install*",
    "contributing*",
    "hacking*",
    "development*",
    "testing*",
    ".github/contributing*",
    "docs/contributing*",
)
_FENCE = re.compile(r"^\s*(```+|~~~+)\s*\{?\.?([\w+-]*)")
_SHELL = frozenset(
    {"", "sh", "bash", "shell", "console", "zsh", "terminal", "shell-session", "text", "none", "shellsession"}
)
_DIRECTIVE = re.compile(r"^(\s*)\.\.\s+(code|code-block|sourcecode|parsed-literal)::\s*(\S*)")


def read(tree: Tree, found: Findings) -> None:
    """Lines of shell blocks that install something or run tests, prompts taken off."""
    seen: set[str] = set()
    for pattern in _PAGES:
        for file in _pages(tree, pattern):
            for number, line in _blocks(
                tree.lines(file)[:MAX_LINES], markdown=not file.lower().endswith((".rst", ".txt"))
            ):
                command = re.sub(r"^\s*(?:\(\S+\)\s*)?(?:[\w@~:/-]*[$%#>]+\s+)?", "", line)
                command = re.sub(r"\s+#\s.*$", "", command).strip()
                is_command = (
                    re.match(r"[\w./~\"'$-]", command) and "`" not in command and not re.search(r"\w\.$|:$", command)
                )
                wanted = is_command and (looks_like_install(command) or looks_like_test(command))
                if wanted and command not in seen and len(command) < 500 and len(found.readme_commands) < MAX_COMMANDS:
                    seen.add(command)
                    found.readme_commands.append(Fact(value=command, evidence=tree.evidence(file, number)))


def _pages(tree: Tree, pattern: str) -> list[str]:
    if "/" not in pattern:
        candidates = tree.top(pattern)
    else:
        stem = pattern.removesuffix("*")
        candidates = tuple(
            path for path in tree.files if path.lower().startswith(stem) and path.count("/") == stem.count("/")
        )
    return [path for path in candidates if re.search(r"(^|/)[^.]+$|\.(md|rst|txt|markdown)$", path, re.IGNORECASE)][:4]


def _blocks(lines: tuple[str, ...], *, markdown: bool) -> Iterator[tuple[int, str]]:
    """Numbered lines of code blocks, continuations joined: fenced, after `::`, or in a code directive."""
    pending, start = "", 0
    for number, line in _fenced(lines) if markdown else _indented(lines):
        if not pending:
            start = number
        if line.endswith("\\"):
            pending += line[:-1].strip() + " "
            continue
        yield start, pending + line.strip()
        pending = ""


def _fenced(lines: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    fence, shell = "", False
    for number, line in enumerate(lines, start=1):
        match = _FENCE.match(line)
        if match and not fence:
            fence, shell = match[1], match[2].lower() in _SHELL
        elif fence and line.strip().startswith(fence):
            fence = ""
        elif (fence and shell) or (not fence and re.match(r"(    |\t)\$?\s*\S", line)):
            yield number, line


def _indented(lines: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Blocks of reStructuredText: deeper than the line that opened them."""
    margin: int | None = None
    for number, line in enumerate(lines, start=1):
        indent = len(line) - len(line.lstrip())
        if margin is not None and line.strip():
            if indent > margin:
                yield number, line
                continue
            margin = None
        directive = _DIRECTIVE.match(line)
        if directive:
            margin = len(directive[1]) if directive[3].lower() in _SHELL else None
        elif line.rstrip().endswith("::") and not line.lstrip().startswith(".. "):
            margin = indent
        elif re.match(r"\s*\$ \S", line):
            yield number, line
