"""The routes that follow what somebody wrote down: lock files, CI, Dockerfiles."""

from __future__ import annotations

import pytest

from specbuild.recipe import StepKind
from specbuild.repo.facts import CiJob, DockerImage, Evidence, Fact, Facts, Lock
from specbuild.strategies import print_poetry_lock, propose
from specbuild.testing.proposals import (
    BOOKWORM,
    BULLSEYE,
    check,
    commands,
    fact,
    names,
    needs,
    pick,
    request,
    revision,
    uses,
)

FACTS = Facts(
    name=fact("shiny"),
    build_backend=fact("setuptools.build_meta"),
    dependencies=(needs("idna"), needs("pytest", "group:dev")),
    revision_date=revision(2024, 3, 1),
)


def lock(kind: str, file: str) -> Lock:
    return Lock(kind=kind, evidence=Evidence(file=file, line=1))


def with_lock(kind: str, file: str) -> Facts:
    return FACTS.model_copy(update={"locks": (lock(kind, file),)})


def run_lines(*lines: str, file: str) -> tuple[Fact[str], ...]:
    return tuple(Fact(value=line, evidence=Evidence(file=file, line=n)) for n, line in enumerate(lines, 1))


def ci(*lines: str, **fields: object) -> Facts:
    run = run_lines(*lines, file=".github/workflows/test.yml")
    job = CiJob(provider="github", name="test", run=run, tests=True, evidence=run[0].evidence)
    return FACTS.model_copy(update={"ci": (job.model_copy(update=fields),)})


def docker(image: str, *lines: str) -> Facts:
    run = run_lines(*lines, file="Dockerfile")
    return FACTS.model_copy(
        update={"docker": (DockerImage(image=image, run=run, evidence=Evidence(file="Dockerfile")),)}
    )


def test_a_uv_lock_is_followed_before_all_else_and_never_changed() -> None:
    candidates = propose(request(with_lock("uv", "uv.lock")))
    assert candidates[0].strategy == "locked:uv"
    syncs = [step for step in candidates[0].recipe.steps if "uv sync" in step.run]
    assert all("--frozen" in step.run for step in syncs)
    assert [step.kind for step in syncs] == [StepKind.DEPENDENCIES, StepKind.BUILD]
    assert ("UV_PROJECT_ENVIRONMENT", "/opt/venv") in syncs[0].env


def test_the_first_way_to_install_a_lock_is_verified_in_two_ways() -> None:
    found = names(propose(request(with_lock("uv", "uv.lock"), checks=(check("pytest"), check("unittest")))))
    assert (found.count("locked:uv"), found.count("locked:uv-default")) == (2, 1)


def test_what_a_lock_lacks_of_the_test_tools_is_added() -> None:
    facts = with_lock("uv", "uv.lock").model_copy(update={"test_needs": (uses("pytest-cov", "option"),)})
    last = pick(propose(request(facts)), "locked:uv").recipe.steps[-1]
    assert last.run.endswith("pip install pytest pytest-cov")


def test_the_projects_settings_of_uv_which_may_refuse_it_are_read_by_one_route_alone() -> None:
    candidates = propose(request(with_lock("uv", "uv.lock")))
    for name, alone in (("locked:uv", [False, False, True]), ("locked:uv-default", [True, True, True])):
        steps = pick(candidates, name).recipe.steps[3:]
        assert [("UV_NO_CONFIG", "1") in step.env for step in steps] == alone
    assert ("UV_NO_CONFIG", "1") in pick(propose(request(FACTS)), "declared").recipe.steps[2].env


def test_extras_that_may_conflict_have_a_rival_without_them() -> None:
    assert "--all-extras" not in commands(pick(propose(request(with_lock("uv", "uv.lock"))), "locked:uv-default"))


@pytest.mark.parametrize(("kind", "file"), [("poetry", "poetry.lock"), ("pdm", "pdm.lock"), ("pipenv", "Pipfile.lock")])
def test_the_tool_that_wrote_a_lock_is_of_the_revisions_time_with_the_newest_as_rival(kind: str, file: str) -> None:
    candidates = propose(request(with_lock(kind, file)))
    dated, newest = pick(candidates, f"locked:{kind}"), pick(candidates, f"locked:{kind}-newest")
    assert f"--exclude-newer 2024-03-02T00:00:00Z {kind}" in commands(dated)
    assert "--exclude-newer" not in commands(newest)
    assert dated.prior > newest.prior
    assert dated.evidence[0].file == file


def test_a_standard_lock_file_is_read_by_uv_itself() -> None:
    candidate = pick(propose(request(with_lock("pylock", "pylock.toml"))), "locked:pylock")
    assert "--requirements pylock.toml" in commands(candidate)


def test_a_pinned_list_is_installed_without_pinning_the_project_to_a_release() -> None:
    facts = with_lock("requirements", "requirements.txt")
    pinned = (needs("idna==3.6", "file:requirements.txt"), needs("Shiny==0.9", "file:requirements.txt"))
    candidate = pick(propose(request(facts.model_copy(update={"dependencies": pinned}))), "locked:requirements.txt")
    assert "idna==3.6" in commands(candidate)
    assert "==0.9" not in commands(candidate)


@pytest.mark.parametrize("file", ["docs/requirements.txt", "requirements/tests.txt", "requirements/lint.lock"])
def test_lists_of_documentation_tests_or_linters_lock_no_project(file: str) -> None:
    assert not [name for name in names(propose(request(with_lock("requirements", file)))) if name.startswith("locked")]


def test_the_lock_of_an_example_is_not_the_projects() -> None:
    facts = with_lock("poetry", "examples/app/poetry.lock")
    assert not [name for name in names(propose(request(facts))) if name.startswith("locked")]


def test_ci_gives_its_packages_as_a_system_step_and_its_installs_in_order() -> None:
    facts = ci(
        "sudo apt-get install -y libpq-dev", "pip install -r dev.txt", "pip install -e .", "pytest", env=(("A", "1"),)
    )
    candidate = pick(propose(request(facts)), "ci")
    system = [step.run for step in candidate.recipe.steps if step.kind is StepKind.SYSTEM]
    assert "libpq-dev" in system[1]
    installs = next(step for step in candidate.recipe.steps if "dev.txt" in step.run)
    assert installs.run.splitlines()[1:] == ["pip install -r dev.txt", "pip install -e ."]
    assert ("A", "1") in installs.env
    assert "1 other line" in candidate.reason


def test_secrets_and_unexpanded_values_of_ci_are_not_passed_on() -> None:
    facts = ci("pip install -e .", env=(("API_TOKEN", "x"), ("B", "${{ matrix.b }}"), ("C", "3")))
    installs = next(s for s in pick(propose(request(facts)), "ci").recipe.steps if "pip install -e ." in s.run)
    assert {"API_TOKEN", "B", "C"} & {name for name, _ in installs.env} == {"C"}


def test_ci_that_installs_nothing_has_nothing_to_say() -> None:
    assert "ci" not in names(propose(request(ci("pip install tox", "tox -e py"))))


def test_ci_that_installs_only_packages_is_completed_by_what_is_declared() -> None:
    candidate = pick(propose(request(ci("apt-get install -y graphviz", "tox"))), "ci")
    assert "graphviz" in commands(candidate)
    assert "idna pytest" in commands(candidate)


def test_a_dockerfile_on_debian_is_followed_on_the_base_that_it_names() -> None:
    facts = docker("python:3.9-slim-bullseye", "apt-get install -y libxml2", "pip install -r requirements.txt")
    candidate = pick(propose(request(facts, BOOKWORM, BULLSEYE)), "docker")
    assert candidate.recipe.base == BULLSEYE
    assert "libxml2" in commands(candidate)
    assert "pip install -r requirements.txt" in commands(candidate)


def test_a_dockerfile_of_another_family_is_left_alone() -> None:
    assert "docker" not in names(propose(request(docker("alpine:3.20", "pip install -r requirements.txt"))))


def test_requirements_fetched_from_elsewhere_have_a_rival_from_the_index() -> None:
    address = needs("trustme @ git+https://example.org/trustme@abc", "group:dev")
    facts = FACTS.model_copy(update={"dependencies": (needs("idna"), address)})
    candidates = propose(request(facts))
    fetched, released = pick(candidates, "declared"), pick(candidates, "declared+released")
    assert "git+https" in commands(fetched)
    assert "git+https" not in commands(released)
    assert "trustme" in commands(released)
    assert "git" in fetched.recipe.steps[2].run.split()


def test_environments_of_before_setuptools_82_hold_pkg_resources() -> None:
    new = FACTS.model_copy(update={"revision_date": revision(2026, 3)})
    assert "'setuptools<82'" in commands(pick(propose(request(FACTS, BULLSEYE)), "declared"))
    assert "setuptools<82" not in commands(pick(propose(request(new)), "declared"))


def test_the_pins_of_a_poetry_lock_can_be_had_without_poetry() -> None:
    package = {"name": "idna", "version": "3.6", "markers": {"main": "a", "dev": "b"}}
    elsewhere = {"name": "x", "version": "1", "source": {"type": "git"}}
    assert print_poetry_lock.lines({"package": [package, elsewhere]}) == ["idna==3.6 ; (a) or (b)"]
    candidate = pick(propose(request(with_lock("poetry", "poetry.lock"))), "locked:poetry-pins")
    assert "poetry install" not in commands(candidate)
