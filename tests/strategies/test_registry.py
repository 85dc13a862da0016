"""All strategies together: names, merging, order, and what cannot be done."""

from __future__ import annotations

import pytest

from specbuild.errors import UsageError
from specbuild.repo.facts import CiJob, Evidence, Fact, Facts
from specbuild.strategies import left_out, load, propose
from specbuild.strategies import names as strategies
from specbuild.testing.proposals import (
    BOOKWORM,
    BULLSEYE,
    HOST,
    TRIXIE,
    commands,
    fact,
    names,
    needs,
    pick,
    request,
    revision,
)

FACTS = Facts(
    name=fact("shiny"),
    build_backend=fact("flit_core.buildapi"),
    requires_python=fact(">=3.9"),
    classifier_pythons=(fact("3.9"), fact("3.10"), fact("3.11")),
    dependencies=(needs("idna>=2"), needs("pytest", "group:tests")),
    revision_date=revision(2024),
)


def job(*lines: str) -> CiJob:
    where = Evidence(file=".github/workflows/tests.yml", line=3)
    run = tuple(Fact(value=line, evidence=where) for line in lines)
    return CiJob(provider="github", name="tests", run=run, tests=True, evidence=where)


def test_every_built_in_strategy_can_be_loaded_by_its_name() -> None:
    for name in strategies():
        assert load(name).name == name


def test_only_strategies_with_the_given_prefix_are_kept() -> None:
    assert set(names(propose(request(FACTS), only=["debian"]))) == {"debian-packages"}
    assert set(names(propose(request(FACTS), only=["declared@2024"]))) == {
        "declared@2024-01-01",
        "declared@2024-01-01+old-build",
    }


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"'nonsense'.*debian-packages, declared") as caught:
        propose(request(FACTS), only=["declared", "nonsense"])
    assert caught.value.exit_code == 2


def test_candidates_come_by_odds_for_the_time_they_take_and_are_limited() -> None:
    candidates = propose(request(FACTS, BOOKWORM, BULLSEYE))
    ratios = [candidate.prior / candidate.expected_seconds for candidate in candidates]
    assert ratios == sorted(ratios, reverse=True)
    assert propose(request(FACTS, BOOKWORM, BULLSEYE), limit=3) == candidates[:3]


def test_no_two_candidates_have_the_same_recipe() -> None:
    digests = [candidate.recipe.digest for candidate in propose(request(FACTS, BOOKWORM, BULLSEYE, TRIXIE, HOST))]
    assert len(digests) == len(set(digests))


def test_equal_recipes_are_merged_with_both_reasons() -> None:
    # CI that installs nothing but a package leaves the declared route, and two such jobs are the same.
    facts = FACTS.model_copy(update={"ci": (job("sudo apt-get install -y jq", "pytest"), job("apt install jq"))})
    found = [candidate for candidate in propose(request(facts)) if candidate.strategy == "ci"]
    assert len(found) == 1


def test_a_base_that_requires_python_excludes_is_left_out_with_its_reason() -> None:
    facts = FACTS.model_copy(update={"requires_python": fact(">=3.10")})
    asked = request(facts, BULLSEYE, BOOKWORM)
    assert {candidate.recipe.base.name for candidate in propose(asked)} == {"debian:bookworm"}
    assert left_out(asked) == ("Python 3.9 of debian:bullseye is excluded by requires-python >=3.10 (pyproject.toml)",)


def test_no_base_that_serves_is_an_error_that_says_why() -> None:
    facts = FACTS.model_copy(update={"requires_python": fact(">=3.13")})
    with pytest.raises(UsageError, match=r"Python 3\.11 of debian:bookworm is excluded") as caught:
        propose(request(facts, BOOKWORM))
    assert "debian:trixie" in caught.value.hint


def test_a_micro_version_in_requires_python_does_not_exclude_a_minor_version() -> None:
    facts = FACTS.model_copy(update={"requires_python": fact(">=3.9.1,!=3.9.7")})
    assert left_out(request(facts, BULLSEYE)) == ()


def test_a_base_whose_interpreter_the_project_names_is_preferred() -> None:
    candidates = propose(request(FACTS, TRIXIE, BOOKWORM), only=["declared@"])
    assert candidates[0].recipe.base == BOOKWORM
    assert "newer than all named (up to 3.11)" in next(c for c in candidates if c.recipe.base == TRIXIE).reason


def test_the_running_system_keeps_its_own_interpreter() -> None:
    system = pick(propose(request(FACTS, HOST)), "declared").recipe.steps[0].run
    assert system.startswith("python3 -c 'import ensurepip, venv' || {")


def test_distribution_packages_are_for_debian_bases_alone() -> None:
    assert "debian-packages" not in names(propose(request(FACTS, HOST)))
    candidate = pick(propose(request(FACTS, BOOKWORM)), "debian-packages")
    assert "python3-idna python3-pytest" in commands(candidate)
    assert "--system-site-packages" in commands(candidate)


def test_a_repo_without_python_gets_no_candidates() -> None:
    assert propose(request(Facts(languages=(fact("rust"),)))) == ()


def test_an_application_is_not_installed_but_what_it_needs_is() -> None:
    facts = Facts(languages=(fact("python"),), dependencies=(needs("idna", "file:requirements.txt"),))
    candidates = propose(request(facts))
    text = commands(pick(candidates, "declared"))
    assert "pip install idna pytest" in text
    assert not [c.strategy for c in candidates if "-e '.'" in commands(c)]
