"""A call of the engine's API: what is sent, and how it is waited for."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SHORT = 60.0
"""Seconds for a call that costs the engine little; much more than it takes on a machine that is overloaded."""
LONG = 1800.0
"""Seconds for a call that copies files: on a slow disk a commit of gigabytes takes minutes."""
_PIECE = 256 << 10

Json = Any
"""What JSON holds."""

Parameters = Mapping[str, str | Sequence[str]]
"""Those of an address; one of several values is given several times."""

Archive = bytes | AsyncIterable[bytes]
"""A tar archive, at once or as it comes."""


@dataclass(frozen=True, slots=True)
class Request:
    """One call."""

    method: str
    path: str
    """Without the version of the API."""
    params: Parameters = field(default_factory=dict[str, str])
    body: Json = None
    """Sent as JSON, unless there is an archive."""
    archive: Archive | None = None
    within: float = SHORT
    """Seconds until its answer has been read."""
    versioned: bool = True
    """Whether the path is one of a version of the API."""
    urgent: bool = False
    """Whether it waits for no other call."""
    whole: bool = False
    """Whether it is not given up once it is on its way, also when whoever waits was cancelled: else it could happen
    after it was looked for."""
    missing_ok: bool = False
    """Whether a 404 is an answer like those of success."""

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.method} {self.path}"

    @property
    def query(self) -> list[tuple[str, str]]:
        """The parameters, one by one."""
        return [
            (name, value)
            for name, values in self.params.items()
            for value in ([values] if isinstance(values, str) else values)
        ]

    @property
    def headers(self) -> dict[str, str]:
        """What tells the engine how to read the content."""
        return {"Content-Type": "application/json" if self.archive is None else "application/x-tar"}

    def content(self) -> str | AsyncIterator[bytes] | None:
        """What is sent along."""
        if self.archive is not None:
            return _pieces(self.archive)
        return None if self.body is None else json.dumps(self.body)


async def _pieces(archive: Archive) -> AsyncIterator[bytes]:
    """In pieces that others may get a turn between."""
    if isinstance(archive, bytes):
        for begin in range(0, len(archive), _PIECE):
            yield archive[begin : begin + _PIECE]
    else:
        async for piece in archive:
            yield piece
