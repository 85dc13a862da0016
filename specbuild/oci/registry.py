"""One repository on one registry, asked by the OCI distribution protocol; patient with trouble that passes.

What it answers is told apart by class: RegistryDeniedError, ImageNotFoundError and RequestRefusedError are final;
RateLimitedError, UnreachableError and TransientError may not be the next time. A server that cannot be reached is not
tried again for a while by anybody in this process, so that a machine without a way out loses seconds once.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

import anyio

from specbuild.errors import (
    DownloadError,
    ImageNotFoundError,
    IntegrityError,
    RateLimitedError,
    RegistryDeniedError,
    RequestRefusedError,
    TransientError,
    UnreachableError,
)
from specbuild.http import Answer, Client, Network
from specbuild.oci.addresses import resolved, same_origin
from specbuild.oci.authorization import Authorization, login_hint
from specbuild.oci.content import ACCEPTED, LARGEST_MANIFEST, check_digest
from specbuild.oci.credentials import Credentials, find_credentials
from specbuild.oci.hosts import Endpoint
from specbuild.oci.places import Places, from_json, table
from specbuild.oci.reference import is_digest
from specbuild.retry import Retry

T = TypeVar("T")

CONNECT_WITHIN = 5.0
"""Seconds until a server counts as unreachable."""
REMEMBERED_FOR = 600.0
"""Seconds for which that is taken for granted."""
_REDIRECTS = frozenset({307, 308})
"""Of those the content goes along; with the others another request would be made."""
_MOST_REDIRECTS = 5
_LONGEST_WORDS = 64 << 10
_LIMITED = "try again later, log in for a higher limit, or set a mirror (`registry-mirrors` of Docker)"
_PASSING_STATUS = frozenset({408, 425, 429})
_CHALLENGES = 2
"""How often one request may be met with a demand for credentials: a token may have been withdrawn before its time."""

Content = Callable[[], bytes | AsyncIterable[bytes]]
"""Gives the body of a request, once for each try."""

_unreachable: dict[str, tuple[float, UnreachableError]] = {}
"""Server → until when (by `time.monotonic`), and why."""


class Registry:
    """See the module. Made by `open_registry`."""

    def __init__(
        self, client: Client, endpoint: Endpoint, credentials: Credentials | None, retry: Retry, *, push: bool = False
    ) -> None:
        self._client = client
        self.endpoint = endpoint
        self.retry = retry
        self._credentials = credentials
        self._auth: Authorization | None = None
        self.base = ""
        """`https://host`, once it has been reached."""
        self._connecting = anyio.Lock()
        self._not_before = 0.0
        """Nobody asks before, by the event loop's clock: the server has said so."""
        self.scope = f"repository:{endpoint.repository}:{'pull,push' if push else 'pull'}"

    @property
    def shown(self) -> str:
        """For people."""
        return f"{self.endpoint.host}/{self.endpoint.repository}"

    def url(self, path: str) -> str:
        """Of something in the repository. The registry has been reached."""
        return f"{self.base}/v2/{self.endpoint.repository}/{path}"

    async def manifest(self, wanted: str) -> tuple[bytes, str]:
        """The manifest or index under a tag or digest, checked by its digest, and its media type."""

        async def read(answer: Answer) -> tuple[bytes, str, str]:
            body = await answer.read(LARGEST_MANIFEST)
            return body, answer.headers.get("content-type", ""), answer.headers.get("docker-content-digest", "")

        what = f"the manifest of {self.shown}:{wanted}"
        for last in (False, True):
            body, kind, promised = await self.ask("GET", f"manifests/{wanted}", read, headers={"Accept": ACCEPTED})
            try:
                check_digest(what, body, wanted if is_digest(wanted) else promised or _sha256_of(body))
            except IntegrityError:
                if last:
                    raise
            else:
                return body, kind
        raise AssertionError("the loop returns or raises")

    async def ask(
        self,
        method: str,
        path: str,
        use: Callable[[Answer], Awaitable[T]],
        *,
        headers: Mapping[str, str] | None = None,
        content: Content | None = None,
    ) -> T:
        """What `use` makes of the answer of success; tried again while the trouble may pass.

        `path` is one in the repository, or a whole address.
        """
        pauses = self.retry.pauses()
        while True:
            try:
                return await self.once(method, path, use, headers=headers, content=content)
            except TransientError as trouble:
                await self.pause(next(pauses, None), trouble)

    async def pause(self, seconds: float | None, trouble: TransientError) -> None:
        """Wait before the next try; raises `trouble` where there is none to come.

        A server that was there and is not any more may come back; one that never was is not waited for.
        """
        if isinstance(trouble, UnreachableError) and self._auth is None:
            raise trouble
        if seconds is None or self._not_before - anyio.current_time() > self.retry.longest:
            raise trouble
        await anyio.sleep(seconds)

    async def once(
        self,
        method: str,
        path: str,
        use: Callable[[Answer], Awaitable[T]],
        *,
        headers: Mapping[str, str] | None = None,
        content: Content | None = None,
    ) -> T:
        """As `ask`, tried once, with the credentials that are asked for."""
        auth = await self._reach()
        url = path if "://" in path else self.url(path)
        challenges = redirects = 0
        while True:
            sent = auth.headers(self.scope) if self._is_ours(url) else {}
            await self._wait_its_turn()
            body = content() if content else None
            async with self._client.exchange(method, url, headers={**(headers or {}), **sent}, content=body) as answer:
                challenge = answer.headers.get("www-authenticate", "")
                if answer.status in _REDIRECTS and redirects < _MOST_REDIRECTS:  # of what is sent as it is read
                    redirects += 1
                    url = resolved(answer.url, answer.headers.get("location", ""))
                    continue
                if answer.status != 401 or not challenge or not self._is_ours(url) or challenges == _CHALLENGES:
                    await self._judge(answer)
                    return await use(answer)
            challenges += 1
            if not await auth.meet(challenge, self.scope, sent):
                raise self._denied(401, "")

    def _is_ours(self, url: str) -> bool:
        """Whether credentials may be sent there: to the registry itself, in the way that it was reached."""
        return same_origin(url, self.base)

    async def _wait_its_turn(self) -> None:
        """Until the server wants to be asked again. Raises RateLimitedError if that is longer than anybody waits."""
        wait = self._not_before - anyio.current_time()
        if wait > self.retry.longest:
            raise RateLimitedError(
                f"{self.endpoint.host} has had too many requests from here; it asks to wait {wait:.0f} s",
                hint=_LIMITED,
            )
        await anyio.sleep(max(0.0, wait))

    async def _judge(self, answer: Answer) -> None:
        """Raise for an answer that is not of success."""
        if answer.status < 400:
            return
        said = _words(await _read_some(answer))
        told = f" ({said})" if said else ""
        where = f"{self.shown} answers HTTP {answer.status}{told}"
        match answer.status:
            case 401 | 403:
                raise self._denied(answer.status, told)
            case 404:
                raise ImageNotFoundError(
                    f"{self.shown} has nothing under that name{told}",
                    status=404,
                    hint="check the name and the tag; private images need `docker login` or `podman login`",
                )
            case 429:
                self._not_before = anyio.current_time() + answer.retry_after
                wait = f"; it asks to wait {answer.retry_after:.0f} s" if answer.retry_after else ""
                raise RateLimitedError(
                    f"{self.endpoint.host} has had too many requests from here{wait}{told}", hint=_LIMITED
                )
            case status if status >= 500 or status in _PASSING_STATUS:
                self._not_before = anyio.current_time() + min(answer.retry_after, self.retry.longest)
                raise TransientError(where, hint="try again later")
            case status:
                raise RequestRefusedError(where, status=status)

    def _denied(self, status: int, told: str) -> RegistryDeniedError:
        who = "nobody" if self._credentials is None else f"the user {self._credentials.username or 'of the token'}"
        verb = "without credentials" if self._credentials is None else "so far"
        what = "publish to it" if "push" in self.scope else "read it"
        return RegistryDeniedError(
            f"{self.shown} lets {who} {what} {verb}{told}", status=status, hint=login_hint(self.base)
        )

    async def _reach(self) -> Authorization:
        """Find out once how the server is reached. Raises UnreachableError within seconds."""
        async with self._connecting:
            if self._auth is None:
                host = self.endpoint.host
                until, error = _unreachable.get(host, (0.0, None))
                if error is not None and time.monotonic() < until:
                    raise error
                try:
                    self.base = await self._find_base()
                except UnreachableError as error:
                    _unreachable[host] = time.monotonic() + REMEMBERED_FOR, error
                    raise
                _unreachable.pop(host, None)
                self._auth = Authorization(self._client, self.base, self._credentials)
            return self._auth

    async def _find_base(self) -> str:
        host = self.endpoint.host
        ways = ["http"] if self.endpoint.plain else ["https", "http"] if self.endpoint.insecure else ["https"]
        for way in ways:
            try:
                async with self._client.exchange("GET", f"{way}://{host}/v2/"):
                    return f"{way}://{host}"
            except UnreachableError:
                if way == ways[-1]:
                    raise
            except TransientError:
                return f"{way}://{host}"  # it is there, and may come to
        raise AssertionError("the loop returns or raises")


async def _read_some(answer: Answer) -> bytes:
    """The body of a refusal, unless that is no message."""
    try:
        return await answer.read(_LONGEST_WORDS)
    except (DownloadError, TransientError):
        return b""


def _words(body: bytes) -> str:
    """What a registry says of its refusal, by the distribution specification."""
    try:
        errors: Any = table(from_json(body)).get("errors")
    except ValueError:
        return ""
    first = table(errors[0]) if isinstance(errors, list) and errors else {}  # pyright: ignore[reportUnknownArgumentType]
    words = f"{first.get('code') or ''} {first.get('message') or ''}".strip()
    return "".join(sign for sign in words if sign.isprintable())[:200]


def _sha256_of(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


@asynccontextmanager
async def open_registry(
    endpoint: Endpoint,
    places: Places,
    *,
    network: Network | None = None,
    retry: Retry | None = None,
    push: bool = False,
) -> AsyncGenerator[Registry]:
    """A Registry with the user's credentials for it."""
    given = network or Network()
    insecure = (endpoint.host,) if endpoint.insecure else ()
    near = (endpoint.host,) if endpoint.is_loopback else ()
    chosen = replace(
        given,
        trusted_hosts=(*given.trusted_hosts, *insecure),
        no_proxy=(*given.no_proxy, *near),
        connect_within=CONNECT_WITHIN,
    )
    login = endpoint.login or endpoint.host
    credentials = await find_credentials(places, login, endpoint.repository)
    async with Client(chosen) as client:
        yield Registry(client, endpoint, credentials, retry or Retry(), push=push)
