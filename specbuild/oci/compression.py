"""Layers as they are transferred: plain, or compressed by gzip or zstd; told apart by their first bytes."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from specbuild.errors import DownloadError

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
"""Frames that hold no data (RFC 8878, 3.1.2); `zstd:chunked` and `eStargz` tools put them first or last."""


@contextmanager
def open_layer(path: Path) -> Generator[IO[bytes]]:
    """Read the tar archive of a layer, decompressed. Raises DownloadError for data that cannot be decompressed."""
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(0)
        try:
            if start.startswith(_GZIP):
                with gzip.open(file) as plain:
                    yield plain  # type: ignore[misc]  # a reader, though no subclass of IO
            elif start == _ZSTD or int.from_bytes(start, "little") in _ZSTD_SKIPPABLE:
                with _zstd().open(file) as plain:
                    yield plain
            else:
                yield file
        except (EOFError, gzip.BadGzipFile, zlib.error, _zstd_error()) as error:
            raise DownloadError(f"a layer is damaged or cut short: {error}", hint="try again") from error


def _zstd() -> Any:
    """The standard library's module, or its backport."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def _zstd_error() -> type[Exception]:
    """What is raised for broken frames; asked for only when something is."""
    error: type[Exception] = _zstd().ZstdError
    return error
