"""What Steps are given of the host on purpose, and the environment that is otherwise built from nothing.

Proxies, trusted certificates and the addresses of package indexes are passed on, since without them nothing can be
downloaded on many machines. Of the caller's environment nothing else gets in. Credentials are passed on only where
an index, a mirror or a proxy needs them; they are listed in `HostSettings.secret_values` and are shown to running
Steps alone: no recipe, layer or export holds them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from specbuild.sandbox.apt_settings import apt_settings
from specbuild.sandbox.certificates import certificates
from specbuild.sandbox.indexes import indexes, pip_bundle
from specbuild.sandbox.registries import registries
from specbuild.sandbox.settings_parts import Host, HostSettings, join, remove_stale, secrets_in

__all__ = ["HostSettings", "base_environment", "host_settings"]

_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")


def base_environment() -> dict[str, str]:
    """The environment that every Step starts with; exports must set the same."""
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "USER": "root",
        "LOGNAME": "root",
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "DEBIAN_FRONTEND": "noninteractive",
        "GIT_TERMINAL_PROMPT": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
    }


def host_settings(
    folder: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    home: Path | None = None,
    root: Path = Path("/"),
    relay: str = "",
) -> HostSettings:
    """Proxies, certificates and package sources of this host, for every Step that may use the network.

    `folder` receives the generated files, must outlive the sandboxes and belong to the caller alone (default: a folder
    of the user's cache). `relay` is the address of the proxy that apt is to use (`specbuild.sandbox.relay`).
    The rest is given in tests only.
    """
    environ = os.environ if environ is None else environ
    folder = folder or platformdirs.user_cache_path("specbuild") / "settings"
    remove_stale(folder)
    host = Host(environ, home or Path.home(), root, folder)
    trusted = certificates(host, pip_bundle(host))
    apt = apt_settings(host, own_certificates=bool(trusted.binds), relay=relay)
    return join([proxies(host), trusted, indexes(host), registries(host), apt])


def proxies(host: Host) -> HostSettings:
    """The caller's proxies under both spellings, since some tools read only one."""
    env: dict[str, str] = {}
    for name in _PROXIES:
        if value := host.environ.get(name) or host.environ.get(name.upper()):
            env |= {name: value, name.upper(): value}
    return HostSettings(env, secret_values=secrets_in(*env.values()))
