"""HTTP/1.1 with one client: its requests one after the other, and answers that end when it has gone."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass

import anyio
import h11
from anyio.abc import ByteStream

IDLE_WITHIN = 120.0
"""Seconds in which a client has to send a whole request; apt keeps its connections while it has more to fetch."""

TAKES_WITHIN = 600.0
"""Seconds in which a client has to take a part of a body: branches may be paused for a while."""

_MOST_HEAD = 1 << 15
_MOST_UPCOMING = 8
_END = b"\r\n\r\n"
_MOST_AHEAD = 1 << 16
"""Bytes of further requests that are taken while one is answered."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks for; it has no body."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    """Names in lower case."""

    def header(self, name: str) -> str:
        """The first header of that name; empty if there is none."""
        return next((value for key, value in self.headers if key == name), "")


class ClientGoneError(Exception):
    """The other side has closed the connection, or does not take what it asked for."""


Handler = Callable[[Request], Awaitable[None]]
"""Answers one request."""


class Wire:
    """One connection."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MOST_HEAD)
        self._ahead = b""
        """What has come and was not looked at yet."""
        self._gone = False
        self._news = anyio.Event()
        self._room = anyio.Event()
        self._answering: anyio.CancelScope | None = None
        self.begun = False
        """Whether an answer to the present request was begun: then there is no other way to end it than to hang up."""

    async def serve(self, handle: Handler) -> None:
        """Have requests answered until the client has gone or ends it. What `handle` raises comes through.

        Raises h11.RemoteProtocolError for what is no HTTP.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen)
            try:
                while (request := await self._request()) is not None and await self._handled(handle, request):
                    self._http.start_next_cycle()
            finally:
                tasks.cancel_scope.cancel()

    async def _handled(self, handle: Handler, request: Request) -> bool:
        """Whether another request may follow."""
        self.begun = False
        with anyio.CancelScope() as self._answering:
            if self._gone:
                return False
            await handle(request)
        done = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        return done and not self._answering.cancelled_caught

    async def _listen(self) -> None:
        """Take what comes, so that it is noticed at once when the client goes."""
        while data := await _received(self._stream):
            self._ahead += data
            self._news.set()
            if len(self._ahead) >= _MOST_AHEAD:
                self._room = anyio.Event()
                await self._room.wait()
        self._gone = True
        self._news.set()
        if self._answering is not None:
            self._answering.cancel()

    async def _receive(self) -> bytes:
        """What has come, or comes next; empty if the client has gone."""
        while not self._ahead and not self._gone:
            self._news = anyio.Event()
            await self._news.wait()
        data, self._ahead = self._ahead, b""
        self._room.set()
        return data

    async def _request(self) -> Request | None:
        """The next request; None if none comes."""
        request: Request | None = None
        with anyio.move_on_after(IDLE_WITHIN):
            while True:
                event = self._http.next_event()
                if event is h11.NEED_DATA:
                    self._http.receive_data(await self._receive())
                elif isinstance(event, h11.Request):
                    request = Request(_text(event.method), _text(event.target), _pairs(event.headers))
                elif isinstance(event, h11.EndOfMessage):
                    return request
                elif not isinstance(event, h11.Data):
                    return None
        return None

    def upcoming(self) -> list[Request]:
        """Requests that have come already while others are answered: apt sends several at a time."""
        heads = (self._http.trailing_data[0] + self._ahead).split(_END)[:-1]
        return [request for head in heads[:_MOST_UPCOMING] if (request := _read_alone(head + _END)) is not None]

    async def answer(
        self, status: int, reason: str, headers: Iterable[tuple[str, str]], chunks: AsyncIterable[bytes]
    ) -> None:
        """Send a whole answer. Raises ClientGoneError, and whatever `chunks` does."""
        pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        self.begun = True
        await self._send(h11.Response(status_code=status, reason=_phrase(reason), headers=pairs))
        async for chunk in chunks:
            await self._send(h11.Data(data=chunk))
        await self._send(h11.EndOfMessage())

    async def refuse(self, status: int, why: str, *headers: tuple[str, str]) -> None:
        """Answer with an error, in words that apt shows."""
        body = f"{why}\n".encode()
        always = (("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(body))))
        await self.answer(status, why, (*always, *headers), _one(body))

    async def tunnel(self, other: ByteStream) -> None:
        """Say that the connection is there, and pass on bytes both ways until one side sends no more."""
        self.begun = True
        await self._send(h11.Response(status_code=200, reason=b"Connection established", headers=[]))
        self._ahead = self._http.trailing_data[0] + self._ahead
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._upwards, other, tasks.cancel_scope)
            while data := await _received(other):
                await self._give(data)
            tasks.cancel_scope.cancel()

    async def _upwards(self, other: ByteStream, scope: anyio.CancelScope) -> None:
        try:
            while data := await self._receive():
                with anyio.fail_after(TAKES_WITHIN):
                    await other.send(data)
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):  # a TimeoutError is an OSError
            pass
        scope.cancel()

    async def _send(self, event: h11.Event) -> None:
        if data := self._http.send(event):
            await self._give(data)

    async def _give(self, data: bytes) -> None:
        try:
            with anyio.fail_after(TAKES_WITHIN):
                await self._stream.send(data)
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise ClientGoneError from error


async def _received(stream: ByteStream) -> bytes:
    try:
        return await stream.receive()
    except (OSError, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        return b""


def _read_alone(head: bytes) -> Request | None:
    """A request without a body; None for anything else."""
    http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MOST_HEAD)
    http.receive_data(head)
    try:
        event = http.next_event()
    except h11.RemoteProtocolError:
        return None
    if not isinstance(event, h11.Request):
        return None
    return Request(_text(event.method), _text(event.target), _pairs(event.headers))


async def _one(body: bytes) -> AsyncIterator[bytes]:
    yield body


def _pairs(headers: Iterable[tuple[bytes, bytes]]) -> tuple[tuple[str, str], ...]:
    return tuple((_text(name).lower(), _text(value)) for name, value in headers)


def _phrase(reason: str) -> bytes:
    return " ".join(reason.split()).encode("latin-1", "replace")


def _text(data: bytes) -> str:
    return data.decode("latin-1")
