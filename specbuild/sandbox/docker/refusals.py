"""What an engine refuses, as errors of ours, each with what to do about it."""

from __future__ import annotations

import errno
import os
import re
import ssl

from specbuild.errors import (
    EngineAccessError,
    EngineError,
    EngineFullError,
    EngineNotRunningError,
    EngineTooOldError,
    PullLimitError,
)
from specbuild.sandbox.docker.endpoint import Endpoint

_FULL = re.compile(r"no space left on device|disk quota exceeded|not enough space", re.IGNORECASE)
_LIMIT = re.compile(r"toomanyrequests|too many requests|pull rate limit", re.IGNORECASE)
_OLD = re.compile(r"client version [\d.]+ is too|(client|minimum supported) API version", re.IGNORECASE)
_DENIED = re.compile(r"permission denied.*docker daemon|authorization denied", re.IGNORECASE)


def refusal(status: int, message: str, call: str) -> EngineError:
    """The error for an answer of status 400 and above."""
    said = f"the container engine refused `{call}`: {message or f'status {status}'}"
    if _FULL.search(message):
        hint = "free some of its disk: `specbuild cache prune`, `docker system df`"
        return EngineFullError(f"the disk of the container engine is full: {message}", hint=hint, status=status)
    if status == 429 or _LIMIT.search(message):
        hint = "wait, log in (`docker login`), or set a mirror in the engine's configuration"
        return PullLimitError(f"a registry limits what may be pulled: {message}", hint=hint, status=status)
    if _OLD.search(message):
        return EngineTooOldError(said, hint="update the container engine, or SpecBuild", status=status)
    if status in {401, 403} or _DENIED.search(message):
        hint = "see whether a plugin or a proxy of the engine forbids this"
        return EngineAccessError(said, hint=hint, status=status)
    return EngineError(said, status=status)


def unreachable(endpoint: Endpoint, error: Exception) -> EngineError:
    """The error for a connection that could not be made, or broke."""
    where = f"the container engine at {endpoint.address}"
    said = _told(error)
    named = f" ({endpoint.origin})" if endpoint.origin else ""
    number = getattr(error, "errno", None)
    if number in {errno.EACCES, errno.EPERM}:
        hint = "join its group (`usermod -aG docker $USER`, then log in again), or use a rootless engine"
        return EngineAccessError(f"{where}{named} does not let you in: {said}", hint=hint)
    if isinstance(error.__cause__, ssl.SSLError) or "certificate" in str(error).lower():
        hint = "see DOCKER_CERT_PATH, DOCKER_TLS_VERIFY, or the TLS files of the Docker context"
        return EngineAccessError(f"{where}{named} cannot be trusted, or does not trust us: {said}", hint=hint)
    hint = "start it (`systemctl start docker`, or `podman system service -t 0`), or set DOCKER_HOST"
    return EngineNotRunningError(f"{where}{named} does not answer: {said}", hint=hint)


def _told(error: Exception) -> str:
    """In the system's words where it has some: aiohttp's repeat the address, and tell of TLS where there is none."""
    number = getattr(error, "errno", None)
    if isinstance(number, int) and number > 0:
        return os.strerror(number)
    return str(error).replace(" ssl:default", "")
