"""Lines of output, made plain before they are looked at."""

from __future__ import annotations

import re

LINE = 2048
"""Characters of a line that are looked at; the messages of tools are shorter, and the rest of a longer line is data."""

COLOURED = 2 * LINE
"""Characters of a line with colours of which the sequences are taken out."""

EVIDENCE = 400
"""Characters of a line that are kept with a failure."""

_COLOURS = re.compile(r"\x1b\[[0-9;?]{0,16}[A-Za-z]|\x1b\][^\x07\x1b]{0,80}\x07")
_WRAPPERS = re.compile(
    r"(?:\s{1,40}"
    r"|(?:#\d{1,4} )?\d{1,5}\.\d{1,3} "  # BuildKit
    r"|\d{4}-\d\d-\d\dT[\d:.]{8,18}Z "  # CI services
    r"|[│╰├]─?▶? "  # boxes of pip and uv
    r"|(?:×|>|E(?= {2})) "  # pip, gradle, pytest
    r"|npm (?:error|ERR!|warn|WARN) |gyp ERR! |prebuild-install warn \w{1,20} "
    r"|DEBUG (?=\S| )"  # uv, of what it builds
    r"|\[(?:ERROR|FATAL|WARNING|stderr)\] ?"  # maven, test runners
    r"|[\w.-]{1,60}_test\.go:\d{1,6}: "  # go test
    r"|[\w.-]{1,40}[_-]\d{1,3} {1,12}\| |cargo:warning=|= note: |INTERNALERROR> ?"  # compose, cargo, pytest
    r"){1,6}"
)
"""What other tools put before a line that they pass on."""


_LEADERS = re.compile(
    r"(?:(?:FAILED|ERROR) .{1,300}? - (?=[A-Z])"  # pytest's summary
    r"|(?!Assert|Skip|\w{0,60}Warning: )[A-Za-z]?[\w.:\\]{0,100}(?:Error|Exception\w{0,12}|NotFound|Missing"
    r"|Failure|Failed|Refused|Exit): "
    r"|(?:[Ee]rror|ERROR|[Ff]atal|FATAL|panic|Caused by|cause|Uncaught|Unhandled error event|\[\w{1,20}\]): "
    r"|(?:Uncaught|PHP Fatal error: {1,2}Uncaught|\[\w{1,20}\]) (?=\w)"
    r"|thread '[^']{1,60}' (?:\(\d{1,9}\) )?panicked at (?:[^\s:]{1,200}:\d{1,6}:\d{1,6}: |'(?=[a-zA-Z]))"
    r"|called `Result::unwrap\(\)` on an `Err` value: \"?"
    r"|Exception in thread \"[^\"]{1,60}\" "
    r"|[^\s\"`']{1,200}:\d{1,6}:in [`'][^`']{1,80}': "  # ruby
    r"|(?:Received unexpected error|Message|unexpected error|Original error was|The error was): {1,4}"
    r"|(?:could not compile `[^`]{1,80}`[^;]{0,80}|server exited with status \d{1,3}|Rule \d{1,3}): ?;? ?"
    r")(?=\S)"
)
"""What raises a message and repeats it: the classes of exceptions, and words that say error and no more."""


def uncoloured(line: str) -> str:
    """The line without the sequences that colour it, which may stand right before a word."""
    return _COLOURS.sub("", line)


def inner(text: str) -> str:
    """The message without what leads it, or nothing if nothing does."""
    found = _LEADERS.match(text)
    return text[found.end() :] if found else ""


def plain(line: str) -> str:
    """The line without end, colours and the marks that wrap it, at most LINE characters."""
    text = line[:LINE]
    if "\x1b" in text:
        text = _COLOURS.sub("", text)
    if "\r" in text:
        text = text.rstrip("\r\n").rsplit("\r", 1)[-1]
    if wrapper := _WRAPPERS.match(text):
        text = text[wrapper.end() :]
    return text.rstrip()
