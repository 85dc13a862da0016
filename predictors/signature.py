"""What a signature is: the way in which one tool phrases one kind of failure, as data with its own examples."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from specbuild.failures import Failure

Found = Failure | tuple[Failure, ...] | None
F = TypeVar("F")


@dataclass(frozen=True)
class Signature:
    """A line is looked at by `pattern` only if it holds one of `literals`.

    Patterns are matched at the start of a plain line (see `text.plain`), and must be linear: bounded repeats of one
    class of characters, nothing nested. Named groups become the keywords of `make`, those that matched nothing are
    left out; `evidence` is added to them.
    """

    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    make: Callable[..., Found]
    """A type of failure, or a function that knows more; None says that the line is none after all."""
    examples: tuple[tuple[str, Found], ...]
    """Output, and what is read from it. Lines are separated by newlines."""
    near: tuple[str, ...] = ()
    """Output that looks alike and tells of no failure."""
    follow: re.Pattern[str] | None = None
    """One of the next lines that may add groups; without one the failure stands as it is."""
    within: int = field(default=4)
    """How many lines `follow` waits for."""


def signature(
    literals: str | tuple[str, ...],
    pattern: str,
    make: Callable[..., Found],
    *examples: tuple[str, Found],
    near: tuple[str, ...] = (),
    follow: str | None = None,
    within: int = 4,
) -> Signature:
    """A Signature from its parts as they are written down."""
    return Signature(
        literals=(literals,) if isinstance(literals, str) else literals,
        pattern=re.compile(pattern),
        make=make,
        examples=examples,
        near=near,
        follow=re.compile(follow) if follow else None,
        within=within,
    )


def always(make: Callable[..., F], **fields: object) -> Callable[..., F]:
    """`make` with some fields fixed."""
    return partial(make, **fields)
