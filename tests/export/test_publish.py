"""An image that is pushed is in the registry, blob by blob as it was made."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from specbuild.export.image import make_image
from specbuild.export.layers import Compression
from specbuild.export.publish import push
from specbuild.sandbox.contract import Command, RootfsTar
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.testing.registry import registry
from specbuild.testing.rootfs import tiny_rootfs
from tests.export.test_engines import environment

pytestmark = [pytest.mark.engine, pytest.mark.sandbox, pytest.mark.root]


async def test_an_image_is_pushed_as_it_is(tmp_path: Path) -> None:
    made = environment()
    assert made.recipe is not None
    (tmp_path / "work").mkdir()
    with registry(tmp_path / "registry") as server:
        async with OverlayBackend(tmp_path / "store") as backend:
            state = await backend.import_base("b" * 64, RootfsTar(tiny_rootfs(tmp_path / "tiny.tar")))
            for number in range(len(made.recipe.steps)):
                async with backend.fork(state) as box:
                    assert (await box.run(Command(["/bin/sh", "-c", f"echo {number} >/file"]))).ok
                    state = await box.freeze(f"{number:064}")
            image = await make_image(made, backend, state.key, tmp_path / "work", compression=Compression.GZIP)
            assert await push(image, f"{server.host}/tiny:1") == image.digest
        for layer in image.blobs.values():
            assert f"sha256:{hashlib.sha256(server.blob(layer.digest).read_bytes()).hexdigest()}" == layer.digest
        assert json.loads(server.blob(image.digest).read_bytes())["config"]["digest"] == image.config.digest
