"""Servers that tests talk to, by the clients that do not reach them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from specbuild.failures import Failure, ServiceNeeded, ServiceUnprepared, Weight
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

_MYSQL_RAISED = RAISED + r"(?:Error: )?(?:\(?\d{4}(?:, | \(\w{5}\): ))?['\"]?(?:ER_[A-Z_]{1,40}: )?"


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


def _mysql_lacks(lacks: Literal["database", "login"]) -> Callable[..., Failure]:
    def make(evidence: str, name: str) -> Failure:
        return ServiceUnprepared(service="mysql", lacks=lacks, name=name, evidence=evidence)

    return make


def _extension(evidence: str, name: str = "", file: str = "") -> Failure:
    return ServiceUnprepared(service="postgresql", lacks="extension", name=name or file, evidence=evidence)


def _named(service: str, host: str, port: str, evidence: str) -> Failure:
    return ServiceNeeded(service=service.lower(), address=f"{host}:{port}", evidence=evidence)


def _place(host: str, port: str, socket: str) -> str:
    return socket or (f"{host}:{port}" if port else host)


def _postgresql_lacks(lacks: Literal["database", "login"]) -> Callable[..., Failure]:
    def make(evidence: str, name: str, host: str = "", port: str = "", socket: str = "") -> Failure:
        address = _place(host, port, socket)
        return ServiceUnprepared(service="postgresql", lacks=lacks, name=name, address=address, evidence=evidence)

    return make


def _three(
    evidence: str, first: str = "", second: str = "", third: str = "", port: str = "", other: str = ""
) -> Failure:
    return _at(evidence, first or second or third, port or other)


def _either_at(evidence: str, host: str = "", port: str = "", second: str = "", other: str = "") -> Failure:
    return _at(evidence, host or second, port or other)


def _any_server(
    evidence: str,
    host: str = "",
    port: str = "",
    second: str = "",
    other: str = "",
    ssh: str = "",
    third: str = "",
) -> Failure:
    return _at(evidence, host or second or third, port or other or ssh)


def _kafka(host: str, port: str, evidence: str) -> Failure:
    return ServiceNeeded(service="kafka", address=f"{host}:{port}", evidence=evidence)


def _refused_here(evidence: str, host: str = "", port: str = "") -> Failure | None:
    """A pool of HTTP connections to this machine: a server that tests expect, not the network."""
    return _at(evidence, host, port) if host in {"localhost", "127.0.0.1", "0.0.0.0", "::1"} else None  # noqa: S104


def _elasticsearch(evidence: str) -> Failure:
    return ServiceNeeded(service="elasticsearch", evidence=evidence)


def _sqlstate(state: str, code: str, evidence: str) -> Failure:
    """PDO's code of the driver: 2002 of MySQL's client, 7 of PostgreSQL's."""
    del state
    return ServiceNeeded(service="postgresql" if code == "7" else "mysql", evidence=evidence)


def _broker(scheme: str, evidence: str) -> Failure:
    """Celery talks to RabbitMQ unless it is told of another broker."""
    return ServiceNeeded(service="redis" if scheme == "redis" else "rabbitmq", evidence=evidence)


def _known(evidence: str, **services: str) -> Failure:
    """The name of the group that matched is the service."""
    return ServiceNeeded(service=next(iter(services)), evidence=evidence)


_PG_SERVER = (
    r"(?:.{0,40}?connection to server (?:at \"(?P<host>[^\"]{1,80})\"(?: \([^)]{1,60}\))?, port (?P<port>\d{2,5})"
    r"|on socket \"(?P<socket>[^\"]{1,100})\") failed: )?"
)
"""libpq says since 14 where it asked."""

_UNPREPARED = (
    signature(
        '" does not exist',
        RAISED + _PG_SERVER + r"FATAL: {1,2}database \"(?P<name>[^\"]{1,63})\" does not exist",
        _postgresql_lacks("database"),
        (
            'psql: error: connection to server on socket "/r/.s.PGSQL.1" failed: FATAL:  database "x" does not exist',
            ServiceUnprepared(service="postgresql", lacks="database", name="x", address="/r/.s.PGSQL.1"),
        ),
        (
            'x.Error: connection to server at "h" (127.0.0.1), port 5433 failed: FATAL:  database "x" does not exist',
            ServiceUnprepared(service="postgresql", lacks="database", name="x", address="h:5433"),
        ),
        (
            'psycopg2.OperationalError: FATAL:  database "old" does not exist',
            ServiceUnprepared(service="postgresql", lacks="database", name="old"),
        ),
        near=('psycopg2.errors.UndefinedTable: relation "app_test" does not exist',),
    ),
    signature(
        '" does not exist',
        RAISED + _PG_SERVER + r"FATAL: {1,2}role \"(?P<name>[^\"]{1,63})\" does not exist",
        _postgresql_lacks("login"),
        (
            'psycopg2.Error: connection to server at "h", port 5432 failed: FATAL:  role "app" does not exist',
            ServiceUnprepared(service="postgresql", lacks="login", name="app", address="h:5432"),
        ),
        near=('psycopg2.errors.UndefinedObject: role "reader" does not exist',),
    ),
    signature(
        "authentication failed for user",
        RAISED + _PG_SERVER + r"(?:FATAL: {1,2})?(?:password|[Pp]eer|Ident) authentication failed for user "
        r"\"(?P<name>[^\"]{1,63})\"",
        _postgresql_lacks("login"),
        (
            'asyncpg.exceptions.InvalidPasswordError: password authentication failed for user "app"',
            ServiceUnprepared(service="postgresql", lacks="login", name="app"),
        ),
        (
            'x: error: connection to server on socket "/r/s" failed: FATAL:  Peer authentication failed for user "app"',
            ServiceUnprepared(service="postgresql", lacks="login", name="app", address="/r/s"),
        ),
    ),
    signature(
        '" does not exist',
        OUTCOME
        + r"(?:asyncpg\.exceptions\.InvalidCatalogNameError|error): database \"(?P<name>[^\"]{1,63})\" does not",
        _postgresql_lacks("database"),
        (
            'asyncpg.exceptions.InvalidCatalogNameError: database "app" does not exist',
            ServiceUnprepared(service="postgresql", lacks="database", name="app"),
        ),
        (
            'error: database "shop_test" does not exist',
            ServiceUnprepared(service="postgresql", lacks="database", name="shop_test"),
        ),
        near=('psycopg2.errors.InvalidCatalogName: database "to_be_dropped" does not exist',),
    ),
    signature(
        ("not open extension control file", '" is not available'),
        RAISED
        + r"(?:ERROR: {1,2})?(?:could not open extension control file \"[^\"]{1,200}/(?P<file>[\w-]{1,60})\.control\""
        r"|extension \"(?P<name>[\w-]{1,60})\" is not available)",
        _extension,
        (
            'psycopg2.errors.FeatureNotSupported: extension "postgis" is not available',
            ServiceUnprepared(service="postgresql", lacks="extension", name="postgis"),
        ),
        (
            'psycopg2.errors.UndefinedFile: could not open extension control file "/u/e/vector.control": No such',
            ServiceUnprepared(service="postgresql", lacks="extension", name="vector"),
        ),
        near=('psycopg2.errors.DuplicateObject: extension "hstore" already exists, but not found',),
    ),
    signature(
        "not translate host name",
        RAISED + r"could not translate host name \"(?P<host>[^\"]{1,80})\" to address",
        _postgresql,
        (
            'psycopg2.OperationalError: could not translate host name "db" to address: Name or service not known',
            ServiceNeeded(service="postgresql", address="db"),
        ),
    ),
    signature(
        "Unknown database '",
        _MYSQL_RAISED + r"Unknown database '(?P<name>[^']{1,64})'",
        _mysql_lacks("database"),
        (
            "MySQLdb.OperationalError: (1049, \"Unknown database 'test'\")",
            ServiceUnprepared(service="mysql", lacks="database", name="test"),
        ),
        (
            "Error: ER_BAD_DB_ERROR: Unknown database 'shop'",
            ServiceUnprepared(service="mysql", lacks="database", name="shop"),
        ),
    ),
    signature(
        "No database selected",
        _MYSQL_RAISED + r"No database selected['\")]{0,3}$",
        always(ServiceUnprepared, service="mysql", lacks="default database"),
        (
            "MySQLdb.OperationalError: (1046, 'No database selected')",
            ServiceUnprepared(service="mysql", lacks="default database"),
        ),
        (
            "Error: ER_NO_DB_ERROR: No database selected",
            ServiceUnprepared(service="mysql", lacks="default database"),
        ),
        near=("No database selected, using the default one",),
    ),
    signature(
        "Access denied for user '",
        _MYSQL_RAISED + r"Access denied for user '(?P<name>[^']{1,80})'@'",
        _mysql_lacks("login"),
        (
            "MySQLdb.OperationalError: (1045, \"Access denied for user 'app'@'localhost' (using password: NO)\")",
            ServiceUnprepared(service="mysql", lacks="login", name="app"),
        ),
        (
            "pymysql.err.OperationalError: (1044, \"Access denied for user 'app'@'localhost' to database 'shop'\")",
            ServiceUnprepared(service="mysql", lacks="login", name="app"),
        ),
        (
            "mysql.connector.errors.ProgrammingError: 1045 (28000): Access denied for user 'root'@'localhost' (using",
            ServiceUnprepared(service="mysql", lacks="login", name="root"),
        ),
    ),
    signature(
        "Unknown MySQL server host",
        _MYSQL_RAISED + r"Unknown (?:MySQL )?server host '(?P<address>[^']{1,80})'",
        _mysql,
        (
            "MySQLdb.OperationalError: (2005, \"Unknown MySQL server host 'db' (-2)\")",
            ServiceNeeded(service="mysql", address="db"),
        ),
    ),
)
"""What servers say that are there and lack something: first, since clients put `connection failed` before it."""

SIGNATURES = (
    *_UNPREPARED,
    signature(
        "ax retries exceeded with url",
        RAISED + r"HTTPS?ConnectionPool\(host='(?P<host>[\w.:-]{1,120})', port=(?P<port>\d{1,5})\): Max retries",
        _refused_here,
        (
            (
                "requests.exceptions.ConnectionError: HTTPConnectionPool(host='localhost', port=9200): Max retries "
                "exceeded "
                "with url: / (Caused by x)"
            ),
            ServiceNeeded(service="elasticsearch", address="localhost:9200"),
        ),
        near=("HTTPConnectionPool: Max retries exceeded with url",),
    ),
    signature(
        ("rror: ConnectionError(", "ConnectionError: Connection error caused by"),
        OUTCOME
        + r"(?:elasticsearch|opensearchpy|elastic_transport)\.[\w.]{1,40}(?:Error|Timeout): Connection(?:Error\(| "
        r"error caused by)",
        _elasticsearch,
        (
            "elasticsearch.exceptions.ConnectionError: ConnectionError(<x>: Failed to establish a new connection)",
            ServiceNeeded(service="elasticsearch"),
        ),
    ),
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
        ("Can't connect to MySQL", "Can't connect to server on", "Can't connect to MariaDB"),
        _MYSQL + r"(?:MySQL |MariaDB )?server on \\?'(?P<address>[^'\\\s]{1,100})",
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
        RAISED + r"(?:DBI connect\(.{0,160}?\) failed: )?could not connect to server: ",
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
        "' not found. Set the ",
        OUTCOME
        + r"ValueError: Command '[\w.-]{1,40}' not found\. Set the \w{1,10} environment variable to override slapd",
        always(ServiceNeeded, service="ldap"),
        (
            "ValueError: Command 'ldapadd' not found. Set the BIN environment variable to override slapdtest's",
            ServiceNeeded(service="ldap"),
        ),
        near=("ValueError: No value found. Set the TOOLS environment variable to override",),
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
        (" not alive", " not running", " not reachable"),
        RAISED + r"(?:[\w -]{1,40} )?(?P<host>[\w.-]{1,80}):(?P<port>\d{2,5}) (?:is )?"
        r"not (?:alive|running|reachable)\b",
        _at,
        (
            "thing.tests.NotAliveError: test memcached 127.0.0.1:11211 not alive",
            ServiceNeeded(service="memcached", address="127.0.0.1:11211"),
        ),
        (
            "RuntimeError: redis server at localhost:6379 is not running",
            ServiceNeeded(service="redis", address="localhost:6379"),
        ),
        near=(
            "specs.Process: worker 11211 not alive any more",
            "AssertionError: task queue is not running",
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
        ("onnection refused", "rror: [Errno 111] Connect call failed"),
        OUTCOME + r"ConnectionRefusedError: \[Errno 111\] (?:Connection refused|Connect call failed(?: "
        r"\('(?P<host>[\w.:-]{1,60})', (?P<port>\d{2,5})\b)?)",
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
    signature(
        ("onnection refused", " refused."),
        RAISED + r"(?:[\w:]{1,80}: )?(?:Connection refused - connect\(2\) for (?:\"?(?P<first>[\w.-]{1,80})\"? port )?"
        r"(?:(?P<second>[\w.-]{1,80}):)?(?P<port>\d{2,5})|Connection to (?P<third>[\w.-]{1,80}):(?P<other>\d{2,5"
        r"}) refused)",
        _three,
        (
            "Redis::CannotConnectError: Connection refused - connect(2) for 127.0.0.1:6379",
            ServiceNeeded(service="redis", address="127.0.0.1:6379"),
        ),
        (
            "org.postgresql.util.PSQLException: Connection to localhost:5432 refused. Check that the hostname",
            ServiceNeeded(service="postgresql", address="localhost:5432"),
        ),
    ),
    signature(
        "SQLSTATE[",
        r"(?:[\w\\]{1,100}: )?(?:An exception occurred in (?:the )?driver: |could not find driver"
        r"|)SQLSTATE\[(?P<state>HY000|08006)\] "
        r"\[(?P<code>2002|2006|7)\] (?:Connection refused|No such file or directory|php_network|could not "
        r"connect|connection to server)",
        _sqlstate,
        (
            "PDOException: SQLSTATE[HY000] [2002] Connection refused",
            ServiceNeeded(service="mysql"),
        ),
        (
            "PDOException: SQLSTATE[08006] [7] could not connect, not reached: refused",
            ServiceNeeded(service="postgresql"),
        ),
    ),
    signature(
        (
            "ommunications link failure",
            "rrors.NoBrokersAvailable",
            "AMQPConnectionError",
            "not find a valid Docker environment",
            "denied while trying to connect to the Docker",
            "No servers found yet",
        ),
        RAISED + r"(?:(?P<mysql>Communications link failure)|(?P<kafka>(?:kafka\.errors\.)?NoBrokersAvailable)"
        r"|(?P<rabbitmq>(?:pika\.exceptions\.)?AMQPConnectionError$)|(?P<docker>Could not find a valid Docker "
        r"environment"
        r"|permission denied while trying to connect to the Docker daemon socket)|(?P<mongodb>No servers found yet)"
        r")",
        _known,
        (
            "com.mysql.cj.jdbc.exceptions.CommunicationsException: Communications link failure",
            ServiceNeeded(service="mysql"),
        ),
        ("kafka.errors.NoBrokersAvailable: NoBrokersAvailable", ServiceNeeded(service="kafka")),
        (
            "java.lang.IllegalStateException: Could not find a valid Docker environment. Please see logs",
            ServiceNeeded(service="docker"),
        ),
    ),
    signature(
        (
            "ouldn't connect to display",
            "an't connect to display",
            "no Qt platform plugin could be",
            "not load the Qt platform plugin",
            "not find the Qt platform plugin",
            'annot connect to "None"',
            "nable to init server",
            "No available video device",
            "no available video device",
            "ailed to initialize display",
            "nable to open display",
            "DISPLAY environment variable",
            "nable to open X display",
        ),
        LED
        + r"(?:[Cc]ouldn't connect to display|[Cc]an't connect to display|no Qt platform plugin could be initialized"
        r"|[Cc]ould not (?:load|find) the Qt platform plugin|NoSuchDisplayException: |Cannot connect to "
        r"\"None\"|Unable to init server: |[Nn]o available video device"
        r"|[Uu]nable to open (?:X )?display|X11: The DISPLAY environment variable is missing|[Ff]ailed to "
        r"initialize display)",
        always(ServiceNeeded, service="display"),
        ('_tkinter.TclError: couldn\'t connect to display ":0"', ServiceNeeded(service="display")),
        (
            "This application failed to start because no Qt platform plugin could be initialized. Reinstalling",
            ServiceNeeded(service="display"),
        ),
    ),
    signature(
        ("nable to autolaunch a dbus-daemon", "annot autolaunch D-Bus", "ailed to connect to socket"),
        LED + r"(?:[Uu]nable to autolaunch a dbus-daemon|Cannot autolaunch D-Bus|Failed to connect to socket "
        r"/\S{0,40}system_bus_socket)",
        always(ServiceNeeded, service="dbus"),
        (
            (
                "dbus.exceptions.DBusException: org.freedesktop.DBus.Error.NotSupported: Unable to autolaunch a "
                "dbus-daemon"
            ),
            ServiceNeeded(service="dbus"),
        ),
    ),
    signature(
        "onnection refused",
        LED + r"(?:(?:dial error|failed to connect to) .{0,160}?)?(?:dial tcp )?(?<![\w.:-])"
        r"\[?(?P<host>[\w.:-]{1,60}?)\]?:(?P<port>\d{2,5})(?:: connect)?: "
        r"connection refused",
        _at,
        (
            "error: failed to connect to the host: dial tcp 127.0.0.1:5432: connect: connection refused",
            ServiceNeeded(service="postgresql", address="127.0.0.1:5432"),
        ),
    ),
    signature(
        ("kombu.exceptions.OperationalError", "annot connect to amqp", "annot connect to redis"),
        r"(?:kombu\.exceptions\.OperationalError: |\[[^\]]{1,80}\] (?:consumer: )?Cannot connect to "
        r")(?P<scheme>\[Errno 111\] Connection refused$|amqp|redis)",
        _broker,
        (
            "kombu.exceptions.OperationalError: [Errno 111] Connection refused",
            ServiceNeeded(service="rabbitmq"),
        ),
        (
            "[2024-01-01 10:00:00,000: ERROR/MainProcess] consumer: Cannot connect to redis://localhost:6379/0: Error",
            ServiceNeeded(service="redis"),
        ),
    ),
    signature(
        "rror while fetching server API version",
        RAISED + r"Error while fetching server API version",
        always(ServiceNeeded, service="docker"),
        (
            "docker.errors.DockerException: Error while fetching server API version: ('Connection aborted.', x)",
            ServiceNeeded(service="docker"),
        ),
    ),
    signature(
        ("rror: connect ECONNREFUSED", "failed to connect to server ["),
        r"(?:[\w.]{0,60}(?:Error|Exception): )?(?:connect ECONNREFUSED (?P<host>[\w.:-]{1,60}):(?P<port>\d{2,5})"
        r"|failed to connect to server \[(?P<second>[\w.-]{1,60}):(?P<other>\d{2,5})\] on first connect)",
        _either_at,
        (
            "SequelizeConnectionRefusedError: connect ECONNREFUSED 127.0.0.1:5432",
            ServiceNeeded(service="postgresql", address="127.0.0.1:5432"),
        ),
        (
            "MongoNetworkError: failed to connect to server [localhost:27017] on first connect [Error: connect x]",
            ServiceNeeded(service="mongodb", address="localhost:27017"),
        ),
    ),
    signature(
        "not be established. Broker may not be",
        r"(?:\[[^\]]{1,60}\] )?Connection to node -?\d{1,4} \((?P<host>[\w.-]{0,60})(?:/[\d.]{1,20})?:(?P<port>"
        r"\d{2,5})\) could not be established",
        _kafka,
        (
            "Connection to node -1 (localhost/127.0.0.1:9092) could not be established. Broker may not be available.",
            ServiceNeeded(service="kafka", address="localhost:9092"),
        ),
    ),
    signature(
        (
            "Unable to connect to any servers",
            "ouldn't connect to ",
            "nable to connect to port ",
            "nable to connect to any servers",
        ),
        RAISED + r"(?:\('Unable to connect to any servers', \{'(?P<host>[\d.]{1,20}):(?P<port>\d{2,5})"
        r"|Couldn't connect to (?P<second>[\w.-]{1,60}):(?P<other>\d{2,5})\b|\[Errno None\] Unable to connect "
        r"to port (?P<ssh>\d{2,5}) on (?P<third>[\w.:]{1,40}))",
        _any_server,
        (
            (
                "cassandra.cluster.NoHostAvailable: ('Unable to connect to any servers', {'127.0.0.1:9042': "
                "ConnectionRefusedError(1"
            ),
            ServiceNeeded(service="cassandra", address="127.0.0.1:9042"),
        ),
        (
            "neo4j.exceptions.ServiceUnavailable: Couldn't connect to localhost:7687 (resolved to x):",
            ServiceNeeded(service="", address="localhost:7687", weight=Weight.SYMPTOM),
        ),
    ),
)
"""What clients say of servers that are not there."""
