"""One download for all who want the file now: each gets it from its beginning, as it comes.

A flight belongs to nobody: it goes on as long as anybody wants it, and is dropped soon after the last one has gone. Not
at once: a warmer gives way to the very step that it fetches for, and a branch that was killed to its repair.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from specbuild.errors import SpecBuildError, TransientError
from specbuild.http import Answer, Client
from specbuild.sandbox.relay.kept import Body, Folder, Headers

MOST_FILE = 1 << 30
"""Bytes; larger files are fetched by each who wants them."""

MOST_REFUSAL = 1 << 16
"""Bytes of an answer that is not the file."""

PART = 1 << 18
"""Bytes that are handed on at a time."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file that may be kept."""

    url: str
    name: str
    """See `kept.name_of`."""
    fresh: bool = False
    """Whether a kept copy is not good enough, and is to be replaced."""
    digest: tuple[str, str] | None = None
    """Algorithm and hexadecimal digest, where its name tells."""


@dataclass(frozen=True, slots=True)
class Head:
    """How an answer begins."""

    status: int
    reason: str
    headers: Headers


@dataclass(slots=True)
class Flight:
    """A download and what has come of it so far."""

    wanted: Wanted
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    passengers: int = 0
    head: Head | None = None
    """None until the server has answered."""
    refusal: bytes = b""
    """The whole body where the answer is not the file."""
    alone: bool = False
    """Whether nothing can be shared of it: each has to ask for itself."""
    error: SpecBuildError | None = None
    _body: Body | None = None
    _there: int = 0
    """Bytes that have come."""
    landed: bool = False
    """Whether everything has come, and only its keeping may be left to do."""
    _over: bool = False
    _news: anyio.Event = field(default_factory=anyio.Event)

    async def begun(self) -> Head | None:
        """How the answer begins; None if it cannot be shared. Raises TransientError if there is none."""
        while self.head is None and not self.alone:
            if self.error is not None:
                raise self.error
            await self._news.wait()
        return None if self.alone else self.head

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body from its beginning. Raises TransientError where it ends too soon."""
        if self._body is None:
            yield self.refusal
            return
        at = 0
        while True:
            if at < self._there:
                data = await self._body.read(at, min(PART, self._there - at))
                at += len(data)
                yield data
            elif self.landed:
                return
            elif self.error is not None:
                raise self.error
            else:
                await self._news.wait()

    async def fly(self, client: Client, folder: Folder, headers: Headers) -> None:
        """Fetch the file and keep it if it is whole."""
        try:
            with self.scope:
                async with client.forward("GET", self.wanted.url, headers=headers) as answer:
                    await self._take(answer, folder)
        except SpecBuildError as error:
            self.error = error
        except OSError as error:  # of our own disk
            self.error = TransientError(f"{self.wanted.url} could not be kept: {error.strerror}")
        finally:
            self._over = True
            self._tell()
            self.close_if_left()

    async def _take(self, answer: Answer, folder: Folder) -> None:
        head = Head(answer.status, answer.reason, answer.fields)
        length = _length(answer.fields)
        if answer.status != 200:
            await self._take_refusal(answer)
        elif (body := await _begun(folder, self.wanted.url, answer.fields, length)) is None or length is None:
            self.alone = True
        else:
            self._body, self.head = body, head
            self._tell()
            await self._take_file(answer, folder, body, length)
            return
        self.head = head

    async def _take_refusal(self, answer: Answer) -> None:
        body = bytearray()
        async for chunk in answer.chunks(PART):
            body += chunk
            if len(body) > MOST_REFUSAL:
                self.alone = True
                return
        self.refusal = bytes(body)

    async def _take_file(self, answer: Answer, folder: Folder, body: Body, length: int) -> None:
        algorithm, promised = self.wanted.digest or ("sha256", None)
        digest = hashlib.new(algorithm, usedforsecurity=False)
        async for chunk in answer.chunks(PART):
            await folder.write(body, self._there, chunk, digest.update)
            self._there += len(chunk)
            self._tell()
        if self._there != length:
            raise TransientError(f"{self.wanted.url} ended after {self._there:,} of {length:,} bytes")
        self.landed = True
        self._tell()
        if promised in (None, digest.hexdigest()):
            await folder.keep(self.wanted.name, body, replace=self.wanted.fresh)

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    @property
    def is_forsaken(self) -> bool:
        """Whether it goes on and nobody wants it."""
        return not self.passengers and not self.landed and not self._over

    def close_if_left(self) -> None:
        """Close the file once it is neither written nor read any more."""
        if self._over and not self.passengers and self._body is not None:
            self._body.close()
            self._body = None


class Flights:
    """The downloads that are going on."""

    def __init__(self, folder: Folder, tasks: TaskGroup, *, grace: float) -> None:
        """Downloads run in `tasks`, and for `grace` seconds more than anybody wants them."""
        self._folder = folder
        self._tasks = tasks
        self._grace = grace
        self._open: dict[tuple[str, bool], Flight] = {}
        self.begun = 0
        """How many there were so far."""

    def __len__(self) -> int:
        return len(self._open)

    @asynccontextmanager
    async def board(self, wanted: Wanted, client: Client, headers: Headers) -> AsyncGenerator[Flight]:
        """The download of a file, begun with `headers` unless it is going on."""
        flight = self.book(wanted, client, headers)
        try:
            yield flight
        finally:
            self.leave(flight)

    def book(self, wanted: Wanted, client: Client, headers: Headers) -> Flight:
        """The same for one who will `leave` later on."""
        key = wanted.name, wanted.fresh
        flight = self._open.get(key)
        if flight is None:
            flight = self._open[key] = Flight(wanted)
            self.begun += 1
            self._tasks.start_soon(self._fly, key, flight, client, headers)
        flight.passengers += 1
        return flight

    def leave(self, flight: Flight) -> None:
        """One wants it no more."""
        flight.passengers -= 1
        flight.close_if_left()
        if flight.is_forsaken:
            self._tasks.start_soon(self._drop, flight)

    async def _fly(self, key: tuple[str, bool], flight: Flight, client: Client, headers: Headers) -> None:
        try:
            await flight.fly(client, self._folder, headers)
        finally:
            self._forget(key, flight)

    async def _drop(self, flight: Flight) -> None:
        await anyio.sleep(self._grace)
        if flight.is_forsaken:
            self._forget((flight.wanted.name, flight.wanted.fresh), flight)
            flight.scope.cancel()

    def _forget(self, key: tuple[str, bool], flight: Flight) -> None:
        if self._open.get(key) is flight:
            del self._open[key]


async def _begun(folder: Folder, url: str, headers: Headers, length: int | None) -> Body | None:
    """A file to keep an answer of `length` bytes in; None for what is too large, or not announced, and where our disk
    has none for it: then the answer is passed on all the same.
    """
    if length is None or length > MOST_FILE:
        return None
    try:
        return await folder.begin(url, headers)
    except OSError:
        return None


def without(headers: Iterable[tuple[str, str]], names: frozenset[str]) -> Headers:
    """The headers but those of these names."""
    return tuple((name, value) for name, value in headers if name not in names)


def _length(headers: Headers) -> int | None:
    """How many bytes were announced; None if that is not known, or the answer must not be kept."""
    found = dict(headers)
    if found.get("content-encoding", "identity") != "identity" or "no-store" in found.get("cache-control", ""):
        return None
    length = found.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else None
