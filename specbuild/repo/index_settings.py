"""Which package indexes the user has set for pip and uv, and how they are reached.

Where both tools are set, uv's settings come first, for uv does the installing. No index is named here: without
settings, the tools' own default is asked of the tools.
"""

from __future__ import annotations

import configparser
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlsplit, urlunsplit

import anyio

from specbuild.errors import ConfigError
from specbuild.http import Network
from specbuild.urls import credentials_of, host_of

_ASK_PIP = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
_UV_HELP = re.compile(r"package index \(by default: <(\S+)>\)")


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Indexes and find-links locations in the order in which they are asked, and how they are reached."""

    indexes: tuple[str, ...]
    """Base addresses of simple APIs, with credentials if the user wrote them."""
    default_wanted: bool
    """Whether the tools' built-in index comes after them, since the user has set no other in its place."""
    find_links: tuple[str, ...]
    """Folders, files or pages that hold distributions."""
    network: Network


def read_index_settings(environ: Mapping[str, str] | None = None) -> IndexSettings:
    """The settings in the variables and configuration files of pip and uv.

    Raises ConfigError for a file that cannot be read.
    """
    env = os.environ if environ is None else environ
    pip, uv = _pip_settings(env), _uv_settings(env)
    extra = (*uv.extra, *pip.get("extra-index-url", "").split())
    default = uv.default or pip.get("index-url", "").strip() or None
    no_index = uv.no_index or pip.get("no-index", "").lower() in {"1", "true", "yes", "on"}
    wanted = () if no_index else (*extra, default or "")
    indexes = tuple(dict.fromkeys(url for url in wanted if url))
    return IndexSettings(
        indexes=indexes,
        default_wanted=not no_index and default is None,
        find_links=tuple(dict.fromkeys((*uv.find_links, *pip.get("find-links", "").split()))),
        network=_network(pip, indexes),
    )


async def default_index() -> str:
    """The index that pip, or else uv, uses by itself.

    Raises ConfigError when neither is installed.
    """
    for python in dict.fromkeys((sys.executable, shutil.which("python3") or "")):
        if python and (answer := await _output(python, "-c", _ASK_PIP)):
            return answer.strip()
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv and (found := _UV_HELP.search(await _output(uv, "pip", "install", "--help"))):
        return found[1]
    raise ConfigError(
        "no package index is set, and neither pip nor uv is there to name its own",
        hint="set PIP_INDEX_URL, or install pip or uv",
    )


async def _output(*command: str) -> str:
    """What the command prints; nothing when it fails."""
    try:
        done = await anyio.run_process(command, check=False, stdin=-3)
    except OSError:
        return ""
    return done.stdout.decode() if done.returncode == 0 else ""


@dataclass(frozen=True, slots=True)
class _Uv:
    default: str | None
    extra: tuple[str, ...]
    find_links: tuple[str, ...]
    no_index: bool


def _pip_settings(env: Mapping[str, str]) -> dict[str, str]:
    """pip's options by long name: files from the widest to the nearest, then variables.

    The order is that of pip's documentation, "Configuration precedence"; `download` is the command that we stand for.
    """
    found: dict[str, str] = {}
    for path in _pip_files(env):
        for section in ("global", "download"):
            found.update(_ini_section(path, section))
    for name, value in env.items():
        if name.startswith("PIP_") and name != "PIP_CONFIG_FILE" and value:
            found[name.removeprefix("PIP_").lower().replace("_", "-")] = value
    return found


def _pip_files(env: Mapping[str, str]) -> Iterator[Path]:
    chosen = env.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return
    home = Path(env.get("HOME") or Path.home())
    for folder in reversed((env.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)):
        yield Path(folder, "pip", "pip.conf")
    yield Path("/etc/pip.conf")
    yield home / ".pip" / "pip.conf"
    yield Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf"
    yield Path(env.get("VIRTUAL_ENV") or sys.prefix) / "pip.conf"
    if chosen:
        yield Path(chosen)


def _ini_section(path: Path, section: str) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"pip's settings in {path} cannot be read: {error}") from error
    if not parser.has_section(section):
        return {}
    return {name.lower().replace("_", "-"): value for name, value in parser.items(section)}


def _uv_settings(env: Mapping[str, str]) -> _Uv:
    """uv's variables over its files, the nearest of which counts for each name."""
    tables: list[dict[str, Any]] = []
    if not env.get("UV_NO_CONFIG"):
        tables = [_toml(path) for path in _uv_files(env)]
    merged: dict[str, Any] = {}
    for table in tables:
        merged.update(table)
    named = [_with_named_credentials(entry, env) for entry in _index_tables(merged)]
    default = env.get("UV_DEFAULT_INDEX") or env.get("UV_INDEX_URL") or next((u for u, d in named if d), None)
    listed = [_unnamed(word) for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL") for word in env.get(name, "").split()]
    extra = (*listed, *(url for url, is_default in named if not is_default), *_strings(merged, "extra-index-url"))
    return _Uv(
        default=_unnamed(default) if default else cast("str | None", merged.get("index-url")),
        extra=tuple(extra),
        find_links=(*env.get("UV_FIND_LINKS", "").replace(",", " ").split(), *_strings(merged, "find-links")),
        no_index=bool(merged.get("no-index")) or bool(env.get("UV_NO_INDEX")),
    )


def _uv_files(env: Mapping[str, str]) -> Iterator[Path]:
    """From the widest to the nearest; uv documents the places under "Configuration files"."""
    if chosen := env.get("UV_CONFIG_FILE"):
        yield Path(chosen)
        return
    home = Path(env.get("HOME") or Path.home())
    system = [Path(d, "uv", "uv.toml") for d in (env.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)]
    yield next((path for path in system if path.is_file()), Path("/etc/uv/uv.toml"))
    yield Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "uv" / "uv.toml"


def _toml(path: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"uv's settings in {path} cannot be read: {error}") from error
    return {**cast("dict[str, Any]", table.get("pip") or {}), **table}


def _index_tables(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    entries = cast("list[dict[str, Any]]", table.get("index") or [])
    return [entry for entry in entries if isinstance(entry.get("url"), str)]


def _strings(table: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(str(value) for value in table.get(name) or ())


def _unnamed(word: str) -> str:
    """`name=url` is how uv's variables may name an index."""
    return re.sub(r"^[A-Za-z0-9._-]+=(?=[a-z+]+:)", "", word)


def _with_named_credentials(entry: Mapping[str, Any], env: Mapping[str, str]) -> tuple[str, bool]:
    """The address, with the user name and password that variables give for the name, and whether it is the default."""
    url, name = str(entry["url"]), re.sub(r"[^A-Za-z0-9]", "_", str(entry.get("name") or "")).upper()
    user, password = env.get(f"UV_INDEX_{name}_USERNAME"), env.get(f"UV_INDEX_{name}_PASSWORD")
    if name and (user or password):
        parts = urlsplit(url)
        secret = f"{quote(user or '', safe='')}:{quote(password or '', safe='')}"
        url = urlunsplit(parts._replace(netloc=f"{secret}@{host_of(parts)}"))
    return url, bool(entry.get("default"))


def _network(pip: Mapping[str, str], indexes: tuple[str, ...]) -> Network:
    found = {host_of(urlsplit(url)): credentials_of(url) for url in indexes}
    return Network(
        proxy=pip.get("proxy") or None,
        ca_bundle=Path(pip["cert"]) if pip.get("cert") else None,
        client_cert=Path(pip["client-cert"]) if pip.get("client-cert") else None,
        trusted_hosts=tuple(pip.get("trusted-host", "").split()),
        credentials={host: secret for host, secret in found.items() if secret},
    )
