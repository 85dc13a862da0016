"""Indexes that are made from a mirror, and made anew."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import anyio
import pytest

from specbuild.errors import ConfigError, DownloadError, IntegrityError, OversizeError, StoreError
from specbuild.knowledge.kinds import PathKind
from specbuild.knowledge.query import Knowledge
from specbuild.knowledge.refresh import Refresher, mirror_address
from specbuild.testing.debian_mirror import archive_routes
from specbuild.testing.debian_packages import CONTENTS, CONTENTS_ALL, PYDIST, SOURCES
from specbuild.testing.http_server import Answer, Server, serve

R = "bookworm"
RELEASE = f"/dists/{R}/InRelease"
PLAIN = f"/dists/{R}/main/Contents-amd64.gz"


def routes(contents: str = CONTENTS, *, by_hash: bool = True) -> dict[str, Answer]:
    return archive_routes(
        R, contents=contents, contents_all=CONTENTS_ALL, sources=SOURCES, pydist=PYDIST, by_hash=by_hash
    )


def refresher(cache: Path, url: str, told: list[str] | None = None, *, max_age: float = 3600) -> Refresher:
    notes = told if told is not None else []
    return Refresher(cache, mirror=url, architecture="amd64", max_age=max_age, notify=notes.append)


def first(cache: Path, kind: PathKind, name: str) -> str | None:
    owners = Knowledge(cache, architecture="amd64").owner(kind, name, release=R)
    return owners[0].package if owners else None


def fetched(server: Server) -> int:
    return sum("Contents" in request.path or "by-hash" in request.path for request in server.requests)


async def test_an_index_is_made_from_a_mirror_and_nothing_else_is_left(tmp_path: Path) -> None:
    with serve(routes()) as server:
        path = await refresher(tmp_path, f"{server.url}/").refresh(R)
    known = Knowledge(tmp_path, architecture="amd64")
    assert path == known.index(R)
    assert first(tmp_path, PathKind.HEADER, "lber.h") == "libldap-dev"
    assert known.python_package("opencv-python", release=R) == ("python3-opencv",)
    assert {p.suffix for p in path.parent.iterdir()} <= {".sqlite", ".lock"}


async def test_a_young_index_asks_nothing_of_the_mirror(tmp_path: Path) -> None:
    with serve(routes()) as server:
        await refresher(tmp_path, server.url).refresh(R)
        before = len(server.requests)
        await refresher(tmp_path, server.url).refresh(R)
        assert len(server.requests) == before


async def test_an_old_index_of_an_unchanged_archive_is_kept(tmp_path: Path) -> None:
    with serve(routes()) as server:
        path = await refresher(tmp_path, server.url).refresh(R)
        inode, before = path.stat().st_ino, fetched(server)
        os.utime(path, (0, 0))
        await refresher(tmp_path, server.url).refresh(R)
        assert (path.stat().st_ino, fetched(server)) == (inode, before)
        assert path.stat().st_mtime > 0


async def test_an_old_index_of_a_changed_archive_is_replaced(tmp_path: Path) -> None:
    with serve(routes()) as server:
        path = await refresher(tmp_path, server.url).refresh(R)
    os.utime(path, (0, 0))
    with serve(routes("usr/include/lber.h libdevel/libnew-dev\n")) as server:
        await refresher(tmp_path, server.url).refresh(R)
    assert first(tmp_path, PathKind.HEADER, "lber.h") == "libnew-dev"


async def test_without_a_network_the_old_index_goes_on(tmp_path: Path) -> None:
    with serve(routes()) as server:
        path = await refresher(tmp_path, server.url).refresh(R)
    os.utime(path, (0, 0))
    told: list[str] = []
    with serve({}) as server:
        await refresher(tmp_path, server.url, told).refresh(R)
        asked = len(server.requests)
        await refresher(tmp_path, server.url, told).refresh(R)
        assert len(server.requests) == asked, "the next build does not wait for the network again"
    assert first(tmp_path, PathKind.HEADER, "lber.h") == "libldap-dev"
    assert len(told) == 1
    assert "old package index" in told[0]


DAMAGED = (b"", b"no index", b"SQLite format 3\0" + b"\xff" * 9000)


@pytest.mark.parametrize("content", DAMAGED, ids=["empty", "text", "torn"])
async def test_a_damaged_index_is_made_anew_whatever_its_age(content: bytes, tmp_path: Path) -> None:
    with serve(routes()) as server:
        path = await refresher(tmp_path, server.url).refresh(R)
        path.write_bytes(content)
        await refresher(tmp_path, server.url).refresh(R)
    assert first(tmp_path, PathKind.HEADER, "lber.h") == "libldap-dev"


@pytest.mark.parametrize("content", DAMAGED, ids=["empty", "text", "torn"])
async def test_a_damaged_index_does_not_stand_in_for_one_that_cannot_be_made(content: bytes, tmp_path: Path) -> None:
    path = Knowledge(tmp_path, architecture="amd64").index(R)
    path.parent.mkdir()
    path.write_bytes(content)
    with serve({}) as server, pytest.raises(DownloadError, match="404"):
        await refresher(tmp_path, server.url).refresh(R)


async def test_a_folder_that_cannot_be_one_is_told_of(tmp_path: Path) -> None:
    Knowledge(tmp_path, architecture="amd64").index(R).parent.write_text("no folder")
    with serve(routes()) as server, pytest.raises(StoreError, match="cannot be made"):
        await refresher(tmp_path, server.url).refresh(R)


async def test_without_an_index_the_mirror_s_refusal_is_raised(tmp_path: Path) -> None:
    with serve({}) as server, pytest.raises(DownloadError, match="404"):
        await refresher(tmp_path, server.url).refresh(R)


async def test_a_mirror_in_the_midst_of_a_sync_is_read_by_hash(tmp_path: Path) -> None:
    other = {PLAIN: Answer(gzip.compress(b"usr/include/lber.h libdevel/libwrong-dev\n"))}
    with serve(routes() | other) as server:
        await refresher(tmp_path, server.url).refresh(R)
    assert first(tmp_path, PathKind.HEADER, "lber.h") == "libldap-dev"


async def test_a_mirror_without_files_by_hash_is_read_by_name(tmp_path: Path) -> None:
    kept = {path: answer for path, answer in routes().items() if "by-hash" not in path}
    with serve(kept) as server:
        await refresher(tmp_path, server.url).refresh(R)
    assert first(tmp_path, PathKind.HEADER, "lber.h") == "libldap-dev"


@pytest.mark.parametrize("longer", [False, True])
async def test_content_other_than_the_release_promises_is_refused(tmp_path: Path, longer: bool) -> None:
    given = routes(by_hash=False)
    body = given[PLAIN].body
    given[PLAIN] = Answer(body + b"x" if longer else body[:-1] + bytes([body[-1] ^ 1]))
    with serve(given) as server, pytest.raises(DownloadError) as caught:
        await refresher(tmp_path, server.url).refresh(R)
    assert isinstance(caught.value, OversizeError if longer else IntegrityError)
    assert not Knowledge(tmp_path, architecture="amd64").has(R)


def damaged() -> dict[str, Answer]:
    """A release whose own name gives a Release file and a Contents of two different days."""
    given = routes(by_hash=False)
    body = given[PLAIN].body
    return given | {PLAIN: Answer(body[:-1] + bytes([body[-1] ^ 1]))}


async def test_where_a_cache_has_mixed_two_states_the_suite_s_own_name_may_have_a_whole_one(tmp_path: Path) -> None:
    whole = archive_routes("oldstable", contents=CONTENTS, contents_all=None, sources=SOURCES, codename=R)
    with serve(damaged() | whole) as server:
        await refresher(tmp_path, server.url).refresh(R)
    assert first(tmp_path, PathKind.HEADER, "lber.h") == "libldap-dev"


async def test_a_suite_that_has_become_another_release_does_not_stand_in(tmp_path: Path) -> None:
    other = archive_routes("oldstable", contents=CONTENTS, contents_all=None, sources=SOURCES, codename="trixie")
    with serve(damaged() | other) as server, pytest.raises(IntegrityError):
        await refresher(tmp_path, server.url).refresh(R)
    assert not Knowledge(tmp_path, architecture="amd64").has(R)


async def test_archives_from_before_contents_of_all_architectures_are_read(tmp_path: Path) -> None:
    with serve(archive_routes(R, contents=CONTENTS, contents_all=None, sources=SOURCES)) as server:
        await refresher(tmp_path, server.url).refresh(R)
    assert first(tmp_path, PathKind.HEADER, "lber.h") == "libldap-dev"


async def test_a_release_file_apart_from_its_signature_will_do(tmp_path: Path) -> None:
    given = routes()
    given[f"/dists/{R}/Release"] = given.pop(RELEASE)
    with serve(given) as server:
        await refresher(tmp_path, server.url).refresh(R)
    assert first(tmp_path, PathKind.HEADER, "lber.h") == "libldap-dev"


async def test_many_that_want_an_index_make_it_once(tmp_path: Path) -> None:
    with serve(routes()) as server:
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(refresher(tmp_path, server.url).refresh, R)
        assert server.asked(RELEASE) == 1


async def test_what_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    left = Knowledge(tmp_path, architecture="amd64").index(R)
    folder = left.parent / f".{left.stem}.abc"
    folder.mkdir(parents=True)
    (folder / "index.sqlite").write_bytes(b"half")
    with serve(routes()) as server:
        await refresher(tmp_path, server.url).refresh(R)
    assert not folder.exists()


async def test_there_are_answers_all_the_while_the_index_is_replaced(tmp_path: Path) -> None:
    with serve(routes()) as server:
        path = await refresher(tmp_path, server.url).refresh(R)
    os.utime(path, (0, 0))
    with serve(routes("usr/include/lber.h libdevel/libnew-dev\n")) as changed:
        async with anyio.create_task_group() as group:
            group.start_soon(refresher(tmp_path, changed.url).refresh, R)
            while first(tmp_path, PathKind.HEADER, "lber.h") != "libnew-dev":
                assert first(tmp_path, PathKind.HEADER, "lber.h") in {"libldap-dev", "libnew-dev"}
                await anyio.sleep(0.001)


async def test_a_build_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    many = "".join(f"usr/include/{n}.h libdevel/lib{n}-dev\n" for n in range(200_000))
    folder = Knowledge(tmp_path, architecture="amd64").index(R).parent
    with serve(routes(many)) as server:
        async with anyio.create_task_group() as group:
            group.start_soon(refresher(tmp_path, server.url).refresh, R)
            while not list(folder.glob(".*/index.sqlite")):  # noqa: ASYNC110 - nobody tells of it
                await anyio.sleep(0.001)
            group.cancel_scope.cancel()
    assert {path.suffix for path in folder.iterdir()} <= {".lock"}


def test_the_mirror_is_the_one_that_is_set_or_the_host_s(tmp_path: Path) -> None:
    assert mirror_address("http://mirror.test/debian") == "http://mirror.test/debian"
    sources = tmp_path / "etc/apt/sources.list"
    sources.parent.mkdir(parents=True)
    sources.write_text("deb http://host.test/debian bookworm main\n")
    assert mirror_address(None, tmp_path) == "http://host.test/debian"


def test_a_host_without_a_mirror_is_told_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no Debian mirror"):
        mirror_address(None, tmp_path)
