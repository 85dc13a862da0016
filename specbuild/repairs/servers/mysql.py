"""MariaDB in the place of MySQL, which Debian does not have."""

from __future__ import annotations

import shlex

from specbuild.repairs.servers.contract import Server, Setup
from specbuild.repairs.servers.shell import background, lines, named_hosts, once, quietly, until

_SOCKET = "/run/mysqld/mysqld.sock"
"""Where Debian's clients look; those in wheels look in `/tmp`."""
_CLIENT = f"mariadb --no-defaults --socket={_SOCKET} --user=root"
_FRESH = "--auth-root-authentication-method=normal --skip-test-db"
"""No password for root, and no anonymous users, who would come before those for all hosts."""
_TMP_SOCKET = "/tmp/mysql.sock"  # noqa: S108 - in the sandbox


def _script(setup: Setup) -> str:
    data = _data(setup)
    return lines(
        named_hosts(setup.hosts),
        "install -d -o mysql -m 755 /run/mysqld",
        f"install -d -o mysql {data}",
        f"if [ ! -d {data}/mysql ]; then",
        quietly("mysql-files", f"mariadb-install-db --no-defaults --user=mysql --datadir={data} {_FRESH}"),
        "fi",
        _started(setup),
        *(f"ln -sf {_SOCKET} {shlex.quote(link)}" for link in once(_TMP_SOCKET, _other(setup.socket))),
        _account("root", setup.password if setup.user in ("", "root") else ""),
        *([_login(setup.user, setup)] if setup.user not in ("", "root") else []),
        *(_database(name, setup) for name in once("test", *setup.databases)),
    )


def _default_database(name: str, setup: Setup) -> str:
    """Select a database for clients that select none. The server does that for ordinary users only."""
    del setup
    revoke = "CONCAT('REVOKE SUPER, CONNECTION ADMIN ON *.* FROM ', QUOTE(User), '@', QUOTE(Host), ';')"
    hosts = "'localhost', '127.0.0.1', '::1', '%'"
    query = f"SELECT {revoke} FROM mysql.global_priv WHERE Host IN ({hosts})"  # noqa: S608 - nothing from outside
    select = f"EXECUTE IMMEDIATE IF(DATABASE() IS NULL, {_literal(f'USE {_identifier(name)}')}, 'DO 0')"
    return lines(
        _sql(f"SET GLOBAL init_connect = {_literal(select)}"),
        f"{_sql(query)} --skip-column-names | {_CLIENT}",
    )


def believing(setup: Setup) -> str:
    """Shell lines that start the running server again so that it believes everybody, whatever password they give."""
    stop = f"mariadb-admin --no-defaults --socket={_SOCKET} --user=root shutdown"
    return lines(stop, _started(setup, "--skip-grant-tables"))


def _started(setup: Setup, *options: str) -> str:
    """Names of hosts are not resolved, so that all who come by TCP are `'user'@'%'`, whatever the machine is called."""
    name = f"mysql-{setup.port}"
    server = (
        f"exec mariadbd --no-defaults --user=mysql --datadir={_data(setup)} --socket={_SOCKET} --port={setup.port}"
        " '--bind-address=*' --skip-name-resolve --character-set-server=utf8mb4 --local-infile=1"
        " --innodb-flush-log-at-trx-commit=0 --skip-log-bin"
    )
    return lines(background(name, " ".join([server, *options])), until(name, _sql("SELECT 1")))


def _data(setup: Setup) -> str:
    return f"/var/lib/mysql-specbuild-{setup.port}"


def _database(name: str, setup: Setup) -> str:
    return _sql(f"CREATE DATABASE IF NOT EXISTS {_identifier(name)} CHARACTER SET utf8mb4")


def _login(name: str, setup: Setup) -> str:
    return _account(name, setup.password)


def _account(name: str, password: str) -> str:
    user = f"{_literal(name)}@'%'"
    return _sql(
        f"CREATE OR REPLACE USER {user} IDENTIFIED BY {_literal(password)};"
        f" GRANT ALL PRIVILEGES ON *.* TO {user} WITH GRANT OPTION"
    )


def _sql(sql: str) -> str:
    return f"{_CLIENT} --execute={shlex.quote(sql)}"


def _other(socket: str) -> str:
    return socket if socket not in (_SOCKET, f"/var{_SOCKET}") else ""


def _identifier(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


MYSQL = Server(
    name="mysql",
    title="MariaDB",
    packages=("mariadb-server",),
    port=3306,
    script=_script,
    furnish={"database": _database, "login": _login, "default database": _default_database},
    images=("mysql", "mariadb", "percona", "mysql-server"),
    settings=r"MYSQL|MARIADB|TESTDB$",
    probability=0.85,
)
"""`root` comes in without a password by socket, and by TCP with the one that CI has; there is a database `test`."""
