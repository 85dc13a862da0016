"""PostgreSQL, with a cluster of its own in which everybody is let in.

The cluster that Debian's package makes is left alone: it wants passwords over TCP, and knows only `postgres`.
"""

from __future__ import annotations

import shlex

from specbuild.repairs.servers.contract import Server, Setup
from specbuild.repairs.servers.shell import as_user, background, lines, named_hosts, once, quietly, until

_SOCKETS = "/var/run/postgresql"
"""Where Debian's libpq looks; the one in wheels may look in `/tmp`, where upstream has it."""

_FIND = 'PATH="$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1):$PATH"'


def _script(setup: Setup) -> str:
    data = f"/var/lib/postgresql/specbuild-{setup.port}"
    name = f"postgresql-{setup.port}"
    folders = once(_SOCKETS, "/tmp", _folder_of(setup.socket))  # noqa: S108 - in the sandbox
    initdb = as_user(
        "postgres", "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"
    )
    server = as_user(
        "postgres",
        *("postgres", "-D", data, "-p", str(setup.port), "-c", "listen_addresses='*'", "-c", "fsync=off"),
        *("-c", f"unix_socket_directories={','.join(folders)}", "-c", "max_prepared_transactions=10"),
    )
    users = once("root", setup.user)
    databases = once(*users, *setup.databases)
    return lines(
        _FIND,
        named_hosts(setup.hosts),
        *(f"install -d -o postgres -m 1777 {shlex.quote(folder)}" for folder in folders if folder != "/tmp"),  # noqa: S108
        f"install -d -o postgres {data}",
        f"if [ ! -e {data}/PG_VERSION ]; then",
        quietly("postgresql-files", f"( cd / && {initdb} )"),
        "fi",
        background(name, f"cd / && exec {server}"),
        until(name, _psql(setup, "SELECT 1")),
        *(_login(user, setup) for user in users),
        *(_database(database, setup) for database in databases),
    )


def _database(name: str, setup: Setup) -> str:
    return _unless_there("pg_database", "datname", name, f"CREATE DATABASE {_identifier(name)}", setup)


def _login(name: str, setup: Setup) -> str:
    return _unless_there("pg_roles", "rolname", name, f"CREATE ROLE {_identifier(name)} SUPERUSER LOGIN", setup)


def _unless_there(table: str, column: str, name: str, create: str, setup: Setup) -> str:
    look = f"SELECT 1 FROM {table} WHERE {column} = {_literal(name)}"  # noqa: S608 - quoted, and in the sandbox
    return f'[ "$({_psql(setup, look)})" ] || {_psql(setup, create)} >/dev/null'


def _psql(setup: Setup, sql: str) -> str:
    where = f"-h {_SOCKETS} -p {setup.port} -U postgres -d postgres"
    return f"psql -X -q -t -A -v ON_ERROR_STOP=1 {where} -c {shlex.quote(sql)}"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _folder_of(socket: str) -> str:
    folder = socket.rpartition("/")[0]
    return folder if folder != "/run/postgresql" else ""


POSTGRESQL = Server(
    name="postgresql",
    title="PostgreSQL",
    packages=("postgresql",),
    port=5432,
    script=_script,
    furnish={"database": _database, "login": _login},
    images=("postgres", "postgresql", "postgis", "pgvector", "timescaledb", "cockroach"),
    settings=r"PG[A-Z]+$|POSTGRES|PSYCOPG|PSQL",
    probability=0.9,
)
"""`postgres` and `root` are superusers; whoever comes by socket or TCP is believed."""
