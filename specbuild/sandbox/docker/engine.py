"""The engine's API, as far as it is used here: each call with a deadline, few at once, errors as our own.

This is the only module that imports aiodocker.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import aiodocker
import aiohttp
import anyio
from aiodocker.containers import DockerContainer
from aiodocker.stream import Stream
from yarl import URL

from specbuild.errors import EngineAccessError, EngineBusyError, EngineError, EngineTooOldError
from specbuild.sandbox.docker.endpoint import Endpoint, Tls
from specbuild.sandbox.docker.refusals import refusal, unreachable
from specbuild.sandbox.docker.request import SHORT, Json, Request

OLDEST_API = (1, 40)
"""Docker 19.03 and Podman 3: the first with `next-exit` waits, and labels on everything that is made here."""
MOST_AT_ONCE = 8
"""Calls that an engine works on at once; the others wait here. dockerd gets slower with more, not faster."""


@dataclass(frozen=True, slots=True)
class About:
    """What an engine says of itself."""

    name: str
    """`Docker` or `Podman`."""
    version: str
    api: str
    root: str
    """The folder of its data, on its own machine."""
    driver: str
    cgroup_version: int
    rootless: bool
    follows_links: bool
    """Whether it tells of a link where that leads in the container, instead of what it says: Podman does."""
    local: bool
    """Whether it runs on this machine: its host paths are ours."""
    libpod: str = ""
    """The version of Podman's own API; nothing for other engines."""


class Engine:
    """A connection to an engine; an async context manager."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._docker: aiodocker.Docker | None = None
        self._libpod = ""
        self._turns = anyio.Semaphore(MOST_AT_ONCE)

    async def __aenter__(self) -> Engine:
        self._docker = _connect(self.endpoint)
        try:
            await self.check_version()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._docker is not None:
            docker, self._docker = self._docker, None
            await docker.close()
            await docker.connector.close()

    @property
    def _client(self) -> aiodocker.Docker:
        if self._docker is None:
            raise EngineError("no session is open on the container engine")
        return self._docker

    async def check_version(self) -> None:
        """Ask for the version of the API, and speak that from now on. Raises EngineTooOldError.

        The answer to `version` would say more, and takes Podman a second.
        """
        async with self.send(Request("GET", "_ping", versioned=False)) as response:
            api = response.headers.get("Api-Version", "")
            self._libpod = response.headers.get("Libpod-API-Version", "")
        if not re.fullmatch(r"[0-9]{1,9}\.[0-9]{1,9}", api):
            raise self._no_engine(f"it names {api!r} as the version of its API")
        if tuple(map(int, api.split("."))) < OLDEST_API:
            raise EngineTooOldError(
                f"the container engine at {self.endpoint.address} speaks version {api} of Docker's API, and "
                f"{'.'.join(map(str, OLDEST_API))} is needed",
                hint="update it: Docker 19.03 or Podman 3 is new enough",
            )
        self._client.api_version = f"v{api}"

    async def about(self) -> About:
        """Who answers, and how it is set up."""
        info = await self.json(Request("GET", "info"))
        if not isinstance(info, dict):
            raise self._no_engine("it has nothing to tell of itself")
        info = cast("dict[str, Any]", info)
        options: list[str] = info.get("SecurityOptions") or []
        return About(
            name="Podman" if self._libpod else "Docker",
            version=str(info.get("ServerVersion", "")),
            api=self._client.api_version.removeprefix("v"),
            root=str(info.get("DockerRootDir", "")),
            driver=str(info.get("Driver", "")),
            cgroup_version=int(info.get("CgroupVersion") or 1),
            rootless=any("rootless" in option or "userns" in option for option in options),
            follows_links=bool(self._libpod),
            local=self.endpoint.socket is not None,
            libpod=self._libpod,
        )

    def _no_engine(self, why: str) -> EngineError:
        return EngineError(
            f"what answers at {self.endpoint.address} is no container engine: {why}",
            hint="check DOCKER_HOST, or the Docker context",
        )

    async def json(self, request: Request) -> Json:
        """The answer's JSON, or its text where it is none. Raises EngineError and its kinds."""
        async with self.send(request) as response:
            text = await response.read()
        try:
            return json.loads(text) if text else {}
        except ValueError:
            return text.decode("utf-8", "replace")

    @asynccontextmanager
    async def send(self, request: Request) -> AsyncGenerator[aiohttp.ClientResponse]:
        """The answer of success, which is read in the `async with`. Raises EngineError and its kinds."""
        async with self._turn(urgent=request.urgent):
            with anyio.CancelScope(shield=request.whole):
                try:
                    with anyio.fail_after(request.within):
                        async with self._open(request) as response:
                            yield response
                except TimeoutError as error:
                    raise _late(request.name, request.within) from error
                except (aiohttp.ClientError, OSError) as error:
                    raise unreachable(self.endpoint, error) from error

    @asynccontextmanager
    async def _turn(self, *, urgent: bool) -> AsyncGenerator[None]:
        if urgent:
            yield
            return
        async with self._turns:
            yield

    @asynccontextmanager
    async def _open(self, request: Request) -> AsyncGenerator[aiohttp.ClientResponse]:
        client = self._client
        version = [client.api_version] if request.versioned else []
        url = URL("/".join([client.docker_host, *version, request.path])).with_query(request.query)
        async with client.session.request(
            request.method, url, data=request.content(), headers=request.headers
        ) as response:
            if response.status >= 400 and not (request.missing_ok and response.status == 404):
                text = (await response.read()).decode("utf-8", "replace")
                raise refusal(response.status, _message(text), request.name)
            yield response

    @asynccontextmanager
    async def attached(self, container: str) -> AsyncGenerator[Attached]:
        """What a container reads and writes, from its next start on."""
        box = DockerContainer(self._client, id=container)
        stream = box.attach(stdin=True, stdout=True, stderr=True)
        try:
            await self._enter(stream, container)
            yield Attached(stream, self.endpoint)
        finally:
            await stream.close()

    async def _enter(self, stream: Stream, container: str) -> None:
        call = f"attach {container}"
        try:
            with anyio.fail_after(SHORT):
                await stream.__aenter__()
        except TimeoutError as error:
            raise _late(call, SHORT) from error
        except aiodocker.DockerError as error:
            if isinstance(error.__context__, aiohttp.ClientError | OSError):  # it was never asked
                raise unreachable(self.endpoint, error.__context__) from error
            raise refusal(error.status, error.message, call) from error
        except (aiohttp.ClientError, OSError) as error:
            raise unreachable(self.endpoint, error) from error


class Attached:
    """Both ends of a container."""

    def __init__(self, stream: Stream, endpoint: Endpoint) -> None:
        self._stream = stream
        self._endpoint = endpoint

    async def send(self, data: bytes) -> None:
        """Write to its standard input."""
        try:
            await self._stream.write_in(data)
        except (aiohttp.ClientError, OSError) as error:
            raise unreachable(self._endpoint, error) from error

    async def read(self) -> tuple[int, bytes] | None:
        """The next piece of its output, and whether that is 1, standard output, or 2, standard error; None at the end.

        Nothing more is read from the engine than is asked for here, but for a small buffer.
        """
        try:
            message = await self._stream.read_out()
        except (aiohttp.ClientError, OSError) as error:
            raise unreachable(self._endpoint, error) from error
        return None if message is None else (message.stream, message.data)


def _late(call: str, within: float) -> EngineBusyError:
    return EngineBusyError(
        f"the container engine did not answer `{call}` within {within:g} s",
        hint="see its log, and whether its disk or its machine is overloaded",
    )


def dig(answer: Json, *names: str) -> Json:
    """What lies at the end of those names in an answer; None where there is nothing, as engines leave much out."""
    for name in names:
        answer = cast("dict[str, Any]", answer).get(name) if isinstance(answer, dict) else None
    return answer


def _message(text: str) -> str:
    try:
        content = json.loads(text)
    except ValueError:
        return text.strip()
    return str(cast("dict[str, Any]", content).get("message", text)) if isinstance(content, dict) else text


def _connect(endpoint: Endpoint) -> aiodocker.Docker:
    address = endpoint.address
    if endpoint.socket is not None:
        connector: aiohttp.BaseConnector = aiohttp.UnixConnector(str(endpoint.socket), limit=0)
        return aiodocker.Docker("unix://localhost", connector=connector)
    if address.startswith("ssh://"):
        try:
            return aiodocker.Docker(address)
        except (aiodocker.DockerError, ImportError, ValueError, RuntimeError) as error:
            raise EngineAccessError(
                f"the container engine at {address} cannot be reached over SSH: {error}",
                hint="`pip install aiodocker[ssh]`, or forward it: ssh -L ./docker.sock:/var/run/docker.sock",
            ) from error
    secure = endpoint.tls is not None or address.startswith("https://")
    host = address.partition("://")[2]
    connector = aiohttp.TCPConnector(ssl=_ssl(endpoint.tls) if secure else False, limit=0)
    return aiodocker.Docker(f"{'https' if secure else 'http'}://{host}", connector=connector)


def _ssl(tls: Tls | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=tls.ca if tls else None)
        if tls and not tls.verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if tls and tls.cert:
            context.load_cert_chain(tls.cert, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise EngineAccessError(
            f"the certificates for the container engine cannot be used: {error}",
            hint="see DOCKER_CERT_PATH, or the TLS files of the Docker context",
        ) from error
    return context
