"""Headers of tar archives that others have made, read with nothing taken on trust.

`tarfile` takes the first header that makes no sense for the end of the archive, follows a negative size backwards (for
ever: CVE-2025-8194), holds headers of any size in memory, and lets `ValueError` and its like out of fields that hold
rubbish. With `tarinfo=StrictTarInfo` it raises `tarfile.ReadError` instead. Standard library only: helpers use it, too.
"""

from __future__ import annotations

import re
import tarfile
from typing import Self

LARGEST_HEADER = 1 << 20
"""Bytes of one extended header: as much as Go's reader takes (`maxSpecialFileSize`), and so engines and registries."""

_HEADERS = frozenset(
    {
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    }
)
_ENDS = frozenset({"EOFHeaderError", "EmptyHeaderError"})
"""Exceptions by which `tarfile` tells itself that an archive ends."""
_LARGEST = 1 << 62
"""Bytes of a file, and seconds of a time: what is done with them has to fit in 63 bits."""
_EXACT = re.compile(r"-?\d{1,18}(?:\.\d*)?", re.ASCII)


class HostileHeaderError(tarfile.ReadError):
    """A header that would lead a reader astray: its size is negative, or beyond all measure."""


class StrictTarInfo(tarfile.TarInfo):
    """See the module."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """A plain header. Raises ReadError for what is none, but not for the marks of an archive's end."""
        try:
            info = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if type(error).__name__ in _ENDS:
                raise
            raise tarfile.ReadError(f"a header makes no sense: {error}") from error
        if info.type in _HEADERS and info.size > LARGEST_HEADER:
            raise HostileHeaderError(f"a header of {info.size:,} bytes")
        _check(info)
        return info

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        """The next entry, with all that extended headers say of it. Raises ReadError."""
        try:
            info = super().fromtarfile(tarfile)
        except (ValueError, ArithmeticError, LookupError, RecursionError) as error:
            raise _rubbish(str(error)) from error
        _check(info)
        return info


def exact_time(info: tarfile.TarInfo) -> str | None:
    """Seconds as an extended header has them, with all decimals (POSIX pax); None where it has none that make sense."""
    told = str(info.pax_headers.get("mtime", ""))
    return told if _EXACT.fullmatch(told) else None


def _check(info: tarfile.TarInfo) -> None:
    if not 0 <= info.size <= _LARGEST:
        raise HostileHeaderError(f"a member of negative or endless size ({info.size} bytes)")
    if "\0" in info.name or "\0" in info.linkname:
        raise _rubbish(f"{info.name[:200]!r} or what it links to is no name")
    if not -_LARGEST <= info.mtime <= _LARGEST:  # nor is what is no number
        raise _rubbish(f"{info.name[:200]!r} is of the time {info.mtime}")


def _rubbish(why: str) -> tarfile.ReadError:
    return tarfile.ReadError(f"a header makes no sense: {why}")
