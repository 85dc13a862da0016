"""HTTP as the user has set it up: proxies, certificates, credentials; with retries, limits and checked downloads.

The only module that imports httpx.
"""

from __future__ import annotations

import hashlib
import netrc
import os
import re
import ssl
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Mapping,
)
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import urlsplit

import anyio
import httpx

from specbuild._version import __version__
from specbuild.errors import (
    ConfigError,
    DownloadError,
    IntegrityError,
    OversizeError,
    RequestRefusedError,
    TransientError,
    UnansweredError,
    UnreachableError,
    UsageError,
)
from specbuild.retry import Retry
from specbuild.urls import credentials_of, host_of, without_credentials

T = TypeVar("T")

CA_VARIABLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
"""Where users name their bundle of certificates; the first that is set counts."""

HASHES = ("sha512", "sha384", "sha256", "sha224", "sha1", "md5")
"""Hash algorithms that indexes publish, strongest first."""

CONNECT_WITHIN = 20.0
SILENT_FOR = 60.0
"""Seconds without a byte after which a connection counts as cut."""
_PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_CHUNK = 1 << 20
_EVERY_HOST = "*"
_LAST_PORT = 65_535
_NO_ADDRESS = (httpx.InvalidURL, UnicodeError)
"""What comes of an address that is none; the latter of names of hosts that no alphabet has (IDNA)."""


@dataclass(frozen=True, slots=True)
class Network:
    """What a user sets beyond the usual variables (`HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE`, netrc, …)."""

    proxy: str | None = None
    no_proxy: tuple[str, ...] = ()
    """`host` or `host:port` that are reached without any proxy, beside those of `NO_PROXY`; `*` for all, as there."""
    ca_bundle: Path | None = None
    """File or folder of trusted certificates; None for the variables' or the system's."""
    client_cert: Path | None = None
    trusted_hosts: tuple[str, ...] = ()
    """`host` or `host:port` whose certificates are not checked."""
    credentials: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """`host` or `host:port` → user name and password."""
    unix_socket: Path | None = None
    """Where everything is asked, whatever host an address names."""
    connect_within: float = CONNECT_WITHIN
    """Seconds."""


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


_Telling = Callable[[str], AbstractContextManager[None]]
"""Tells trouble with an address, as an error of ours."""


class Answer:
    """An answer of any status, as it comes. Valid inside the `async with` of the `Client` that gave it.

    Where it breaks off, reading raises what the request would have raised.
    """

    def __init__(self, answer: httpx.Response, asked: str, telling: _Telling) -> None:
        """To what was `asked`."""
        self._answer = answer
        self._asked = asked
        self._telling = telling
        self._bodies: list[AsyncGenerator[bytes]] = []
        self.status = answer.status_code
        self.reason = answer.reason_phrase
        self.url = str(answer.url)
        """After redirects. May hold secrets in its query."""
        self.headers: Mapping[str, str] = _headers(answer)
        """Names in lower case; what was sent several times is joined."""
        self.fields = tuple((name.lower(), value) for name, value in answer.headers.multi_items())
        """The headers one by one, as they were sent, names in lower case."""
        self.retry_after = _retry_after(answer.headers.get("Retry-After", ""))
        """Seconds that the server asks for; 0 when it does not."""

    async def read(self, max_bytes: int = 4 << 20) -> bytes:
        """The whole body, decoded. Raises OversizeError."""
        body = bytearray()
        with self._telling(self._asked):
            async for chunk in self._answer.aiter_bytes():
                body += chunk
                _check_size(self.url, len(body), max_bytes)
        return bytes(body)

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


class Client:
    """An asynchronous context manager that fetches over HTTP.

    Raises TransientError when trying again later may help, RequestRefusedError for a final no (its `status` says
    which), OversizeError, IntegrityError, and DownloadError for a certificate that is not trusted.
    """

    def __init__(self, network: Network | None = None, *, retry: Retry | None = None) -> None:
        self._network = network or Network()
        self._retry = retry or Retry()
        self._stack = AsyncExitStack()
        self._http: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        self._http = await self._stack.enter_async_context(_client(self._network))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http = None
        await self._stack.aclose()

    async def get(self, url: str, *, headers: Mapping[str, str] | None = None, max_bytes: int = 64 << 20) -> Response:
        """The answer to a GET, decoded, of at most `max_bytes`."""

        async def once() -> Response:
            async with self._open(url, headers or {}) as answer:
                body = bytearray()
                async for chunk in answer.aiter_bytes():
                    body += chunk
                    _check_size(url, len(body), max_bytes)
                return Response(without_credentials(str(answer.url)), _headers(answer), bytes(body))

        return await self._retrying(url, once)

    async def download(
        self, url: str, target: Path, *, hashes: Mapping[str, str] | None = None, max_bytes: int = 2 << 30
    ) -> Download:
        """Write the file at `url` to `target`; nothing is left there on failure.

        `hashes` maps algorithms to hexadecimal digests, of which the strongest is checked.
        """

        async def once() -> Download:
            async with self._open(url, {"Accept-Encoding": "identity"}) as answer:
                _check_size(url, int(answer.headers.get("Content-Length") or 0), max_bytes)
                size, sha256 = await _save(answer, target, hashes or {}, max_bytes)
                return Download(target, without_credentials(str(answer.url)), size, sha256)

        try:
            return await self._retrying(url, once)
        except BaseException:
            target.unlink(missing_ok=True)  # noqa: ASYNC240 - one system call
            raise

    def _opened(self) -> httpx.AsyncClient:
        if self._http is None:
            raise RuntimeError("the client is used outside of its `async with`")
        return self._http

    @asynccontextmanager
    async def _open(self, url: str, headers: Mapping[str, str]) -> AsyncGenerator[httpx.Response]:
        auth = self._auth(str(httpx.URL(url)))
        async with self._opened().stream("GET", url, headers=dict(headers), auth=auth) as answer:
            _check_status(url, answer)
            yield answer

    @asynccontextmanager
    async def exchange(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | AsyncIterable[bytes] | None = None,
    ) -> AsyncGenerator[Answer]:
        """One request as a client makes it, redirects followed, unless the content can be sent only once.

        To judge the answer, whatever its status, is the caller's, and so is to give credentials.

        Raises UnreachableError when there is no connection, TransientError when it breaks, DownloadError for what no
        further try can cure.
        """
        with _told_by_host(url):
            request = self._opened().build_request(method, url, headers=dict(headers or {}), content=content)
            again = content is None or isinstance(content, bytes)
            sent = await self._opened().send(request, stream=True, follow_redirects=again)
        async with _closing(Answer(sent, url, _told_by_host)) as answer:
            yield answer

    @asynccontextmanager
    async def forward(
        self, method: str, url: str, *, headers: Iterable[tuple[str, str]] = ()
    ) -> AsyncGenerator[Answer]:
        """One request as a proxy makes it, of exactly these headers: nothing is followed, or added to it.

        Raises TransientError, as UnansweredError where time ran out, for trouble on the way to the server.
        """
        extensions = {"timeout": httpx.Timeout(SILENT_FOR, connect=self._network.connect_within).as_dict()}
        with _told_by_address(url):
            request = httpx.Request(method, url, headers=list(headers), extensions=extensions)
            sent = await self._opened().send(request, stream=True, auth=None, follow_redirects=False)
        async with _closing(Answer(sent, url, _told_by_address)) as answer:
            yield answer

    def _auth(self, url: str) -> httpx.BasicAuth | None:
        """Credentials in the address before those of its index before those in netrc."""
        parts = urlsplit(url)
        found = credentials_of(url) or self._network.credentials.get(host_of(parts)) or _netrc(parts.hostname or "")
        return httpx.BasicAuth(*found) if found else None

    async def _retrying(self, url: str, once: Callable[[], Awaitable[T]]) -> T:
        pauses = self._retry.pauses()
        while True:
            try:
                return await once()
            except _Passing as trouble:
                why, least = str(trouble), trouble.pause
            except httpx.TransportError as trouble:
                _raise_if_final(url, trouble)
                why, least = f"{type(trouble).__name__}: {trouble}", 0.0
            except httpx.TooManyRedirects as trouble:
                raise DownloadError(f"{without_credentials(url)} redirects without end") from trouble
            except _NO_ADDRESS as error:
                raise UsageError(f"{without_credentials(url)} is no http address: {error}") from error
            except httpx.DecodingError as trouble:
                raise DownloadError(
                    f"{without_credentials(url)} sends what it cannot have meant: {trouble}"
                ) from trouble
            pause = next(pauses, None)
            if pause is None:
                raise TransientError(
                    f"{without_credentials(url)} could not be fetched in {self._retry.attempts} tries: {why}",
                    hint="try again later; behind a proxy set HTTPS_PROXY",
                )
            await anyio.sleep(max(pause, min(least, self._retry.longest)))


@asynccontextmanager
async def _closing(answer: Answer) -> AsyncGenerator[Answer]:
    try:
        yield answer
    finally:
        await answer.close()


@contextmanager
def _told_by_host(url: str) -> Generator[None]:
    """Trouble with a server, to who has asked it."""
    try:
        yield
    except httpx.TransportError as trouble:
        _raise_if_final(url, trouble)
        where, why = host_of(urlsplit(url)), f"{type(trouble).__name__}: {trouble}".rstrip(": ")
        if isinstance(trouble, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
            raise UnreachableError(
                f"{where} cannot be reached: {why}", hint="check the network; behind a proxy set HTTPS_PROXY"
            ) from trouble
        raise TransientError(f"the connection to {where} broke: {why}", hint="try again later") from trouble
    except (httpx.TooManyRedirects, httpx.DecodingError, *_NO_ADDRESS) as trouble:
        raise DownloadError(f"{without_credentials(url)} cannot be asked: {trouble}") from trouble


@contextmanager
def _told_by_address(url: str) -> Generator[None]:
    """Trouble on the way to a server, to a client that it is passed on to."""
    shown = without_credentials(url)
    try:
        yield
    except httpx.TimeoutException as trouble:
        raise UnansweredError(f"{shown} did not answer in time ({type(trouble).__name__})") from trouble
    except httpx.TransportError as trouble:
        raise TransientError(f"{shown} could not be fetched: {type(trouble).__name__}: {trouble}") from trouble
    except _NO_ADDRESS as error:
        raise UsageError(f"{shown} is no http address: {error}") from error


class _Passing(Exception):  # noqa: N818 - caught here, never seen
    """An answer that may be another one soon."""

    def __init__(self, message: str, pause: float) -> None:
        super().__init__(message)
        self.pause = pause


@asynccontextmanager
async def _client(network: Network) -> AsyncGenerator[httpx.AsyncClient]:
    try:
        client = httpx.AsyncClient(
            verify=_trust(network),
            proxy=_proxy(network),
            transport=httpx.AsyncHTTPTransport(uds=str(network.unix_socket)) if network.unix_socket else None,
            mounts=_mounts(network),
            # Of the variables it is proxies that httpx heeds here; one knows nothing of sockets of this machine.
            trust_env=_EVERY_HOST not in network.no_proxy and network.unix_socket is None,
            timeout=httpx.Timeout(SILENT_FOR, connect=network.connect_within),
            follow_redirects=True,
            event_hooks={"request": [_check_address]},
            headers={"User-Agent": f"specbuild/{__version__}"},
        )
    except (ImportError, ValueError, httpx.InvalidURL) as error:  # ImportError: a SOCKS proxy without socksio
        raise ConfigError(
            f"the proxy that is set cannot be used: {error}",
            hint="check HTTPS_PROXY, ALL_PROXY and PIP_PROXY; a SOCKS proxy needs `pip install httpx[socks]`",
        ) from error
    async with client:
        yield client


async def _check_address(request: httpx.Request) -> None:
    """Of each request, also of those that redirects lead to: sockets would fail at it with errors of their own."""
    if not request.url.host or (request.url.port or 0) > _LAST_PORT:
        raise httpx.InvalidURL(f"there is no host and port {request.url.netloc.decode()!r}")


def _proxy(network: Network, host: str = _EVERY_HOST) -> str | None:
    """By which a host is reached, if the user has set any."""
    return None if {host, _EVERY_HOST} & set(network.no_proxy) else network.proxy


def _mounts(network: Network) -> dict[str, httpx.AsyncBaseTransport | None]:
    """How some hosts are reached in another way than the rest; None is the plain way, without a proxy."""
    mounts: dict[str, httpx.AsyncBaseTransport | None] = {
        f"all://{host}": None for host in network.no_proxy if host != _EVERY_HOST
    }
    for host in network.trusted_hosts:
        mounts[f"https://{host}"] = httpx.AsyncHTTPTransport(verify=False, proxy=_proxy(network, host))
    return mounts


def _trust(network: Network) -> ssl.SSLContext:
    """The certificates that the user trusts: as set, else the system's, else (where it has none) certifi's."""
    bundle = network.ca_bundle or next((Path(os.environ[name]) for name in CA_VARIABLES if os.environ.get(name)), None)
    try:
        if bundle is not None and bundle.is_dir():
            context = ssl.create_default_context(capath=str(bundle))
        elif bundle is not None:
            context = ssl.create_default_context(cafile=str(bundle))
        else:
            context = ssl.create_default_context()
            if not context.cert_store_stats()["x509_ca"] and not ssl.get_default_verify_paths().capath:
                context = httpx.create_ssl_context(trust_env=False)
        if network.client_cert is not None:
            context.load_cert_chain(network.client_cert)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"the certificates that are set cannot be read ({bundle or network.client_cert}): {error}",
            hint=f"check {', '.join(CA_VARIABLES)} and pip's `cert` and `client-cert`",
        ) from error
    return context


def _netrc(host: str) -> tuple[str, str] | None:
    """Credentials for exactly this host; netrc's `default` would hand them to every index there is."""
    path = Path(os.environ.get("NETRC") or Path.home() / ".netrc")
    try:
        entry = netrc.netrc(path).hosts.get(host) if path.is_file() else None
    except (OSError, netrc.NetrcParseError):
        return None
    return (entry[0] or entry[1] or "", entry[2] or "") if entry else None


def _headers(answer: httpx.Response) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers.items()}


def _check_status(url: str, answer: httpx.Response) -> None:
    status = answer.status_code
    shown = without_credentials(url)
    if status in _PASSING_STATUS or status >= 500:
        raise _Passing(f"HTTP {status} {answer.reason_phrase}", _retry_after(answer.headers.get("Retry-After", "")))
    if not answer.is_success:
        hint = "give credentials in the address or in ~/.netrc" if status in {401, 403, 407} else ""
        raise RequestRefusedError(f"{shown} answers HTTP {status} {answer.reason_phrase}", status=status, hint=hint)
    if urlsplit(url).scheme == "https" and answer.url.scheme != "https":
        raise DownloadError(f"{shown} redirects to {without_credentials(str(answer.url))}, which anyone could forge")


def _retry_after(value: str) -> float:
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


def _raise_if_final(url: str, trouble: httpx.TransportError) -> None:
    """Raise for what no further try can cure."""
    if isinstance(trouble, httpx.UnsupportedProtocol):
        raise UsageError(f"{without_credentials(url)} is no http address: {trouble}") from trouble
    cause: BaseException | None = trouble
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise DownloadError(
                f"the certificate of {host_of(urlsplit(url))} is not trusted: {cause.verify_message}",
                hint="if a proxy of yours signs it, name its certificates in SSL_CERT_FILE or PIP_CERT",
            ) from trouble
        cause = cause.__cause__ or cause.__context__


def _check_size(url: str, size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise OversizeError(f"{without_credentials(url)} is larger than the limit of {max_bytes:,} bytes")


async def _save(answer: httpx.Response, target: Path, hashes: Mapping[str, str], max_bytes: int) -> tuple[int, str]:
    """Write the answer to `target`; its size and sha256."""
    url = str(answer.url)
    algorithm = next((name for name in HASHES if name in hashes), "sha256")
    sums = {name: hashlib.new(name, usedforsecurity=False) for name in {"sha256", algorithm}}
    size = 0
    async with await anyio.open_file(target, "wb") as file:
        async for chunk in answer.aiter_raw(_CHUNK):
            size += len(chunk)
            _check_size(url, size, max_bytes)
            for each in sums.values():
                each.update(chunk)
            await file.write(chunk)
    wanted = hashes.get(algorithm)
    if wanted is not None and sums[algorithm].hexdigest() != wanted.lower():
        raise IntegrityError(
            f"{without_credentials(url)} has the {algorithm} {sums[algorithm].hexdigest()}, but {wanted} was promised",
            hint="a proxy or mirror may hold a damaged copy; if not, do not trust that server",
        )
    return size, sums["sha256"].hexdigest()
