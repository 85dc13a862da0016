"""The part of GitHub's expression language that matters for a matrix: look-ups, `||`, `&&`, `==`, some functions."""

from __future__ import annotations

import re
from collections.abc import Mapping

_EMBEDDED = re.compile(r"\$\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_COMPARISON = re.compile(r"(.+?)\s*(==|!=)\s*(.+)", re.DOTALL)
_CALL = re.compile(r"(\w+)\((.*)\)$", re.DOTALL)
MAX_LENGTH = 2_000
MAX_DEPTH = 20

Context = Mapping[str, str]
"""Dotted names (`matrix.python-version`, `env.NAME`, `inputs.NAME`) and their values; `matrix.*` and `inputs.*` give
the value of names that are left out, where all names are known."""


def expand(text: str, context: Context) -> str:
    """The text with every expression filled in that can be; others stay as they are."""

    def fill(match: re.Match[str]) -> str:
        value = evaluate(match[1], context)
        return match[0] if value is None else value

    return _EMBEDDED.sub(fill, text)


def is_excluded(condition: str, context: Context) -> bool:
    """Whether an `if:` is certainly false. Unknown conditions count as met."""
    condition = re.sub(r"^\s*\$\{\{(.*)\}\}\s*$", r"\1", condition, flags=re.DOTALL)
    value = evaluate(condition, context)
    return value in ("false", "") and bool(condition.strip())


def evaluate(expression: str, context: Context, depth: int = 0) -> str | None:
    """The value as text (`true`, `false` for truth values); None if it depends on what is unknown here."""
    expression = expression.strip()
    if len(expression) > MAX_LENGTH or depth > MAX_DEPTH:
        return None
    if len(parts := _split(expression, "||")) > 1:
        return _either([evaluate(part, context, depth + 1) for part in parts])
    if len(parts := _split(expression, "&&")) > 1:
        return _both([evaluate(part, context, depth + 1) for part in parts])
    if expression.startswith("!") and not expression.startswith("!="):
        inner = evaluate(expression[1:], context, depth + 1)
        return None if inner is None else _truth(not _is_true(inner))
    if expression.startswith("(") and expression.endswith(")") and len(_split(expression[1:-1], ")")) == 1:
        return evaluate(expression[1:-1], context, depth + 1)
    if match := _COMPARISON.fullmatch(expression):
        left, right = (evaluate(match[n], context, depth + 1) for n in (1, 3))
        equal = left is not None and right is not None and left.lower() == right.lower()
        return None if left is None or right is None else _truth(equal == (match[2] == "=="))
    if call := _CALL.fullmatch(expression):
        return _called(call[1].lower(), [evaluate(a, context, depth + 1) for a in _split(call[2], ",")])
    return _atom(expression, context)


def _atom(expression: str, context: Context) -> str | None:
    if re.fullmatch(r"'(?:[^']|'')*'", expression):
        return expression[1:-1].replace("''", "'")
    if re.fullmatch(r"-?[\d.]+|true|false", expression):
        return expression
    if expression in context:
        return context[expression]
    # A matrix or inputs that are known and leave a name out give the empty string.
    scope = expression.partition(".")[0]
    if scope in ("matrix", "inputs") and re.fullmatch(r"\w+\.[\w.-]+", expression):
        return context.get(f"{scope}.*")
    return None


def _called(name: str, arguments: list[str | None]) -> str | None:
    known = [argument for argument in arguments if argument is not None]
    if name == "always" or (name == "success" and arguments):
        return "true"
    if name in ("failure", "cancelled"):
        return "false"
    if len(known) != len(arguments):
        return None
    match name, known:
        case "startswith", [text, prefix]:
            return _truth(text.lower().startswith(prefix.lower()))
        case "endswith", [text, suffix]:
            return _truth(text.lower().endswith(suffix.lower()))
        case "contains", [text, part]:
            return _truth(part.lower() in text.lower())
        case "format", [template, *values]:
            return re.sub(r"\{(\d)\}", lambda m: values[int(m[1])] if int(m[1]) < len(values) else m[0], template)
        case _:
            return None


def _either(values: list[str | None]) -> str | None:
    for value in values[:-1]:
        if value is None or _is_true(value):
            return value
    return values[-1]


def _both(values: list[str | None]) -> str | None:
    if any(value is not None and not _is_true(value) for value in values):
        return "false" if len(values) > 1 else values[0]
    return None if None in values else values[-1]


def _is_true(value: str) -> bool:
    return value not in ("", "false", "0")


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _split(text: str, separator: str) -> list[str]:
    """Parts between separators that stand outside of quotes and parentheses."""
    parts, depth, quoted, start, index = list[str](), 0, False, 0, 0
    while index < len(text):
        character = text[index]
        if character == "'":
            quoted = not quoted
        elif not quoted and text.startswith(separator, index) and depth == 0:
            parts.append(text[start:index])
            index += len(separator)
            start = index
            continue
        elif not quoted:
            depth += (character == "(") - (character == ")")
        index += 1
    return [*parts, text[start:]]
