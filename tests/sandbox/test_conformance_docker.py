import pytest
from pathlib import Path
from specbuild.sandbox.docker.backend import DockerBackend
from specbuild.sandbox.docker.endpoint import Endpoint
from specbuild.testing.conformance import CHECKS, Check, Trial, name_of

@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")

import os
@pytest.mark.parametrize("check", CHECKS, ids=name_of)
async def test_conformance(check: Check, store: Path, tiny: Path, tmp_path: Path) -> None:
    await check(Trial(lambda: DockerBackend(store, Endpoint(os.environ["TEST_ENGINE"])), rootfs=tiny, folder=tmp_path))
