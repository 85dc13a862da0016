"""Why a bootstrap failed, by what the tool and its apt printed."""

from __future__ import annotations

import re

from specbuild.bases.bootstrap import Tool
from specbuild.bases.releases import Release
from specbuild.errors import BaseUnavailableError, StoreError, TransientError

_NETWORK = re.compile(
    r"Could not resolve|Temporary failure resolving|Could not connect|Unable to connect|Cannot initiate the connection"
    r"|Connection (timed out|failed|refused|reset)|Network is unreachable|No route to host|Hash Sum mismatch"
    r"|File has unexpected size|Error reading from server|\b(429|50[0234])  ?\w+|Proxy Authentication Required",
    re.IGNORECASE,
)
_NO_SUITE = re.compile(
    r"does not have a Release file|\b(400|403|404|410)  ?[A-Z]|Release file .* (is|has) expired|no longer valid",
    re.IGNORECASE,
)
_NOT_SIGNED = re.compile(r"Release' is not signed", re.IGNORECASE)
"""apt says so, too, where it got no Release file at all."""
_POCKET = re.compile(r"[a-z]+-(security|updates)")
_CREDENTIALS = re.compile(r"://[^/@\s]+@")
_NO_SPACE = re.compile(r"No space left on device|not enough free space", re.IGNORECASE)
_UNTRUSTED = re.compile(r"NO_PUBKEY|is not signed|couldn't be verified|EXPKEYSIG|keyring .* not found", re.IGNORECASE)
_NO_USERNS = re.compile(
    r"newuidmap|newgidmap|/etc/sub[ug]id|unshare\b.*(failed|not permitted)|clone_newuser|unprivileged_userns"
    r"|unable to pick chroot mode",
    re.IGNORECASE,
)

BaseError = BaseUnavailableError | TransientError | StoreError


def lacks_pockets(tail: str) -> bool:
    """Whether only the suites for updates and security fixes are missing from the mirror."""
    errors = [line for line in tail.splitlines() if line.startswith("E: ")]
    missing = [line for line in errors if _NO_SUITE.search(line)]
    unsigned = [line for line in errors if _NOT_SIGNED.search(line)]
    return bool(missing) and all(_POCKET.search(line) for line in (*missing, *unsigned))


def explain(release: Release, tool: Tool, status: int, tail: str) -> BaseError:
    """The error that says what happened, why that usually is, and what to try."""
    last = _CREDENTIALS.sub("://***@", "\n".join(tail.splitlines()[-8:]))
    if _NO_SPACE.search(tail):
        return StoreError(
            f"the disk is full: debian:{release.name} needs about 600 MB while it is made:\n{last}",
            hint="free some space, or set TMPDIR and SPECBUILD_CACHE_DIR to a larger disk",
        )
    if _NETWORK.search(tail):
        return TransientError(
            f"the mirror of debian:{release.name} cannot be reached:\n{last}",
            hint="try again; is there a proxy that apt should use (Acquire::http::Proxy)?",
        )
    what = f"debian:{release.name} cannot be made: {tool.kind} ended with status {status}:\n{last}"
    return BaseUnavailableError(what, hint=_hint(release, tail))


def _hint(release: Release, tail: str) -> str:
    if _NO_SUITE.search(tail):
        return f"the mirror does not have {release.name}: name one that has by SPECBUILD_DEBIAN_MIRROR"
    if _UNTRUSTED.search(tail):
        return f"the keys for {release.name} are missing or too old: upgrade the package `debian-archive-keyring`"
    if _NO_USERNS.search(tail):
        return (
            "as an ordinary user this needs user namespaces: install `uidmap` and give the user a range in /etc/subuid"
        )
    return "choose another base (--base host uses the running system), or run as root"
