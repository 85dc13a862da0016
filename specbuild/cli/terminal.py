"""What can be shown where: colour, width, characters, and streams that nobody reads any more."""

from __future__ import annotations

import os
import re
import select
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BufferedWriter, FileIO, StringIO, TextIOWrapper
from typing import TYPE_CHECKING, Literal, TextIO, cast

import click

from specbuild.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

ColorMode = Literal["auto", "always", "never"]

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # control sequences
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # operating system commands: window titles, links
    r"|\x1b[@-Z\\-_]?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
"""What a terminal obeys (ECMA-48). Output of foreign code is shown without it: it could forge or hide lines."""


@dataclass(frozen=True, slots=True)
class Symbols:
    """Marks of one character set."""

    running: str = "▶"
    won: str = "✓"
    lost: str = "✗"
    cancelled: str = "◌"
    waiting: str = "·"
    bar: str = "│"
    more: str = "…"
    next: str = "→"


UNICODE = Symbols()
ASCII = Symbols(running=">", won="+", lost="x", cancelled="-", waiting=".", bar="|", more="...", next="->")


def clean(text: str) -> str:
    """One line of foreign output as it looks at last, tabs widened, without anything that a terminal would obey."""
    return _ESCAPES.sub("", text.rstrip("\r\n").rpartition("\r")[2].replace("\n", " ")).expandtabs(8)


def make_streams_safe() -> None:
    """Let characters that the terminal cannot show appear as escapes, and closed streams swallow what they get.

    What is written arrives whole. Python loses the rest of a text that a pipe took a part of where it was told not to
    buffer (PYTHONUNBUFFERED), and where somebody else has made the pipe a non-blocking one.
    Descriptors 0 to 2 are all open afterwards: a file, or a pipe of the event loop, that got the number of a closed one
    would receive what is meant for the user.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # closed: it is the lowest free number now, and so the one that is given
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout = cast("TextIO | None", sys.stdout) or StringIO()
    sys.stderr = cast("TextIO | None", sys.stderr) or StringIO()
    sys.stdout = _safe(sys.stdout, sys.__stdout__)
    sys.stderr = _safe(sys.stderr, sys.__stderr__)


class _Patient(FileIO):
    """Waits until more can be written, whether the file blocks or not."""

    def write(self, data: ReadableBuffer, /) -> int:
        count: int | None
        while (count := super().write(data)) is None:
            select.select([], [self], [])
        return count


def _safe(stream: TextIO, original: TextIO | None) -> TextIO:
    if not isinstance(stream, TextIOWrapper):
        return stream
    if stream is not original:
        stream.reconfigure(errors="backslashreplace")
        return cast("TextIO", stream)  # somebody else's, who may want it back
    stream.flush()
    whole = BufferedWriter(_Patient(stream.fileno(), "wb", closefd=False))
    return TextIOWrapper(whole, encoding=stream.encoding, errors="backslashreplace", line_buffering=True)


def wants_color(stream: TextIO, mode: ColorMode, environ: Mapping[str, str]) -> bool:
    """Whether to colour `stream`: the option, then NO_COLOR (no-color.org), FORCE_COLOR, and what the stream is."""
    if mode != "auto":
        return mode == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream.isatty() and environ.get("TERM") != "dumb"


def _speaks_unicode(stream: TextIO) -> bool:
    try:
        "▶✓✗◌·│…→├└".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


@dataclass(slots=True)
class Terminal:
    """A text stream and what it can show. A reader that has gone away silences it."""

    stream: TextIO
    color: bool = False
    unicode: bool = True
    tty: bool = False
    width: int = 80
    """Columns; at least 20."""
    results: bool = False
    """Whether what cannot be written is missed: a full disk under it is an error then."""
    symbols: Symbols = field(init=False)
    _gone: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.symbols = UNICODE if self.unicode else ASCII

    @classmethod
    def of(
        cls,
        stream: TextIO,
        mode: ColorMode = "auto",
        environ: Mapping[str, str] | None = None,
        *,
        results: bool = False,
    ) -> Terminal:
        """What `stream` can show in this environment."""
        environ = os.environ if environ is None else environ
        return cls(
            stream=stream,
            color=wants_color(stream, mode, environ),
            unicode=_speaks_unicode(stream),
            tty=stream.isatty() and environ.get("TERM") != "dumb",
            width=max(20, shutil.get_terminal_size((100, 24)).columns),
            results=results,
        )

    def line(self, text: str = "") -> None:
        """Write one line. Raises UsageError for a result that nothing can take, such as a full disk."""
        if self._gone:
            return
        try:
            self.stream.write(text + "\n")
            self.stream.flush()
        except (BrokenPipeError, ValueError):  # ValueError: the stream is closed already
            self._silence()
        except OSError as error:
            self._silence()
            if self.results:
                raise UsageError(f"the result cannot be written: {error.strerror}") from error

    def _silence(self) -> None:
        self._gone = True
        _point_at_nothing(self.stream)

    def paint(self, text: str, color: str | None = None, *, bold: bool = False, dim: bool = False) -> str:
        """`text` in that colour, where colours are shown."""
        if not self.color:
            return text
        return click.style(text, fg=color, bold=bold or None, dim=dim or None)


def _point_at_nothing(stream: TextIO) -> None:
    """Spare the interpreter's last flush the same broken pipe, as the documentation of `signal` advises."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)
