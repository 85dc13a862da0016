"""How this host's apt reaches its mirrors: proxies, timeouts, credentials."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from specbuild.sandbox.certificates import CA_FILE
from specbuild.sandbox.settings_parts import SETTINGS_DIR, Host, HostSettings, join, place, secrets_in

CONF = "apt.conf"
"""The file that `APT_CONFIG` names."""

_LINE = re.compile(r'(?P<key>\S+) "(?P<value>.*)";')

_PASSED_ON = re.compile(
    r"Acquire::(http|https|ftp|Retries|ForceIPv[46]|Check-Valid-Until|Check-Date|Max-ValidTime|By-Hash|PDiffs|Queue-Mode)"
    r"(::.*)?",
    re.IGNORECASE,
)
"""What decides whether a mirror can be reached; nothing that decides what is installed."""

_HOST_ONLY = re.compile(r"Acquire::\w+::(Proxy-?Auto-?Detect|CaInfo|CaPath|SslCert|SslKey)", re.IGNORECASE)
"""These name programs and files of the host."""

_PROXY = re.compile(r"Acquire::http::Proxy(?P<host>::.+)?", re.IGNORECASE)

_AUTH_PASSWORD = re.compile(r"\bpassword\s+(\S+)")


def acquire_settings(host: Host) -> tuple[tuple[str, str], ...]:
    """The host's `Acquire` options as (key, value), as `apt-config dump` prints them; empty on hosts without apt."""
    if not host.at("/etc/apt").is_dir():
        return ()
    try:
        dumped = subprocess.run(
            ["apt-config", "dump"],
            env={"PATH": host.environ.get("PATH", os.defpath), "LC_ALL": "C", **_configuration(host)},
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    return parse_dump(dumped)


def _configuration(host: Host) -> dict[str, str]:
    """The caller's own configuration file, or one that makes apt read the root folder of a test."""
    if host.root == Path("/"):
        return {"APT_CONFIG": given} if (given := host.environ.get("APT_CONFIG")) else {}
    return {"APT_CONFIG": str(place(host, "root.conf", f'Dir "{host.root}";\n').source)}


def parse_dump(dumped: str) -> tuple[tuple[str, str], ...]:
    """The options to pass on, of the output of `apt-config dump`."""
    pairs = (match.group("key", "value") for line in dumped.splitlines() if (match := _LINE.fullmatch(line.strip())))
    return tuple((key, value) for key, value in pairs if _PASSED_ON.fullmatch(key) and value)


def auth_text(host: Host) -> str:
    """The content of the host's apt credentials (apt_auth.conf(5)) that we may read."""
    parts = sorted(host.at("/etc/apt/auth.conf.d").glob("*.conf"))
    texts = [host.read(path) for path in (host.at("/etc/apt/auth.conf"), *parts)]
    return "\n".join(text.strip() for text in texts if text and text.strip())


def through_relay(
    options: tuple[tuple[str, str], ...], relay: str, environ: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """The options with the proxy at the address `relay` for http, which itself heeds the proxies that were there.

    https goes on as before, though apt would take the proxy of http for it. Where it needs none, the relay is a tunnel.
    """
    rest = [(key, value) for key, value in options if not _PROXY.fullmatch(key)]
    proxies = {
        f"Acquire::https::Proxy{m['host'] or ''}": value for key, value in options if (m := _PROXY.fullmatch(key))
    }
    if "Acquire::https::Proxy" not in proxies:
        given = environ.get("https_proxy") or environ.get("http_proxy")
        proxies |= {"Acquire::https::Proxy": given} if given else {}
    # What the host says of https itself comes later, and holds.
    return (*proxies.items(), *rest, ("Acquire::http::Proxy", relay))


def apt_settings(host: Host, *, own_certificates: bool, relay: str = "") -> HostSettings:
    """The host's options and credentials as files that `APT_CONFIG` leads to.

    `own_certificates` says that `CA_FILE` is shown, which https mirrors are then checked against. `relay` is the
    address of our own proxy, if apt is to use it.
    """
    options = acquire_settings(host)
    if relay:
        options = through_relay(options, relay, host.environ)
    kept = [(key, value) for key, value in options if not _HOST_ONLY.fullmatch(key)]
    dropped = [key for key, _ in options if _HOST_ONLY.fullmatch(key) and "cainfo" not in key.lower()]
    if own_certificates:
        kept.append(("Acquire::https::CaInfo", CA_FILE))
    parts = [HostSettings(notes=tuple(f"apt's {key} names a file of this host and is left out" for key in dropped))]
    if auth := auth_text(host):
        bind = place(host, "apt-auth.conf", auth + "\n")
        parts.append(HostSettings({}, (bind,), frozenset(_AUTH_PASSWORD.findall(auth))))
        kept.append(("Dir::Etc::netrc", f"{SETTINGS_DIR}/apt-auth.conf"))
    if not kept:
        return join(parts)
    bind = place(host, CONF, "".join(f'{key} "{value}";\n' for key, value in kept))
    secrets = secrets_in(*(value for _, value in kept))
    return join([*parts, HostSettings({"APT_CONFIG": bind.target}, (bind,), secrets)])
