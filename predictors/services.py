"""Servers that tests talk to, by the clients that do not reach them."""

from __future__ import annotations

from specbuild.failures import Failure, ServiceNeeded, Weight
from specbuild.predictors.phrases import LED, OUTCOME, RAISED
from specbuild.predictors.signature import always, signature

_PORTS = {
    "5432": "postgresql",
    "3306": "mysql",
    "6379": "redis",
    "389": "ldap",
    "636": "ldap",
    "88": "kdc",
    "11211": "memcached",
    "5672": "rabbitmq",
    "27017": "mongodb",
    "9200": "elasticsearch",
    "9092": "kafka",
    "2181": "zookeeper",
    "9042": "cassandra",
    "8086": "influxdb",
    "2379": "etcd",
    "8500": "consul",
    "1883": "mqtt",
    "4222": "nats",
    "4444": "selenium",
}
"""Well-known ports."""

_MYSQL = RAISED + r"(?:\(\d{1,5}, )?['\"]?Can't connect to "


def _at(evidence: str, host: str = "", port: str = "") -> Failure:
    address = f"{host}:{port}" if port else host
    service = _PORTS.get(port, "")
    weight = Weight.CAUSE if service else Weight.SYMPTOM
    return ServiceNeeded(service=service, address=address, evidence=evidence, weight=weight)


def _mysql(address: str, evidence: str) -> Failure:
    return ServiceNeeded(service="mysql", address=address, evidence=evidence)


def _postgresql(evidence: str, host: str = "", port: str = "", socket: str = "") -> Failure:
    address = socket or (f"{host}:{port}" if port else host)
    return ServiceNeeded(service="postgresql", address=address, evidence=evidence)


def _named(service: str, host: str, port: str, evidence: str) -> Failure:
    return ServiceNeeded(service=service.lower(), address=f"{host}:{port}", evidence=evidence)


SIGNATURES = (
    signature(
        "Error ",
        RAISED + r"Error (?:-?\d{1,4}) connecting (?:to )?(?P<host>[\w.-]{1,80}):(?P<port>\d{2,5})\.",
        _at,
        (
            "redis.exceptions.ConnectionError: Error 111 connecting to 127.0.0.1:6379. Connection refused.",
            ServiceNeeded(service="redis", address="127.0.0.1:6379"),
        ),
    ),
    signature(
        "Can't connect to local",
        _MYSQL + r"local (?:MySQL |MariaDB )?server through socket \\?'(?P<address>[^'\\\s]{1,100})",
        _mysql,
        (
            "OperationalError: (2002, \"Can't connect to local MySQL server through socket '/run/m.sock' (111)\")",
            ServiceNeeded(service="mysql", address="/run/m.sock"),
        ),
    ),
    signature(
        "Can't connect to MySQL",
        _MYSQL + r"MySQL server on \\?'(?P<address>[^'\\\s]{1,100})",
        _mysql,
        (
            "pymysql.err.OperationalError: (2003, \"Can't connect to MySQL server on 'localhost' ([Errno 111]\")",
            ServiceNeeded(service="mysql", address="localhost"),
        ),
    ),
    signature(
        " failed: ",
        RAISED + r"(?:.{0,40})?connection to server (?:at \"(?P<host>[^\"]{1,80})\""
        r"(?: \([^)]{1,60}\))?, port (?P<port>\d{2,5})|on socket \"(?P<socket>[^\"]{1,100})\") failed",
        _postgresql,
        (
            'psycopg2.OperationalError: connection to server at "localhost" (::1), port 5432 failed: refused',
            ServiceNeeded(service="postgresql", address="localhost:5432"),
        ),
        (
            'psycopg2.OperationalError: connection to server on socket "/run/p/.s.PGSQL.5432" failed: No such file',
            ServiceNeeded(service="postgresql", address="/run/p/.s.PGSQL.5432"),
        ),
    ),
    signature(
        "not connect to server: ",
        RAISED + r"could not connect to server: ",
        _postgresql,
        (
            "psycopg2.OperationalError: could not connect to server: Connection refused",
            ServiceNeeded(service="postgresql"),
        ),
    ),
    signature(
        "Can't contact LDAP",
        OUTCOME + r"ldap\.SERVER_DOWN: .{0,80}Can't contact LDAP server",
        always(ServiceNeeded, service="ldap"),
        (
            "ldap.SERVER_DOWN: {'desc': \"Can't contact LDAP server\", 'errno': 2}",
            ServiceNeeded(service="ldap"),
        ),
    ),
    signature(
        ("annot contact any KDC", "annot find KDC for"),
        LED + r"Cannot (?:contact any|find) KDC for (?:requested )?realm",
        always(ServiceNeeded, service="kdc"),
        ("kinit: Cannot contact any KDC for realm 'X.TEST' while getting", ServiceNeeded(service="kdc")),
    ),
    signature(
        (
            "not connect to display",
            "no display name and no",
            "annot open display",
            "not open display",
            "not connect to X server",
            "issing X server",
        ),
        LED + r"(?:[Cc]ould not connect to display|no display name and no \$DISPLAY|"
        r"[Cc]annot open display|[Cc](?:an|ould )not connect to X server|Missing X server or \$DISPLAY"
        r"|[Cc]ould not open display)",
        always(ServiceNeeded, service="display"),
        (
            "_tkinter.TclError: no display name and no $DISPLAY environment variable",
            ServiceNeeded(service="display"),
        ),
        ("qt.qpa.xcb: could not connect to display ", ServiceNeeded(service="display")),
    ),
    signature(
        ("ailed to connect to socket", "not connect to the bus", "ailed to connect to bus"),
        r"(?:[\w.]{1,100}: )?(?:Failed to connect to (?:bus|socket /\S{0,60}bus\S{0,60})"
        r"|[Cc]ould not connect to the bus)",
        always(ServiceNeeded, service="dbus"),
        (
            "Failed to connect to bus: No such file or directory",
            ServiceNeeded(service="dbus"),
        ),
    ),
    signature(
        "onnection refused",
        RAISED + r"(?:dial tcp )?(?:\[?(?P<host>[\w.-]{1,80})\]?:(?P<port>\d{2,5}): )"
        r"(?:connect: |\[Errno 111\] )?[Cc]onnection refused",
        _at,
        (
            "pymongo.errors.ServerSelectionTimeoutError: localhost:27017: [Errno 111] Connection refused",
            ServiceNeeded(service="mongodb", address="localhost:27017"),
        ),
        (
            "dial tcp 127.0.0.1:5432: connect: connection refused",
            ServiceNeeded(service="postgresql", address="127.0.0.1:5432"),
        ),
    ),
    signature(
        "rror: connect ECONN",
        r"(?:Error: )?connect ECONNREFUSED (?P<host>[\w.:-]{1,60}):(?P<port>\d{2,5})",
        _at,
        (
            "Error: connect ECONNREFUSED 127.0.0.1:6379",
            ServiceNeeded(service="redis", address="127.0.0.1:6379"),
        ),
    ),
    signature(
        "onnection refused",
        OUTCOME + r"ConnectionRefusedError: \[Errno 111\] (?:Connection refused|Connect call failed)",
        _at,
        (
            "ConnectionRefusedError: [Errno 111] Connection refused",
            ServiceNeeded(service="", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "annot connect to the Docker daemon",
        r"(?:docker: |ERROR: )?Cannot connect to the Docker daemon",
        always(ServiceNeeded, service="docker"),
        (
            "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
            ServiceNeeded(service="docker"),
        ),
    ),
    signature(
        " failed - connect ECONNREFUSED",
        r"(?:Error: )?(?P<service>\w{2,20}) connection to (?P<host>[\w.-]{1,80}):(?P<port>\d{2,5}) "
        r"failed - connect ECONN",
        _named,
        (
            "Error: Redis connection to 127.0.0.1:6399 failed - connect ECONNREFUSED",
            ServiceNeeded(service="redis", address="127.0.0.1:6399"),
        ),
    ),
)
"""What clients say of servers that are not there."""
