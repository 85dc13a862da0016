"""The client: requests with retries, limits and checked downloads."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import urlsplit

import anyio
import httpx

from specbuild.errors import DownloadError, IntegrityError, RequestRefusedError, TransientError, UsageError
from specbuild.http.answers import Answer, Download, Response, closing, headers_of, retry_after, whole
from specbuild.http.network import SILENT_FOR, Network, netrc_of, opened
from specbuild.http.trouble import NO_ADDRESS, check_size, raise_if_final, told_by_address, told_by_host
from specbuild.retry import Retry
from specbuild.urls import credentials_of, host_of, without_credentials

T = TypeVar("T")

HASHES = ("sha512", "sha384", "sha256", "sha224", "sha1", "md5")
"""Hash algorithms that indexes publish, strongest first."""

_PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_CHUNK = 1 << 20


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
        self._http = await self._stack.enter_async_context(opened(self._network))
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
                body = await whole(answer, url, max_bytes)
                return Response(without_credentials(str(answer.url)), headers_of(answer), body)

        return await self._retrying(url, once)

    async def download(
        self, url: str, target: Path, *, hashes: Mapping[str, str] | None = None, max_bytes: int = 2 << 30
    ) -> Download:
        """Write the file at `url` to `target`; nothing is left there on failure.

        `hashes` maps algorithms to hexadecimal digests, of which the strongest is checked.
        """

        async def once() -> Download:
            async with self._open(url, {"Accept-Encoding": "identity"}) as answer:
                check_size(url, int(answer.headers.get("Content-Length") or 0), max_bytes)
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
        with told_by_host(url):
            request = self._opened().build_request(method, url, headers=dict(headers or {}), content=content)
            again = content is None or isinstance(content, bytes)
            sent = await self._opened().send(request, stream=True, follow_redirects=again)
        async with closing(Answer(sent, url, told_by_host)) as answer:
            yield answer

    @asynccontextmanager
    async def forward(
        self, method: str, url: str, *, headers: Iterable[tuple[str, str]] = ()
    ) -> AsyncGenerator[Answer]:
        """One request as a proxy makes it, of exactly these headers: nothing is followed, or added to it.

        Raises TransientError, as UnansweredError where time ran out, for trouble on the way to the server.
        """
        extensions = {"timeout": httpx.Timeout(SILENT_FOR, connect=self._network.connect_within).as_dict()}
        with told_by_address(url):
            request = httpx.Request(method, url, headers=list(headers), extensions=extensions)
            sent = await self._opened().send(request, stream=True, auth=None, follow_redirects=False)
        async with closing(Answer(sent, url, told_by_address)) as answer:
            yield answer

    def _auth(self, url: str) -> httpx.BasicAuth | None:
        """Credentials in the address before those of its index before those in netrc."""
        parts = urlsplit(url)
        found = credentials_of(url) or self._network.credentials.get(host_of(parts)) or netrc_of(parts.hostname or "")
        return httpx.BasicAuth(*found) if found else None

    async def _retrying(self, url: str, once: Callable[[], Awaitable[T]]) -> T:
        pauses = self._retry.pauses()
        while True:
            try:
                return await once()
            except _Passing as trouble:
                why, least = str(trouble), trouble.pause
            except httpx.TransportError as trouble:
                raise_if_final(url, trouble)
                why, least = f"{type(trouble).__name__}: {trouble}", 0.0
            except httpx.TooManyRedirects as trouble:
                raise DownloadError(f"{without_credentials(url)} redirects without end") from trouble
            except NO_ADDRESS as error:
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


class _Passing(Exception):  # noqa: N818 - caught here, never seen
    """An answer that may be another one soon."""

    def __init__(self, message: str, pause: float) -> None:
        super().__init__(message)
        self.pause = pause


def _check_status(url: str, answer: httpx.Response) -> None:
    status = answer.status_code
    shown = without_credentials(url)
    if status in _PASSING_STATUS or status >= 500:
        raise _Passing(f"HTTP {status} {answer.reason_phrase}", retry_after(answer.headers.get("Retry-After", "")))
    if not answer.is_success:
        hint = "give credentials in the address or in ~/.netrc" if status in {401, 403, 407} else ""
        raise RequestRefusedError(f"{shown} answers HTTP {status} {answer.reason_phrase}", status=status, hint=hint)
    if urlsplit(url).scheme == "https" and answer.url.scheme != "https":
        raise DownloadError(f"{shown} redirects to {without_credentials(str(answer.url))}, which anyone could forge")


async def _save(answer: httpx.Response, target: Path, hashes: Mapping[str, str], max_bytes: int) -> tuple[int, str]:
    """Write the answer to `target`; its size and sha256."""
    url = str(answer.url)
    algorithm = next((name for name in HASHES if name in hashes), "sha256")
    sums = {name: hashlib.new(name, usedforsecurity=False) for name in {"sha256", algorithm}}
    size = 0
    async with await anyio.open_file(target, "wb") as file:
        async for chunk in answer.aiter_raw(_CHUNK):
            size += len(chunk)
            check_size(url, size, max_bytes)
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
