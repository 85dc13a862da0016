"""The settings of pip and uv, as each tool reads them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from specbuild.errors import ConfigError
from specbuild.repo.index_settings import default_index, read_index_settings

ONE, TWO, THREE = "https://one.example/simple", "https://two.example/simple", "https://three.example/simple"


def env(tmp_path: Path, **variables: str) -> dict[str, str]:
    """Variables with homes of their own, so that no setting of this machine's user counts."""
    return {
        "HOME": str(tmp_path),
        "XDG_CONFIG_DIRS": str(tmp_path / "xdg"),
        "VIRTUAL_ENV": str(tmp_path / "venv"),
        **variables,
    }


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_without_settings_the_tools_own_index_is_wanted(tmp_path: Path) -> None:
    found = read_index_settings(env(tmp_path))
    assert found.indexes == ()
    assert found.default_wanted


def test_a_further_index_does_not_replace_the_default_one(tmp_path: Path) -> None:
    found = read_index_settings(env(tmp_path, PIP_EXTRA_INDEX_URL=f"{ONE} {TWO}"))
    assert found.indexes == (ONE, TWO)
    assert found.default_wanted


def test_variables_come_before_files_and_nearer_files_before_wider_ones(tmp_path: Path) -> None:
    write(tmp_path / "xdg/pip/pip.conf", f"[global]\nindex-url = {ONE}\nextra-index-url =\n    {ONE}\n    {TWO}\n")
    write(tmp_path / ".config/pip/pip.conf", f"[global]\nindex_url = {TWO}\n")
    assert read_index_settings(env(tmp_path)).indexes == (ONE, TWO)
    write(tmp_path / ".config/pip/pip.conf", f"[global]\nindex-url = {ONE}\n[download]\nindex-url = {THREE}\n")
    assert read_index_settings(env(tmp_path)).indexes == (ONE, TWO, THREE)
    write(tmp_path / "venv/pip.conf", f"[global]\nindex-url = {TWO}\nextra-index-url = {ONE}\n")
    assert read_index_settings(env(tmp_path)).indexes == (ONE, TWO)
    write(tmp_path / "own.conf", f"[global]\nindex-url = {THREE}\n")
    assert read_index_settings(env(tmp_path, PIP_CONFIG_FILE=str(tmp_path / "own.conf"))).indexes == (ONE, THREE)
    assert read_index_settings(env(tmp_path, PIP_INDEX_URL=TWO, PIP_CONFIG_FILE="/dev/null")).indexes == (TWO,)


def test_pip_itself_reads_the_same(tmp_path: Path) -> None:
    write(tmp_path / "xdg/pip/pip.conf", f"[global]\nindex-url = {ONE}\n")
    write(tmp_path / ".pip/pip.conf", f"[global]\nindex-url = {TWO}\n")
    write(tmp_path / ".config/pip/pip.conf", f"[global]\nextra-index-url = {THREE}\n")
    variables = env(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], env=variables, capture_output=True, text=True, check=True
    )
    assert f"global.index-url='{TWO}'" in done.stdout
    assert read_index_settings(variables).indexes == (THREE, TWO)


def test_uv_comes_before_pip(tmp_path: Path) -> None:
    write(tmp_path / ".config/pip/pip.conf", f"[global]\nindex-url = {ONE}\n")
    write(
        tmp_path / ".config/uv/uv.toml",
        f'[[index]]\nname = "in-house"\nurl = "{TWO}"\n[[index]]\nurl = "{THREE}"\ndefault = true\n',
    )
    assert read_index_settings(env(tmp_path)).indexes == (TWO, THREE)
    assert read_index_settings(env(tmp_path, UV_NO_CONFIG="1")).indexes == (ONE,)
    assert read_index_settings(env(tmp_path, UV_DEFAULT_INDEX=ONE)).indexes == (TWO, ONE)
    assert read_index_settings(env(tmp_path, UV_NO_CONFIG="1", UV_INDEX=f"a={TWO} {THREE}")).indexes == (
        TWO,
        THREE,
        ONE,
    )
    secret = {"UV_INDEX_IN_HOUSE_USERNAME": "me", "UV_INDEX_IN_HOUSE_PASSWORD": "p@ss"}
    found = read_index_settings(env(tmp_path, **secret))
    assert found.indexes[0] == "https://me:p%40ss@two.example/simple"
    assert found.network.credentials == {"two.example": ("me", "p@ss")}


def test_no_index_means_none(tmp_path: Path) -> None:
    found = read_index_settings(env(tmp_path, PIP_NO_INDEX="true", PIP_INDEX_URL=ONE, PIP_FIND_LINKS="/a /b"))
    assert found.indexes == ()
    assert not found.default_wanted
    assert found.find_links == ("/a", "/b")


def test_how_indexes_are_reached_is_read_too(tmp_path: Path) -> None:
    write(
        tmp_path / ".config/pip/pip.conf",
        "[global]\nproxy = http://proxy.example:3128\ncert = /ca.pem\nclient_cert = /me.pem\ntrusted-host = a b:8443\n",
    )
    network = read_index_settings(env(tmp_path)).network
    assert network.proxy == "http://proxy.example:3128"
    assert network.ca_bundle == Path("/ca.pem")
    assert network.client_cert == Path("/me.pem")
    assert network.trusted_hosts == ("a", "b:8443")


@pytest.mark.parametrize("path", [".config/pip/pip.conf", ".config/uv/uv.toml"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, path: str) -> None:
    write(tmp_path / path, "[[[")
    with pytest.raises(ConfigError, match=path):
        read_index_settings(env(tmp_path))


async def test_the_default_index_is_the_tools_own() -> None:
    url = await default_index()
    assert url.startswith("https://")
    assert url.rstrip("/").endswith("/simple")


async def test_without_pip_uv_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pip = await default_index()
    uv = Path(sys.executable).with_name("uv")
    (tmp_path / "uv").symlink_to(uv)
    (tmp_path / "python").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert (await default_index()).rstrip("/") == pip.rstrip("/")
    (tmp_path / "uv").unlink()
    with pytest.raises(ConfigError, match="neither pip nor uv"):
        await default_index()
