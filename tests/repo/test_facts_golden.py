"""What is read of each golden repository, `tests/repos/NAME/`, is what `tests/repos/NAME.facts.json` says."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any, cast

import pytest

from specbuild.repo.facts import Dependency, Evidence, Fact, Facts
from specbuild.repo.inspect import inspect

REPOS = Path(__file__).parent.parent / "repos"
EXPECTATIONS = sorted(REPOS.glob("*.facts.json"))


def summary(facts: Facts) -> dict[str, Any]:
    """All facts in a form that is short to write down; lines of evidence are held by another test."""
    result: dict[str, Any] = {
        "name": value(facts.name),
        "version": value(facts.version),
        "build_backend": value(facts.build_backend),
        "build_requires": values(facts.build_requires),
        "requires_python": value(facts.requires_python),
        "classifier_pythons": values(facts.classifier_pythons),
        "scm_version": value(facts.scm_version),
        "languages": values(facts.languages),
        "packages": values(facts.packages),
        "dependencies": by_group(facts.dependencies),
        "pinned": sorted({d.requirement for d in facts.dependencies if d.pinned}),
        "locks": [f"{lock.kind}: {lock.evidence.file}" for lock in facts.locks],
        "make_targets": values(facts.make_targets),
        "readme_commands": values(facts.readme_commands),
        "warnings": values(facts.warnings),
    }
    result["ci"] = [
        {
            "job": f"{job.provider}: {job.name}",
            "image": job.image,
            "pythons": list(job.pythons),
            "env": dict(job.env),
            "services": [service.image for service in job.services],
            "run": values(job.run),
            "tests": job.tests,
        }
        for job in facts.ci
    ]
    result["test_envs"] = [
        {
            "env": f"{env.tool}: {env.name}",
            "deps": list(env.deps),
            "extras": list(env.extras),
            "commands": list(env.commands),
            "set": dict(env.env),
        }
        for env in facts.test_envs
    ]
    result["docker"] = [{"image": image.image, "run": values(image.run)} for image in facts.docker]
    result["extensions"] = [
        f"{e.language} {e.name}{' (optional)' if e.optional else ''}".strip() for e in facts.extensions
    ]
    result["tests"] = [
        f"{t.runner}: {' '.join(t.paths)} ({t.files}) {t.settings_module or ''}".strip() for t in facts.tests
    ]
    result["test_needs"] = [f"{need.kind} {need.name}: {need.evidence.file}" for need in facts.test_needs]
    return {key: content for key, content in result.items() if content not in (None, [], {})}


def value(fact: Fact[str] | None) -> str | None:
    return fact.value if fact else None


def values(facts: tuple[Fact[str], ...]) -> list[str]:
    return [fact.value for fact in facts]


def by_group(dependencies: tuple[Dependency, ...]) -> dict[str, list[str]]:
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for dependency in dependencies:
        groups[dependency.group].append(dependency.requirement)
    return dict(groups)


@pytest.mark.parametrize("expectation", EXPECTATIONS, ids=lambda path: path.name.removesuffix(".facts.json"))
def test_facts_of_a_golden_repository(expectation: Path) -> None:
    facts = inspect(REPOS / expectation.name.removesuffix(".facts.json"))
    assert summary(facts) == json.loads(expectation.read_text())


def evidence_in(node: object) -> list[Evidence]:
    """Every piece of evidence below a value."""
    match node:
        case dict():
            table = cast("dict[str, object]", node)
            if table.keys() == Evidence.model_fields.keys():
                return [Evidence.model_validate(table)]
            return evidence_in(list(table.values()))
        case list() | tuple():
            return [found for inner in cast("list[object]", node) for found in evidence_in(inner)]
        case _:
            return []


@pytest.mark.parametrize("expectation", EXPECTATIONS, ids=lambda path: path.name.removesuffix(".facts.json"))
def test_evidence_names_real_lines(expectation: Path) -> None:
    root = REPOS / expectation.name.removesuffix(".facts.json")
    for evidence in evidence_in(inspect(root).model_dump()):
        lines = (root / evidence.file).read_text().split("\n")
        if evidence.line is not None:
            assert lines[evidence.line - 1].strip()[:200] == evidence.text


@pytest.mark.parametrize("expectation", EXPECTATIONS, ids=lambda path: path.name.removesuffix(".facts.json"))
def test_evidence_of_a_dependency_is_the_line_that_names_it(expectation: Path) -> None:
    facts = inspect(REPOS / expectation.name.removesuffix(".facts.json"))
    for dependency in facts.dependencies:
        if dependency.group.startswith(("tox:", "nox:", "extra:cache")):
            continue  # their evidence is the environment
        name = re.split(r"[ \[<>=!~;@]", dependency.requirement)[0]
        assert name.lower() in dependency.evidence.text.lower(), dependency
