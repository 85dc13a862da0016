"""The shelf of finished bases: found again by name and content, and held by one maker at a time."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

import anyio
import pytest

from specbuild.bases.debian import DebianBases
from specbuild.bases.releases import RELEASES, find_release
from specbuild.bases.rootfs_tar import add_file, digest_of_file, installed_packages
from specbuild.bases.shelf import KEPT, Record, Shelf
from specbuild.errors import SandboxError
from specbuild.recipe import BaseRef
from specbuild.testing.fakes import Behaviour, FakeBackend

SLOT = "debian-bookworm-amd64"


def record(digest: str, made: str = "2026-01-01T00:00:00+00:00") -> Record:
    return Record(
        name="debian:bookworm",
        architecture="amd64",
        digest=digest,
        made=made,
        checked=0.0,
        tool="mmdebstrap",
        python="3.11.2",
        sources=("bookworm",),
        packages=(("apt", "2.6"),),
    )


def put(shelf: Shelf, digest: str, made: str = "2026-01-01T00:00:00+00:00") -> None:
    shelf.open()
    draft = shelf.folder / "draft"
    draft.write_text(digest)
    shelf.put(SLOT, record(digest, made), draft)


def test_a_base_is_found_by_name_and_by_content(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "bases")
    assert shelf.newest(SLOT) is None
    put(shelf, "a" * 64)
    found = shelf.newest(SLOT)
    assert found is not None
    assert found == shelf.by_digest("a" * 64)
    assert found.model_copy(update={"stored": None}) == record("a" * 64)
    assert shelf.archive("a" * 64).read_text() == "a" * 64


def test_a_record_without_its_archive_or_of_another_version_is_none(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "bases")
    put(shelf, "a" * 64)
    shelf.archive("a" * 64).unlink()
    assert shelf.newest(SLOT) is None
    (shelf.folder / f"{SLOT}.json").write_text('{"schema_version": 99}')
    assert shelf.newest(SLOT) is None


def test_only_a_few_superseded_archives_are_kept(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "bases")
    for number in range(KEPT + 2):
        put(shelf, str(number) * 64, made=f"2026-01-0{number + 1}T00:00:00+00:00")
    left = sorted(path.stem[0] for path in shelf.folder.glob("*.tar"))
    assert left == [str(number) for number in range(2, KEPT + 2)]


async def test_one_maker_at_a_time(tmp_path: Path) -> None:
    shelves = [Shelf(tmp_path), Shelf(tmp_path)]
    inside: list[int] = []

    async def make(shelf: Shelf, number: int) -> None:
        async with shelf.lock(SLOT):
            assert not inside
            inside.append(number)
            await anyio.sleep(0.05)
            inside.remove(number)

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(make, shelves[number % 2], number)


async def test_waiting_for_the_lock_can_be_cancelled(tmp_path: Path) -> None:
    shelf, other = Shelf(tmp_path), Shelf(tmp_path)
    async with shelf.lock(SLOT):
        with anyio.move_on_after(0.15) as scope:
            async with other.lock(SLOT):
                raise AssertionError("two makers at once")
    assert scope.cancelled_caught


def test_packages_are_read_of_an_archive_and_files_added(tmp_path: Path) -> None:
    status = (
        "Package: zed\nStatus: install ok installed\nVersion: 2\nDescription: x\n Package: no\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n"
        "Package: apt\nStatus: install ok installed\nVersion: 1:2.6\n"
    )
    source = tmp_path / "root/var/lib/dpkg"
    source.mkdir(parents=True)
    (source / "status").write_text(status)
    path = tmp_path / "root.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(tmp_path / "root", arcname=".")
    assert digest_of_file(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    add_file(path, "etc/new", "text\n", mtime=5)
    assert installed_packages(path) == (("apt", "1:2.6"), ("zed", "2"))
    with tarfile.open(path) as archive:
        member = archive.getmember("./etc/new")
        assert (member.mode, member.uid, member.mtime) == (0o644, 0, 5)


def test_releases_are_known_by_name_number_and_alias() -> None:
    for wanted, name in {"12": "bookworm", "11.9": "bullseye", "stable": "trixie", "unstable": "sid"}.items():
        found = find_release(wanted)
        assert found is not None
        assert found.name == name
    assert find_release("potato") is None
    assert len({release.epoch for release in RELEASES if release.stable}) == 3


@pytest.mark.parametrize("damage", ["", "a" * 63, "a" * 63 + "b"], ids=["emptied", "cut short", "changed"])
def test_a_damaged_archive_is_taken_away_to_be_made_anew(damage: str, tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "bases")
    put(shelf, "a" * 64)
    assert not shelf.discard_damaged("a" * 64)
    shelf.archive("a" * 64).write_text(damage)
    assert shelf.discard_damaged("a" * 64)
    assert shelf.newest(SLOT) is None
    assert not shelf.discard_damaged("a" * 64)


async def test_a_damaged_base_is_our_trouble_and_not_the_project_s(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "bases")
    put(shelf, "a" * 64)
    shelf.archive("a" * 64).write_text("rubbish")
    ref = BaseRef(name="debian:bookworm", digest=f"sha256:{'a' * 64}")
    with pytest.raises(SandboxError, match="was damaged on the disk") as told:
        await DebianBases(tmp_path).provide(ref, FakeBackend(lambda command, files: Behaviour()))
    assert "made anew" in told.value.hint
