"""Requirement strings: cleaning, pins, and the constraint languages that become PEP 508."""

from __future__ import annotations

import re

from packaging.requirements import InvalidRequirement, Requirement


def is_pinned(requirement: str) -> bool:
    """Whether a PEP 508 requirement admits exactly one version (`==` without wildcard, `===`, or a URL)."""
    try:
        parsed = Requirement(requirement)
    except (InvalidRequirement, ValueError):
        return False
    if parsed.url is not None:
        return "@" in parsed.url.split("://", 1)[-1] or "#sha" in parsed.url
    return any(s.operator == "===" or (s.operator == "==" and not s.version.endswith("*")) for s in parsed.specifier)


def canonical(name: str) -> str:
    """A project's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of(requirement: str) -> str:
    """The canonical project name at the head of a requirement; empty when there is none."""
    match = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", requirement)
    return canonical(match[1].rstrip("-_.")) if match else ""


def strip_comment(line: str) -> str:
    """A requirements line without its comment: `#` at the start or after white space, as pip has it."""
    return re.sub(r"(^|\s)#.*$", "", line).strip()


def from_poetry(name: str, constraint: str) -> str:
    """A PEP 508 requirement with Poetry's caret, tilde and wildcard operators written out.

    The operators are those of Poetry's documentation on dependency specification.
    """
    return (name + _specifiers(constraint)).strip()


def poetry_python(constraint: str) -> str:
    """Poetry's `python` constraint as a `requires-python` specifier set."""
    return _specifiers(constraint)


def _specifiers(constraint: str) -> str:
    alternatives = [part.strip() for part in constraint.split("||")]
    # PEP 508 has no "or"; the last alternative is the newest by custom, and its lower bound may be too strict.
    if len(alternatives) > 1:
        return _widest(alternatives)
    pieces = [piece for piece in re.split(r"\s*,\s*|\s+(?=[<>=!~^])", alternatives[0]) if piece]
    return ",".join(filter(None, (_specifier(piece) for piece in pieces)))


def _widest(alternatives: list[str]) -> str:
    """From the lower bounds of the first alternative to the upper bounds of the last."""
    lower = [s for s in _specifiers(alternatives[0]).split(",") if s.startswith(">")]
    upper = [s for s in _specifiers(alternatives[-1]).split(",") if s.startswith("<")]
    return ",".join(lower + upper)


def _specifier(piece: str) -> str:
    piece = piece.replace(" ", "")
    if piece in ("", "*"):
        return ""
    match = re.fullmatch(r"(\^|~=|~|==|=|!=|>=|<=|>|<)?v?([0-9][^\s,]*)", piece)
    if not match:
        return piece if re.match(r"[<>=!~]", piece) else ""
    operator, version = match[1] or "==", match[2]
    if operator == "^":
        return f">={version},<{_bumped(version, caret=True)}"
    if operator == "~":
        return f">={version},<{_bumped(version, caret=False)}"
    if operator == "=":
        operator = "=="
    return f"{operator}{version}"


def _bumped(version: str, *, caret: bool) -> str:
    numbers = [int(number) for number in re.findall(r"\d+", version.split("-")[0].split("+")[0])[:3] if len(number) < 9]
    if not numbers:
        return version
    if caret:
        index = next((i for i, number in enumerate(numbers) if number), len(numbers) - 1)
    else:
        index = min(1, len(numbers) - 1)
    return ".".join(str(number) for number in [*numbers[:index], numbers[index] + 1])
