"""Whether a race was lost to the network: then nothing is known of the repository, and trying again may help."""

from __future__ import annotations

import re
from collections.abc import Iterable

from specbuild.environment import CandidateReport
from specbuild.errors import TransientError

_SIGNS = re.compile(
    r"temporary failure (in name resolution|resolving)"  # libc, by way of apt, pip, curl
    r"|could not resolve (host|proxy)"  # curl, git
    r"|failed to lookup address information|dns error"  # uv, cargo
    r"|network is unreachable|no route to host"
    r"|(could not|unable to) connect to \S+:\d+"  # apt
    r"|failed to establish a new connection|cannot connect to proxy|max retries exceeded with url"  # pip
    r"|error sending request for url"  # uv
    r"|connection timed out",
    re.IGNORECASE,
)
"""What apt, pip, uv, git and curl write when they reach nobody. An answer that says no, such as 404, is none of it."""


def refuse_outage(candidates: Iterable[CandidateReport], *, engine: str = "") -> None:
    """Raise TransientError if every candidate that failed did so because a step before its tests reached nobody.

    `engine` is the address of the container engine in whose containers they ran, if they did.
    """
    failed = [candidate for candidate in candidates if candidate.end == "failed"]
    signs = [_sign(candidate) for candidate in failed]
    if signs and all(signs):
        first = failed[0]
        there = f"see whether containers of the engine at {engine} reach networks and name servers, or "
        log = f"; all of it is in {first.log}" if first.log else ""
        raise TransientError(
            f"the network failed in {first.failed_step!r}, so no candidate came to its tests: {signs[0]}",
            hint=f"{there if engine else ''}try again later; behind a proxy set HTTP_PROXY and HTTPS_PROXY{log}",
        )


def _sign(candidate: CandidateReport) -> str:
    """The line that tells of the outage, or nothing."""
    if candidate.verdict is not None:
        return ""
    return next((line.strip() for line in candidate.tail.splitlines() if _SIGNS.search(line)), "")
