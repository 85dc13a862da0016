"""Where the engine listens: `DOCKER_HOST`, the user's Docker context, or a socket at one of the usual places.

The order is that of the docker command line: `DOCKER_HOST` goes before `DOCKER_CONTEXT`, which goes before the
`currentContext` of `config.json` in `DOCKER_CONFIG` or `~/.docker`.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from specbuild.errors import ConfigError, EngineNotRunningError

DEFAULT_PORT = 2375


@dataclass(frozen=True, slots=True)
class Tls:
    """How to prove who we are and to know who answers; files in PEM."""

    ca: Path | None
    cert: Path | None
    key: Path | None
    verify: bool = True


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of an engine: `unix:///path`, `tcp://host:port` or `ssh://user@host`."""

    address: str
    tls: Tls | None = None
    origin: str = ""
    """What named it, in words."""

    @property
    def socket(self) -> Path | None:
        """The path of a unix socket."""
        return Path(self.address.removeprefix("unix://")) if self.address.startswith("unix://") else None


def find_endpoint(environ: Mapping[str, str] | None = None) -> Endpoint:
    """The engine that `docker` would talk to, else Podman's; one that this user may use before one that he may not.

    Raises ConfigError, EngineNotRunningError.
    """
    env = os.environ if environ is None else environ
    home = Path(env.get("HOME") or "/root")
    config = Path(env.get("DOCKER_CONFIG") or home / ".docker")
    if host := env.get("DOCKER_HOST"):
        return Endpoint(_checked(host, "DOCKER_HOST"), _tls_of_environment(env, config, host), "DOCKER_HOST")
    name = env.get("DOCKER_CONTEXT") or _current_context(config)
    if name and name != "default":
        return _of_context(config, name)
    if there := [path for path in sockets(env) if _is_socket(path)]:
        mine = next((path for path in there if os.access(path, os.R_OK | os.W_OK)), there[0])
        return Endpoint(f"unix://{mine}", origin="its usual place")
    raise EngineNotRunningError(
        "no container engine was found: DOCKER_HOST is not set, there is no Docker context, and no socket at "
        + ", ".join(map(str, sockets(env))),
        hint="start Docker (`systemctl start docker`) or Podman's service (`systemctl start podman.socket`)",
    )


def endpoint_at(address: str, environ: Mapping[str, str] | None = None) -> Endpoint:
    """The engine at an address that was found before; with its certificates, if it is still the one that is found.

    Raises ConfigError.
    """
    try:
        found = find_endpoint(environ)
    except (ConfigError, EngineNotRunningError):
        found = None
    return found if found and found.address == address else Endpoint(_checked(address, "the environment"))


def sockets(env: Mapping[str, str]) -> Iterator[Path]:
    """Where engines put their sockets: rootful first, as `docker` does, and Docker before Podman."""
    runtime = env.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    yield Path("/var/run/docker.sock")
    yield Path(runtime, "docker.sock")
    yield Path(env.get("HOME") or "/root", ".docker/run/docker.sock")
    yield Path("/run/podman/podman.sock")
    yield Path(runtime, "podman/podman.sock")


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False


def _makes_sense(address: str) -> bool:
    """Whether it names a socket, or a host and perhaps a port, in a way that engines are reached."""
    kind, found, rest = address.partition("://")
    if kind == "unix":
        return rest.startswith("/") and "\0" not in rest
    try:
        parts = urlsplit(address)
        return bool(found and kind in {"tcp", "http", "https", "ssh"} and parts.hostname and parts.port != 0)
    except ValueError:  # a port or an address of IPv6 that is none
        return False


def _checked(host: str, origin: str) -> str:
    if not _makes_sense(host):
        raise ConfigError(
            f"{origin} names an engine at {host!r}, which is no address that can be used",
            hint="use unix:///path/to.sock, tcp://host:port or ssh://user@host",
        )
    return host


def _tls_of_environment(env: Mapping[str, str], config: Path, host: str) -> Tls | None:
    """As docker has it: any value of DOCKER_TLS_VERIFY but none means yes."""
    if not host.startswith(("tcp://", "https://")) or not (env.get("DOCKER_TLS_VERIFY") or env.get("DOCKER_TLS")):
        return None
    folder = Path(env.get("DOCKER_CERT_PATH") or config)
    return Tls(folder / "ca.pem", folder / "cert.pem", folder / "key.pem", verify=bool(env.get("DOCKER_TLS_VERIFY")))


def _current_context(config: Path) -> str:
    try:
        content = json.loads((config / "config.json").read_bytes())
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise ConfigError(f"{config / 'config.json'} cannot be read: {error}", hint="set DOCKER_HOST") from error
    name = cast("dict[str, Any]", content).get("currentContext") if isinstance(content, dict) else None
    return name if isinstance(name, str) else ""


def _of_context(config: Path, name: str) -> Endpoint:
    """A context's endpoint; its files lie in folders that are named by the digest of its name."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    meta = config / "contexts/meta" / digest / "meta.json"
    hint = "see `docker context ls`, or set DOCKER_HOST"
    try:
        docker = json.loads(meta.read_bytes())["Endpoints"]["docker"]
        host, lax = str(docker["Host"]), bool(docker.get("SkipTLSVerify", False))
    except FileNotFoundError as error:
        raise ConfigError(f"there is no Docker context {name!r} in {config}", hint=hint) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"the Docker context {name!r} cannot be used: {meta}: {error}", hint=hint) from error
    tls = _tls_of_context(config / "contexts/tls" / digest / "docker", lax=lax)
    return Endpoint(_checked(host, f"the Docker context {name!r}"), tls, f"the Docker context {name!r}")


def _tls_of_context(folder: Path, *, lax: bool) -> Tls | None:
    ca, cert, key = (folder / name for name in ("ca.pem", "cert.pem", "key.pem"))
    if not any(path.is_file() for path in (ca, cert, key)):
        return None
    own = cert.is_file() and key.is_file()
    return Tls(ca if ca.is_file() else None, cert if own else None, key if own else None, verify=not lax)
