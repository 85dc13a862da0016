"""Which servers are asked for an image: mirrors first, then the registry itself; and how far each is trusted.

Read from where users have set it already: `daemon.json` of Docker's engine, `registries.conf` of Podman's family.
"""

from __future__ import annotations

import ipaddress
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from specbuild.errors import UsageError
from specbuild.oci.places import Places, read_json, tables, texts
from specbuild.oci.reference import DEFAULT_REGISTRY, Reference

_SERVERS = {DEFAULT_REGISTRY: "registry-1.docker.io"}
"""Where a registry's name and the host of its interface differ."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that may have an image, and the name under which it has it."""

    host: str
    repository: str
    insecure: bool = False
    """Whether its certificate is not checked, and plain http will do where there is no https."""
    plain: bool = False
    """Whether it is asked by plain http from the start."""
    login: str = ""
    """The registry whose credentials are used."""

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine."""
        return _is_loopback(self.host)


def endpoints(reference: Reference, places: Places, *, push: bool = False) -> tuple[Endpoint, ...]:
    """The servers to ask, in order; mirrors are never pushed to. Raises UsageError for what the user has blocked."""
    registry = reference.registry
    insecure = _insecure(places)
    rules = _rules(places)
    found: list[Endpoint] = [] if push else [*_docker_mirrors(reference, places)]
    rule = _rule_for(reference.name, rules)
    location, trusts_all = "", _trusts_all(registry, insecure)
    if rule is not None:
        if rule.get("blocked") is True:
            raise UsageError(f"{reference.name} is blocked by this machine's registries.conf")
        trusts_all = trusts_all or rule.get("insecure") is True
        if not _prefix(rule).startswith("*."):  # else only `insecure` and `blocked` can be meant
            rest = reference.name.removeprefix(_prefix(rule))
            location = f"{rule.get('location') or _prefix(rule)}{rest}"
            found += [] if push else _mirrors(rule, rest)
    own = Endpoint(_SERVERS.get(registry, registry), reference.repository, trusts_all, login=registry)
    if location and location != reference.name:
        own = _at(location, insecure=trusts_all)
    return tuple(dict.fromkeys((*found, own)))


def _mirrors(rule: dict[str, Any], rest: str) -> Iterator[Endpoint]:
    """The mirrors of a rule; `rest` is what follows its prefix in the name."""
    for entry in tables(rule.get("mirror")):
        if isinstance(where := entry.get("location"), str):
            yield _at(where + rest, insecure=entry.get("insecure") is True)


def _docker_mirrors(reference: Reference, places: Places) -> Iterator[Endpoint]:
    """The mirrors of Docker's own registry, which its engine has no others of."""
    if reference.registry != DEFAULT_REGISTRY:
        return
    insecure = _insecure(places)
    for path in places.daemon_files():
        for address in texts(read_json(path).get("registry-mirrors")):
            try:
                parts = urlsplit(address if "://" in address else f"https://{address}")
            except ValueError:  # brackets that hold no address
                continue
            if parts.netloc:
                host, plain = parts.netloc.rpartition("@")[2], parts.scheme == "http"
                repository = "/".join(part for part in (parts.path.strip("/"), reference.repository) if part)
                yield Endpoint(host, repository, plain or _trusts_all(host, insecure), plain, login=host)


def _at(name: str, *, insecure: bool) -> Endpoint:
    """A location of `registries.conf`: a host and a path in one."""
    host, _, repository = name.partition("/")
    return Endpoint(_SERVERS.get(host, host), repository, insecure or _is_loopback(host), login=host)


def _insecure(places: Places) -> tuple[str, ...]:
    return tuple(name for path in places.daemon_files() for name in texts(read_json(path).get("insecure-registries")))


def _trusts_all(registry: str, insecure: tuple[str, ...]) -> bool:
    """Whether Docker would take it without a certificate: on this machine, by name, or by network."""
    if _is_loopback(registry) or registry in insecure:
        return True
    address = _address(registry)
    return address is not None and any(network and address in network for network in map(_network, insecure))


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return None


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return address.is_loopback if address else host.partition(":")[0] == "localhost"


def _rules(places: Places) -> list[dict[str, Any]]:
    """The `[[registry]]` tables; a later file's counts before an earlier one's of the same prefix."""
    found: dict[str, dict[str, Any]] = {}
    for path in places.registries_files():
        for entry in tables(_toml(path).get("registry")):
            if isinstance(prefix := entry.get("prefix") or entry.get("location"), str):
                found[prefix] = entry
    return list(found.values())


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _rule_for(name: str, rules: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The rule with the longest prefix that covers `name` (containers-registries.conf(5))."""
    able = [rule for rule in rules if _covers(_prefix(rule), name)]
    return max(able, key=lambda rule: len(_prefix(rule)), default=None)


def _prefix(rule: dict[str, Any]) -> str:
    return str(rule.get("prefix") or rule.get("location"))


def _covers(prefix: str, name: str) -> bool:
    if prefix.startswith("*."):
        return name.partition("/")[0].endswith(prefix[1:])
    return name == prefix or name.startswith((f"{prefix}/", f"{prefix}:"))
