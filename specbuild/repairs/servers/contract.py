"""What is known of a kind of server: what brings it, how it is started, how it is furnished for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Furnishing = Literal["database", "login", "default database"]
"""What a running server may lack."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How tests expect to find a server."""

    port: int
    hosts: tuple[str, ...] = ()
    """Names under which they look for it, beyond those of the loopback."""
    socket: str = ""
    """Path of the socket that a client was seen to look for."""
    user: str = ""
    password: str = ""
    databases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Server:
    """A kind of server."""

    name: str
    """As in `ServiceNeeded.service`."""
    title: str
    """For people."""
    packages: tuple[str, ...]
    """Debian's, of one name in bullseye, bookworm and trixie."""
    port: int = 0
    """Where clients look for it; 0 if it has none."""
    script: Callable[[Setup], str] | None = None
    """Shell lines that start it and return once it answers; None if the tests start it themselves."""
    furnish: Mapping[Furnishing, Callable[[str, Setup], str]] = field(
        default_factory=dict[Furnishing, Callable[..., str]]
    )
    """For what it may lack, shell lines that add the one of a name, run after `script`."""
    variables: tuple[tuple[str, str], ...] = ()
    """Where clients find it, if they do not look there by themselves."""
    images: tuple[str, ...] = ()
    """Names of container images, without registry and tag, and of services as CI systems call them."""
    settings: str = ""
    """Pattern of the names of variables by which tests are told of it."""
    probability: float = 0.8
    """That the server starts and answers, given that it is what the tests want; estimated from our own trials."""
