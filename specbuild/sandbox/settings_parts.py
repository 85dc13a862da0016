"""The host as a source of settings, and the parts that are taken from it.

Each reader (`certificates`, `indexes`, `registries`, `apt_settings`) is a function from a `Host` to a `HostSettings`;
`passthrough` joins them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from specbuild.sandbox.contract import Bind

SETTINGS_DIR = "/dev/specbuild/settings"
"""Where the files of host settings appear in a sandbox."""

MASK = "***"

STALE_AFTER = 7 * 86_400.0
"""Longer than any build lasts."""


@dataclass(frozen=True, slots=True)
class Host:
    """Where settings are read from: the caller's environment, home and root folder."""

    environ: Mapping[str, str]
    home: Path
    root: Path
    """`/`, except in tests."""
    folder: Path
    """Where generated files are placed. It must outlive the sandboxes that are shown them."""

    def at(self, path: str) -> Path:
        """An absolute path of the host."""
        return self.root / path.lstrip("/")

    def config_home(self) -> Path:
        """The folder of the user's own configuration (XDG base directory specification)."""
        return Path(self.environ.get("XDG_CONFIG_HOME") or self.home / ".config")

    def config_dirs(self) -> tuple[Path, ...]:
        """The folders of the machine's configuration, most important first."""
        given = self.environ.get("XDG_CONFIG_DIRS")
        return tuple(Path(part) for part in given.split(":") if part) if given else (self.at("/etc/xdg"),)

    def read(self, path: Path) -> str | None:
        """The text of a file, or None where there is none that we may read."""
        try:
            return path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None


def this_host(folder: Path) -> Host:
    """The machine that we run on, for the user that we run as; `folder` receives generated files."""
    return Host(os.environ, Path.home(), Path("/"), folder)


@dataclass(frozen=True, slots=True)
class HostSettings:
    """What Steps are given of the host on purpose: for running only, never part of a recipe, a layer or an export."""

    env: Mapping[str, str] = field(default_factory=dict[str, str])
    binds: tuple[Bind, ...] = ()
    secret_values: frozenset[str] = frozenset()
    """Credentials within `env` and the bound files; to be redacted from whatever is shown or stored."""
    notes: tuple[str, ...] = ()
    """Settings that could not be passed on, and why, in words."""

    def redact(self, text: str) -> str:
        """`text` without any of the secrets."""
        for secret in sorted(self.secret_values, key=len, reverse=True):
            text = text.replace(secret, MASK)
        return text


def join(parts: Iterable[HostSettings]) -> HostSettings:
    """All parts as one; where two set the same variable, the later one holds."""
    env: dict[str, str] = {}
    binds: dict[str, Bind] = {}
    secrets: set[str] = set()
    notes: list[str] = []
    for part in parts:
        env |= part.env
        binds |= {bind.target: bind for bind in part.binds}
        secrets |= part.secret_values
        notes += part.notes
    return HostSettings(dict(sorted(env.items())), tuple(binds.values()), frozenset(secrets), tuple(notes))


def place(host: Host, name: str, content: str) -> Bind:
    """Write a file that sandboxes are shown as `SETTINGS_DIR/name`.

    Root inside a sandbox is nobody outside and must be able to read it, so it is readable to all; the folder, which
    cannot be listed and bears the content's digest as its name, keeps other users of the machine from finding it.
    """
    host.folder.mkdir(parents=True, exist_ok=True)
    host.folder.chmod(0o711)
    folder = host.folder / hashlib.sha256(content.encode()).hexdigest()
    folder.mkdir(mode=0o711, exist_ok=True)
    path = folder / name
    if path.exists():
        os.utime(folder)
    else:
        descriptor, draft = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
            os.fchmod(descriptor, 0o644)
        Path(draft).replace(path)
    return Bind(path, f"{SETTINGS_DIR}/{name}")


def remove_stale(folder: Path) -> None:
    """Remove generated files that no build has asked for in `STALE_AFTER` seconds: they may hold credentials."""
    if not folder.is_dir():
        return
    for made in folder.iterdir():
        if re.fullmatch(r"[0-9a-f]{64}", made.name) and made.stat().st_mtime < time.time() - STALE_AFTER:
            shutil.rmtree(made, ignore_errors=True)


def secrets_in(*values: str) -> frozenset[str]:
    """User names and passwords within addresses, both as written and decoded.

    A user name alone is often a token; with a password beside it, it is none.
    """
    found: set[str] = set()
    for word in (word for value in values for word in value.replace(",", " ").split()):
        try:
            parts = urlsplit(word.partition("=")[2] if "://" in word.partition("=")[2] else word)
        except ValueError:
            continue
        if secret := (parts.password or parts.username):
            found |= {secret, unquote(secret)}
    return frozenset(found)
