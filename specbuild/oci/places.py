"""Where a user keeps what the programs of the container world read: settings, credentials, mirrors."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Places:
    """The files of Docker's and of Podman's family, most important first."""

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    home: Path = field(default_factory=Path.home)
    root: Path = Path("/")
    """`/`, except in tests."""

    def _config_home(self) -> Path:
        return Path(self.environ.get("XDG_CONFIG_HOME") or self.home / ".config")

    def docker_config(self) -> Path:
        """Docker's own settings of the user (`config.json`)."""
        return Path(self.environ.get("DOCKER_CONFIG") or self.home / ".docker") / "config.json"

    def credential_files(self) -> tuple[Path, ...]:
        """Files in the form of Docker's `config.json` (containers-auth.json(5) for Podman's)."""
        named = self.environ.get("REGISTRY_AUTH_FILE")
        runtime = self.environ.get("XDG_RUNTIME_DIR")
        found = [Path(named)] if named else []
        found.append(self.docker_config())
        if runtime:
            found.append(Path(runtime) / "containers/auth.json")
        return (*found, self._config_home() / "containers/auth.json")

    def daemon_files(self) -> tuple[Path, ...]:
        """Settings of Docker's engine: the rootless one's, then the system's."""
        return self._config_home() / "docker/daemon.json", self.root / "etc/docker/daemon.json"

    def registries_files(self) -> tuple[Path, ...]:
        """`registries.conf` of Podman's family: the user's replaces the system's, and drop-ins come after."""
        named = self.environ.get("CONTAINERS_REGISTRIES_CONF")
        own, system = self._config_home() / "containers", self.root / "etc/containers"
        main = Path(named) if named else own / "registries.conf"
        if not main.is_file():
            main = system / "registries.conf"
        drop_ins = (*system.glob("registries.conf.d/*.conf"), *own.glob("registries.conf.d/*.conf"))
        return (main, *sorted(drop_ins, key=lambda path: path.name))


def from_json(text: str | bytes) -> object:
    """What others have written as JSON. Raises ValueError for what is none, or nested without end."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; an empty one where there is none, or none that we may or can read."""
    try:
        return table(from_json(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def table(value: object) -> dict[str, Any]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def tables(value: object) -> list[dict[str, Any]]:
    """The objects of a list; nothing where it is none."""
    items: list[object] = value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
    return [found for item in items if (found := table(item))]


def texts(value: object) -> tuple[str, ...]:
    """The strings of a list; nothing where it is none."""
    if not isinstance(value, list):
        return ()
    items: list[object] = value  # pyright: ignore[reportUnknownVariableType]
    return tuple(item for item in items if isinstance(item, str))
