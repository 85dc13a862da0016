"""The overlay backend keeps the contract: as root, and as an ordinary user."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

import pytest

from specbuild.sandbox.limits import detect
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.testing.conformance import CHECKS, Check, Trial, name_of
from specbuild.testing.leftovers import checker
from specbuild.testing.remote import interpreter

pytestmark = [pytest.mark.sandbox]

AS_USER = "SPECBUILD_TEST_AS_USER"
"""Set where this module is run again as an ordinary user; holds the folder of the things that root has prepared."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def rootfs(request: pytest.FixtureRequest) -> Path:
    return Path(prepared) if (prepared := os.environ.get(AS_USER)) else request.getfixturevalue("tiny")


@pytest.mark.parametrize("check", CHECKS, ids=name_of)
async def test_conformance(check: Check, store: Path, rootfs: Path, tmp_path: Path) -> None:
    controller = detect()
    bounds = frozenset(what for what in ("memory", "processes") if controller.controls(what))
    await check(
        Trial(lambda: OverlayBackend(store), rootfs=rootfs, folder=tmp_path, leftovers=checker(store), bounds=bounds)
    )


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(AS_USER in os.environ, reason="is the run that this test starts")
def test_conformance_as_an_ordinary_user(ordinary_user: str, users_folder: Path, tiny: Path) -> None:
    account = pwd.getpwnam(ordinary_user)
    python, path = interpreter(ordinary_user)
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={users_folder}/pytest", __file__],
        cwd=Path(__file__).parents[2],
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=[],
        env={"PATH": os.environ["PATH"], "HOME": account.pw_dir, "PYTHONPATH": path, AS_USER: str(tiny)}
        | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr
