"""Of every public output that a Python or surroundings repair has cured: is that repair among the first two offered?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specbuild.failures import FAILURE, Failure, MissingData
from specbuild.recipe import Level, StepKind
from specbuild.repairs import repairs_for
from specbuild.repo.facts import CiJob, Evidence, Facts, TestLayout
from specbuild.testing.proposals import BOOKWORM, TRIXIE, fact, needs, revision
from specbuild.testing.python_cases import python_case
from specbuild.verify.checks import checks_for

SIGNATURES = Path(__file__).parent.parent / "predictors" / "signatures.jsonl"
DIAGNOSES: dict[str, list[dict[str, Any]]] = {
    row["id"]: row["expected"] for row in map(json.loads, SIGNATURES.read_text().splitlines())
}

FACTS = Facts(
    name=fact("x"),
    version=fact("1.2"),
    build_backend=fact("setuptools.build_meta"),
    dependencies=(
        needs("requests>=2"),
        needs("pytest-mock>=3", "extra:test"),
        needs("tomli", "file:ci/requirements-dev.txt"),
    ),
    packages=(fact("cairo", "cairo/__init__.py"),),
    tests=(TestLayout(runner="pytest", paths=("tests",), files=3, settings_module="x.settings"),),
    revision_date=revision(2021, 3, 1),
)

CURES = {
    # id: where it shows, what the first or second repair is called
    "P037": (StepKind.BUILD, "pip:cmake>=9.10"),
    "P062": (StepKind.DEPENDENCIES, "pip:any-numpy"),
    "P064": (StepKind.DEPENDENCIES, "policy:as-of-2021-03-01"),
    "P066": (StepKind.DEPENDENCIES, "file:ci/requirements-dev.txt"),
    "P067": (StepKind.BUILD, "python:from-tree"),
    "P068": (StepKind.DEPENDENCIES, "python:venv"),
    "P072": (StepKind.BUILD, "build-constraint:setuptools<58"),
    "P073": (StepKind.BUILD, "build-constraint:setuptools>=66.1"),
    "P074": (StepKind.TEST, "pip:setuptools<82"),
    "P075": (StepKind.TEST, "pip:setuptools"),
    "P076": (StepKind.TEST, "base:debian:bookworm"),
    "P077": (StepKind.TEST, "base:debian:bullseye"),
    "P078": (StepKind.BUILD, "python:from-tree"),
    "P079": (StepKind.BUILD, "env:SETUPTOOLS_SCM_PRETEND_VERSION"),
    "P080": (StepKind.BUILD, "env:SETUPTOOLS_SCM_PRETEND_VERSION"),
    "P082": (StepKind.DEPENDENCIES, "pip:declared"),
    "P084": (StepKind.DEPENDENCIES, "uv:unlocked"),
    "P086": (StepKind.DEPENDENCIES, "policy:as-of-2021-03-01"),
    "P087": (StepKind.DEPENDENCIES, "uv:frozen"),
    "P090": (StepKind.TEST, "pip:flask<3"),
    "P091": (StepKind.TEST, "pip:jinja2<3.1"),
    "P092": (StepKind.TEST, "pip:markupsafe<2.1"),
    "P093": (StepKind.TEST, "pip:numpy<1.24"),
    "P094": (StepKind.TEST, "pip:numpy<2"),
    "P095": (StepKind.TEST, "pip:pydantic<2"),
    "P096": (StepKind.TEST, "pip:httpx<0.28"),
    "P097": (StepKind.TEST, "pip:sqlalchemy<2"),
    "P098": (StepKind.TEST, "pip:pytest-cov"),
    "P099": (StepKind.TEST, "pip:pytest-xdist"),
    "P100": (StepKind.TEST, "pip:pytest-mock"),
    "P101": (StepKind.TEST, "pip:pytest-asyncio"),
    "P102": (StepKind.TEST, "pip:pytest-xyz"),
    "P103": (StepKind.TEST, "pip:pytest>=99"),
    "P105": (StepKind.TEST, "pytest:importlib"),
    "P109": (StepKind.TEST, "env:DJANGO_SETTINGS_MODULE"),
    "P110": (StepKind.TEST, "pip:psycopg2-binary"),
    "P111": (StepKind.TEST, "base:debian:bookworm"),
    "P112": (StepKind.TEST, "base:debian:bullseye"),
    "P121": (StepKind.TEST, "env:LC_ALL"),
    "P122": (StepKind.TEST, "env:LC_ALL"),
    "P125": (StepKind.TEST, "git:safe.directory"),
    "P126": (StepKind.BUILD, "env:PBR_VERSION+SETUPTOOLS_SCM_PRETEND_VERSION"),
    "P127": (StepKind.BUILD, "git:init"),
    "P129": (StepKind.TEST, "git:file-protocol"),
    "P163": (StepKind.DEPENDENCIES, "pip:by-pip-feedparser"),
    "P164": (StepKind.TEST, "pip:pytest<9"),
    "P165": (StepKind.BUILD, "build-constraint:setuptools<82"),
    "P166": (StepKind.TEST, "tests:outside"),
    "P177": (StepKind.TEST, "pip:pytest"),
    "P179": (StepKind.BUILD, "build-constraint:setuptools<60"),
}
"""Rows whose repair is a matter of distributions, builds, surroundings or the way the tests are run."""

NEEDS_NEWER_BASE = frozenset({"P073", "P075", "P076", "P111"})
LOCKED = {"P084": "uv sync --frozen", "P087": "uv sync --locked", "P066": "uv pip install -r requirements-dev.txt"}


@pytest.mark.parametrize("row", CURES)
def test_what_has_cured_a_public_failure_is_offered_first_or_second(row: str) -> None:
    place, cure = CURES[row]
    base = TRIXIE if row in NEEDS_NEWER_BASE else BOOKWORM
    case = python_case(
        FACTS, at=place, base=base, requirements="six", install=LOCKED.get(row, "/opt/uv/bin/uv pip install")
    )
    for diagnosis in DIAGNOSES[row]:
        failure: Failure = FAILURE.validate_python(diagnosis)
        assert cure in [repair.name for repair in repairs_for(failure, case)[:2]]


def test_a_hollow_pass_has_other_ways_to_run_the_tests() -> None:
    facts = FACTS.model_copy(update={"tests": (TestLayout(runner="unittest", paths=("tests",), files=3),)})
    (diagnosis,) = DIAGNOSES["P106"]
    checks = checks_for(facts, level=Level.TESTS, test_command=None, network=False, timeout=60.0)[:1]
    case = python_case(facts, checks=checks)
    names = [repair.name for repair in repairs_for(FAILURE.validate_python(diagnosis), case)]
    assert any(name.startswith("check:unittest:") for name in names[:2])


def test_a_file_that_homes_are_taken_to_have_is_made() -> None:
    (best, *_) = repairs_for(MissingData(path="/root/.ssh/known_hosts"), python_case(FACTS))
    assert best.name == "touch:/root/.ssh/known_hosts"


def test_a_variable_is_set_as_ci_sets_it() -> None:
    job = CiJob(
        provider="github", name="test", env=(("APP_MODE", "test"),), evidence=Evidence(file="ci.yml"), tests=True
    )
    facts = FACTS.model_copy(update={"ci": (job,)})
    failure = FAILURE.validate_python({"kind": "setting-needed", "variable": "APP_MODE"})
    (best, *_) = repairs_for(failure, python_case(facts))
    assert (best.title, best.source) == ("set APP_MODE=test", "facts")
