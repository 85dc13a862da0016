"""The relay: who may use it, and what becomes of a request."""

from __future__ import annotations

import base64
import binascii
import logging
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

import anyio
import h11
from anyio.abc import Listener, SocketAttribute, SocketStream

from specbuild.errors import SpecBuildError, TransientError, UnansweredError, UsageError
from specbuild.http import Client
from specbuild.sandbox.relay.flight import PART, Flight, Flights, Head, Wanted, without
from specbuild.sandbox.relay.kept import MOST_BYTES, Folder, Headers, Kept, name_of
from specbuild.sandbox.relay.upstream import Upstream
from specbuild.sandbox.relay.wire import ClientGoneError, Request, Wire

_log = logging.getLogger(__name__)

MOST_CONNECTIONS = 256
"""More than all sandboxes of a machine have: apt opens one for each mirror."""

GRACE = 3.0
"""Seconds; apt takes one or two from its start to its first download."""

_TUNNEL_WITHIN = 20.0
"""Seconds in which a server must be reached."""

_PACKAGE = re.compile(r"/pool/[^?#]+(?:\.u?deb|\.ddeb|\.dsc|\.(?:tar|diff)\.(?:gz|xz|bz2|zst))$")
"""What Debian's archives never change under one name (Debian policy, 3.2.1: a version names one content)."""

_BY_HASH = re.compile(r"/by-hash/(?P<algorithm>SHA256|SHA512)/(?P<digest>[0-9a-f]{64}|[0-9a-f]{128})$")

_OF_THE_CONNECTION = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that concern two neighbours alone (RFC 9110, 7.6.1)."""

_CONDITIONS = ("range", "if-range", "if-modified-since", "if-none-match", "if-match", "if-unmodified-since")

_FAILED = re.compile(r"Failed to fetch (http://\S{1,500})")
"""How apt names what it could not get, or what was not what it should be."""


@dataclass(slots=True)
class Counts:
    """What the relay has done so far, in files."""

    kept: int = 0
    """Files given from the disk."""
    given: int = 0
    """Files given from a download while it went on, one for each who wanted it."""
    passed: int = 0
    """Other answers, passed on."""


class Relay:
    """A proxy for apt on the loopback interface. See `open_relay`."""

    def __init__(self, listener: Listener[SocketStream], folder: Folder, upstream: Upstream, flights: Flights) -> None:
        self._listener = listener
        self._folder = folder
        self._flights = flights
        self._upstream = upstream
        self._token = secrets.token_urlsafe(24)
        self._connections = 0
        self.counts = Counts()
        self.port: int = listener.extra(SocketAttribute.local_port)  # noqa: S610 - no database

    @property
    def address(self) -> str:
        """What apt takes for `Acquire::http::Proxy`, with what lets one in."""
        return f"http://{self._token}@127.0.0.1:{self.port}"

    @property
    def fetched(self) -> int:
        """How many downloads were begun of files that may be kept."""
        return self._flights.begun

    @property
    def flying(self) -> int:
        """How many downloads go on that others may join."""
        return len(self._flights)

    def distrust(self, output: str) -> None:
        """Forget what apt says in its output that it could not use: a kept file may be a damaged one."""
        for match in _FAILED.finditer(output):
            self._folder.drop(match[1])

    async def serve(self) -> None:
        """Serve until cancelled."""
        await self._listener.serve(self._connection)

    async def _connection(self, stream: SocketStream) -> None:
        async with stream:
            if self._connections >= MOST_CONNECTIONS:
                return
            self._connections += 1
            try:
                await self._converse(Wire(stream))
            finally:
                self._connections -= 1

    async def _converse(self, wire: Wire) -> None:
        booked: dict[str, Flight] = {}
        try:
            await wire.serve(lambda request: self._answer(wire, request, booked))
        except* (ClientGoneError, h11.ProtocolError, TransientError):
            pass  # an answer that cannot be given as it should be ends by hanging up: apt tries again
        except* Exception:  # noqa: BLE001 - told of, and no more
            # Whatever is wrong here, one connection is all that may end by it: the build goes on.
            _log.exception("the relay for apt could not answer")
        finally:
            for flight in booked.values():
                self._flights.leave(flight)

    async def _answer(self, wire: Wire, request: Request, booked: dict[str, Flight]) -> None:
        if not self._is_let_in(request):
            challenge = ("proxy-authenticate", 'Basic realm="specbuild"')
            await wire.refuse(407, "This proxy serves the sandboxes of one build alone", challenge)
            return
        try:
            await self._book(wire, booked)
            await self._relay(wire, request)
        except UsageError as error:
            await wire.refuse(400, error.message)
        except UnansweredError as error:
            await self._give_up(wire, 504, error)
        except SpecBuildError as error:
            await self._give_up(wire, 502, error)

    async def _book(self, wire: Wire, booked: dict[str, Flight]) -> None:
        """Begin what the client asks for next: one download after the other would cost a way to the mirror each.

        `booked` are the downloads that were begun so for this client; those it does not ask for any more are left.
        """
        ahead: dict[str, Flight] = {}
        for request in wire.upcoming():
            if request.method != "GET" or not self._is_let_in(request):
                continue
            url, headers = _asked(request)
            wanted = _wanted(request, url, headers)
            if wanted is None or wanted.name in ahead:
                continue
            if wanted.name in booked:
                ahead[wanted.name] = booked[wanted.name]
            elif wanted.fresh or not await self._folder.has(wanted.name):
                client = self._upstream.client(urlsplit(url).hostname or "")
                booked[wanted.name] = ahead[wanted.name] = self._flights.book(wanted, client, headers)
        for name in booked.keys() - ahead.keys():
            self._flights.leave(booked.pop(name))

    async def _give_up(self, wire: Wire, status: int, error: SpecBuildError) -> None:
        if wire.begun:
            raise TransientError(error.message) from error
        await wire.refuse(status, error.message)

    def _is_let_in(self, request: Request) -> bool:
        scheme, _, given = request.header("proxy-authorization").partition(" ")
        try:
            user = base64.b64decode(given, validate=True).partition(b":")[0]
        except binascii.Error:
            return False
        return scheme.lower() == "basic" and secrets.compare_digest(user, self._token.encode())

    async def _relay(self, wire: Wire, request: Request) -> None:
        if request.method == "CONNECT":
            await self._tunnel(wire, request.target)
        elif request.method not in {"GET", "HEAD"}:
            raise UsageError(f"This proxy does not know {request.method}")
        else:
            url, headers = _asked(request)
            client = self._upstream.client(urlsplit(url).hostname or "")
            wanted = _wanted(request, url, headers)
            if wanted is None or not await self._share(wire, wanted, client, headers):
                await self._pass_on(wire, request.method, url, client, headers)

    async def _share(self, wire: Wire, wanted: Wanted, client: Client, headers: Headers) -> bool:
        """Answer with a file that is kept, or comes for others too; False if the answer cannot be shared."""
        kept = None if wanted.fresh else await self._folder.find(wanted.name)
        if kept is not None:
            self.counts.kept += 1
            try:
                await wire.answer(200, "OK", without(kept.headers, _OF_THE_CONNECTION), _whole(kept))
            finally:
                kept.body.close()
            return True
        async with self._flights.board(wanted, client, headers) as flight:
            self.counts.given += 1
            head = await flight.begun()
            if head is None:
                return False
            await wire.answer(head.status, head.reason, _of_body(head, flight.refusal), flight.chunks())
        return True

    async def _pass_on(self, wire: Wire, method: str, url: str, client: Client, headers: Headers) -> None:
        self.counts.passed += 1
        async with client.forward(method, url, headers=headers) as answer:
            shown = without(answer.fields, _OF_THE_CONNECTION)
            await wire.answer(answer.status, answer.reason, shown, answer.chunks(PART))

    async def _tunnel(self, wire: Wire, target: str) -> None:
        host, _, port = target.rpartition(":")
        if not (host and port.isdigit()):
            raise UsageError(f"{target} is no server")
        try:
            with anyio.fail_after(_TUNNEL_WITHIN):
                other = await anyio.connect_tcp(host.strip("[]"), int(port))
        except TimeoutError as error:
            raise UnansweredError(f"{target} did not answer in time") from error
        except OSError as error:
            raise TransientError(f"{target} could not be reached: {error}") from error
        async with other:
            await wire.tunnel(other)


@asynccontextmanager
async def open_relay(
    folder: Path, options: Iterable[tuple[str, str]] = (), *, most_bytes: int = MOST_BYTES, grace: float = GRACE
) -> AsyncGenerator[Relay]:
    """A relay that keeps its files in `folder` and reaches mirrors as the host's apt, of these options, does.

    Files are removed beyond `most_bytes`; downloads go on for `grace` seconds after the last who wanted them has gone.
    Raises OSError where it cannot listen or keep files, ConfigError for a proxy that it cannot use.
    """
    kept = await anyio.to_thread.run_sync(lambda: Folder(folder, most_bytes=most_bytes))
    failure: Exception | None = None
    async with Upstream(options) as upstream, await _listen() as listener, anyio.create_task_group() as tasks:
        relay = Relay(listener, kept, upstream, Flights(kept, tasks, grace=grace))
        tasks.start_soon(relay.serve)
        try:
            yield relay
        except Exception as error:  # noqa: BLE001 - raised below: the task group would wrap up what is not its own
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _listen() -> Listener[SocketStream]:
    made = await anyio.create_tcp_listener(local_host="127.0.0.1")
    return made.listeners[0]


def _asked(request: Request) -> tuple[str, Headers]:
    """The address and the headers to ask its server with. Raises UsageError for what is no address of a file."""
    parts = _split(request.target)
    if parts.scheme.lower() != "http" or not parts.hostname:
        raise UsageError("This proxy passes on requests for http:// addresses alone")
    headers = without(request.headers, _OF_THE_CONNECTION | {"host"})
    if parts.username is not None and not request.header("authorization"):
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers = (*headers, ("authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"))
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="")
    return urlunsplit(bare), (("host", bare.netloc), *headers)


def _split(target: str) -> SplitResult:
    try:
        parts = urlsplit(target)
        _ = parts.port
    except ValueError as error:
        raise UsageError(f"{target} is no address") from error
    return parts


def _wanted(request: Request, url: str, headers: Headers) -> Wanted | None:
    """The file that is asked for, if its address says that it never changes; None for all that may be another one."""
    if request.method != "GET" or any(request.header(name) for name in _CONDITIONS):
        return None
    parts = urlsplit(url)
    by_hash = _BY_HASH.search(parts.path)
    if parts.query or not (by_hash or _PACKAGE.search(parts.path)):
        return None
    said = f"{request.header('cache-control')},{request.header('pragma')}".lower()
    return Wanted(
        url=url,
        name=name_of(url, dict(headers).get("authorization", "")),
        fresh="no-cache" in said or "no-store" in said,
        digest=(by_hash["algorithm"].lower(), by_hash["digest"]) if by_hash else None,
    )


def _of_body(head: Head, refusal: bytes) -> Headers:
    """The headers of an answer that was taken whole, or is about to be."""
    shown = without(head.headers, _OF_THE_CONNECTION)
    if head.status == 200:
        return shown
    return (*without(shown, frozenset({"content-length"})), ("content-length", str(len(refusal))))


async def _whole(kept: Kept) -> AsyncIterator[bytes]:
    at = 0
    while at < kept.size:
        data = await kept.body.read(at, PART)
        if not data:
            raise TransientError("a kept file was cut off")
        at += len(data)
        yield data
