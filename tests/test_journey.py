"""The whole journey from Python, on a Debian base made for it: what is committed, used, exported, rebuilt, refused."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

import specbuild
from specbuild import Settings
from specbuild.errors import LockError, UsageError
from specbuild.export.lock import read_lock
from specbuild.lockfile import LockedStep, compare_packages, read_lock_file
from specbuild.opened import OpenEnvironment
from specbuild.outcome import Outcome
from specbuild.recipe import SOURCE_DIR, Step, StepKind
from specbuild.sandbox.backends import open_backend
from specbuild.workshop import BuildWorkshop, Surroundings

pytestmark = [pytest.mark.sandbox, pytest.mark.network, pytest.mark.slow]

PYPROJECT = """\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "small"
version = "1.0"
requires-python = ">=3.9"
dependencies = ["idna>=2.5"]

[tool.setuptools]
py-modules = ["small"]
"""

GOOD = "import small\n\ndef test_encodes():\n    assert small.encode('bücher.example') == b'xn--bcher-kva.example'\n"

HOLLOW = {
    "everything is skipped": "import pytest\n\n@pytest.mark.skip\ndef test_nothing():\n    assert False\n",
    "nothing is collected": "def check_nothing():\n    assert False\n",
    "the run ends early without an error": "import os\nos._exit(0)\n",
    "a collection error beside a pass": "import no_such_module_anywhere\n",
}


def project(folder: Path, tests: str) -> Path:
    (folder / "tests").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "small.py").write_text("import idna\n\n\ndef encode(name):\n    return idna.encode(name)\n")
    (folder / "tests" / "test_small.py").write_text(tests)
    return folder


def state(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, debian_cache: Path) -> Generator[Settings]:
    cache = tmp_path_factory.mktemp("cache")
    shutil.copytree(debian_cache / "bases", cache / "bases", copy_function=os.link)
    yield Settings(cache_dir=cache, bases=("debian:bookworm",))
    anyio.run(empty, Settings(cache_dir=cache))
    shutil.rmtree(cache)


async def empty(settings: Settings) -> None:
    async with open_backend(settings) as backend:
        for path in (settings.cache_dir / "builds").glob("*"):
            await backend.forget(path.name)
        await backend.prune(everything=True)


@pytest.fixture(name="built", scope="module")
def build_once(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> OpenEnvironment:
    source = project(tmp_path_factory.mktemp("repos") / "small", GOOD)
    before = state(source)
    output = tmp_path_factory.mktemp("outputs") / "out"
    built = specbuild.run(lambda: specbuild.build(source, settings=settings, output=output))
    assert state(source) == before, "the original is never written to"
    return built


def test_a_real_project_is_committed_verified_and_rebuilt(built: OpenEnvironment) -> None:
    assert built.outcome == "committed"
    assert built.verdict is not None
    assert (built.verdict.passed, built.verdict.failed, built.verdict.errors) == (1, 0, 0)
    assert built.reproducible is True
    assert built.verdict.repeatable is True
    names = {package.name: package.ecosystem for package in built.lock}
    assert names["idna"] == "pypi"
    assert names["python3"] == "debian"


async def test_the_next_revision_goes_on_from_the_environment_of_the_one_before(
    built: OpenEnvironment, settings: Settings, tmp_path: Path
) -> None:
    source = project(tmp_path / "small", GOOD)
    changed = PYPROJECT.replace('["idna>=2.5"]', '["idna>=2.5", "toolz"]').replace('"1.0"', '"1.1"')
    (source / "pyproject.toml").write_text(changed)
    following = await specbuild.build(source, settings=settings, output=tmp_path / "out")
    assert following.outcome == "committed"
    assert following.reproducible is True
    proposed = {candidate.strategy: candidate.id for candidate in following.candidates}
    ahead = next(name for strategy, name in proposed.items() if strategy.endswith("+earlier"))
    before = set(built.committed().checkpoints[1:4])  # the base is provided, not reused
    reused = {row.node for row in following.timeline if row.outcome is Outcome.REUSED and ahead in row.candidates}
    assert reused == before
    assert {"idna", "toolz"} <= {package.name for package in following.lock}


def test_every_candidate_has_an_end_and_the_timeline_holds_each_node_once(built: OpenEnvironment) -> None:
    assert [candidate.end for candidate in built.candidates].count("committed") == 1
    assert all(candidate.why for candidate in built.candidates)
    made = [entry.node for entry in built.timeline if entry.outcome in {Outcome.OK, Outcome.REUSED}]
    assert len(made) == len(set(made))


async def test_commands_run_in_it_and_leave_nothing(built: OpenEnvironment) -> None:
    lines: list[str] = []
    done = await built.run("python -c 'import small; print(small.encode(\"a.b\"))'; touch mark", on_line=lines.append)
    assert done.ok
    assert lines == ["b'a.b'"]
    assert (await built.run(["test", "-e", "mark"])).exit_code == 1


def test_the_journal_tells_the_whole_build(built: OpenEnvironment) -> None:
    assert built.artifacts.journal is not None
    kinds = [json.loads(line)["kind"] for line in Path(built.artifacts.journal).read_text().splitlines()]
    assert kinds[0] == "build-started"
    assert kinds[-1] == "build-ended"
    assert {"candidate-proposed", "step-started", "step-ended", "verified", "candidate-ended", "replayed"} <= set(kinds)


def test_a_replay_tells_which_step_it_is_at(built: OpenEnvironment) -> None:
    assert built.artifacts.journal is not None
    events = [json.loads(line) for line in Path(built.artifacts.journal).read_text().splitlines()]
    told = [event["detail"] for event in events if event["kind"] == "phase" and event["name"] == "replay"]
    recipe = built.committed()
    assert told[1:] == [*(step.title for step in recipe.steps), recipe.check.step.title]


async def test_setup_sh_makes_the_same_environment_on_the_bare_base(built: OpenEnvironment, settings: Settings) -> None:
    assert built.artifacts.setup_sh is not None
    script_text = await anyio.Path(built.artifacts.setup_sh).read_bytes()
    recipe = built.committed()
    surroundings = Surroundings.of(settings)
    async with open_backend(settings) as backend:
        workshop: BuildWorkshop = built.workshop(backend)
        bare = await workshop.provide(recipe.base)
        async with backend.fork(bare, limits=surroundings.limits) as sandbox:
            await sandbox.copy_in(Path(built.repo.origin), "/given")
            await sandbox.write_file("/setup.sh", script_text, mode=0o755)
            done = await sandbox.run(surroundings.command(script("/setup.sh --test /given"), recipe.base))
            assert done.ok, done.tail
            assert "1 passed" in done.tail
            packages = await read_lock(sandbox, lambda step: surroundings.command(step, recipe.base), recipe)
            assert compare_packages(built.lock, packages).lines() == []


def script(line: str) -> Step:
    return Step(kind=StepKind.BUILD, run=line, cwd="/")


def test_the_dockerfile_needs_no_other_file_than_the_source(built: OpenEnvironment) -> None:
    assert built.artifacts.dockerfile is not None
    text = Path(built.artifacts.dockerfile).read_text()
    assert text.count(f"COPY . {SOURCE_DIR}") == 1
    copies = [line for line in text.splitlines() if line.startswith(("COPY", "ADD"))]
    assert all("<<" in line or line == f"COPY . {SOURCE_DIR}" for line in copies)


def test_the_lock_has_hashes_of_packages_of_both_kinds(built: OpenEnvironment) -> None:
    hashes = {package.name: package.hashes for package in built.lock}
    assert all(len(hashes[name]) == 1 and len(hashes[name][0]) == 71 for name in ("idna", "python3"))


async def test_a_lock_does_the_same_again_without_a_race(
    settings: Settings, built: OpenEnvironment, tmp_path: Path
) -> None:
    lock = Path(built.artifacts.lock or "")
    source = Path(shutil.copytree(built.repo.origin, tmp_path / "copy"))
    shutil.copy(lock, source)  # in the tree that it locks: no part of that
    alone = settings.model_copy(update={"replay": False})
    again = await specbuild.build(source, settings=alone, locked=source, output=tmp_path / "out")
    assert again.recipe == built.recipe
    assert [candidate.strategy for candidate in again.candidates] == [built.strategy]
    assert read_lock_file(tmp_path / "out") == read_lock_file(lock)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("tree", "the source tree has changed"),
        ("facts", "the facts have changed"),
        ("base", "the lock was altered"),
        ("packages", "~ debian bash 0.1 -> "),
    ],
)
async def test_what_does_not_match_its_lock_is_told(
    settings: Settings, built: OpenEnvironment, tmp_path: Path, name: str, why: str
) -> None:
    source = Path(shutil.copytree(built.repo.origin, tmp_path / "copy"))
    lock = read_lock_file(Path(built.artifacts.lock or ""))
    bash = next(package for package in lock.packages if package.name == "bash")
    packages = (bash.model_copy(update={"version": "0.1"}), *(each for each in lock.packages if each != bash))
    altered: dict[str, Any] = {
        "tree": {},
        "facts": {"facts": "0" * 64},
        "base": {"base": lock.base.model_copy(update={"digest": "sha256:" + "0" * 64})},
        "packages": {"packages": packages},
    }
    if name == "tree":
        (source / "small.py").write_text("changed = True\n")
    (tmp_path / "lock").write_text(lock.model_copy(update=altered[name]).dump())
    alone = settings.model_copy(update={"replay": False})
    with pytest.raises(LockError) as caught:
        await specbuild.build(source, settings=alone, locked=tmp_path / "lock", output=tmp_path / "out")
    assert why in caught.value.message
    assert caught.value.hint


async def test_a_locked_step_that_fails_today_is_told(
    settings: Settings, built: OpenEnvironment, tmp_path: Path
) -> None:
    lock = read_lock_file(Path(built.artifacts.lock or ""))
    gone = Step(kind=StepKind.SYSTEM, run="echo 'E: Version 0.1 was not found'; exit 100", title="install", cwd="/")
    steps = (LockedStep(digest=gone.digest, step=gone), *lock.steps)
    recipe = built.committed().model_copy(update={"steps": tuple(locked.step for locked in steps)})
    altered = lock.model_copy(update={"steps": steps, "recipe": recipe.digest})
    (tmp_path / "lock").write_text(altered.dump())
    with pytest.raises(LockError) as caught:
        await specbuild.build(built.repo.origin, settings=settings, locked=tmp_path / "lock", output=tmp_path / "out")
    assert "does not lead to its environment any more" in caught.value.message
    assert "E: Version 0.1 was not found" in caught.value.message
    assert "without --locked" in caught.value.hint
    assert caught.value.exit_code == 3


async def test_exports_are_the_environments_files(built: OpenEnvironment, tmp_path: Path) -> None:
    made = await built.export(f"docker-archive:{tmp_path}/image.tar")
    assert made.layers is not None
    assert made.layers >= len(built.committed().steps), "a step can leave nothing, the base cannot"
    with pytest.raises(UsageError, match="exists already"):
        await built.export(f"docker-archive:{tmp_path}/image.tar")
    again = await built.export(f"docker-archive:{tmp_path}/image.tar", force=True)
    assert again == made, "the same files, the same digest"


@pytest.mark.parametrize("tests", HOLLOW.values(), ids=HOLLOW.keys())
async def test_a_hollow_suite_does_not_verify(
    tests: str, settings: Settings, built: OpenEnvironment, tmp_path: Path
) -> None:
    assert built.base is not None, "built first: its base and its first steps are reused here"
    hollow = project(tmp_path / "hollow", tests)
    if "no_such_module" in tests:
        (hollow / "tests" / "test_good.py").write_text(GOOD)
    alone = settings.model_copy(update={"strategies": ("declared",), "repair": False})
    ended = await specbuild.build(hollow, settings=alone)
    assert ended.outcome == "failed"
    assert ended.recipe is None
    verdicts = [candidate.verdict for candidate in ended.candidates if candidate.verdict is not None]
    assert verdicts
    assert not any(verdict.ok for verdict in verdicts)
    assert all(candidate.why for candidate in ended.candidates)


async def test_a_recipe_that_changes_tracked_files_cannot_win(
    settings: Settings, built: OpenEnvironment, tmp_path: Path
) -> None:
    source = project(tmp_path / "tampering", GOOD)
    (source / "setup.py").write_text(
        "import pathlib\nfrom setuptools import setup\n"
        "test = pathlib.Path(__file__).parent / 'tests' / 'test_small.py'\n"
        "test.write_text('def test_anything():\\n    pass\\n')\nsetup()\n"
    )
    ended = await specbuild.build(source, settings=settings.model_copy(update={"strategies": ("declared",)}))
    assert ended.outcome == "failed"
    assert any("tests/test_small.py" in (c.verdict.tainted if c.verdict else ()) for c in ended.candidates)
