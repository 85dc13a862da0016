"""Repairs that start the servers which tests want to talk to, and add what those lack."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from specbuild.failures import Failure, MissingCommand, MissingData, ServiceNeeded, ServiceUnprepared
from specbuild.repairs import apt
from specbuild.repairs.contract import Case, Repair
from specbuild.repairs.edits import Edit, InsertSteps, SetVariables, StartService
from specbuild.repairs.servers import PROGRAMS, SERVERS, UNAVAILABLE, Server, Setup
from specbuild.repairs.servers.expected import Expected, expected_services, read_address, setup_for, variables_for
from specbuild.repairs.servers.mysql import believing
from specbuild.strategies import steps

_EXPECTED_ONLY = 0.6
"""Of the probability of a server, where the client did not say what it looked for and CI tells."""

_PARTS = {"default database": "selected"}
"""How the names of services call what a server lacks, where that sorts better: this comes after the logins."""


def repair(failure: Failure, case: Case) -> Iterable[Repair]:
    """The repairs of a Failure of this family, for bases with Debian's packages. See `Repairer`."""
    if not case.release:
        return
    match failure:
        case ServiceNeeded(service="", address=address):
            for expected in expected_services(case.facts):
                yield from _start(expected.service, address, case, expected=expected)
        case ServiceNeeded(service=service, address=address):
            yield from _start(service, address, case)
        case ServiceUnprepared():
            yield from _furnish(failure, case)
        case MissingCommand(command=program) | MissingData(path=program) if _base(program) in PROGRAMS:
            yield from _bring(PROGRAMS[_base(program)], case)
        case _:
            return


def unavailable(service: str) -> str:
    """Why no repair starts that service; empty if one does, or nothing is known of it."""
    return UNAVAILABLE.get(service, "")


def _start(service: str, address: str, case: Case, *, expected: Expected | None = None) -> Iterator[Repair]:
    server = SERVERS.get(service)
    if server is None:
        return
    if server.script is None:
        yield from _bring(server, case)
        return
    setup = setup_for(server, case.facts, address=address)
    name = _service_name(server, setup)
    start = StartService(name=name, script=server.script(setup))
    if dict(case.recipe.check.services).get(name) == start.script:
        return
    known = expected or next((one for one in expected_services(case.facts) if one.service == service), None)
    told = f", as {known.evidence[0].file} does" if known else ""
    yield Repair(
        name=f"service:{name}",
        title=f"install and start {server.title} for the tests",
        why=f"the tests talk to {server.title} on {_place(name, address, server)}{told}",
        edits=(*_packages(server, case), *_variables(server, case), start),
        probability=server.probability * (_EXPECTED_ONLY if expected else 1),
        source="facts" if expected else "rule",
    )


def _bring(server: Server, case: Case) -> Iterator[Repair]:
    edits = _packages(server, case)
    if edits:
        yield Repair(
            name=f"service:{server.name}",
            title=f"install {', '.join(server.packages)}",
            why=f"the tests start {server.title} themselves and need its programs",
            edits=edits,
            probability=server.probability,
        )


def _furnish(failure: ServiceUnprepared, case: Case) -> Iterator[Repair]:
    if failure.lacks == "extension":
        yield from _extension(failure.name, case)
        return
    server = SERVERS.get(failure.service)
    if server is None or failure.lacks not in server.furnish:
        return
    if not _running(server, case):
        # Another server answered, or a proxy: one of our own is what we can furnish.
        yield from _start(failure.service, failure.address, case)
        return
    setup = setup_for(server, case.facts, address=failure.address)
    name = failure.name or next(iter(setup.databases), "test")
    own = _service_name(server, setup)
    part = _PARTS.get(failure.lacks, failure.lacks)
    start = StartService(name=f"{own}-{part}-{_slug(name)}", script=server.furnish[failure.lacks](name, setup))
    if start.name not in dict(case.recipe.check.services):
        yield Repair(
            name=f"service:{start.name}",
            title=f"give {server.title} the {failure.lacks} {name}",
            why=f"the tests expect that {server.title} has it",
            edits=(start,),
            probability=0.85,
        )
    if server.name == "mysql" and failure.lacks == "login":
        yield from _believe_everybody(own, setup, case)


def _believe_everybody(server: str, setup: Setup, case: Case) -> Iterator[Repair]:
    """What is left where the password that the tests have is not known. Its name sorts after what makes logins."""
    start = StartService(name=f"{server}-open", script=believing(setup))
    if start.name not in dict(case.recipe.check.services):
        yield Repair(
            name=f"service:{start.name}",
            title="let MariaDB accept every password",
            why="the password that the tests use is not known",
            edits=(start,),
            probability=0.3,
        )


def _extension(name: str, case: Case) -> Iterator[Repair]:
    """Packages of extensions are named by the server's version, and often have a `pg` before the extension's name."""
    if not re.fullmatch(r"[a-z0-9_-]{2,60}", name):
        return
    form = f"-(pg)?{name.replace('_', '-')}(-[0-9.]+)?$"
    run = (
        "version=$(ls /usr/lib/postgresql | sort -V | tail -n 1)\n"
        f'names=$(apt-cache pkgnames "postgresql-$version-" | grep -E -- {shlex.quote(form)})\n'
        "apt-get install -y -qq --no-install-recommends $names"
    )
    like = steps.packages(("postgresql",))
    step = like.model_copy(update={"run": run, "title": f"install PostgreSQL's extension {name}"})
    if step.run not in {other.run for other in case.recipe.steps}:
        yield Repair(
            name=f"service:postgresql-extension-{_slug(name)}",
            title=step.title,
            why="the tests create the extension, whose files the server's own package does not have",
            edits=(InsertSteps(steps=(step,)),),
            probability=0.6,
            source="index",
        )


def _packages(server: Server, case: Case) -> tuple[Edit, ...]:
    """None where Steps install them all already."""
    absent = apt.missing(server.packages, case)
    return (InsertSteps(steps=(apt.step(absent, case),)),) if absent else ()


def _variables(server: Server, case: Case) -> tuple[Edit, ...]:
    """Those that the Check does not have yet: what a route or the user has set is left alone."""
    there = dict(case.recipe.check.step.env)
    new = tuple((name, value) for name, value in variables_for(server, case.facts) if name not in there)
    return (SetVariables(env=new, kept=True),) if new else ()


def _service_name(server: Server, setup: Setup) -> str:
    """What comes later sorts after it: services are started in order of name."""
    return server.name if setup.port == server.port else f"{server.name}-{setup.port}"


def _running(server: Server, case: Case) -> bool:
    return any(name.startswith(server.name) for name, _ in case.recipe.check.services)


def _place(name: str, address: str, server: Server) -> str:
    _, _, socket = read_address(address)
    if socket:
        return f"the socket {socket}"
    if address:
        return address
    return f"port {server.port}" if server.port else name


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "-", name)[:60].strip("-")
