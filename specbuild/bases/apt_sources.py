"""Which mirrors this host's apt uses for Debian, in either format of sources.list(5)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from specbuild.bases.releases import ALIASES, RELEASES, Release

_ONE_LINE = re.compile(r"deb\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>.+)")
_SIGNED_BY = re.compile(r"signed-by=(\S+)")
_SUITE = re.compile(r"(?P<name>[a-z]+)(?P<pocket>-updates|-security|/updates|-backports[a-z-]*)?")

_NAMES = {release.name for release in RELEASES} | set(ALIASES) | {"buster", "stretch"}
_POCKETS = {None: "main", "-updates": "updates", "-security": "security", "/updates": "security"}


@dataclass(frozen=True, slots=True)
class Source:
    """One archive that apt fetches from."""

    uri: str
    suite: str
    components: tuple[str, ...]
    signed_by: str | None = None
    """An absolute path; keys that stand in the source itself are left out."""


@dataclass(frozen=True, slots=True)
class Mirrors:
    """Where Debian is fetched from. A part without an address is not fetched."""

    main: str
    updates: str | None = None
    security: str | None = None
    keyrings: tuple[str, ...] = ()

    def sources(self, release: Release, *, pockets: bool = True) -> tuple[Source, ...]:
        """The sources of `release` on these mirrors; without `pockets` the release alone."""
        found = [Source(self.main, release.name, ("main",))]
        if pockets and release.stable:
            if self.updates:
                found.append(Source(self.updates, f"{release.name}-updates", ("main",)))
            if self.security:
                found.append(Source(self.security, f"{release.name}-security", ("main",)))
        return tuple(found)


def host_sources(root: Path = Path("/")) -> tuple[Source, ...]:
    """Every enabled binary source of the host, in apt's order."""
    folder = root / "etc/apt"
    files = [folder / "sources.list", *sorted(folder.glob("sources.list.d/*"))]
    found: list[Source] = []
    for path in files:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if path.suffix == ".list":
            found += one_line_sources(text)
        elif path.suffix == ".sources":
            found += deb822_sources(text)
    return tuple(found)


def one_line_sources(text: str) -> Iterator[Source]:
    """The sources of a `*.list` file."""
    for line in text.splitlines():
        if match := _ONE_LINE.fullmatch(line.partition("#")[0].strip()):
            signed = _SIGNED_BY.search(match["options"] or "")
            yield Source(
                match["uri"], match["suite"], tuple(match["components"].split()), signed[1] if signed else None
            )


def deb822_sources(text: str) -> Iterator[Source]:
    """The sources of a `*.sources` file: one for each address and suite of each stanza."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for stanza in re.split(r"\n\s*\n", "\n".join(lines)):
        fields = _fields(stanza)
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in {"no", "false", "0"}:
            continue
        signed = fields.get("signed-by", "").strip()
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                components = tuple(fields.get("components", "").split())
                yield Source(uri, suite, components, signed if signed.startswith("/") else None)


def _fields(stanza: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    name = ""
    for line in stanza.splitlines():
        if line[:1].isspace():
            fields[name] = f"{fields.get(name, '')}\n{line.strip()}"
        elif ":" in line:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            fields[name] = value.strip()
    return fields


def debian_mirrors(sources: Sequence[Source]) -> Mirrors | None:
    """The mirrors of Debian among the host's sources; None on a host that is not of that family.

    The suites need not be those of the release that is wanted: a mirror of bookworm has bullseye as well.
    Only addresses that a sandbox can reach count.
    """
    pockets: dict[str, list[Source]] = {"main": [], "updates": [], "security": []}
    for source in sources:
        pocket = _pocket(source.suite)
        if pocket and "main" in source.components and urlsplit(source.uri).scheme in {"http", "https"}:
            pockets[pocket].append(source)
    updated = {source.uri for source in pockets["updates"]}
    main = max(pockets["main"], key=lambda source: _likeness(source.uri, updated), default=None)
    if main is None or not _likeness(main.uri, updated):
        return None
    updates, security = (pockets[name][0] if pockets[name] else None for name in ("updates", "security"))
    used = [source for source in (main, updates, security) if source]
    return Mirrors(
        main.uri,
        updates.uri if updates else main.uri,
        security.uri if security else None,
        tuple(dict.fromkeys(source.signed_by for source in used if source.signed_by)),
    )


def _likeness(uri: str, updated: Set[str]) -> int:
    """How much an address looks like Debian's own archive: others have suites named `stable` or `bookworm` as well."""
    if uri in updated:
        return 3
    path = urlsplit(uri).path.rstrip("/")
    return 2 if path.endswith("/debian") else int("debian" in path)


def _pocket(suite: str) -> str | None:
    match = _SUITE.fullmatch(suite)
    return _POCKETS.get(match["pocket"]) if match and match["name"] in _NAMES else None


def public_uri(uri: str) -> str:
    """The address without the credentials in it."""
    parts = urlsplit(uri)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def sources_file(release: Release, sources: Sequence[Source], keyring: str) -> tuple[str, str]:
    """Path and content of the sources inside a base, in the place and format of that release's container images."""
    if release.name == "bullseye":
        lines = [f"deb {public_uri(s.uri)} {s.suite} {' '.join(s.components)}\n" for s in sources]
        return "etc/apt/sources.list", "".join(lines)
    stanzas = [
        f"Types: deb\nURIs: {public_uri(s.uri)}\nSuites: {s.suite}\nComponents: {' '.join(s.components)}\n"
        f"Signed-By: {keyring}\n"
        for s in sources
    ]
    return "etc/apt/sources.list.d/debian.sources", "\n".join(stanzas)
