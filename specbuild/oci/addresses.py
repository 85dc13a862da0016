"""Where answers of a registry lead, and whether credentials may be sent there."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

from specbuild.errors import DownloadError

_PORTS = {"http": 80, "https": 443}


def resolved(base: str, location: str) -> str:
    """Where a `Location` header leads; to the same host never in a less safe way. Raises DownloadError for nowhere.

    A registry that does not know of the proxy before it, which does its TLS, tells of http.
    """
    ours = urlsplit(base)
    try:
        found = urlsplit(urljoin(base, location))
        port = found.port
    except ValueError as error:  # a port or an address of IPv6 that is none
        raise _nowhere(base, location) from error
    if not location or found.scheme not in _PORTS or not found.hostname:
        raise _nowhere(base, location)
    downgraded = (ours.scheme, found.scheme, found.hostname) == ("https", "http", ours.hostname)
    if downgraded and port in {None, _PORTS["http"], ours.port}:
        found = found._replace(scheme="https", netloc=ours.netloc)
    return found.geturl()


def same_origin(one: str, other: str) -> bool:
    """Whether two addresses are of the same server, asked in the same way."""
    return _origin(one) == _origin(other)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _nowhere(base: str, location: str) -> DownloadError:
    return DownloadError(f"{urlsplit(base).netloc} leads to {location[:200]!r}, which is no address")
