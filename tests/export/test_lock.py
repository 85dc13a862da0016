"""What an environment resolved to, and a whole verification, in real sandboxes on the running system."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from specbuild.bases.masks import Machine, masks
from specbuild.environment import Package
from specbuild.export.lock import read_lock
from specbuild.recipe import BaseRef, Level, Recipe, Step, StepKind
from specbuild.repo.facts import Facts, TestLayout
from specbuild.sandbox.contract import Command, HostRoot, Sandbox
from specbuild.sandbox.overlay.backend import OverlayBackend
from specbuild.sandbox.passthrough import base_environment
from specbuild.verify import Verdict, checks_for, verify

pytestmark = [pytest.mark.sandbox, pytest.mark.root]

SITE = "$(/opt/venv/bin/python -Ic 'import sysconfig; print(sysconfig.get_path(\"purelib\"))')"
SUITE = "import unittest\nclass T(unittest.TestCase):\n    def test_good(self): pass\n"
CHECK = next(
    check
    for check in checks_for(
        Facts(tests=(TestLayout(runner="unittest", paths=("tests",)),)),
        level=Level.TESTS,
        test_command=None,
        network=False,
        timeout=60,
    )
    if check.runner == "unittest"
)
RECIPE = Recipe(base=BaseRef(name="host", digest="sha256:0", portable=False), steps=(), check=CHECK)


def command(step: Step) -> Command:
    env = {**base_environment(), **dict(step.env)}
    return Command(
        argv=("/bin/sh", "-eu", "-c", step.run), cwd=step.cwd, env=env, timeout=step.timeout, network=step.network
    )


async def do(sandbox: Sandbox, run: str) -> None:
    completed = await sandbox.run(command(Step(kind=StepKind.BUILD, run=run, cwd="/", network=False)))
    assert completed.ok, completed.tail


@asynccontextmanager
async def host_sandbox(folder: Path) -> AsyncGenerator[Sandbox]:
    """A sandbox on the running system with an empty virtual environment."""
    async with OverlayBackend(folder / "store") as backend:
        base = await backend.import_base("0" * 63 + "h", HostRoot(masked=masks(Machine(Path("/")), private=[folder])))
        async with backend.fork(base) as sandbox:
            await do(sandbox, "/usr/bin/python3 -m venv --without-pip /opt/venv")
            yield sandbox


def distribution(name: str, version: str, origin: object = None) -> str:
    """The shell commands that install nothing but metadata."""
    folder = f"{SITE}/{name}-{version}.dist-info"
    lines = [f'mkdir -p "{folder}"', f'printf "Name: {name}\\nVersion: {version}\\n" > "{folder}/METADATA"']
    if origin is not None:
        lines.append(f"printf %s '{json.dumps(origin)}' > \"{folder}/direct_url.json\"")
    return "\n".join(lines)


async def test_the_lock_names_every_distribution_and_system_package(tmp_path: Path) -> None:
    vcs = {"url": "https://me:hunter2@example.org/b.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}
    async with host_sandbox(tmp_path) as sandbox:
        await do(sandbox, distribution("plain", "1.0"))
        await do(sandbox, distribution("mine", "2.0", {"url": "file:///repo", "dir_info": {"editable": True}}))
        await do(sandbox, distribution("theirs", "3.0", vcs))
        await do(sandbox, distribution("archive", "4.0", {"url": "https://example.org/a.zip", "archive_info": {}}))
        await do(sandbox, distribution("odd", "5.0", ["no", "object"]))
        lock = await read_lock(sandbox, command, RECIPE)
    assert [package for package in lock if package.ecosystem == "pypi"] == [
        Package(name="archive", version="4.0", ecosystem="pypi", source="https://example.org/a.zip"),
        Package(name="mine", version="2.0", ecosystem="pypi", source="editable file:///repo"),
        Package(name="odd", version="5.0", ecosystem="pypi", source="unreadable direct_url.json"),
        Package(name="plain", version="1.0", ecosystem="pypi"),
        Package(name="theirs", version="3.0", ecosystem="pypi", source="https://example.org/b.git@abc"),
    ]
    assert list(lock) == sorted(lock, key=lambda package: (package.ecosystem, package.name.lower(), package.version))
    if Path("/var/lib/dpkg/status").exists():  # noqa: ASYNC240 - the running system is the base
        names = {package.name for package in lock if package.ecosystem == "debian"}
        assert {"coreutils", "dpkg"} <= names


async def test_metadata_in_the_source_tree_is_not_an_installation(tmp_path: Path) -> None:
    async with host_sandbox(tmp_path) as sandbox:
        await sandbox.write_file("/repo/demo.egg-info/PKG-INFO", b"Name: demo\nVersion: 1\n")
        lock = await read_lock(sandbox, command, RECIPE)
    assert not [package for package in lock if package.ecosystem == "pypi"]


async def verified(folder: Path, tracked: bytes) -> Verdict:
    async with host_sandbox(folder) as sandbox:
        await sandbox.write_file("/repo/tests/test_a.py", SUITE.encode())
        digests = {"tests/test_a.py": sha256(tracked).hexdigest()}
        log = folder / "log"
        verdict = await verify(sandbox, CHECK, command=command, tracked=digests, min_pass_ratio=1.0, log=log)
        assert verdict.tainted or "test_good" in log.read_text()
        return verdict


async def test_a_suite_in_a_real_sandbox_verifies(tmp_path: Path) -> None:
    verdict = await verified(tmp_path, SUITE.encode())
    assert verdict.ok, verdict
    assert verdict.passed == 1


async def test_a_tainted_tree_in_a_real_sandbox_does_not_verify(tmp_path: Path) -> None:
    assert (await verified(tmp_path, b"other")).tainted == ("tests/test_a.py",)
