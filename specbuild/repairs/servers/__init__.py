"""The servers that can be started beside tests, by name."""

from __future__ import annotations

from specbuild.repairs.servers.contract import Furnishing, Server, Setup
from specbuild.repairs.servers.desktop import DBUS, DISPLAY
from specbuild.repairs.servers.directories import KDC, LDAP, PROGRAMS
from specbuild.repairs.servers.mysql import MYSQL
from specbuild.repairs.servers.postgresql import POSTGRESQL
from specbuild.repairs.servers.stores import STORES

__all__ = ["PROGRAMS", "SERVERS", "UNAVAILABLE", "Furnishing", "Server", "Setup"]

SERVERS: dict[str, Server] = {server.name: server for server in (POSTGRESQL, MYSQL, *STORES, LDAP, KDC, DISPLAY, DBUS)}

UNAVAILABLE: dict[str, str] = {
    "mongodb": "Debian has not had MongoDB since its licence changed in 2018",
    "elasticsearch": "Debian has no Elasticsearch",
    "kafka": "Debian has no Kafka",
    "cassandra": "Debian has no Cassandra",
    "selenium": "Debian has no Selenium server",
    "consul": "Debian's releases since bookworm have no Consul",
    "docker": "a sandbox has no container engine, and must not reach that of the host",
}
"""Servers that no repair starts, and why."""
