"""Real servers in real sandboxes: they start, answer, hold what the tests name, and say why where they do not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from specbuild.failures import Failure, ServiceNeeded, ServiceUnprepared
from specbuild.knowledge.query import Knowledge
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.repairs import Case, services
from specbuild.repairs.edits import apply
from specbuild.repairs.servers import SERVERS
from specbuild.repo.facts import Facts
from specbuild.sandbox.contract import Command, Completed, RootfsTar
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.sandbox.passthrough import base_environment, host_settings
from specbuild.strategies import steps
from specbuild.testing.leftovers import leftovers, stray_processes

pytestmark = [pytest.mark.sandbox, pytest.mark.root, pytest.mark.network, pytest.mark.slow]

INSTALLED = "servers-are-installed"
HERE = ("postgresql", "mysql", "redis")
BASE = BaseRef(name="debian:bookworm", digest="sha256:0", release="bookworm")

LIKE_OUR_BASES = r"""
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod +x /usr/sbin/policy-rc.d
echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/specbuild
apt-get update -qq
"""
"""No service is started by an installation, and nothing waits for the disk: see `bases.bootstrap`."""


@pytest.fixture(scope="module")
def store(debian: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store with a state in which the packages of some servers are installed, as their repairs would."""
    folder = tmp_path_factory.mktemp("services")
    asyncio.run(install(debian, folder / "store", folder / "settings"))
    yield folder / "store"
    assert leftovers(folder / "store") == []
    assert stray_processes() == []


async def install(debian: Path, store: Path, settings: Path) -> None:
    step = steps.packages([name for server in HERE for name in SERVERS[server].packages])
    host = host_settings(settings)
    env = {**base_environment(), **host.env, **dict(step.env)}
    command = Command(
        ("/bin/sh", "-eu", "-c", f"{LIKE_OUR_BASES}\n{step.run}"), env=env, network=True, binds=host.binds
    )
    async with OverlayBackend(store) as backend:
        base = await backend.import_base("debian", RootfsTar(debian))
        async with backend.fork(base) as sandbox:
            done = await sandbox.run(command)
            assert done.ok, done.tail
            await sandbox.freeze(INSTALLED)
        await backend.keep(INSTALLED, "tests")


def repaired(failures: Sequence[Failure], run: str) -> Check:
    """The Check `run` after the likeliest repair of each failure."""
    step = Step(kind=StepKind.TEST, run=run, cwd="/")
    check = Check(level=Level.COMMAND, runner="command", step=step)
    recipe = Recipe(base=BASE, steps=(steps.system(BASE),), check=check)
    for failure in failures:
        index = len(recipe.steps)
        case = Case(recipe, index, Facts(), Knowledge(Path("/nonexistent"), architecture="amd64"), "pip install")
        recipe = apply(next(iter(services.repair(failure, case))).edits, recipe, index).recipe
    return recipe.check


async def tried(store: Path, check: Check) -> Completed:
    step = check.whole
    command = Command(
        ("/bin/sh", "-eu", "-c", step.run), cwd=step.cwd, env=base_environment(), network=step.network, timeout=120
    )
    async with OverlayBackend(store) as backend:
        state = await backend.find(INSTALLED)
        assert state is not None
        async with backend.fork(state) as sandbox:
            return await sandbox.run(command)


async def test_postgresql_lets_everybody_in_and_has_what_the_tests_name(store: Path) -> None:
    failures = (
        ServiceNeeded(service="postgresql", address="localhost:5432"),
        ServiceUnprepared(service="postgresql", lacks="database", name='odd "name'),
        ServiceUnprepared(service="postgresql", lacks="login", name="app"),
    )
    run = """
psql -X -t -A -c 'SELECT current_user'
PGPASSWORD=whatever psql -X -t -A -h localhost -U app -d 'odd "name' -c 'SELECT current_database()'
psql -X -h /tmp -c 'CREATE EXTENSION hstore'
"""
    done = await tried(store, repaired(failures, run))
    assert done.ok, done.tail
    assert done.tail.split("\n")[:3] == ["root", 'odd "name', "CREATE EXTENSION"]


async def test_mariadb_has_a_root_without_password_and_what_the_tests_name(store: Path) -> None:
    failures = (
        ServiceNeeded(service="mysql", address="/tmp/odd.sock"),
        ServiceUnprepared(service="mysql", lacks="login", name="app"),
        ServiceUnprepared(service="mysql", lacks="database", name="shop"),
        ServiceUnprepared(service="mysql", lacks="default database"),
    )
    run = """
ask() { mariadb --no-defaults -N "$@"; }
ask -S /tmp/odd.sock -e 'SELECT 1'
ask -h 127.0.0.1 -u root test -e 'CREATE TABLE t (i INT) ENGINE=InnoDB; SELECT 2'
ask -h 127.0.0.1 -u app shop -e 'SELECT DATABASE()'
ask -h 127.0.0.1 -u app -e 'SELECT DATABASE()'
"""
    done = await tried(store, repaired(failures, run))
    assert done.ok, done.tail
    assert done.tail.split() == ["1", "2", "shop", "test"]


async def test_mariadb_believes_everybody_where_the_password_is_not_known(store: Path) -> None:
    up = repaired((ServiceNeeded(service="mysql"),), "")
    recipe = Recipe(base=BASE, steps=(steps.system(BASE),), check=up)
    case = Case(recipe, 1, Facts(), Knowledge(Path("/nonexistent"), architecture="amd64"), "")
    *_, believing = services.repair(ServiceUnprepared(service="mysql", lacks="login", name="root"), case)
    check = apply(believing.edits, recipe, 1).recipe.check
    run = "mariadb --no-defaults -N -h 127.0.0.1 -u nobody -pguess test -e 'SELECT 7'"
    done = await tried(store, check.model_copy(update={"step": check.step.model_copy(update={"run": run})}))
    assert done.ok, done.tail
    assert done.tail.strip() == "7"


async def test_two_redis_servers_answer_on_their_ports_and_can_be_debugged(store: Path) -> None:
    failures = (
        ServiceNeeded(service="redis", address="localhost:6379"),
        ServiceNeeded(service="redis", address="localhost:6380"),
    )
    run = "redis-cli ping; redis-cli -p 6380 debug sleep 0"
    done = await tried(store, repaired(failures, run))
    assert done.ok, done.tail
    assert done.tail.split() == ["PONG", "OK"]


async def test_sandboxes_side_by_side_have_a_server_each_on_the_same_port(store: Path) -> None:
    run = "redis-cli incr visits; sleep 1; redis-cli incr visits"
    check = repaired((ServiceNeeded(service="redis"),), run)
    both = await asyncio.gather(tried(store, check), tried(store, check))
    assert [done.tail.split() for done in both] == [["1", "2"], ["1", "2"]]


async def test_a_server_that_cannot_start_ends_the_check_with_its_own_words(store: Path) -> None:
    check = repaired((ServiceNeeded(service="redis"),), "echo the tests ran")
    broken = check.model_copy(
        update={"services": tuple((n, s.replace("--dir /tmp", "--dir /absent")) for n, s in check.services)}
    )
    done = await tried(store, broken)
    assert done.exit_code == 1
    assert "/absent" in done.tail
    assert "specbuild: the service redis did not start" in done.tail
    assert "the tests ran" not in done.tail
