"""Where pip and uv get packages from on this host.

Everything is passed on as variables, not as files: `UV_CONFIG_FILE` would hide the project's own `[tool.uv]`, and a
`pip.conf` at another place would be one more file to read. What chooses between versions (`only-binary`, `prerelease`,
…) is not passed on: it belongs to recipes.
"""

from __future__ import annotations

import configparser
import os
import re
import tomllib
from collections.abc import Mapping
from netrc import NetrcParseError, netrc
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from specbuild.sandbox.contract import Bind
from specbuild.sandbox.settings_parts import SETTINGS_DIR, Host, HostSettings, join, place, secrets_in

_PIP_KEYS = (
    "index-url",
    "extra-index-url",
    "find-links",
    "no-index",
    "trusted-host",
    "proxy",
    "timeout",
    "default-timeout",
    "retries",
)

_UV_VARIABLES = re.compile(
    r"UV_(DEFAULT_INDEX|INDEX|INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|INSECURE_HOST|INDEX_STRATEGY"
    r"|HTTP_TIMEOUT|REQUEST_TIMEOUT|HTTP_RETRIES|NATIVE_TLS|SYSTEM_CERTS"
    r"|PYTHON_INSTALL_MIRROR|PYPY_INSTALL_MIRROR|PYTHON_DOWNLOADS_JSON_URL|INDEX_.+_(USERNAME|PASSWORD))"
)

_UV_KEYS = {
    "index-url": "UV_INDEX_URL",
    "extra-index-url": "UV_EXTRA_INDEX_URL",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "allow-insecure-host": "UV_INSECURE_HOST",
    "index-strategy": "UV_INDEX_STRATEGY",
    "native-tls": "UV_NATIVE_TLS",
    "python-install-mirror": "UV_PYTHON_INSTALL_MIRROR",
    "pypy-install-mirror": "UV_PYPY_INSTALL_MIRROR",
}
"""uv.toml's settings and the variables that mean the same."""

_UV_SOURCES = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX")

_UV_FROM_PIP = {
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_EXTRA_INDEX_URL": "UV_INDEX",
    "PIP_FIND_LINKS": "UV_FIND_LINKS",
    "PIP_NO_INDEX": "UV_NO_INDEX",
    "PIP_TRUSTED_HOST": "UV_INSECURE_HOST",
}


def indexes(host: Host) -> HostSettings:
    """Index settings of pip and uv, with the credentials that they need."""
    pip = _pip(host)
    uv = _uv(host, pip)
    env = _on_one_line(pip | uv)
    env, binds, notes = _show_folders(host, env)
    secrets = secrets_in(*env.values()) | {value for name, value in env.items() if name.endswith("_PASSWORD")}
    return join([HostSettings(env, binds, frozenset(secrets), notes), _netrc(host, env)])


def pip_bundle(host: Host) -> str | None:
    """The file of certificates that pip's configuration files name."""
    return _pip_options(host).get("cert")


def _pip(host: Host) -> dict[str, str]:
    """pip's settings as variables: those of the caller before those of the files."""
    env = {_pip_variable(key): value for key, value in _pip_options(host).items() if key in _PIP_KEYS}
    given = {_pip_variable(key): host.environ.get(_pip_variable(key), "") for key in _PIP_KEYS}
    return env | {name: value for name, value in given.items() if value}


def _pip_options(host: Host) -> dict[str, str]:
    """What pip's files say: the user's before the machine's."""
    found: dict[str, str] = {}
    for path in _pip_files(host):
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read_string(host.read(path) or "", source=str(path))
        except configparser.Error:
            continue  # pip itself will not read it either
        for section in ("global", "install"):
            if parser.has_section(section):
                found |= {key.replace("_", "-"): value for key, value in parser.items(section)}
    return found


def _pip_variable(key: str) -> str:
    return "PIP_" + key.upper().replace("-", "_")


def _pip_files(host: Host) -> list[Path]:
    """pip's configuration files, the strongest last (pip documentation, "Configuration")."""
    given = host.environ.get("PIP_CONFIG_FILE")
    if given == os.devnull:
        return []
    machine = [folder / "pip/pip.conf" for folder in reversed(host.config_dirs())]
    user = [host.home / ".pip/pip.conf", host.config_home() / "pip/pip.conf"]
    return [*machine, host.at("/etc/pip.conf"), *user, *([Path(given)] if given else [])]


def _uv(host: Host, pip: Mapping[str, str]) -> dict[str, str]:
    """uv's settings as variables; where it has no index of its own, pip's, so that both ask the same servers."""
    env: dict[str, str] = {}
    for path in _uv_files(host):
        env |= _uv_file(host.read(path) or "")
    env |= {name: value for name, value in host.environ.items() if value and _UV_VARIABLES.fullmatch(name)}
    if not any(name in env for name in _UV_SOURCES):
        env |= {ours: pip[theirs] for theirs, ours in _UV_FROM_PIP.items() if theirs in pip}
        if "UV_INDEX" in env:  # pip takes the best version of all indexes, uv by default that of the first
            env.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    timeout = pip.get("PIP_TIMEOUT") or pip.get("PIP_DEFAULT_TIMEOUT")
    if timeout and timeout.isdecimal() and "UV_REQUEST_TIMEOUT" not in env:
        env.setdefault("UV_HTTP_TIMEOUT", timeout)
    return env


def _uv_files(host: Host) -> list[Path]:
    if given := host.environ.get("UV_CONFIG_FILE"):
        return [Path(given)]
    if host.environ.get("UV_NO_CONFIG"):
        return []
    machine = [host.at("/etc/uv/uv.toml"), *(folder / "uv/uv.toml" for folder in reversed(host.config_dirs()))]
    return [*machine, host.config_home() / "uv/uv.toml"]


def _uv_file(text: str) -> dict[str, str]:
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}  # uv itself refuses to start with it
    env = {name: _as_variable(table[key]) for key, name in _UV_KEYS.items() if key in table}
    listed: list[dict[str, Any]] = [entry for entry in table.get("index", []) if entry.get("url")]
    for entry in listed:
        name = "UV_DEFAULT_INDEX" if entry.get("default") else "UV_INDEX"
        address = f"{entry['name']}={entry['url']}" if entry.get("name") else str(entry["url"])
        env[name] = f"{env[name]} {address}" if name in env else address
    return env


def _as_variable(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _on_one_line(env: Mapping[str, str]) -> dict[str, str]:
    """Lists stand on several lines in files and are parted by blanks in variables (uv's find-links: by commas)."""
    flat = {name: " ".join(value.split()) for name, value in env.items()}
    if "UV_FIND_LINKS" in flat:
        flat["UV_FIND_LINKS"] = ",".join(flat["UV_FIND_LINKS"].replace(",", " ").split())
    return flat


def _show_folders(host: Host, env: Mapping[str, str]) -> tuple[dict[str, str], tuple[Bind, ...], tuple[str, ...]]:
    """Show folders of the host that serve as a package source, and name them as they are seen inside."""
    binds: dict[Path, Bind] = {}
    notes: dict[str, None] = {}

    def inside(word: str) -> str | None:
        name, equals, value = word.partition("=") if "://" not in word.partition("=")[0] else ("", "", word)
        address = value if equals else word
        parts = urlsplit(address)
        if parts.scheme not in {"", "file"}:
            return word
        path = host.at(unquote(parts.path))
        if not path.is_dir():
            notes[f"the local package source {address} does not exist and is left out"] = None
            return None
        bind = binds.setdefault(path, Bind(path, f"{SETTINGS_DIR}/packages-{len(binds)}"))
        shown = f"file://{bind.target}" if parts.scheme else bind.target
        return f"{name}={shown}" if equals else shown

    shown: dict[str, str] = {}
    for name, value in env.items():
        if not name.endswith(("INDEX", "INDEX_URL", "FIND_LINKS")) or name.endswith("NO_INDEX"):
            shown[name] = value
            continue
        separator = "," if name == "UV_FIND_LINKS" else " "
        words = [word for part in value.split(separator) if (word := inside(part)) is not None]
        if words:
            shown[name] = separator.join(words)
    return shown, tuple(binds.values()), tuple(notes)


def _netrc(host: Host, env: Mapping[str, str]) -> HostSettings:
    """The entries of the caller's netrc that belong to the indexes, and no others."""
    path = Path(host.environ.get("NETRC") or host.home / ".netrc")
    hosts = {name for value in env.values() for word in re.split(r"[\s,]+", value) if (name := _host_name(word))}
    try:
        entries = netrc(path).hosts
    except (OSError, NetrcParseError):
        return HostSettings()
    kept = {name: entries[name] for name in sorted(hosts & entries.keys())}
    if not kept:
        return HostSettings()
    lines = [f"machine {name} login {login} password {password}" for name, (login, _, password) in kept.items()]
    bind = place(host, "netrc", "\n".join(lines) + "\n")
    secrets = frozenset(password for _, _, password in kept.values() if password)
    return HostSettings({"NETRC": bind.target}, (bind,), secrets)


def _host_name(word: str) -> str | None:
    address = word[word.index("=") + 1 :] if "=" in word.partition("://")[0] else word
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
