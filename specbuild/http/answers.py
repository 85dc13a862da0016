"""What comes of a request: an answer as it comes, a whole one, or a file."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx

from specbuild.http.trouble import check_size

Telling = Callable[[str], AbstractContextManager[None]]
"""Tells trouble with an address, as an error of ours."""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer, of success."""

    url: str
    """After redirects, without credentials."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


@dataclass(frozen=True, slots=True)
class Download:
    """A file that was downloaded and checked."""

    path: Path
    url: str
    """After redirects, without credentials."""
    size: int
    """Bytes."""
    sha256: str


class Answer:
    """An answer of any status, as it comes. Valid inside the `async with` of the `Client` that gave it.

    Where it breaks off, reading raises what the request would have raised.
    """

    def __init__(self, answer: httpx.Response, asked: str, telling: Telling) -> None:
        """To what was `asked`."""
        self._answer = answer
        self._asked = asked
        self._telling = telling
        self._bodies: list[AsyncGenerator[bytes]] = []
        self.status = answer.status_code
        self.reason = answer.reason_phrase
        self.url = str(answer.url)
        """After redirects. May hold secrets in its query."""
        self.headers: Mapping[str, str] = headers_of(answer)
        """Names in lower case; what was sent several times is joined."""
        self.fields = tuple((name.lower(), value) for name, value in answer.headers.multi_items())
        """The headers one by one, as they were sent, names in lower case."""
        self.retry_after = retry_after(answer.headers.get("Retry-After", ""))
        """Seconds that the server asks for; 0 when it does not."""

    async def read(self, max_bytes: int = 4 << 20) -> bytes:
        """The whole body, decoded. Raises OversizeError."""
        with self._telling(self._asked):
            return await whole(self._answer, self.url, max_bytes)

    def chunks(self, size: int | None = None) -> AsyncIterator[bytes]:
        """The body as it was sent, not decoded: in pieces as they come, or of `size` bytes."""
        self._bodies.append(body := self._chunks(size))
        return body

    async def _chunks(self, size: int | None) -> AsyncGenerator[bytes]:
        with self._telling(self._asked):
            async for chunk in self._answer.aiter_raw(size):
                yield chunk

    async def close(self) -> None:
        """Read no more of it."""
        for body in self._bodies:
            await body.aclose()
        await self._answer.aclose()


async def whole(answer: httpx.Response, url: str, max_bytes: int) -> bytes:
    """The body, decoded. Raises OversizeError, which names `url`, and what httpx raises."""
    body = bytearray()
    async for chunk in answer.aiter_bytes():
        body += chunk
        check_size(url, len(body), max_bytes)
    return bytes(body)


@asynccontextmanager
async def closing(answer: Answer) -> AsyncGenerator[Answer]:
    try:
        yield answer
    finally:
        await answer.close()


def headers_of(answer: httpx.Response) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers.items()}


def retry_after(value: str) -> float:
    """Seconds that the server asks for (RFC 9110, 10.2.3: seconds or a date); 0 when it does not."""
    if digits := re.fullmatch(r"\s*(\d{1,9})\d*\s*", value, re.ASCII):  # more than 30 years are for ever
        return float(digits[1])
    try:
        until = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return 0.0
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
