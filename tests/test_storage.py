"""Disks that are full or refuse: the user is told so, in words, with the exit code of our own trouble."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest

from specbuild import build, plan
from specbuild.bases.host import HostBases
from specbuild.cli import main
from specbuild.cli.build import check_output_folder
from specbuild.config import Settings
from specbuild.errors import RepoAccessError, StoreError, UsageError
from specbuild.events import BuildEnded
from specbuild.journal import Journal, is_being_written
from specbuild.repo.fetch import fetch_repo
from specbuild.storage import on_disk

NOBODY = 65534


@pytest.fixture(name="project")
def small_project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "module.py").write_text("x = 1\n")
    return folder


@pytest.fixture(name="full")
def full_disk(tmp_path: Path) -> Generator[Path]:
    """A disk on which nothing more can be made."""
    folder = tmp_path / "full"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=4", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


async def test_a_cache_folder_that_is_a_file_is_named(project: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for journey in (build, plan):
        with pytest.raises(StoreError, match=r"the cache folder .*file cannot be made") as told:
            await journey(str(project), settings=Settings(cache_dir=tmp_path / "file"))
        assert "SPECBUILD_CACHE_DIR" in told.value.hint


@pytest.mark.root
async def test_a_full_disk_is_called_full(project: Path, full: Path) -> None:
    for journey in (build, plan):
        with pytest.raises(StoreError, match="the disk is full"):
            await journey(str(project), settings=Settings(cache_dir=full))


@pytest.mark.parametrize("command", [["plan", "project"], ["build", "project"], ["doctor"]])
def test_commands_speak_of_the_folder_and_not_of_a_bug(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    (project.parent / "file").touch()
    monkeypatch.chdir(project.parent)
    monkeypatch.setenv("SPECBUILD_CACHE_DIR", str(project.parent / "file" / "cache"))
    assert main(command) == StoreError.exit_code
    shown = "".join(capsys.readouterr())
    assert "cannot be made: Not a directory" in shown
    assert "bug" not in shown


def test_an_output_folder_that_cannot_be_made_is_refused_before_the_build(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = project.parent / "cache"
    (project.parent / "file").touch()
    monkeypatch.setenv("SPECBUILD_CACHE_DIR", str(cache))
    assert main(["build", str(project), "-o", str(project.parent / "file" / "out")]) == UsageError.exit_code
    assert "cannot be written: Not a directory" in capsys.readouterr().err
    assert not cache.exists()


def test_a_journal_tells_whether_its_build_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    assert not is_being_written(path)
    with Journal(path) as journal:
        journal.emit(BuildEnded(at=0.0, outcome="failed", seconds=0.0, message=""))
        assert is_being_written(path)
    assert not is_being_written(path)


@pytest.fixture(name="nobody")
def somebody_without_rights() -> Generator[Path]:
    """Files are opened as an ordinary user meanwhile; a folder of that user's own."""
    with TemporaryDirectory() as folder:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
        try:
            yield Path(folder)
        finally:
            os.seteuid(0)


@pytest.mark.root
async def test_a_repository_behind_a_closed_door_is_called_so(tmp_path: Path, nobody: Path) -> None:
    with pytest.raises(RepoAccessError, match="cannot be read: Permission denied"):
        await fetch_repo(str(tmp_path / "project"), nobody)


@pytest.mark.root
def test_an_output_folder_behind_a_closed_door_is_refused(tmp_path: Path, nobody: Path) -> None:
    assert nobody.exists()
    with pytest.raises(UsageError, match="cannot be written: Permission denied"):
        check_output_folder(tmp_path / "out")


@pytest.mark.root
async def test_folders_of_others_on_the_path_are_passed_over(
    tmp_path: Path, nobody: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    told: list[str] = []
    ref = await HostBases(private=(nobody,), notify=told.append).resolve("host")
    assert ref.name == "host"


async def test_a_disk_that_is_full_for_several_tasks_is_called_full(tmp_path: Path) -> None:
    async def write() -> None:
        await anyio.Path("/dev/full").write_bytes(b"x")

    async def write_twice() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            tasks.start_soon(write)

    with pytest.raises(StoreError, match="the disk is full"), on_disk(tmp_path):
        await write_twice()


async def test_an_error_that_no_disk_explains_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(ConnectionRefusedError), on_disk(tmp_path):
        raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")
    with pytest.RaisesGroup(ValueError), on_disk(tmp_path):
        raise ExceptionGroup("several", [ValueError("one")])
