"""The docker backend keeps the contract on Podman, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbuild.sandbox.docker import DockerBackend
from specbuild.testing.conformance import CHECKS, Check, Trial, name_of
from specbuild.testing.engines import PrivateEngine

pytestmark = [pytest.mark.engine, pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(900)]

SPARSE = 300 << 20
"""Engines write an archive with all the holes, and read it again."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.mark.parametrize("check", CHECKS, ids=name_of)
async def test_conformance(check: Check, podman: PrivateEngine, store: Path, tiny: Path, tmp_path: Path) -> None:
    trial = Trial(
        lambda: DockerBackend(store, podman.endpoint),
        rootfs=tiny,
        folder=tmp_path,
        leftovers=podman.leftovers,
        sparse_bytes=SPARSE,
    )
    await check(trial)
