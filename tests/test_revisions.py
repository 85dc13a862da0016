"""Finding the environments of other revisions of a repository."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from specbuild.environment import Environment, RepoInfo, Seconds
from specbuild.events import RepairMade
from specbuild.failures import MissingHeader
from specbuild.library import Library, Place
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind, salted
from specbuild.repo.facts import Dependency, Evidence, Fact, Facts, Lock
from specbuild.repo.source import Repo
from specbuild.revisions import FILE, MOST_PER_BASE, earlier, environment_key, manifests_of, project_of, record

DAY = datetime(2024, 5, 1, tzinfo=UTC)
BASE = BaseRef(name="debian:bookworm", digest="sha256:12")
HERE = Evidence(file="pyproject.toml")


def facts(*requirements: str, name: str | None = "mine", version: str = "1") -> Facts:
    return Facts(
        name=Fact(value=name, evidence=HERE) if name else None,
        version=Fact(value=version, evidence=HERE),
        dependencies=tuple(Dependency(requirement=one, evidence=HERE) for one in requirements),
    )


def repo(origin: str = "pypi:mine==1", date: datetime | None = DAY, **tracked: str) -> Repo:
    return Repo(origin, "pypi", Path("/nowhere"), "1", "sha256:0", tracked, date, "")


def committed(
    cache: Path, found: Facts, of: Repo | None = None, *, base: BaseRef = BASE, salt: str = "", **more: object
) -> str:
    """The id of an environment that was committed for a repo, and recorded."""
    of = of or repo()
    place = Library(cache).new_place()
    steps = (Step(kind=StepKind.SYSTEM, run="apt-get", cwd="/"), Step(kind=StepKind.BUILD, run="build"))
    check = Check(level=Level.TESTS, runner="pytest", step=Step(kind=StepKind.TEST, run="pytest"))
    made = Environment(
        id=place.id,
        outcome="committed",
        specbuild_version="0",
        created="2026-11-30T00:00:00+00:00",
        repo=RepoInfo(origin=of.origin, kind=of.kind, revision=of.revision, digest=of.digest, date=None),
        base=base,
        recipe=salted(Recipe(base=base, steps=steps, check=check), salt),
        strategy="declared",
        seconds=Seconds(total=1, to_commit=1),
        facts=found,
    ).model_copy(update=more)
    Library(cache).save(made)
    record(place, made, of)
    return place.id


def ids(cache: Path, of: Repo, found: Facts) -> list[str]:
    return [one.environment for one in earlier(Library(cache), of, found)]


def test_revisions_of_one_distribution_belong_together_wherever_they_come_from(tmp_path: Path) -> None:
    one = committed(tmp_path, facts("idna"))
    committed(tmp_path, facts("idna", name="another"))
    assert ids(tmp_path, repo("/somewhere/else"), facts("idna", name="Mine")) == [one]


@pytest.mark.parametrize(
    ("origin", "project"),
    [
        ("https://user:secret@host.example/team/tool.git@v2", "https://host.example/team/tool"),
        ("https://host.example/team/tool@v1", "https://host.example/team/tool"),
        ("pypi:Tool==2", "Tool"),
    ],
)
def test_without_a_name_it_is_where_it_is_fetched_from_that_counts(origin: str, project: str) -> None:
    assert project_of(origin, facts(name=None)) == project


def test_the_number_of_a_version_changes_no_manifest_and_a_requirement_does() -> None:
    assert manifests_of(repo(), facts("idna", version="1")) == manifests_of(repo(), facts("idna", version="2"))
    assert manifests_of(repo(), facts("idna")) != manifests_of(repo(), facts("idna>=3"))


def test_lock_files_count_by_their_contents() -> None:
    locked = facts("idna").model_copy(update={"locks": (Lock(kind="uv", evidence=Evidence(file="uv.lock")),)})
    one, two = (replace(repo(), tracked={"uv.lock": digest}) for digest in ("1", "2"))
    assert manifests_of(one, locked) != manifests_of(two, locked)
    assert manifests_of(one, locked) == manifests_of(one, locked)


def test_the_key_of_an_environment_is_of_manifests_base_and_day() -> None:
    key = environment_key("m", "b", DAY)
    assert key == environment_key("m", "b", DAY + timedelta(hours=5))
    assert (
        len({key, environment_key("x", "b", DAY), environment_key("m", "x", DAY), environment_key("m", "b", None)}) == 4
    )


def test_what_declares_the_same_is_nearest_then_what_is_nearest_in_time(tmp_path: Path) -> None:
    far = committed(tmp_path, facts("idna"), repo(date=DAY - timedelta(days=900)))
    near = committed(tmp_path, facts("idna>=3"), repo(date=DAY - timedelta(days=2)))
    committed(tmp_path, facts("idna>=2"), repo(date=DAY - timedelta(days=30)))
    assert ids(tmp_path, repo(), facts("idna")) == [far, near]
    assert [one.alike for one in earlier(Library(tmp_path), repo(), facts("idna"))] == [True, False]


def test_each_base_has_its_own_nearest_ones(tmp_path: Path) -> None:
    for _ in range(MOST_PER_BASE + 1):
        committed(tmp_path, facts("idna"))
    other = committed(tmp_path, facts("idna>=3"), base=BaseRef(name="debian:trixie", digest="sha256:13"))
    found = ids(tmp_path, repo(), facts("idna"))
    assert len(found) == MOST_PER_BASE + 1
    assert other in found


@pytest.mark.parametrize("content", ["", "{}", "\0", '{"schema_version": 7}'])
def test_what_cannot_be_read_is_passed_over(content: str, tmp_path: Path) -> None:
    damaged, good = committed(tmp_path, facts("idna")), committed(tmp_path, facts("idna"))
    (Library(tmp_path).place(damaged).folder / FILE).write_text(content)
    assert ids(tmp_path, repo(), facts("idna")) == [good]


def test_an_environment_that_was_removed_or_is_damaged_is_no_start(tmp_path: Path) -> None:
    damaged = committed(tmp_path, facts("idna"))
    (Library(tmp_path).place(damaged).folder / "environment.json").write_text("{")
    removed = committed(tmp_path, facts("idna"))
    (Library(tmp_path).place(removed).folder / "environment.json").unlink()
    assert ids(tmp_path, repo(), facts("idna")) == []


def test_a_build_that_failed_leaves_no_record(tmp_path: Path) -> None:
    place: Place = Library(tmp_path).place(committed(tmp_path, facts("idna"), recipe=None, outcome="failed"))
    assert not (place.folder / FILE).exists()


def test_what_it_was_repaired_of_and_its_recipe_without_a_salt_are_handed_on(tmp_path: Path) -> None:
    told = RepairMade(
        failure=MissingHeader(header="libpq-fe.h"),
        name="apt:libpq-dev",
        title="install libpq-dev",
        why="it owns it",
        probability=0.9,
        at=StepKind.BUILD,
        packages=True,
    )
    committed(tmp_path, facts("idna"), salt="x", repairs=(told, told.model_copy(update={"at": None})))
    (one,) = earlier(Library(tmp_path), repo(), facts("idna"))
    assert [(need.failure, need.at, need.packages) for need in one.needed] == [(told.failure, StepKind.BUILD, True)]
    assert one.recipe == salted(one.recipe, "")
