"""INI files with line numbers, read without ever failing."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a value, and where it stands (counted from 1)."""

    text: str
    number: int


Ini = dict[str, dict[str, list[Line]]]
"""Section → key (lower case, `-` as `_`) → the non-empty lines of the value."""

_SECTION = re.compile(r"\[(.+?)\]\s*(?:[#;].*)?$")
_KEY = re.compile(r"([^\s=:\[#;][^=:]*?)\s*[=:]\s*(.*)$")


def parse(text: str) -> Ini:
    """Sections of an INI file as configparser understands them; repeated keys: the last one counts."""
    result: Ini = {}
    section: dict[str, list[Line]] | None = None
    value: list[Line] | None = None
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.rstrip()
        if not line or line.lstrip().startswith(("#", ";")):
            continue
        if line[0].isspace() and value is not None:
            value.append(Line(line.strip(), number))
        elif header := _SECTION.match(line.strip()):
            section, value = result.setdefault(header[1].strip(), {}), None
        elif section is not None and (pair := _KEY.match(line.strip())):
            value = section[pair[1].strip().lower().replace("-", "_")] = []
            if pair[2].strip():
                value.append(Line(pair[2].strip(), number))
    return result


def items(lines: list[Line]) -> list[Line]:
    """A list value: one item a line, or comma-separated on a single line."""
    if len(lines) == 1:
        return [Line(part.strip(), lines[0].number) for part in lines[0].text.split(",") if part.strip()]
    return lines


def scalar(lines: list[Line] | None) -> str:
    """A value of one line; empty when there is none."""
    return lines[0].text if lines else ""
