"""Which servers are started for which failures, and how they compose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specbuild.failures import Failure, MissingCommand, MissingData, ServiceNeeded, ServiceUnprepared
from specbuild.knowledge.query import Knowledge
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.repairs import Case, Repair, services
from specbuild.repairs.edits import apply
from specbuild.repairs.servers import SERVERS, UNAVAILABLE, Setup
from specbuild.repairs.servers.expected import expected_services, kind_of, read_address
from specbuild.repo.facts import CiJob, Evidence, Fact, Facts, Service
from specbuild.strategies import steps

CI = Evidence(file=".github/workflows/test.yml", line=12)
DEBIAN = BaseRef(name="debian:bookworm", digest="sha256:0", release="bookworm")


def job(*servers: Service, env: dict[str, str] | None = None, run: tuple[str, ...] = (), tests: bool = True) -> CiJob:
    lines = tuple(Fact(value=line, evidence=CI) for line in run)
    told = tuple((env or {}).items())
    return CiJob(provider="github", name="t", services=servers, env=told, run=lines, tests=tests, evidence=CI)


def server(name: str, image: str, **env: str) -> Service:
    return Service(name=name, image=image, env=tuple(env.items()), evidence=CI)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    test = Step(kind=StepKind.TEST, run="pytest")
    check = Check(level=Level.TESTS, runner="pytest", step=test)
    recipe = Recipe(base=DEBIAN, steps=(steps.system(DEBIAN),), check=check)
    return Case(recipe, 1, Facts(), Knowledge(tmp_path, architecture="amd64"), "pip install")


def only(failure: Failure, case: Case) -> Repair:
    (repair,) = services.repair(failure, case)
    return repair


def repaired(failure: Failure, case: Case) -> Case:
    """The case once the likeliest repair is made."""
    best = next(iter(services.repair(failure, case)))
    placed = apply(best.edits, case.recipe, case.index)
    return replace(case, recipe=placed.recipe, index=placed.index)


def started(case: Case) -> list[str]:
    return [name for name, _ in case.recipe.check.services]


@pytest.mark.parametrize("service", sorted(name for name, one in SERVERS.items() if one.script))
def test_a_server_is_installed_before_the_check_and_started_with_it(service: str, case: Case) -> None:
    after = repaired(ServiceNeeded(service=service), case)
    assert set(SERVERS[service].packages) <= set(after.recipe.steps[-1].run.split())
    assert started(after) == [service]
    assert not after.recipe.check.step.network, "its ports are those of the sandbox alone"


@pytest.mark.parametrize("service", ["ldap", "kdc"])
def test_what_tests_start_themselves_is_only_installed(service: str, case: Case) -> None:
    after = repaired(ServiceNeeded(service=service), case)
    assert set(SERVERS[service].packages) <= set(after.recipe.steps[-1].run.split())
    assert started(after) == []
    assert after.recipe.check.step.network


@pytest.mark.parametrize(
    "failure",
    [MissingCommand(command="slapd"), MissingData(path="/usr/sbin/kdb5_util"), MissingCommand(command="krb5kdc")],
)
def test_a_server_program_that_is_missing_brings_all_that_belongs_to_it(failure: Failure, case: Case) -> None:
    assert len(repaired(failure, case).recipe.steps[-1].run.split()) > 6


@pytest.mark.parametrize("failure", [MissingCommand(command="less"), MissingData(path="/etc/slapd/x")])
def test_other_programs_are_the_business_of_others(failure: Failure, case: Case) -> None:
    assert list(services.repair(failure, case)) == []


@pytest.mark.parametrize("service", sorted(UNAVAILABLE))
def test_what_cannot_be_had_has_no_repair_and_a_reason(service: str, case: Case) -> None:
    assert list(services.repair(ServiceNeeded(service=service), case)) == []
    assert services.unavailable(service)


def test_without_packages_of_debian_nothing_is_offered(case: Case) -> None:
    base = BaseRef(name="host", digest="sha256:1")
    other = replace(case, recipe=case.recipe.model_copy(update={"base": base}))
    assert list(services.repair(ServiceNeeded(service="redis"), other)) == []


def test_the_same_repair_is_not_offered_twice(case: Case) -> None:
    failure = ServiceNeeded(service="postgresql", address="localhost:5432")
    assert list(services.repair(failure, repaired(failure, case))) == []


def test_a_second_server_of_a_kind_listens_on_its_own_port(case: Case) -> None:
    one = repaired(ServiceNeeded(service="redis", address="localhost:6379"), case)
    two = repaired(ServiceNeeded(service="redis", address="localhost:6380"), one)
    assert started(two) == ["redis", "redis-6380"]
    assert "--port 6380" in dict(two.recipe.check.services)["redis-6380"]
    assert len(two.recipe.steps) == len(one.recipe.steps), "its packages are there"


def test_what_a_server_lacks_is_added_after_it_was_started(case: Case) -> None:
    up = repaired(ServiceNeeded(service="postgresql"), case)
    with_role = repaired(ServiceUnprepared(service="postgresql", lacks="login", name="app"), up)
    both = repaired(ServiceUnprepared(service="postgresql", lacks="database", name="app_test"), with_role)
    assert started(both) == ["postgresql", "postgresql-database-app_test", "postgresql-login-app"]


def test_a_login_whose_password_is_unknown_has_a_rival_that_asks_for_none(case: Case) -> None:
    up = repaired(ServiceNeeded(service="mysql"), case)
    login, believing = services.repair(ServiceUnprepared(service="mysql", lacks="login", name="app"), up)
    assert login.probability > believing.probability
    assert "--skip-grant-tables" in apply(believing.edits, up.recipe, up.index).recipe.check.services[-1][1]


def test_a_server_of_somebody_else_that_lacks_something_is_replaced_by_our_own(case: Case) -> None:
    failure = ServiceUnprepared(service="postgresql", lacks="database", name="x", address="localhost:5432")
    assert started(repaired(failure, case)) == ["postgresql"]


def test_an_extension_is_installed_for_the_version_that_is_there(case: Case) -> None:
    up = repaired(ServiceNeeded(service="postgresql"), case)
    repair = only(ServiceUnprepared(service="postgresql", lacks="extension", name="vector"), up)
    assert "-(pg)?vector(-[0-9.]+)?$" in apply(repair.edits, up.recipe, up.index).recipe.steps[-1].run


@pytest.mark.parametrize("name", ["a b'c", 'x"; rm -rf /', "$(id)", "`id`", "a\\b", "ü" * 200])
@pytest.mark.parametrize("service", ["postgresql", "mysql"])
@pytest.mark.parametrize("lacks", ["database", "login"])
def test_names_from_messages_are_data_in_every_script(case: Case, service: str, lacks: str, name: str) -> None:
    up = repaired(ServiceNeeded(service=service), case)
    failure = ServiceUnprepared.model_validate({"service": service, "lacks": lacks, "name": name})
    for repair in services.repair(failure, up):
        for label, _ in apply(repair.edits, up.recipe, up.index).recipe.check.services:
            assert label.isascii()
            assert not set(label) & set(" '\"$`;\\/")


def test_ci_tells_users_databases_and_variables(case: Case) -> None:
    postgres = server("db", "postgres:15", POSTGRES_USER="app", POSTGRES_PASSWORD="pw", POSTGRES_DB="shop")
    run = ("export PGHOST=localhost\nexport OTHER=1\npytest",)
    facts = Facts(ci=(job(postgres, env={"DATABASE_URL": "postgres://app:pw@db/shop", "LANG": "C"}, run=run),))
    (found,) = expected_services(facts)
    assert found.setup == Setup(port=5432, hosts=("db",), user="app", password="pw", databases=("shop",))
    assert found.variables == (("DATABASE_URL", "postgres://app:pw@localhost/shop"), ("PGHOST", "localhost"))
    assert found.evidence == (CI,)
    told = replace(case, facts=facts)
    after = repaired(ServiceNeeded(service="postgresql"), told)
    script = dict(after.recipe.check.services)["postgresql"]
    assert all(word in script for word in ("127.0.0.1 db", '"app"', '"shop"'))
    assert ("PGHOST", "localhost") in after.recipe.check.step.env


def test_names_that_only_ci_knows_mean_this_machine() -> None:
    env = {"PGHOST": "postgres", "PG_URL": "postgres://postgres:postgres@postgres:5432/postgres"}
    (found,) = expected_services(Facts(ci=(job(server("postgres", "postgres"), env=env),)))
    assert dict(found.variables) == {
        "PGHOST": "localhost",
        "PG_URL": "postgres://postgres:postgres@localhost:5432/postgres",
    }


def test_variables_that_are_set_stay_as_they_are(case: Case) -> None:
    facts = Facts(ci=(job(server("redis", "redis"), env={"REDIS_URL": "redis://ci"}),))
    step = case.recipe.check.step.model_copy(update={"env": (("REDIS_URL", "redis://own"),)})
    recipe = case.recipe.model_copy(update={"check": case.recipe.check.model_copy(update={"step": step})})
    after = repaired(ServiceNeeded(service="redis"), replace(case, facts=facts, recipe=recipe))
    assert after.recipe.check.step.env == (("REDIS_URL", "redis://own"),)


def test_where_the_client_tells_nothing_ci_does(case: Case) -> None:
    facts = Facts(ci=(job(server("cache", "redis:7")),))
    repair = only(ServiceNeeded(service=""), replace(case, facts=facts))
    assert repair.name == "service:redis"
    assert repair.source == "facts"
    assert list(services.repair(ServiceNeeded(service=""), case)) == []


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        ("postgres:15-alpine", "postgresql"),
        ("docker.io/library/mysql:8", "mysql"),
        ("postgis/postgis:16-3.4", "postgresql"),
        ("mariadb@sha256:0", "mysql"),
        ("redis-server", "redis"),
        ("registry:5000/valkey/valkey", "redis"),
        ("mongo:6", "mongodb"),
        ("docker.elastic.co/elasticsearch/elasticsearch:8", "elasticsearch"),
        ("ghcr.io/acme/fake-s3", ""),
    ],
)
def test_images_are_known_by_their_names(image: str, kind: str) -> None:
    assert kind_of(server("something", image)) == kind


@pytest.mark.parametrize(
    ("address", "read"),
    [
        ("localhost:5433", ("localhost", 5433, "")),
        ("db", ("db", 0, "")),
        ("/var/run/postgresql/.s.PGSQL.5434", ("", 5434, "/var/run/postgresql/.s.PGSQL.5434")),
        ("/tmp/mysql.sock", ("", 0, "/tmp/mysql.sock")),
        ("/tmp/a b;c", ("", 0, "")),
        ("h:99999", ("h", 0, "")),
        ("", ("", 0, "")),
    ],
)
def test_addresses_are_read_as_clients_write_them(address: str, read: tuple[str, int, str]) -> None:
    assert read_address(address) == read
