"""Debian's Contents files, read as a stream: lines of `path   section/package,section/package`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from specbuild.knowledge.paths import CANDIDATE

_CHUNK = 4 << 20


def candidates(stream: BinaryIO) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each path that may be worth keeping with the `section/package` of its owners; memory stays flat."""
    rest = b""
    while chunk := stream.read(_CHUNK):
        block, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            rest += tail
            continue
        yield from _lines(rest + block)
        rest = tail
    yield from _lines(rest)


def _lines(block: bytes) -> Iterator[tuple[str, tuple[str, ...]]]:
    for match in CANDIDATE.finditer(block):
        fields = match[0].decode("utf-8", errors="replace").rsplit(None, 1)
        if len(fields) == 2:
            yield fields[0], tuple(fields[1].split(","))
