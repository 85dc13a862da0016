"""A disk that is full while an image is written is told as that, and by what to try; nothing is left on it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread
import pytest

from specbuild.environment import Environment, RepoInfo, Seconds
from specbuild.errors import StoreError, UsageError
from specbuild.export.deliver import deliver
from specbuild.export.targets import parse_target
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.sandbox.contract import LayerSource
from specbuild.verify.verdict import Verdict

pytestmark = [pytest.mark.root]

BASE = BaseRef(name="debian:bookworm", digest="sha256:" + "a" * 64)
CHECK = Check(level=Level.TESTS, runner="pytest", step=Step(kind=StepKind.TEST, run="pytest"))
ENVIRONMENT = Environment(
    id="demo",
    outcome="committed",
    specbuild_version="0.1",
    created="2026-01-02T03:04:05Z",
    repo=RepoInfo(origin="demo", kind="folder", revision=None, digest="d" * 64, date=None),
    base=BASE,
    recipe=Recipe(base=BASE, steps=(), check=CHECK),
    verdict=Verdict(level=Level.TESTS, ok=True, reason="", passed=1),
    seconds=Seconds(total=1, to_commit=1),
)


class Large:
    """A source of one layer that is larger than the disk, whose writer says in its own words that nobody reads on."""

    async def layers(self, key: str) -> tuple[tuple[str, ...], ...]:
        del key
        return (("one",),)

    async def write_layer(self, layer: str, fd: int, *, without: str = "") -> int:
        del layer, without
        return await self.write_root("", fd)

    async def write_root(self, key: str, fd: int, *, without: str = "") -> int:
        del key, without
        try:
            for _ in range(64):
                await anyio.to_thread.run_sync(os.write, fd, os.urandom(64 << 10))
        except BrokenPipeError as error:
            raise StoreError("the layer cannot be written") from error
        return 1


@asynccontextmanager
async def files() -> AsyncGenerator[tuple[LayerSource, str]]:
    yield Large(), "key"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "small", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("kind", ["oci", "docker-archive", "rootfs"])
async def test_the_place_is_told(small_disk: Path, kind: str) -> None:
    with pytest.raises(UsageError, match="image cannot be written: No space left"):
        await deliver(ENVIRONMENT, parse_target(f"{kind}:{small_disk}/image"), files)
    assert not any(small_disk.iterdir())  # noqa: ASYNC240 - two system calls


@pytest.mark.parametrize("target", ["engine:tool", "registry:localhost:1/tool"])
async def test_the_folder_of_temporary_files_is_told(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    with pytest.raises(StoreError, match="No space left") as caught:
        await deliver(ENVIRONMENT, parse_target(target), files)
    assert "TMPDIR" in caught.value.hint
    assert not any(small_disk.iterdir())  # noqa: ASYNC240 - two system calls


async def test_a_place_below_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written"):
        await deliver(ENVIRONMENT, parse_target(f"oci:{tmp_path}/file/image"), files)
