"""`specbuild cache`: what it counts, what it removes and what it leaves alone."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from specbuild.cli import main
from specbuild.cli.disk import disk_usage
from specbuild.journal import Journal


@pytest.fixture(name="cache", autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECBUILD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def result(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["cache", *arguments, "--json"]) == 0
    shown: dict[str, object] = json.loads(capsys.readouterr().out)
    return shown


def build(cache: Path, name: str, *, days: float, ended: bool = True) -> Path:
    """The folder of a build that was made that many days ago."""
    folder = cache / "builds" / name
    folder.mkdir(parents=True)
    (folder / "log").write_bytes(b"x" * 5000)
    then = time.time() - days * 24 * 3600
    if ended:
        (folder / "environment.json").touch()
        os.utime(folder / "environment.json", (then, then))
    os.utime(folder, (then, then))
    return folder


def test_dir_is_printed_alone(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "dir"]) == 0
    assert capsys.readouterr().out == f"{cache}\n"


def test_size_of_no_cache_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert result(capsys, "size")["total_bytes"] == 0


def test_hard_links_count_once(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / "x" / folder).mkdir(parents=True)
    (tmp_path / "x" / "one" / "file").write_bytes(b"x" * 100_000)
    (tmp_path / "x" / "two" / "file").hardlink_to(tmp_path / "x" / "one" / "file")
    usage = disk_usage(tmp_path / "x")
    assert usage["one"] >= 100_000
    assert usage["two"] < 100_000


def test_links_out_of_the_cache_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * 100_000)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "link").symlink_to(tmp_path / "big")
    assert disk_usage(tmp_path / "x")["link"] < 100_000


@pytest.mark.sandbox
def test_prune_keeps_environments_and_fresh_builds(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = [build(cache, "b1", days=30), build(cache, "b2", days=1, ended=False)]
    crashed = build(cache, "b3", days=8, ended=False)
    freed = result(capsys, "prune")["freed_bytes"]
    assert isinstance(freed, int)
    assert freed >= 5000
    assert [folder.exists() for folder in kept] == [True, True]
    assert not crashed.exists()


@pytest.mark.sandbox
def test_prune_gives_up_old_environments_when_told_to(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = build(cache, "b1", days=30), build(cache, "b2", days=1)
    result(capsys, "prune", "--older-than", "48h")
    assert (old.exists(), new.exists()) == (False, True)


@pytest.mark.sandbox
def test_clean_removes_everything(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = build(cache, "b1", days=30)
    (cache / "caches" / "uv").mkdir(parents=True)
    result(capsys, "clean")
    assert not old.exists()
    assert not (cache / "caches").exists()


@pytest.mark.sandbox
def test_clean_leaves_what_is_not_of_specbuild(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = build(cache, "b1", days=30)
    (cache / "letters").mkdir()
    (cache / "plan-of-the-garden").touch()
    result(capsys, "clean")
    assert not old.exists()
    assert (cache / "letters").exists()
    assert (cache / "plan-of-the-garden").exists()


@pytest.mark.sandbox
def test_clean_leaves_a_running_build_and_what_it_may_use(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, running = build(cache, "b1", days=30), build(cache, "b2", days=0, ended=False)
    (cache / "bases").mkdir()
    with Journal(running / "journal.jsonl"):
        assert main(["cache", "clean"]) == 0
        assert "build b2 is running" in capsys.readouterr().err
        assert (old.exists(), running.exists(), (cache / "bases").exists()) == (False, True, True)
    result(capsys, "clean")
    assert (running.exists(), (cache / "bases").exists()) == (False, False)


def test_an_empty_variable_is_not_the_present_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPECBUILD_CACHE_DIR", "")
    assert main(["cache", "dir"]) == 0
    assert Path(capsys.readouterr().out.strip()) not in (Path(), tmp_path)


def test_an_empty_cache_folder_in_a_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SPECBUILD_CACHE_DIR")
    (tmp_path / "specbuild.toml").write_text('cache_dir = ""\n')
    assert main(["cache", "dir"]) == 2
    assert "names no folder" in capsys.readouterr().err


def test_a_relative_cache_folder_is_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPECBUILD_CACHE_DIR", "here/cache")
    assert main(["cache", "dir"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'here' / 'cache'}\n"
