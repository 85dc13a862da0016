"""System packages as Steps: which are there already, and how the others are installed."""

from __future__ import annotations

import pytest

from specbuild.knowledge.query import Knowledge
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.repairs import Case, apt
from specbuild.repairs.edits import InsertSteps
from specbuild.repo.facts import Facts
from specbuild.strategies import steps

DEBIAN = BaseRef(name="debian:bookworm", digest="sha256:0", release="bookworm")
HOST = BaseRef(name="host", digest="sha256:0", release="bookworm")


def case(debian: Knowledge, *before: Step, base: BaseRef = DEBIAN) -> Case:
    test = Step(kind=StepKind.TEST, run="pytest")
    recipe = Recipe(base=base, steps=before, check=Check(level=Level.TESTS, runner="pytest", step=test))
    return Case(recipe, len(before), Facts(), debian, "pip install")


@pytest.mark.parametrize(
    ("run", "names"),
    [
        ("apt-get install -y -qq --no-install-recommends gcc libc6-dev", {"gcc", "libc6-dev"}),
        ("sudo apt-get -y install g++ && make", {"g++"}),
        ("apt install \\\n  libpq-dev \\\n  python3.11-dev", {"libpq-dev", "python3.11-dev"}),
        ("apt-get install -y 'nodejs=18.*' libc6:i386 # and more", {"nodejs", "libc6"}),
        ("DEBIAN_FRONTEND=noninteractive apt-get install -y git; rm -rf /var/lib/apt", {"git"}),
        ("apt-get update\napt-get remove gcc", set[str]()),
        ("pip install lxml", set[str]()),
        ("apt-get install -y it's", set[str]()),
    ],
)
def test_what_steps_install_is_read_from_their_commands(run: str, names: set[str]) -> None:
    recipe = Recipe(
        base=DEBIAN,
        steps=(Step(kind=StepKind.SYSTEM, run=run),),
        check=Check(level=Level.TESTS, runner="", step=Step(kind=StepKind.TEST, run="")),
    )
    assert apt.installed(recipe, 1) == names
    assert apt.installed(recipe, 0) == set()


def test_steps_of_our_own_are_read_whatever_their_form(debian: Knowledge) -> None:
    known = case(debian, steps.system(DEBIAN), steps.packages(["b2", "a2"]), steps.fresh_packages(["c2"]))
    assert apt.installed(known.recipe, known.index) == {*steps.BASICS, "a2", "b2", "c2"}
    added = apt.step(["d2", "c2"], case(debian, base=HOST))
    host = case(debian, added, base=HOST)
    assert apt.installed(host.recipe, 1) == {"c2", "d2"}


def test_on_a_base_of_ours_the_step_is_the_canonical_one(debian: Knowledge) -> None:
    """So that it is the same checkpoint which a strategy would have made."""
    known = case(debian, steps.system(DEBIAN))
    assert apt.step(["libpq-dev", "gcc"], known) == steps.packages(["gcc", "libpq-dev"])


@pytest.mark.parametrize("base", [HOST, DEBIAN], ids=["host", "bare"])
def test_where_package_lists_may_be_absent_they_are_fetched_if_need_be(debian: Knowledge, base: BaseRef) -> None:
    before = (steps.system(HOST),) if base is HOST else ()
    run = apt.step(["gcc"], case(debian, *before, base=base)).run
    install = steps.packages(["gcc"]).run
    assert run.startswith(f"{install} || {{")
    assert run.index("apt-get update") < run.rindex(install)


def test_only_what_is_absent_is_installed_and_the_name_stays_the_same(debian: Knowledge) -> None:
    before = (steps.system(DEBIAN), steps.packages(["gcc"]))
    known = case(debian, *before)
    (repair,) = apt.install(["gcc", "libx-dev"], known, why="", probability=0.5, source="index", along=["make"])
    assert repair.name == "apt:gcc,libx-dev"
    assert repair.edits == (InsertSteps(steps=(steps.packages(["libx-dev", "make"]),)),)
    assert list(apt.install(["gcc"], known, why="", probability=0.5, source="index", along=["make"])) == []


def test_probabilities_are_kept_inside_of_what_repairs_admit(debian: Knowledge) -> None:
    known = case(debian, steps.system(DEBIAN))
    for probability in (0.0, 1.0, 7.0):
        (repair,) = apt.install(["x2"], known, why="", probability=probability, source="rule")
        assert 0 < repair.probability < 1


def test_compilers_come_along_to_builds_that_have_none_and_never_to_tests(debian: Knowledge) -> None:
    build = Step(kind=StepKind.BUILD, run="make")
    bare, with_gcc = case(debian, build), case(debian, steps.packages(["g++"]), build)
    assert "gcc" in apt.compilers(Case(bare.recipe, 0, Facts(), debian, ""))
    assert apt.compilers(Case(with_gcc.recipe, 1, Facts(), debian, "")) == ()
    assert apt.compilers(bare) == ()
