"""The certificates that the host trusts, for machines whose traffic passes through a proxy with a CA of its own."""

from __future__ import annotations

import re

from specbuild.sandbox.settings_parts import SETTINGS_DIR, Host, HostSettings, place

CA_VARIABLES = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
)
"""Read by OpenSSL, uv and Go; requests; curl; pip; Node.js; git; cargo. The first that the caller has set leads."""

CA_FILE = f"{SETTINGS_DIR}/ca.crt"

_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Debian and Arch; Fedora; older Red Hat; SUSE; Alpine."""

_LOCAL_ANCHORS = (
    "/usr/local/share/ca-certificates",
    "/etc/pki/ca-trust/source/anchors",
    "/etc/ca-certificates/trust-source/anchors",
    "/etc/pki/trust/anchors",
)
"""Where an administrator puts certificates of his own, on the same distributions."""

_PEM = re.compile(r"-----BEGIN (?:TRUSTED )?CERTIFICATE-----.+?-----END (?:TRUSTED )?CERTIFICATE-----", re.DOTALL)


def certificates(host: Host, named_by_pip: str | None = None) -> HostSettings:
    """The host's bundle under every name that tools look for; nothing where the host trusts what everybody trusts.

    `named_by_pip` is the bundle that pip's configuration names. Nothing is mounted over `/etc/ssl/certs`, to which
    packages such as `ssl-cert` write.
    """
    given = [*(host.environ.get(name) for name in CA_VARIABLES), named_by_pip]
    named = dict.fromkeys(value for value in given if value)
    texts = [text for value in named if (text := host.read(host.at(value))) and _PEM.search(text)]
    notes = tuple(
        f"{value} holds no certificates that could be read" for value in named if not host.read(host.at(value))
    )
    if not texts and _has_anchors(host):
        texts = [text for path in _BUNDLES if (text := host.read(host.at(path)))][:1]
    if not texts:
        return HostSettings(notes=notes)
    bind = place(host, "ca.crt", _merge(texts))
    return HostSettings(dict.fromkeys(CA_VARIABLES, bind.target), (bind,), notes=notes)


def _has_anchors(host: Host) -> bool:
    return any(path.is_file() for folder in _LOCAL_ANCHORS for path in host.at(folder).rglob("*"))


def _merge(texts: list[str]) -> str:
    """Every certificate once, in order."""
    return "\n".join(dict.fromkeys(match.group() for text in texts for match in _PEM.finditer(text))) + "\n"
