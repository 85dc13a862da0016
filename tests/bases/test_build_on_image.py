"""A build from an image of a registry: the whole journey, from `--base localhost:PORT/…` to a verified environment."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

import specbuild
from specbuild import Settings
from specbuild.oci.push import push_image
from specbuild.oci.reference import parse_reference
from specbuild.sandbox.backends import open_backend
from specbuild.testing.images import file, image, layer
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


async def test_a_project_is_built_on_an_image(server: TestRegistry, tmp_path: Path) -> None:
    root = debian_rootfs().read_bytes()
    made = image(root, layer(file("etc/of-the-image", "second layer")), compression="", Env=["OF_THE_IMAGE=yes"])
    name = f"{server.host}/team/debian:1"
    await push_image(parse_reference(name), made.manifest, made.media_type, made.uploads)
    source = tmp_path / "small"
    (source / "tests").mkdir(parents=True)
    (source / "pyproject.toml").write_text(PYPROJECT)
    (source / "small.py").write_text("ANSWER = 42\n")
    (source / "tests/test_small.py").write_text(TESTS)
    settings = Settings(
        cache_dir=tmp_path / "cache", bases=(name,), sequential=True, repair=False, learn=False, replay=False
    )
    built = await specbuild.build(source, settings=settings)
    assert built.outcome == "committed", built.message
    assert built.base is not None
    assert (built.base.name, built.base.digest) == (name, made.descriptor.digest)
    assert built.recipe is not None
    assert built.recipe.base.env == (("OF_THE_IMAGE", "yes"),)
    done = await built.run('printf %s "$OF_THE_IMAGE"')
    assert done.tail.strip() == "yes"
    dockerfile = await anyio.Path(built.artifacts.dockerfile or "").read_text()
    assert f"FROM {name}@{made.descriptor.digest}\n" in dockerfile
    async with open_backend(settings) as backend:
        await backend.forget(built.id)
        await backend.prune(everything=True)
    assert leftovers(settings.cache_dir / "store") == []
    shutil.rmtree(settings.cache_dir)
