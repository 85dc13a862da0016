"""A build from an image of a registry: the whole journey, from `--base localhost:PORT/…` to a verified environment."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

import specbuild
from specbuild import Settings
from specbuild.environment import Holder
from specbuild.lockfile import lock_of
from specbuild.oci.push import push_image
from specbuild.oci.reference import parse_reference
from specbuild.sandbox.backends import open_backend
from specbuild.testing.engines import docker_engine
from specbuild.testing.images import MadeImage, file, image, layer
from specbuild.testing.leftovers import leftovers
from specbuild.testing.registry import TestRegistry, registry
from specbuild.testing.rootfs import debian_rootfs

pytestmark = [pytest.mark.engine, pytest.mark.sandbox, pytest.mark.root, pytest.mark.network, pytest.mark.slow]

PYPROJECT = """\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "small"
version = "1.0"
requires-python = ">=3.9"

[tool.setuptools]
py-modules = ["small"]
"""
TESTS = """\
import os
import pathlib

import small


def test_it_runs_on_the_image():
    assert small.ANSWER == 42
    assert pathlib.Path("/etc/of-the-image").read_text() == "second layer"
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TestRegistry]:
    with registry(tmp_path / "registry") as running:
        yield running


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small project."""
    folder = tmp_path / "small"
    (folder / "tests").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "small.py").write_text("ANSWER = 42\n")
    (folder / "tests/test_small.py").write_text(TESTS)
    return folder


async def published(server: TestRegistry) -> tuple[str, MadeImage]:
    """The name of an image with Debian and a layer more, and the image."""
    root = await anyio.Path(debian_rootfs()).read_bytes()
    made = image(root, layer(file("etc/of-the-image", "second layer")), compression="", Env=["OF_THE_IMAGE=yes"])
    name = f"{server.host}/team/debian:1"
    await push_image(parse_reference(name), made.manifest, made.media_type, made.uploads)
    return name, made


def settings_for(cache: Path, name: str, backend: str) -> Settings:
    return Settings(
        cache_dir=cache, bases=(name,), backend=backend, sequential=True, repair=False, learn=False, replay=False
    )


async def remove(settings: Settings, build: str) -> None:
    """What a build has left on its backend."""
    async with open_backend(settings) as backend:
        await backend.forget(build)
        await backend.prune(everything=True)


async def test_a_project_is_built_on_an_image(server: TestRegistry, source: Path, tmp_path: Path) -> None:
    name, made = await published(server)
    settings = settings_for(tmp_path / "cache", name, "overlay")
    built = await specbuild.build(source, settings=settings)
    assert built.outcome == "committed", built.message
    assert built.base is not None
    assert (built.base.name, built.base.digest) == (name, made.descriptor.digest)
    assert built.recipe is not None
    assert built.recipe.base.env == (("OF_THE_IMAGE", "yes"),)
    done = await built.run('printf %s "$OF_THE_IMAGE"')
    assert done.tail.strip() == "yes"
    dockerfile = await anyio.Path(built.artifacts.dockerfile or "").read_text()
    assert f"ARG BASE={name}@{made.descriptor.digest}\n" in dockerfile
    await remove(settings, built.id)
    assert leftovers(settings.cache_dir / "store") == []
    shutil.rmtree(settings.cache_dir)


@pytest.mark.timeout(900)
async def test_an_environment_that_was_pushed_is_a_base_for_the_next_revision(
    server: TestRegistry, source: Path, tmp_path: Path
) -> None:
    name, _ = await published(server)
    settings = settings_for(tmp_path / "cache", name, "overlay")
    (source / "tests/test_removed_later.py").write_text("def test_a():\n    assert True\n")
    first = await specbuild.build(source, settings=settings)
    assert first.verdict is not None
    assert first.verdict.passed == 2
    pushed = f"{server.host}/team/small:1"
    await first.export(f"registry:{pushed}")
    (source / "tests/test_removed_later.py").unlink()
    again = settings.model_copy(update={"bases": (pushed,), "replay": True})
    second = await specbuild.build(source, settings=again)
    assert second.outcome == "committed", second.message
    assert second.verdict is not None
    assert (second.verdict.passed, second.reproducible) == (1, True)
    assert second.base is not None
    assert second.base.name == pushed
    for built in (first, second):
        await remove(settings, built.id)
    shutil.rmtree(settings.cache_dir)


@pytest.mark.timeout(900)
async def test_it_is_built_to_the_same_lock_on_a_container_engine(
    server: TestRegistry, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, _ = await published(server)
    locks: dict[str, str] = {}
    with docker_engine(network=True) as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.address)
        for backend in ("overlay", "docker"):
            settings = settings_for(tmp_path / backend, name, backend)
            built = await specbuild.build(source, settings=settings)
            assert built.outcome == "committed", built.message
            locks[backend] = lock_of(built).dump()
            held = Holder(backend=backend, engine=engine.address if backend == "docker" else "")
            assert built.held_by == held
            again = await specbuild.open_environment(built.id, settings=Settings(cache_dir=settings.cache_dir))
            assert (await again.run('printf %s "$OF_THE_IMAGE"')).tail.strip() == "yes"
            await remove(settings, built.id)
        assert engine.leftovers() == []
    assert locks["docker"] == locks["overlay"]
