"""The docker backend keeps the contract on a Docker engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from specbuild.sandbox.docker import DockerBackend
from specbuild.testing.conformance import CHECKS, Check, Trial, name_of
from specbuild.testing.engines import PrivateEngine, docker_engine

pytestmark = [pytest.mark.engine, pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def engine() -> Iterator[PrivateEngine]:
    with docker_engine() as running:
        yield running


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.mark.parametrize("check", CHECKS, ids=name_of)
async def test_conformance(check: Check, engine: PrivateEngine, store: Path, tiny: Path, tmp_path: Path) -> None:
    trial = Trial(
        lambda: DockerBackend(store, engine.endpoint), rootfs=tiny, folder=tmp_path, leftovers=engine.leftovers
    )
    await check(trial)
