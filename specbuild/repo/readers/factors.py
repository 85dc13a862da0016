"""tox's generative names and factor conditions."""

from __future__ import annotations

import itertools
import re

MAX_NAMES = 300


def expand_names(text: str) -> list[str]:
    """Environment names of an envlist: `py{38,39}-django{3,4}` gives four; numeric ranges `{38-40}` are written out."""
    names: list[str] = []
    for part in re.split(r"[,\s]+(?![^{]*\})", text.strip()):
        if not part:
            continue
        pieces = re.split(r"\{([^{}]*)\}", re.sub(r"\s+", "", part))
        choices = [_choices(piece) if n % 2 else [piece] for n, piece in enumerate(pieces)]
        names += ["".join(chosen) for chosen in itertools.islice(itertools.product(*choices), MAX_NAMES)]
        if len(names) >= MAX_NAMES:
            break
    return names[:MAX_NAMES]


def _choices(group: str) -> list[str]:
    result: list[str] = []
    for choice in group.split(","):
        span = re.fullmatch(r"(\d{1,4})-(\d{1,4})", choice)
        if span and int(span[1]) <= int(span[2]) < int(span[1]) + 50:
            result += [str(n) for n in range(int(span[1]), int(span[2]) + 1)]
        else:
            result.append(choice)
    return result


def applies(condition: str, name: str) -> bool:
    """Whether a factor condition (`py38,py39-django42,!cov`) holds for an environment's name."""
    factors = set(name.split("-"))
    return any(_all_hold(alternative, factors) for alternative in expand_names(condition))


def _all_hold(alternative: str, factors: set[str]) -> bool:
    return all(
        (part[1:] not in factors) if part.startswith("!") else (part in factors) for part in alternative.split("-")
    )


_CONDITION = re.compile(r"^((?:!?[\w.{},!-]+))\s*:\s+(.*)$|^((?:!?[\w.{},!-]+)):$")


def conditional(line: str, name: str) -> str | None:
    """The line without its condition if that holds for the name; None if it does not. `py: ` needs white space after
    the colon, so that `git+https:` is no condition."""
    match = _CONDITION.match(line)
    if not match:
        return line
    condition, rest = match[1] or match[3], match[2] or ""
    return rest if applies(condition, name) else None
