"""The lock: what it holds, that it is the same each time, and that nobody alters it unseen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specbuild.environment import Environment, Package, RepoInfo, Seconds
from specbuild.errors import LockError, UsageError
from specbuild.lockfile import Lock, compare_packages, lock_of, read_lock_file
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind, source_step
from specbuild.verify.verdict import Verdict

BASE = BaseRef(name="debian:bookworm", digest="sha256:" + "a" * 64, release="bookworm")
PACKAGES = (
    Package(name="bash", version="5.2", ecosystem="debian", architecture="amd64", hashes=("sha256:" + "1" * 64,)),
    Package(name="idna", version="3.7", ecosystem="pypi"),
)


def environment(origin: str = "/home/me/demo", kind: str = "folder") -> Environment:
    steps = (
        source_step("d" * 64),
        Step(
            kind=StepKind.DEPENDENCIES, run="uv pip install --exclude-newer 2024-05-01T00:00:00Z idna", title="install"
        ),
    )
    check = Check(level=Level.TESTS, runner="pytest", step=Step(kind=StepKind.TEST, run="pytest -x"))
    return Environment(
        id="demo",
        outcome="committed",
        specbuild_version="0.1",
        created="2026-01-02T03:04:05Z",
        repo=RepoInfo(origin=origin, kind=kind, revision="abc", digest="d" * 64, date=None),
        base=BASE,
        strategy="declared@2024-04-30",
        recipe=Recipe(base=BASE, steps=steps, check=check, test_env=(("PATH", "/bin"),)),
        verdict=Verdict(level=Level.TESTS, ok=True, reason="3 of 3 tests passed", passed=3),
        lock=PACKAGES,
        seconds=Seconds(total=1, to_commit=1),
    )


def test_a_lock_that_is_read_gives_the_same_recipe(tmp_path: Path) -> None:
    made = environment()
    (tmp_path / "specbuild.lock").write_text(lock_of(made).dump())
    lock = read_lock_file(tmp_path)
    assert lock.to_recipe() == made.recipe
    assert lock.packages == PACKAGES
    assert lock.check.passed == 3
    assert lock.dates == ("2024-05-01T00:00:00Z",)
    assert [step.digest for step in lock.steps] == [step.digest for step in made.recipe.steps] if made.recipe else False


def test_the_same_environment_gives_the_same_text() -> None:
    made = environment()
    again = Environment.model_validate_json(made.model_dump_json()).model_copy(
        update={"id": "other", "created": "2027-01-01T00:00:00Z", "seconds": Seconds(total=9, to_commit=9)}
    )
    assert lock_of(made).dump() == lock_of(again).dump()


def test_nothing_tells_of_the_machine_or_its_secrets() -> None:
    assert "/home/me" not in lock_of(environment()).dump()
    secret = lock_of(environment("https://me:hunter2@example.org/demo.git", "git")).dump()
    assert "hunter2" not in secret
    assert "example.org/demo.git" in secret


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ("--exclude-newer 2024", "--exclude-newer 2025", "install"),
        ("pytest -x", "true", "check"),
        ("a" * 64, "b" * 64, "base"),
    ],
)
def test_an_altered_lock_is_refused(tmp_path: Path, before: str, after: str, what: str) -> None:
    file = tmp_path / "specbuild.lock"
    file.write_text(lock_of(environment()).dump().replace(before, after))
    with pytest.raises(LockError, match=what):
        read_lock_file(file).to_recipe()


@pytest.mark.parametrize(
    "text", ["", "{}", "\0", "[" * 100_000, '{"schema_version": "new"}', '{"schema_version": 1}', "\ufeff{}"]
)
def test_what_is_no_lock_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "specbuild.lock").write_text(text)
    with pytest.raises(UsageError, match="not a lock"):
        read_lock_file(tmp_path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_lock_file(tmp_path / "none")


def test_a_lock_of_a_newer_form_is_told_as_such(tmp_path: Path) -> None:
    newer = json.loads(lock_of(environment()).dump()) | {"schema_version": 2, "signatures": []}
    (tmp_path / "specbuild.lock").write_text(json.dumps(newer))
    with pytest.raises(UsageError, match="newer SpecBuild: its form is 2") as caught:
        read_lock_file(tmp_path)
    assert "update" in caught.value.hint


def test_every_cut_of_a_lock_is_no_lock(tmp_path: Path) -> None:
    text = lock_of(environment()).dump()
    for end in range(0, len(text) - 2, 37):
        (tmp_path / "specbuild.lock").write_text(text[:end])
        with pytest.raises(UsageError, match="not a lock"):
            read_lock_file(tmp_path)


def relocked(**changes: object) -> Lock:
    """A lock that somebody has edited with all digests made anew."""
    made = environment()
    assert made.recipe is not None
    recipe = made.recipe.model_copy(update=changes)
    return lock_of(made.model_copy(update={"recipe": recipe, "base": recipe.base}))


def test_another_tree_cannot_be_passed_off_as_one_that_was_seen() -> None:
    assert relocked().to_recipe()
    with pytest.raises(LockError, match="the source tree"):
        relocked(steps=(source_step("e" * 64),)).to_recipe()


def test_other_variables_of_a_base_lead_to_other_checkpoints() -> None:
    honest = relocked().to_recipe()
    hostile = relocked(base=BASE.model_copy(update={"env": (("UV_INDEX_URL", "https://elsewhere.test"),)})).to_recipe()
    assert not set(honest.checkpoints) & set(hostile.checkpoints)


@pytest.mark.parametrize("digest", ["latest", "sha256:../../../etc/x", "sha256:" + "A" * 64, "", "sha256:\n"])
def test_a_base_that_is_not_pinned_is_refused(digest: str) -> None:
    with pytest.raises(LockError, match="no digest"):
        relocked(base=BASE.model_copy(update={"digest": digest})).to_recipe()


@pytest.mark.parametrize("name", ["", "A B", "A=B", "-f", "1x", "A\nRUN b", "A;b", "\u00e9"])
def test_a_variable_that_nothing_can_have_is_in_no_lock(tmp_path: Path, name: str) -> None:
    text = json.loads(lock_of(environment()).dump())
    for env in (text["base"]["env"], text["test_env"], text["steps"][1]["step"]["env"]):
        env.append([name, "x"])
        (tmp_path / "specbuild.lock").write_text(json.dumps(text))
        with pytest.raises(UsageError, match="not a lock"):
            read_lock_file(tmp_path)
        env[-1] = ["NAME", "a\0b"]
        (tmp_path / "specbuild.lock").write_text(json.dumps(text))
        with pytest.raises(UsageError, match="not a lock"):
            read_lock_file(tmp_path)
        env.pop()


def test_a_failed_environment_has_no_lock() -> None:
    with pytest.raises(UsageError, match="nothing to lock"):
        lock_of(environment().model_copy(update={"recipe": None}))


def test_package_sets_are_compared_by_name_and_version() -> None:
    newer = PACKAGES[1].model_copy(update={"version": "3.8"})
    extra = Package(name="Zope", version="1", ecosystem="pypi")
    differences = compare_packages(PACKAGES, (newer, extra))
    assert differences.lines() == ["+ pypi Zope 1", "- debian bash 5.2", "~ pypi idna 3.7 -> 3.8"]
    assert differences
    assert not compare_packages(PACKAGES, tuple(reversed(PACKAGES)))


def test_the_text_is_json_in_a_fixed_order() -> None:
    keys = list(json.loads(lock_of(environment()).dump()))
    assert keys[:3] == ["schema_version", "specbuild_version", "repo"]
    assert keys[-1] == "packages"
