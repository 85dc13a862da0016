"""How servers are reached: what a user sets of proxies, certificates and credentials, as a client of httpx."""

from __future__ import annotations

import netrc
import os
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from specbuild._version import __version__
from specbuild.errors import ConfigError

CA_VARIABLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
"""Where users name their bundle of certificates; the first that is set counts."""

CONNECT_WITHIN = 20.0
SILENT_FOR = 60.0
"""Seconds without a byte after which a connection counts as cut."""
_EVERY_HOST = "*"
_LAST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Network:
    """What a user sets beyond the usual variables (`HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE`, netrc, …)."""

    proxy: str | None = None
    no_proxy: tuple[str, ...] = ()
    """`host` or `host:port` that are reached without any proxy, beside those of `NO_PROXY`; `*` for all, as there."""
    ca_bundle: Path | None = None
    """File or folder of trusted certificates; None for the variables' or the system's."""
    client_cert: Path | None = None
    trusted_hosts: tuple[str, ...] = ()
    """`host` or `host:port` whose certificates are not checked."""
    credentials: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """`host` or `host:port` → user name and password."""
    unix_socket: Path | None = None
    """Where everything is asked, whatever host an address names."""
    connect_within: float = CONNECT_WITHIN
    """Seconds."""


@asynccontextmanager
async def opened(network: Network) -> AsyncGenerator[httpx.AsyncClient]:
    try:
        client = httpx.AsyncClient(
            verify=_trust(network),
            proxy=_proxy(network),
            transport=httpx.AsyncHTTPTransport(uds=str(network.unix_socket)) if network.unix_socket else None,
            mounts=_mounts(network),
            # Of the variables it is proxies that httpx heeds here; one knows nothing of sockets of this machine.
            trust_env=_EVERY_HOST not in network.no_proxy and network.unix_socket is None,
            timeout=httpx.Timeout(SILENT_FOR, connect=network.connect_within),
            follow_redirects=True,
            event_hooks={"request": [_check_address]},
            headers={"User-Agent": f"specbuild/{__version__}"},
        )
    except (ImportError, ValueError, httpx.InvalidURL) as error:  # ImportError: a SOCKS proxy without socksio
        raise ConfigError(
            f"the proxy that is set cannot be used: {error}",
            hint="check HTTPS_PROXY, ALL_PROXY and PIP_PROXY; a SOCKS proxy needs `pip install httpx[socks]`",
        ) from error
    async with client:
        yield client


async def _check_address(request: httpx.Request) -> None:
    """Of each request, also of those that redirects lead to: sockets would fail at it with errors of their own."""
    if not request.url.host or (request.url.port or 0) > _LAST_PORT:
        raise httpx.InvalidURL(f"there is no host and port {request.url.netloc.decode()!r}")


def _proxy(network: Network, host: str = _EVERY_HOST) -> str | None:
    """By which a host is reached, if the user has set any."""
    return None if {host, _EVERY_HOST} & set(network.no_proxy) else network.proxy


def _mounts(network: Network) -> dict[str, httpx.AsyncBaseTransport | None]:
    """How some hosts are reached in another way than the rest; None is the plain way, without a proxy."""
    mounts: dict[str, httpx.AsyncBaseTransport | None] = {
        f"all://{host}": None for host in network.no_proxy if host != _EVERY_HOST
    }
    for host in network.trusted_hosts:
        mounts[f"https://{host}"] = httpx.AsyncHTTPTransport(verify=False, proxy=_proxy(network, host))
    return mounts


def _trust(network: Network) -> ssl.SSLContext:
    """The certificates that the user trusts: as set, else the system's, else (where it has none) certifi's."""
    bundle = network.ca_bundle or next((Path(os.environ[name]) for name in CA_VARIABLES if os.environ.get(name)), None)
    try:
        if bundle is not None and bundle.is_dir():
            context = ssl.create_default_context(capath=str(bundle))
        elif bundle is not None:
            context = ssl.create_default_context(cafile=str(bundle))
        else:
            context = ssl.create_default_context()
            if not context.cert_store_stats()["x509_ca"] and not ssl.get_default_verify_paths().capath:
                context = httpx.create_ssl_context(trust_env=False)
        if network.client_cert is not None:
            context.load_cert_chain(network.client_cert)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"the certificates that are set cannot be read ({bundle or network.client_cert}): {error}",
            hint=f"check {', '.join(CA_VARIABLES)} and pip's `cert` and `client-cert`",
        ) from error
    return context


def netrc_of(host: str) -> tuple[str, str] | None:
    """Credentials for exactly this host; netrc's `default` would hand them to every index there is."""
    path = Path(os.environ.get("NETRC") or Path.home() / ".netrc")
    try:
        entry = netrc.netrc(path).hosts.get(host) if path.is_file() else None
    except (OSError, netrc.NetrcParseError):
        return None
    return (entry[0] or entry[1] or "", entry[2] or "") if entry else None
