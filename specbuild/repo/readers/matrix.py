"""Build matrices of CI services, and which of their combinations to prefer."""

from __future__ import annotations

import itertools
import re

from specbuild.repo.readers.yaml import Mapping, Sequence, Str, mapping, sequence

MAX_COMBINATIONS = 400


def combinations(matrix: object) -> list[Mapping]:
    """The combinations of a GitHub matrix, `exclude` and `include` applied as its documentation says; never empty."""
    table = mapping(matrix)
    axes = {key: list(value) for key, value in table.items() if isinstance(value, Sequence) and key not in _SPECIAL}
    product = itertools.islice(itertools.product(*axes.values()), MAX_COMBINATIONS)
    base = [Mapping(zip(axes, values, strict=True)) for values in product] if axes else []
    excluded = [e for e in sequence(table.get("exclude")) if isinstance(e, Mapping)]
    base = [combo for combo in base if not any(_covers(entry, combo) for entry in excluded)]
    result = [Mapping(combo) for combo in base]
    for entry in sequence(table.get("include"))[:MAX_COMBINATIONS]:
        if not isinstance(entry, Mapping):
            continue
        hosts = [n for n, combo in enumerate(base) if all(combo.get(k, v) == v for k, v in entry.items() if k in axes)]
        # An entry without any axis joins all combinations; one that fits none is a combination of its own.
        if hosts:
            for n in hosts:
                result[n].update(entry)
        else:
            result.append(Mapping(entry))
    return result[:MAX_COMBINATIONS] or [Mapping()]


def is_computed(matrix: object) -> bool:
    """Whether a matrix, or an axis of it, is an expression whose value is known at run time only."""
    if isinstance(matrix, Str):
        return bool(matrix)
    return any(isinstance(axis, Str) for axis in mapping(matrix).values())


_SPECIAL = ("include", "exclude")


def flat(prefix: str, node: Mapping, depth: int = 0) -> dict[str, str]:
    """Nested mappings as dotted names."""
    result: dict[str, str] = {}
    for key, value in node.items():
        if isinstance(value, Str):
            result[f"{prefix}.{key}"] = str(value)
        elif isinstance(value, Mapping) and depth < 3:
            result |= flat(f"{prefix}.{key}", value, depth + 1)
        elif isinstance(value, Sequence):
            result[f"{prefix}.{key}"] = " ".join(item for item in value if isinstance(item, Str))
    return result


def version_key(version: str) -> tuple[int, ...] | None:
    """A sort key for interpreter versions: final CPython releases above the others; None for what is no version."""
    match = re.match(
        r"(?:(pypy|graalpy|jython)-?|cp|python:?|py)?v?(\d+)(?:\.(\d+|x))?", version.strip(), re.IGNORECASE
    )
    if not match or len(match[2]) > 4:
        return None
    major, minor = int(match[2]), int(match[3]) if (match[3] or "x").isdigit() and match[3] else 0
    if not match[3] and major > 20:  # `py39`, `cp312`
        major, minor = int(match[2][0]), int(match[2][1:])
    final = not match[1] and not re.search(
        r"dev|alpha|beta|rc|[a-z]\d|t$|nogil|free", version[match.end() :], re.IGNORECASE
    )
    return (int(final), major, min(minor, 10_000))


def preferred(versions: list[str]) -> int:
    """The index of the newest final CPython release; the first of equals, and 0 if none is a version."""
    keys = [version_key(version) or () for version in versions]
    return max(range(len(keys)), key=lambda n: (keys[n], -n)) if keys else 0


def _covers(entry: Mapping, combo: Mapping) -> bool:
    return all(combo.get(key) == value for key, value in entry.items())
