"""Images of a container engine on this machine, through the part of Docker's interface that Podman has as well.

An engine gives an image as one archive. What of it is wanted is taken as it comes by; nothing else is written down.
The archive's form has changed over time: `ID/layer.tar` with manifests at the end, `DIFF-ID.tar`, an OCI layout.
"""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import IO, Protocol
from urllib.parse import quote

import anyio
import anyio.lowlevel
import anyio.to_thread

from specbuild.errors import DownloadError, ImageNotFoundError, IntegrityError, UsageError
from specbuild.http import Answer, Client, Network
from specbuild.oci.compression import open_layer
from specbuild.oci.content import ImageConfig
from specbuild.oci.places import from_json, table, texts
from specbuild.oci.reference import parse_reference
from specbuild.strict_tar import StrictTarInfo

_API = "http://engine/v1.41"
"""What Docker 20.10 and Podman 4 speak, and all since."""
_HEX = re.compile(r"[0-9a-f]{64}")
_ID = re.compile(r"(?:sha256:)?[0-9a-f]{64}")
_SPOOL = ".layer"


class EngineImage:
    """An image as the engine tells of it. Raises ValueError for what makes no sense."""

    def __init__(self, name: str, told: Mapping[str, object]) -> None:
        self.name = name
        found = str(told.get("Id") or "")
        if not _ID.fullmatch(found):
            raise ValueError(f"an image has the id {found[:80]!r}")
        self.id = f"sha256:{found.removeprefix('sha256:')}"
        """Its digest, by which the engine finds it whatever happens to its names."""
        self.diff_ids = texts(table(told.get("RootFS")).get("Layers"))
        """Lowest first."""
        self.config = ImageConfig.model_validate({"config": table(told.get("Config"))})


class Saver(Protocol):
    """What gives images of an engine."""

    async def save(self, image: EngineImage, sink: int) -> None:
        """Write the image's archive to a pipe."""
        ...


class Engine:
    """An engine behind a socket. Made by `open_engine`."""

    def __init__(self, client: Client, socket: Path) -> None:
        self._client = client
        self._socket = socket

    async def inspect(self, name: str) -> EngineImage:
        """The image of that name, digest or id. Raises ImageNotFoundError."""
        if not is_name(name):
            raise ImageNotFoundError(f"{name!r} is neither the name nor the id of an image", status=404)
        async with self._ask(f"images/{quote(name, safe=':@/')}/json", name) as answer:
            try:
                return EngineImage(name, table(from_json(await answer.read())))
            except ValueError as error:
                raise DownloadError(
                    f"what answers at {self._socket} is no container engine, or an odd one: {_first_line(error)}",
                    hint="check DOCKER_HOST, or the Docker context",
                ) from error

    async def save(self, image: EngineImage, sink: int) -> None:
        """Write the image's archive to a pipe."""
        async with self._ask(f"images/{quote(image.id, safe=':')}/get", image.name) as answer:
            async for chunk in answer.chunks():
                await anyio.to_thread.run_sync(_write_all, sink, chunk)

    @asynccontextmanager
    async def _ask(self, path: str, name: str) -> AsyncGenerator[Answer]:
        async with self._client.exchange("GET", f"{_API}/{path}") as answer:
            if answer.status == 404:
                raise ImageNotFoundError(
                    f"the engine at {self._socket} has no image {name}",
                    status=404,
                    hint=f"`docker pull {name}` or `podman pull {name}`, or name it without `engine:` to fetch it",
                )
            if answer.status != 200:
                raise DownloadError(f"the engine at {self._socket} answers HTTP {answer.status} {answer.reason}")
            yield answer


class SavedLayers:
    """The layers of an engine's image that are asked for, as files in `folder`, out of one archive if need be."""

    def __init__(self, engine: Saver, image: EngineImage, folder: Path) -> None:
        self._engine = engine
        self._image = image
        self._folder = folder
        self._wanted: set[str] = set()
        self._found: dict[str, Path] = {}
        self._lock = anyio.Lock()

    async def fetch(self, diff_id: str) -> Path:
        """The layer's archive. Raises IntegrityError if the engine's image turns out to have no such layer."""
        self._wanted.add(diff_id)
        await anyio.lowlevel.checkpoint()  # whoever else wants some says so before the archive is asked for
        async with self._lock:
            if diff_id not in self._found:
                await self._take()
        if diff_id not in self._found:
            raise IntegrityError(
                f"the engine's archive of {self._image.name} has no layer {diff_id}",
                hint="its image may be damaged, or hold an empty file in place of a layer: pull or build it again",
            )
        return self._found[diff_id]

    async def _take(self) -> None:
        read, write = os.pipe2(os.O_CLOEXEC)

        async def save() -> None:
            try:
                await self._engine.save(self._image, write)
            finally:
                os.close(write)

        async def sort() -> None:
            await anyio.to_thread.run_sync(partial(self._sort, read))

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(save)
                tasks.start_soon(sort)
        except ExceptionGroup as group:  # a reader that fails breaks the pipe, which is no news
            errors = sorted(group.exceptions, key=lambda error: isinstance(error, BrokenPipeError))
            raise errors[0] from None

    def _sort(self, fd: int) -> None:
        """Keep what is wanted of the archive that comes through the pipe."""
        with os.fdopen(fd, "rb", buffering=1 << 20) as source:
            try:
                with tarfile.open(fileobj=source, mode="r|", tarinfo=StrictTarInfo) as tar:
                    for member in tar:
                        content = tar.extractfile(member) if member.isreg() else None
                        if content is not None and self._may_be_wanted(member.name):
                            self._keep(content)
            except tarfile.TarError as error:
                raise IntegrityError(f"the engine's archive of {self._image.name} is damaged: {error}") from error
            while source.read(1 << 20):
                pass

    def _may_be_wanted(self, name: str) -> bool:
        """Newer forms name layers by their digests; of the others only the content tells."""
        named = [f"sha256:{found}" for found in _HEX.findall(name)]
        known = [digest for digest in named if digest in self._image.diff_ids]
        return not name.endswith(".json") and (not known or known[-1] in self._wanted)

    def _keep(self, content: IO[bytes]) -> None:
        start = content.read(1 << 18)
        if start[:1] in {b"{", b"[", b""} or start.startswith(b"1.0"):  # manifests, configurations, versions
            return
        path = self._folder / f"{len(list(self._folder.iterdir()))}{_SPOOL}"
        with path.open("wb") as target:
            target.write(start)
            for piece in _pieces(content):
                target.write(piece)
        diff_id = _diff_id(path)
        if diff_id in self._wanted and diff_id not in self._found:
            self._found[diff_id] = path
        else:
            path.write_bytes(b"")  # its name stays taken


def is_name(text: str) -> bool:
    """Whether an image may have that name, or (part of) that id."""
    if re.fullmatch(r"(?:sha256:)?[0-9a-f]{1,64}", text):
        return True
    try:
        parse_reference(text)
    except UsageError:
        return False
    return True


def _first_line(error: ValueError) -> str:
    return str(error).partition("\n")[0]


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(1 << 20):
        yield piece


def _diff_id(path: Path) -> str:
    """The digest of an archive before compression."""
    digest = hashlib.sha256()
    with open_layer(path) as plain:
        for piece in _pieces(plain):
            digest.update(piece)
    return f"sha256:{digest.hexdigest()}"


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


@asynccontextmanager
async def open_engine(socket: Path) -> AsyncGenerator[Engine]:
    """The engine that listens on a socket. Asking it raises UnreachableError where it does not."""
    async with Client(Network(unix_socket=socket)) as client:
        yield Engine(client, socket)
