"""Debian's Sources files, read as a stream of stanzas, and the dependency fields in them (Policy 5.1, 7.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

_NAME = re.compile(r"\s*(?P<name>[a-z0-9][a-z0-9.+-]+)")
_FIELDS = frozenset(
    {
        "package",
        "package-list",
        "version",
        "homepage",
        "directory",
        "go-import-path",
        "checksums-sha256",
        "extra-source-only",
    }
    | {f"build-depends{part}" for part in ("", "-arch", "-indep")}
)


@dataclass(frozen=True, slots=True)
class SourcePackage:
    """One source package."""

    name: str
    version: str
    binaries: Mapping[str, str]
    """Binary package → section, udebs left out."""
    needs: tuple[str, ...]
    """Names of its build dependencies, the first of alternatives, each once."""
    homepage: str
    go_path: str
    """The import path of a Go library, or nothing."""
    directory: str
    """Where in the archive its files lie."""
    files: Mapping[str, str]
    """Name → sha256."""


def read_sources(lines: Iterable[str]) -> Iterator[SourcePackage]:
    """The packages of a Sources file."""
    fields: dict[str, str] = {}
    name = ""
    for line in lines:
        if line.isspace():
            yield from _packages(fields)
            fields, name = {}, ""
        elif line[0].isspace():
            if name:
                fields[name] += "\n" + line.strip()
        else:
            key, _, value = line.partition(":")
            name = key.lower() if key.lower() in _FIELDS else ""
            if name:
                fields[name] = value.strip()
    yield from _packages(fields)


def _packages(fields: Mapping[str, str]) -> Iterator[SourcePackage]:
    """None for an older version that is kept for the licences of what was built with it."""
    if "package" in fields and fields.get("extra-source-only", "no") != "yes":
        yield _package(fields)


def _package(fields: Mapping[str, str]) -> SourcePackage:
    needs = ",".join(fields.get(f"build-depends{part}", "") for part in ("", "-arch", "-indep"))
    return SourcePackage(
        name=fields["package"],
        version=fields.get("version", ""),
        binaries={row[0]: row[2] for row in _rows(fields, "package-list") if len(row) > 2 and row[1] == "deb"},
        needs=dependency_names(needs),
        homepage=fields.get("homepage", ""),
        go_path=fields.get("go-import-path", "").partition(",")[0].strip(),
        directory=fields.get("directory", ""),
        files={row[2]: row[0] for row in _rows(fields, "checksums-sha256") if len(row) == 3},
    )


def _rows(fields: Mapping[str, str], name: str) -> list[list[str]]:
    return [line.split() for line in fields.get(name, "").splitlines()]


def dependency_names(field: str) -> tuple[str, ...]:
    """The names in a dependency field: the first of alternatives, without versions, architectures and profiles.

    Left out is what only other kernels need (`[!linux-any]`, `[hurd-any]`, …), or only documentation (`<!nodoc>`).
    """
    found: dict[str, None] = {}
    for group in field.split(","):
        for alternative in group.split("|"):
            match = _NAME.match(alternative)
            if match and "<!nodoc>" not in alternative and not _elsewhere(alternative):
                found[match["name"]] = None
                break
    return tuple(found)


def _elsewhere(alternative: str) -> bool:
    restriction = re.search(r"\[([^\]]*)\]", alternative)
    if not restriction:
        return False
    words = restriction[1].split()
    if all(word.startswith("!") for word in words):
        return "!linux-any" in words
    return all(word.startswith(("hurd", "kfreebsd")) for word in words)
