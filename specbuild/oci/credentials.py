"""Who the user is to a registry, by what `docker login` and `podman login` have kept.

For each file in order: the helper that `credHelpers` names for the registry, the `auths` entry, the helper in
`credsStore`. A helper is a program `docker-credential-NAME` that takes the registry on its standard input.
"""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from specbuild.oci.places import Places, from_json, read_json, table
from specbuild.oci.reference import DEFAULT_REGISTRY

_DOCKER_HUB = "https://index.docker.io/v1/"
"""Docker's name of its own registry, in files of credentials."""
_TOKEN_USER = "<token>"  # noqa: S105 - what helpers say in place of a user name
_HELPER_WITHIN = 20.0
"""Seconds; some ask the user, and somebody who is not there never answers."""
_LONGEST_ANSWER = 1 << 20
"""Bytes; tokens have a few KiB."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user name and password, or a token that stands for both."""

    username: str = ""
    password: str = ""
    identity_token: str = ""
    """Exchanged for others by the registry's own service (`grant_type=refresh_token`)."""

    @property
    def basic(self) -> str:
        """The value of an `Authorization` header."""
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()

    @property
    def are_text(self) -> bool:
        """Whether they can be sent: JSON can name half characters."""
        return not any("\ud800" <= sign <= "\udfff" for sign in f"{self.username}{self.password}{self.identity_token}")

    def __repr__(self) -> str:
        return f"Credentials({self.username!r}, …)"


async def find_credentials(places: Places, registry: str, repository: str) -> Credentials | None:
    """What the user has for a repository; None where nothing is kept, or a helper knows nothing."""
    for path in places.credential_files():
        config = read_json(path)
        names = tuple(_names(registry, repository))
        if helper := _named(table(config.get("credHelpers")), names):
            if found := await _ask(str(helper), registry):
                return found
        elif (found := _kept(table(config.get("auths")), names)) or (
            (store := config.get("credsStore")) and (found := await _ask(str(store), registry))
        ):
            return found
    return None


def _names(registry: str, repository: str) -> Iterator[str]:
    """Under what the entry may stand: Podman's files know namespaces, the longest first; Docker's, addresses."""
    parts = repository.split("/")
    for count in range(len(parts), 0, -1):
        yield "/".join((registry, *parts[:count]))
    if registry == DEFAULT_REGISTRY:
        yield _DOCKER_HUB
        yield "index.docker.io"
    yield registry


def _named(entries: dict[str, Any], names: Iterable[str]) -> Any:
    bare = {_bare(name): value for name, value in entries.items()}
    return next((found for name in names if (found := entries.get(name) or bare.get(name))), None)


def _bare(name: str) -> str:
    """Without the scheme and the version of the protocol that older files have."""
    host = name.partition("://")[2] if "://" in name else name
    return host.removesuffix("/").removesuffix("/v1").removesuffix("/v2")


def _kept(auths: dict[str, Any], names: Iterable[str]) -> Credentials | None:
    entry = table(_named(auths, names))
    username, password = str(entry.get("username") or ""), str(entry.get("password") or "")
    if auth := entry.get("auth"):
        try:
            username, _, password = base64.b64decode(str(auth)).decode().partition(":")
        except ValueError:  # neither base64 nor text in it
            return None
    token = str(entry.get("identitytoken") or "")
    found = Credentials(username, password.rstrip("\0"), token)
    return found if ((username and password) or token) and found.are_text else None


async def _ask(helper: str, registry: str) -> Credentials | None:
    """What a helper knows. One that is not installed, fails or hangs is as good as one that knows nothing."""
    if os.sep in helper:
        return None
    wanted = _DOCKER_HUB if registry == DEFAULT_REGISTRY else registry
    try:
        with anyio.fail_after(_HELPER_WITHIN):
            answer = table(from_json(await _run([f"docker-credential-{helper}", "get"], wanted.encode())))
    except (OSError, TimeoutError, ValueError):
        return None
    username, secret = str(answer.get("Username") or ""), str(answer.get("Secret") or "")
    if not secret:
        return None
    found = Credentials(identity_token=secret) if username == _TOKEN_USER else Credentials(username, secret)
    return found if found.are_text else None


async def _run(argv: Sequence[str], given: bytes) -> bytes:
    """What a program that succeeds prints; killed, with all that it has started, if it is not waited for any more.

    By files, not pipes: it need not read what it is given, and what it leaves behind may keep its output open.
    """
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout:
        stdin.write(given)
        stdin.seek(0)
        process = await anyio.open_process(
            argv, stdin=stdin, stdout=stdout, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            status = await process.wait()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with anyio.CancelScope(shield=True):  # it is dead
                await process.wait()
            raise
        stdout.seek(0)
        return stdout.read(_LONGEST_ANSWER) if status == 0 else b"{}"
