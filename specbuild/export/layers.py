"""The layers of a Checkpoint as files: streamed out of the store, digested and compressed on the way."""

from __future__ import annotations

import hashlib
import os
import zlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Protocol

import anyio
import anyio.to_thread

from specbuild.sandbox.contract import LayerSource
from specbuild.together import joined

_CHUNK = 1 << 20
_AT_ONCE = 2
"""Layers that are written at once: each keeps a core busy with reading and one with compressing."""

_LEVEL = 6
_GZIP = 31
"""Of zlib: a window of 32 KiB, and gzip's frame, in which it writes no time and no name."""

CACHES = r"var/cache/apt/[^/]*\.bin|var/cache/apt/archives/.*\.deb|root/\.cache/(?:pip|uv)/.*"
"""Names of what apt, pip and uv keep for themselves, make anew when it is missing, and nobody wants in an image."""


class Compression(StrEnum):
    """How a layer's file is compressed, and its media type."""

    NONE = "application/vnd.oci.image.layer.v1.tar"
    GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"


@dataclass(frozen=True, slots=True)
class LayerFile:
    """One layer of an image, as a file."""

    path: Path
    digest: str
    """`sha256:…` of the file."""
    diff_id: str
    """`sha256:…` of the tar archive, compressed or not."""
    size: int
    """Bytes of the file."""
    compression: Compression
    entries: int
    """Files that it holds or hides, its root folder apart."""

    @property
    def media_type(self) -> str:
        """As manifests name it."""
        return self.compression.value


async def write_layers(
    source: LayerSource, key: str, folder: Path, *, compression: Compression
) -> tuple[tuple[LayerFile, ...], ...]:
    """The layers of the Checkpoint `key`, lowest first, as files in `folder`: the base's, then those of each step.

    Memory is bounded whatever their size. Raises StoreError, OSError.
    """
    states = await source.layers(key)
    made: dict[str, LayerFile] = {}
    limit = anyio.CapacityLimiter(_AT_ONCE)

    async def write(name: str, path: Path) -> None:
        async with limit:
            made[name] = await _write_layer(source, name, path, compression)

    async with joined() as tasks:
        for number, name in enumerate(name for names in states for name in names):
            tasks.start_soon(write, name, folder / f"layer-{number}")
    return tuple(tuple(made[name] for name in names) for names in states)


async def write_root(source: LayerSource, key: str, path: Path) -> str:
    """All files of the Checkpoint `key` as one tar archive at `path`; its digest. Raises StoreError, OSError."""
    sink = await _stream(lambda fd: source.write_root(key, fd, without=CACHES), path, Compression.NONE)
    return f"sha256:{sink[0].diff.hexdigest()}"


async def _write_layer(source: LayerSource, name: str, path: Path, compression: Compression) -> LayerFile:
    sink, entries = await _stream(lambda fd: source.write_layer(name, fd, without=CACHES), path, compression)
    return LayerFile(
        path=path,
        digest=f"sha256:{sink.file_hash.hexdigest()}",
        diff_id=f"sha256:{sink.diff.hexdigest()}",
        size=sink.size,
        compression=compression,
        entries=entries,
    )


class _Writes(Protocol):
    async def __call__(self, fd: int, /) -> int: ...


async def _stream(write: _Writes, path: Path, compression: Compression) -> tuple[_Sink, int]:
    """Have `write` write into a pipe, and its other end into the file; both are done when this returns.

    A file that takes no more breaks the pipe: of both errors the file's is raised.
    """
    sink = _Sink(compression)
    counts: list[int] = []
    refused: list[OSError] = []
    reading, writing = os.pipe2(os.O_CLOEXEC)

    async def work() -> None:
        try:
            counts.append(await write(writing))
        finally:
            os.close(writing)  # the thread sees the end, whatever it was

    async def drain() -> None:
        try:
            await anyio.to_thread.run_sync(sink.drain, reading, path)
        except OSError as error:  # whose writer is told now, and ends by itself
            refused.append(error)

    try:
        async with joined() as tasks:
            tasks.start_soon(drain)
            await work()
    except Exception:  # the writer may call it what it likes that nobody reads on
        if not refused:
            raise
    if refused:
        raise refused[0]
    return sink, counts[0]


class _Sink:
    """Takes an archive in: digests it, compresses it, digests that."""

    def __init__(self, compression: Compression) -> None:
        self.diff = hashlib.sha256()
        self.file_hash = hashlib.sha256()
        self.size = 0
        self._packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP) if compression is Compression.GZIP else None

    def drain(self, fd: int, path: Path) -> None:
        """Read `fd`, which is closed then, to its end, into a new file. Runs in a thread."""
        with os.fdopen(fd, "rb", buffering=0) as source, path.open("xb") as target:
            while chunk := source.read(_CHUNK):
                self.diff.update(chunk)
                self._put(target, self._packer.compress(chunk) if self._packer else chunk)
            if self._packer:
                self._put(target, self._packer.flush())

    def _put(self, target: IO[bytes], data: bytes) -> None:
        self.file_hash.update(data)
        self.size += target.write(data)
