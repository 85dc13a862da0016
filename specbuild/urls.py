"""Addresses, and the secrets that people write into them."""

from __future__ import annotations

from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit


def host_of(parts: SplitResult) -> str:
    """Host and port as written, without user name and password."""
    return parts.netloc.rpartition("@")[2]


def without_credentials(url: str) -> str:
    """The address without user name and password; an `ssh://` user name, which is no secret, stays."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    if "@" not in parts.netloc:
        return url
    user = f"{parts.username}@" if parts.scheme.endswith("ssh") and parts.username else ""
    return urlunsplit(parts._replace(netloc=user + host_of(parts)))


def credentials_of(url: str) -> tuple[str, str] | None:
    """User name and password in the address, decoded; None when there are none."""
    parts = urlsplit(url)
    if parts.username is None:
        return None
    return unquote(parts.username), unquote(parts.password or "")
