"""Unpacking archives, the hostile ones above all."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import time
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specbuild.errors import HostileArchiveError, NotARepositoryError, RepoTooLargeError, SpecBuildError
from specbuild.repo.archive import unpack
from specbuild.repo.source import RepoLimits

open_tar: Callable[..., tarfile.TarFile] = tarfile.open
SMALL = RepoLimits(max_bytes=1 << 20, max_files=1000, free_bytes=0)
WHEN = datetime(2021, 5, 6, 7, 8, 10, tzinfo=UTC)


def entry(name: str, content: bytes = b"x", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    info.mtime = WHEN.timestamp()
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, b"", type=kind, linkname=target)


def make_tar(path: Path, *entries: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz") -> Path:
    with open_tar(path, mode) as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return path


def make_zip(path: Path, *entries: tuple[str, bytes, int]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content, mode in entries:
            info = zipfile.ZipInfo(name, WHEN.timetuple()[:6])
            info.create_system = 3
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(info, content)
    return path


def target(tmp_path: Path, name: str = "out") -> Path:
    folder = tmp_path / name
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("suffix", "mode"), [("tar.gz", "w:gz"), ("tar.bz2", "w:bz2"), ("tar.xz", "w:xz"), ("tar", "w")]
)
def test_every_kind_of_tar_is_unpacked(tmp_path: Path, suffix: str, mode: str) -> None:
    archive = make_tar(
        tmp_path / f"p-1.{suffix}",
        entry("p-1", b"", type=tarfile.DIRTYPE),
        entry("p-1/setup.py", b"s", mode=0o644),
        entry("p-1/run", b"r" * 512, mode=0o777),
        link("p-1/sub/link", "../setup.py"),
        link("p-1/hard", "p-1/setup.py", tarfile.LNKTYPE),
        mode=mode,
    )
    unpacked = unpack(archive, target(tmp_path), SMALL)
    assert unpacked.root == tmp_path / "out" / "p-1"
    assert unpacked.date == WHEN
    assert (unpacked.root / "sub/link").read_bytes() == b"s"
    assert (unpacked.root / "hard").read_bytes() == b"s"
    assert stat.S_IMODE((unpacked.root / "setup.py").stat().st_mode) == 0o644
    assert stat.S_IMODE((unpacked.root / "run").stat().st_mode) == 0o755
    assert (unpacked.root / "run").stat().st_mtime == WHEN.timestamp()


def test_a_zip_is_unpacked_with_its_modes_and_links(tmp_path: Path) -> None:
    archive = make_zip(
        tmp_path / "p.zip",
        ("p/setup.py", b"s", stat.S_IFREG | 0o644),
        ("p/run", b"r", stat.S_IFREG | 0o755),
        ("p/link", b"setup.py", stat.S_IFLNK | 0o777),
        ("p\\from\\windows.txt", b"w", 0),
    )
    unpacked = unpack(archive, target(tmp_path), SMALL)
    assert unpacked.root.name == "p"
    assert unpacked.date == WHEN
    assert (unpacked.root / "link").readlink() == Path("setup.py")
    assert os.access(unpacked.root / "run", os.X_OK)
    assert (unpacked.root / "from" / "windows.txt").read_bytes() == b"w"


def test_an_archive_without_a_single_top_folder_is_its_own_root(tmp_path: Path) -> None:
    archive = make_tar(tmp_path / "a.tar.gz", entry("setup.py"), entry("p/x"))
    assert unpack(archive, target(tmp_path), SMALL).root == tmp_path / "out"


def test_the_commit_of_git_archive_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "a" * 40}) as tar:
        info, content = entry("p/x")
        tar.addfile(info, io.BytesIO(content))
    assert unpack(path, target(tmp_path), SMALL).commit == "a" * 40


@pytest.mark.parametrize(
    "seconds",
    [0, 315532800, 499162500, 1153704088, 1580601600, pytest.param(int(time.time()) + 10**7, id="in-some-months")],
)
def test_dates_that_tools_make_up_are_not_believed(tmp_path: Path, seconds: int) -> None:
    true = entry("p/y", mtime=WHEN.timestamp())
    made_up = entry("p/x", mtime=seconds)
    assert unpack(make_tar(tmp_path / "a.tar", made_up, mode="w"), target(tmp_path), SMALL).date is None
    (tmp_path / "both").mkdir()
    assert unpack(make_tar(tmp_path / "b.tar", made_up, true, mode="w"), tmp_path / "both", SMALL).date == WHEN


@pytest.mark.parametrize(
    "entries",
    [
        [entry("../x")],
        [entry("p/../../x")],
        [entry("/etc/x")],
        [entry("p/a\nb")],
        [entry("p/\x1b[2J")],
        [entry("/".join(["d"] * 500))],
        [entry("p/" + "n" * 300)],
        [link("p/l", "/etc/passwd")],
        [link("p/l", "../../x")],
        [entry("p/x"), link("p/l", "..")],
        [entry("p/x"), link("p/a", "."), link("p/b", "a/../../x")],
        [entry("p/d/e/x"), link("p/d/up", "e/.."), link("p/l", "d/up/../../../x")],
        [link("p/l", "d"), entry("p/l/x")],
        [entry("p/d/x"), link("p/d", "e")],
        [entry("p/f"), entry("p/f/x")],
        [entry("p/f/x"), entry("p/f")],
        [link("p/h", "../../etc/passwd", tarfile.LNKTYPE)],
        [link("p/h", "p/none", tarfile.LNKTYPE)],
        [entry("p/l", b"", type=tarfile.SYMTYPE, linkname="x"), link("p/h", "p/l", tarfile.LNKTYPE)],
        [entry("p/dev", b"", type=tarfile.CHRTYPE)],
        [entry("p/dev", b"", type=tarfile.BLKTYPE)],
        [entry("p/pipe", b"", type=tarfile.FIFOTYPE)],
    ],
)
def test_hostile_tars_are_refused_and_reach_nothing_outside(
    tmp_path: Path, entries: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    archive = make_tar(tmp_path / "a.tar.gz", *entries)
    with pytest.raises(HostileArchiveError):
        unpack(archive, target(tmp_path), SMALL)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "out"]


@pytest.mark.parametrize(
    "member",
    [
        ("../x", b"", 0),
        ("/x", b"", 0),
        ("..\\x", b"", 0),
        ("p/link", b"../../x", stat.S_IFLNK),
        ("p/link", b"/etc/passwd", stat.S_IFLNK),
        ("p/link", b"a" * 5000, stat.S_IFLNK),
        ("p/pipe", b"", stat.S_IFIFO),
    ],
)
def test_hostile_zips_are_refused(tmp_path: Path, member: tuple[str, bytes, int]) -> None:
    with pytest.raises(HostileArchiveError):
        unpack(make_zip(tmp_path / "a.zip", member), target(tmp_path), SMALL)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "out"]


def test_bombs_are_refused_before_they_fill_the_disk(tmp_path: Path) -> None:
    limits = RepoLimits(ratio_from_bytes=1 << 20, free_bytes=0)
    with pytest.raises(HostileArchiveError, match="bomb"):
        unpack(make_tar(tmp_path / "a.tar.gz", entry("p/x", bytes(8 << 20))), target(tmp_path, "tar"), limits)
    with pytest.raises(HostileArchiveError, match="bomb"):
        unpack(make_zip(tmp_path / "a.zip", ("p/x", bytes(8 << 20), 0)), target(tmp_path, "zip"), limits)
    assert sum(path.stat().st_size for path in tmp_path.rglob("x")) <= 2 << 20


def test_a_header_without_bound_is_refused_before_it_fills_memory(tmp_path: Path) -> None:
    archive = make_tar(tmp_path / "a.tar.gz", entry("././@LongLink", b"n" * (16 << 20), type=tarfile.GNUTYPE_LONGNAME))
    with pytest.raises(HostileArchiveError, match="header"):
        unpack(archive, target(tmp_path), RepoLimits(free_bytes=0))


def test_a_sparse_file_counts_as_large_as_it_claims_to_be(tmp_path: Path) -> None:
    info, _ = entry("p/sparse", b"", type=tarfile.GNUTYPE_SPARSE)
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[483:495] = b"%011o\0" % (1 << 32)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    archive = tmp_path / "a.tar"
    archive.write_bytes(header + bytes(1024))
    with pytest.raises(HostileArchiveError, match="bomb"):
        unpack(archive, target(tmp_path), SMALL)


def test_too_much_is_refused(tmp_path: Path) -> None:
    large = make_tar(tmp_path / "a.tar", entry("p/x", bytes(2 << 20)), mode="w")
    with pytest.raises(RepoTooLargeError, match="limit"):
        unpack(large, target(tmp_path, "a"), SMALL)
    many = make_tar(tmp_path / "b.tar", *(entry(f"p/{n}") for n in range(1100)), mode="w")
    with pytest.raises(RepoTooLargeError, match="1,000 files"):
        unpack(many, target(tmp_path, "b"), SMALL)
    with pytest.raises(RepoTooLargeError, match="free"):
        unpack(large, target(tmp_path, "c"), RepoLimits(free_bytes=1 << 60))


@pytest.mark.parametrize(
    "content",
    [b"", b"no archive at all", b"\x1f\x8b", b"\x1f\x8b\x08", b"PK\x03\x04", b"BZh9", b"\xfd7zXZ\x00", bytes(100)],
)
def test_what_is_no_archive_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tar.gz").write_bytes(content)
    with pytest.raises(NotARepositoryError, match=r"a\.tar\.gz"):
        unpack(tmp_path / "a.tar.gz", target(tmp_path), SMALL)


def test_an_archive_that_is_cut_short_is_said_to_be_damaged(tmp_path: Path) -> None:
    archive = make_tar(tmp_path / "a.tar.gz", entry("p/x", os.urandom(100_000)))
    archive.write_bytes(archive.read_bytes()[:50_000])
    with pytest.raises(NotARepositoryError) as error:
        unpack(archive, target(tmp_path), SMALL)
    assert "cut short" in error.value.hint


def test_a_later_member_replaces_an_earlier_one_of_the_same_name(tmp_path: Path) -> None:
    archive = make_tar(
        tmp_path / "a.tar", entry("p/x", b"1"), link("p/x", "y"), entry("p/y"), entry("p/x", b"2"), mode="w"
    )
    root = unpack(archive, target(tmp_path), SMALL).root
    assert (root / "x").read_bytes() == b"2"
    assert not (root / "x").is_symlink()


def test_unpacking_stops_when_told_to(tmp_path: Path) -> None:
    archive = make_tar(tmp_path / "a.tar", *(entry(f"p/{n}") for n in range(10)), mode="w")
    left = iter(range(3))

    def tick() -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        unpack(archive, target(tmp_path), SMALL, tick)
    assert len(list((tmp_path / "out" / "p").iterdir())) == 3


names = st.lists(st.sampled_from(["a", "b", "..", ".", "", "c\n", "\udcff", "é"]), min_size=1, max_size=4).map("/".join)
kinds = st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
members = st.lists(st.tuples(names, kinds, names, st.binary(max_size=600)), max_size=8)


@settings(deadline=None)
@given(members)
def test_no_tar_writes_or_links_outside_of_its_folder(found: list[tuple[str, bytes, str, bytes]]) -> None:
    entries = [
        entry(name, content if kind == tarfile.REGTYPE else b"", type=kind, linkname=goal)
        for name, kind, goal, content in found
    ]
    _check_containment(lambda folder: make_tar(folder / "a.tar", *entries, mode="w"))


@settings(deadline=None)
@given(st.lists(st.tuples(names, st.sampled_from([0, stat.S_IFREG, stat.S_IFLNK, stat.S_IFIFO]), names), max_size=6))
def test_no_zip_writes_or_links_outside_of_its_folder(found: list[tuple[str, int, str]]) -> None:
    entries = [(name.encode("utf-8", "replace").decode(), os.fsencode(goal), mode) for name, mode, goal in found]
    unique = {name: (name, goal, mode) for name, goal, mode in entries}
    _check_containment(lambda folder: make_zip(folder / "a.zip", *unique.values()))


@settings(deadline=None)
@given(st.binary(max_size=200), st.integers(0, 3000), st.integers(0, 255))
def test_no_damage_is_worse_than_an_error_of_ours(tail: bytes, place: int, value: int) -> None:
    def damaged(folder: Path) -> Path:
        archive = make_tar(folder / "a.tar", entry("p/x", b"x" * 700), link("p/l", "x"), mode="w")
        data = bytearray(archive.read_bytes()[:4096])
        data[place] = value
        archive.write_bytes(bytes(data) + tail)
        return archive

    _check_containment(damaged)


def _check_containment(make: Callable[[Path], Path]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        archive = make(folder)
        out = folder / "out" / "deep"
        out.mkdir(parents=True)
        try:
            root = unpack(archive, out, SMALL).root
        except SpecBuildError:
            root = None
        assert sorted(path.name for path in folder.iterdir()) == [archive.name, "out"]
        assert [path.name for path in (folder / "out").iterdir()] == ["deep"]
        for path in out.rglob("*"):
            assert path.is_symlink() or path.is_dir() or path.is_file()
            if root is not None and path.is_symlink():
                assert Path(os.path.realpath(path)).is_relative_to(root)


def test_a_damaged_stream_is_not_mistaken_for_trouble_of_the_disk(tmp_path: Path) -> None:
    archive = make_tar(tmp_path / "a.tar.gz", entry("p/x", os.urandom(100_000)))
    data = bytearray(archive.read_bytes())
    data[50_000:50_100] = bytes(100)
    archive.write_bytes(data)
    with pytest.raises(NotARepositoryError):
        unpack(archive, target(tmp_path), SMALL)
