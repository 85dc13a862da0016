"""What a package index says of a project: PEP 691 (JSON) and PEP 503 (HTML) pages, and folders of distributions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1, */*;q=0.01"
"""The content types that we understand, best first (PEP 691)."""

SDIST_SUFFIXES = (".tar.gz", ".zip", ".tar.bz2", ".tgz", ".tar.xz", ".tar")
"""Names of source distributions, best first; `.tar.gz` alone is allowed since PEP 625."""


_LONGEST_NAME = 240
"""Characters: file systems take 255 bytes, and `.metadata` comes behind."""


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One distribution on an index."""

    name: str
    """Of the file."""
    url: str
    hashes: dict[str, str] = field(default_factory=dict[str, str])
    """Algorithm → hexadecimal digest."""
    uploaded: datetime | None = None
    """UTC; only indexes with PEP 700 tell."""
    yanked: str | None = None
    """The reason, which may be empty; None when it is not yanked."""
    requires_python: str = ""
    """A specifier of interpreters; empty where the index tells none."""
    metadata: bool | None = None
    """Whether the index has the core metadata at `url` + `.metadata` (PEP 658); None where it does not tell, as of
    mirrors that have the file and do not pass on its mark."""

    def version(self, project: str) -> str | None:
        """The version in the name of a source distribution of `project`; None for other files."""
        suffix = next((end for end in SDIST_SUFFIXES if self.name.lower().endswith(end)), None)
        return None if suffix is None else _version_in(self.name[: -len(suffix)], project)

    def wheel_version(self, project: str) -> str | None:
        """The version in the name of a wheel of `project`; None for other files."""
        parts = self.name.split("-")
        same = self.name.endswith(".whl") and len(parts) >= 5 and canonicalize_name(parts[0]) == project
        return parts[1] if same else None


def parse_page(body: bytes, content_type: str, url: str) -> list[IndexFile]:
    """The files on an index's page. Raises what bad data raises: ValueError, KeyError, TypeError, AttributeError.

    Names that are no file's, as those that lead to another folder, are left out: files are kept by them.
    """
    if "json" in content_type:
        found = list(_json_files(json.loads(body), url))
    else:
        parser = _Links(url)
        parser.feed(body.decode("utf-8", "replace"))
        parser.close()
        found = parser.files
    return [file for file in found if _is_file_name(file.name)]


def files_in(folder: Path) -> list[IndexFile]:
    """The files in a folder, as pip's `find-links` takes them."""
    if folder.is_file():
        return [IndexFile(folder.name, folder.absolute().as_uri())]
    if not folder.is_dir():
        return []
    return [IndexFile(path.name, path.absolute().as_uri()) for path in sorted(folder.iterdir()) if path.is_file()]


def version_key(version: str) -> tuple[bool, Version | str]:
    """Sorts versions; those from before PEP 440 come first."""
    try:
        return True, Version(version)
    except InvalidVersion:
        return False, version


def same_version(one: str, other: str) -> bool:
    """Whether two spellings mean the same version."""
    return version_key(one) == version_key(other)


def _is_file_name(name: str) -> bool:
    return name.isprintable() and len(name) <= _LONGEST_NAME and not name.startswith(".") and "/" not in name


def _version_in(stem: str, project: str) -> str | None:
    """Names and versions may both hold dashes, so every place to part them is tried."""
    for dash in re.finditer("-", stem):
        if canonicalize_name(stem[: dash.start()]) == project and stem[dash.end() :][:1].isdigit():
            return stem[dash.end() :]
    return None


def _json_files(page: Any, url: str) -> Iterable[IndexFile]:
    for entry in cast("list[dict[str, Any]]", page["files"]):
        yanked = entry.get("yanked", False)
        yield IndexFile(
            name=str(entry["filename"]),
            url=urljoin(url, str(entry["url"])),
            hashes={str(name): str(value) for name, value in cast("dict[str, Any]", entry.get("hashes") or {}).items()},
            uploaded=_time(entry.get("upload-time")),
            yanked=None if yanked is False else yanked if isinstance(yanked, str) else "",
            requires_python=str(entry.get("requires-python") or ""),
            metadata=_told(entry.get("core-metadata", entry.get("dist-info-metadata"))),
        )


def _told(mark: object) -> bool | None:
    """`true`, or a hash of the file; `false`; or nothing."""
    return None if mark is None else mark not in (False, "false")


def _time(text: object) -> datetime | None:
    try:
        when = datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None
    return when.replace(tzinfo=UTC) if when and when.tzinfo is None else when and when.astimezone(UTC)


class _Links(HTMLParser):
    """Collects the anchors of a page."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.files: list[IndexFile] = []
        self._base = url

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        href = values.get("href")
        if tag == "base" and href:
            self._base = urljoin(self._base, href)
        if tag != "a" or not href:
            return
        url, fragment = urldefrag(urljoin(self._base, href))
        algorithm, _, digest = fragment.partition("=")
        self.files.append(
            IndexFile(
                name=unquote(urlsplit(url).path.rpartition("/")[2]),
                url=url,
                hashes={algorithm: digest} if digest else {},
                yanked=(values["data-yanked"] or "") if "data-yanked" in values else None,
                requires_python=values.get("data-requires-python") or "",
                metadata=_told(values.get("data-core-metadata", values.get("data-dist-info-metadata"))),
            )
        )
