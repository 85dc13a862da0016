"""Shared caches: downloads are shared, nothing that was built."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from specbuild.errors import ConfigError
from specbuild.recipe import BaseRef
from specbuild.sandbox.caches import CACHE_DIR, PRIVATE_DIR, cache_binds

PORTABLE = BaseRef(name="debian:bookworm", digest="sha256:1")
HOST = BaseRef(name="host", digest="sha256:2", portable=False)


def test_caches_are_bound_writable_and_named_by_variables(tmp_path: Path) -> None:
    binds, env = cache_binds(("uv", "pip", "uv"), tmp_path / "caches", base=PORTABLE)
    assert [bind.target for bind in binds] == [f"{CACHE_DIR}/{name}" for name in ("uv", "pip/http", "pip/http-v2")]
    assert all(bind.writable and bind.source.is_dir() for bind in binds)
    assert env["UV_CACHE_DIR"] == f"{CACHE_DIR}/uv"
    assert env["PIP_CACHE_DIR"] == f"{CACHE_DIR}/pip"
    assert env["UV_LINK_MODE"] == "copy"


def test_root_of_a_sandbox_may_write_and_other_users_may_not_enter(tmp_path: Path) -> None:
    root = tmp_path / "caches"
    binds, _ = cache_binds(("uv", "pip"), root, base=PORTABLE)
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert {stat.S_IMODE(bind.source.stat().st_mode) for bind in binds} == {0o777}


def test_what_uv_builds_stays_in_the_branch(tmp_path: Path) -> None:
    (bind,), _ = cache_binds(("uv",), tmp_path, base=PORTABLE)
    for bucket in ("sdists-v11", "builds-v0", "interpreter-v5", "environments-v2"):
        assert str((bind.source / bucket).readlink()) == PRIVATE_DIR


def test_sandboxes_whose_root_is_another_user_have_another_cache(tmp_path: Path) -> None:
    (mapped,), _ = cache_binds(("uv",), tmp_path, base=PORTABLE)
    (real,), _ = cache_binds(("uv",), tmp_path, base=HOST)
    assert mapped.source != real.source


def test_apts_archives_are_not_shared(tmp_path: Path) -> None:
    assert cache_binds(("apt",), tmp_path, base=PORTABLE) == ((), {})


def test_an_unknown_cache_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no shared cache 'ccache'") as caught:
        cache_binds(("ccache",), tmp_path, base=PORTABLE)
    assert "uv" in caught.value.hint


def test_any_number_of_builds_may_make_the_folder_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        calls = [pool.submit(cache_binds, ("uv", "pip"), tmp_path, base=PORTABLE) for _ in range(64)]
        found = [call.result() for call in calls]
    assert all(each == found[0] for each in found)
    assert not list(tmp_path.rglob(".uv.*"))


@pytest.mark.network
def test_uv_shares_downloads_and_builds_anew_in_each_branch(tmp_path: Path) -> None:
    """The links lead into a folder that stands for a branch's layer: downloads stay, builds do not meet."""
    (bind,), _ = cache_binds(("uv",), tmp_path / "caches", base=PORTABLE)
    for link in bind.source.iterdir():
        link.unlink()
        link.symlink_to(tmp_path / "layer")
    outputs = [_install(tmp_path, bind.source, branch) for branch in ("one", "two")]
    assert all("Built toolz==1.0.0" in output for output in outputs)
    assert any(path.name.startswith("wheels-v") for path in bind.source.iterdir() if not path.is_symlink())


def _install(tmp_path: Path, cache: Path, branch: str) -> str:
    """Install a source distribution in a fresh branch; what uv prints."""
    layer = tmp_path / "layer"
    if layer.exists():
        layer.rename(tmp_path / "layer-before")
    layer.mkdir()
    env = {**os.environ, "UV_CACHE_DIR": str(cache), "UV_LINK_MODE": "copy"}
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "-q", str(tmp_path / branch), "--python", sys.executable], check=True, env=env)
    command = [uv, "pip", "install", "-p", str(tmp_path / branch), "--no-binary", "toolz", "toolz==1.0.0"]
    return subprocess.run(command, check=True, env=env, capture_output=True, text=True).stderr
