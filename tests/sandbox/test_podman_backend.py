"""The docker backend on Podman beyond the contract: what the service of Podman would leave behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbuild.sandbox.contract import RootfsTar
from specbuild.sandbox.docker import DockerBackend
from specbuild.testing.engines import PrivateEngine

pytestmark = [pytest.mark.engine, pytest.mark.root, pytest.mark.slow]


async def test_no_copy_of_a_base_stays_among_the_services_temporary_files(
    podman: PrivateEngine, tiny: Path, tmp_path: Path
) -> None:
    temporary = podman.socket.parent / "temporary"
    before = sorted(temporary.iterdir())
    async with DockerBackend(tmp_path, podman.endpoint) as backend:
        await backend.import_base("base", RootfsTar(tiny))
        assert sorted(temporary.iterdir()) == before
        await backend.prune(everything=True)
