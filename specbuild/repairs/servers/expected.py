"""Which servers the Repo's own CI starts for its tests, and how the tests are told of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from specbuild.repairs.servers import SERVERS, UNAVAILABLE, Server, Setup
from specbuild.repairs.servers.shell import once
from specbuild.repairs.variables import is_settable
from specbuild.repo.facts import CiJob, Evidence, Facts, Service

_EXPORT = re.compile(r"^export (?P<name>[A-Za-z_]\w*)=(?P<value>.*)$", re.MULTILINE)

_ROLES: Mapping[str, tuple[str, ...]] = {
    "user": ("POSTGRES_USER", "MYSQL_USER", "MARIADB_USER"),
    "password": (
        *("POSTGRES_PASSWORD", "MYSQL_PASSWORD", "MARIADB_PASSWORD"),
        *("MYSQL_ROOT_PASSWORD", "MARIADB_ROOT_PASSWORD", "REDIS_PASSWORD"),
    ),
    "database": ("POSTGRES_DB", "MYSQL_DATABASE", "MARIADB_DATABASE"),
}
"""What variables of the official container images mean."""

_NAME = re.compile(r"[\w.$-]{1,63}")
_SOCKET = re.compile(
    r"(?:/var)?/(?:run|tmp)/(?:[\w-][\w.-]*/){0,4}[\w.-]+|/var/lib/(?:[\w-][\w.-]*/){1,4}[\w.-]+", re.ASCII
)
"""Where servers put their sockets. A client may look elsewhere, but nothing of ours is made there."""
_LOCAL = frozenset({"", "localhost", "127.0.0.1", "::1", "0.0.0.0", "[::1]"})  # noqa: S104 - an address that is read


@dataclass(frozen=True, slots=True)
class Expected:
    """A server that CI starts for the tests."""

    service: str
    """As in `ServiceNeeded.service`; it may be one that no repair starts."""
    setup: Setup
    variables: tuple[tuple[str, str], ...]
    """By which CI tells the tests where it is."""
    evidence: tuple[Evidence, ...]

    @property
    def available(self) -> bool:
        """Whether a repair starts it."""
        return self.service in SERVERS


def expected_services(facts: Facts) -> tuple[Expected, ...]:
    """The servers of CI's jobs, one of a kind; those of jobs that test come first."""
    found: dict[str, Expected] = {}
    for job in sorted(facts.ci, key=lambda job: not job.tests):
        for service in job.services:
            kind = kind_of(service)
            if kind and kind not in found:
                found[kind] = _expected(kind, service, job)
    return tuple(found.values())


def setup_for(server: Server, facts: Facts, *, address: str = "") -> Setup:
    """How the tests expect that server, by CI and by the address at which a client looked for it."""
    told = next((one.setup for one in expected_services(facts) if one.service == server.name), Setup(server.port))
    host, port, socket = read_address(address)
    hosts = once(*told.hosts, host if is_alias(host) else "")
    return Setup(
        port=port or server.port,
        hosts=hosts,
        socket=socket,
        user=told.user,
        password=told.password,
        databases=told.databases,
    )


def variables_for(server: Server, facts: Facts) -> tuple[tuple[str, str], ...]:
    """The variables that tell the tests where that server is: those of CI, else those that it needs."""
    told = next((one.variables for one in expected_services(facts) if one.service == server.name), ())
    return tuple(sorted({**dict(told), **dict(server.variables)}.items()))


def read_address(address: str) -> tuple[str, int, str]:
    """(host, port or 0, path of a socket) of `ServiceNeeded.address`."""
    if address.startswith("/"):
        numbered = re.search(r"\.PGSQL\.(\d{2,5})$", address)
        return "", int(numbered[1]) if numbered else 0, address if _SOCKET.fullmatch(address) else ""
    host, _, port_text = address.rpartition(":") if re.search(r":\d{2,5}$", address) else (address, "", "")
    port = int(port_text) if port_text else 0
    return host, port if port <= 65535 else 0, ""


def is_alias(host: str) -> bool:
    """Whether a name is one that only CI's network knows (`db`): neither of the loopback nor of the world."""
    return host not in _LOCAL and bool(re.fullmatch(r"[A-Za-z][\w-]{0,62}", host))


def kind_of(service: Service) -> str:
    """The kind of server that an image or a name means; empty if it is none that is known."""
    image = service.image.rpartition("/")[2].partition("@")[0].partition(":")[0].lower()
    for word in (image, service.name.lower()):
        for server in SERVERS.values():
            if word == server.name or word in server.images:
                return server.name
        for name in UNAVAILABLE:
            if name.removesuffix("db") in word:
                return name
    return ""


def _expected(kind: str, service: Service, job: CiJob) -> Expected:
    env = {name: value for name, value in (*job.env, *service.env) if "${{" not in value}
    server = SERVERS.get(kind)
    roles = {role: next((env[name] for name in names if env.get(name)), "") for role, names in _ROLES.items()}
    setup = Setup(
        port=server.port if server else 0,
        hosts=(service.name,) if is_alias(service.name) else (),
        user=roles["user"] if _NAME.fullmatch(roles["user"]) else "",
        password=roles["password"],
        databases=(roles["database"],) if _NAME.fullmatch(roles["database"]) else (),
    )
    variables = dict(_variables(server, job)) if server and server.settings else {}
    for alias in setup.hosts:
        variables = {name: _here(value, alias) for name, value in variables.items()}
    return Expected(kind, setup, tuple(sorted(variables.items())), (service.evidence,))


def _variables(server: Server, job: CiJob) -> Iterator[tuple[str, str]]:
    """Those whose name or value speaks of the server; the last setting of a name counts."""
    exported = [
        (found["name"], found["value"].strip("\"'")) for fact in job.run for found in _EXPORT.finditer(fact.value)
    ]
    wanted = re.compile(server.settings)
    for name, value in (*job.env, *exported):
        if (
            "$" not in value
            and is_settable(name)
            and (wanted.search(name) or wanted.search(value.upper()) or _is_general(name))
        ):
            yield name, value


def _here(value: str, alias: str) -> str:
    """The value with this machine in the place of a name that only CI's network knows."""
    if value == alias:
        return "localhost"
    before = "@" if "@" in value else "//"
    return re.sub(rf"(?<={before}){re.escape(alias)}(?=[:/?]|$)", "localhost", value)


def _is_general(name: str) -> bool:
    return bool(re.match(r"(?:TEST_)?(?:DB|DATABASE)(?:_|$)", name))
