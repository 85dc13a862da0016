"""What a package index says of distributions, read over HTTP from the loopback interface and kept on the disk."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest

from specbuild.http import Network
from specbuild.knowledge.releases import releases_of
from specbuild.knowledge.wheels import PackageIndex
from specbuild.repo.index_page import IndexFile, parse_page
from specbuild.repo.index_settings import IndexSettings
from specbuild.testing.http_server import Answer, Server, serve

JSON = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
WHEEL = "demo-2.0-py3-none-any.whl"
METADATA = "Metadata-Version: 2.1\nName: demo\nRequires-Dist: attrs\n"


def page(*files: dict[str, object]) -> Answer:
    listed = [{"url": f"../../files/{one['filename']}", **one} for one in files]
    return Answer(json.dumps({"meta": {"api-version": "1.1"}, "files": listed}).encode(), headers=JSON)


DEMO = page(
    {"filename": "demo-1.0.tar.gz", "upload-time": "2020-01-01T00:00:00Z", "requires-python": ">=3.6"},
    {"filename": WHEEL, "core-metadata": {"sha256": "00"}, "upload-time": "2021-01-01T00:00:00Z"},
    {"filename": "demo-2.0.zip", "yanked": "broken"},
)


def settings(*servers: Server, paths: tuple[str, ...] = ("/simple",)) -> IndexSettings:
    indexes = tuple(f"{server.url}{path}" for server in servers for path in paths)
    return IndexSettings(indexes=indexes, default_wanted=False, find_links=(), network=Network())


def kept_of(cache: Path, project: str) -> Path:
    (found,) = cache.rglob(f"{project}.json")
    return found


async def test_releases_come_newest_first_with_their_wheels_and_source(tmp_path: Path) -> None:
    with serve({"/simple/demo/": DEMO}) as server:
        async with PackageIndex(tmp_path, settings=settings(server)) as index:
            newest, oldest = await index.releases("Demo")
    assert [str(one.version) for one in (newest, oldest)] == ["2.0", "1.0"]
    assert [file.name for file in newest.wheels] == [WHEEL]
    assert newest.native is False
    assert newest.sdist is not None
    assert newest.sdist.yanked == "broken"
    assert oldest.native is None
    assert oldest.sdist is not None
    assert oldest.sdist.requires_python == ">=3.6"
    assert oldest.uploaded is not None
    assert oldest.uploaded.year == 2020


async def test_an_answer_is_kept_on_the_disk_until_it_is_old(tmp_path: Path) -> None:
    with serve({"/simple/demo/": DEMO}) as server:
        for age, asked in ((100.0, 1), (100.0, 1), (-1.0, 2)):
            async with PackageIndex(tmp_path, settings=settings(server), max_age=age) as index:
                assert len(await index.releases("demo")) == 2
            assert server.asked("/simple/demo/") == asked


async def test_what_is_kept_is_the_same_as_what_was_read(tmp_path: Path) -> None:
    with serve({"/simple/demo/": DEMO}) as server:
        async with PackageIndex(tmp_path, settings=settings(server)) as index:
            read = await index.releases("demo")
        async with PackageIndex(tmp_path, settings=settings(server)) as index:
            kept = await index.releases("demo")
    assert kept == read


async def test_old_answers_go_on_when_the_index_is_out_of_reach(tmp_path: Path) -> None:
    with serve({"/simple/demo/": [DEMO, Answer(cut=-1)]}) as server:
        async with PackageIndex(tmp_path, settings=settings(server)) as index:
            await index.releases("demo")
        async with PackageIndex(tmp_path, settings=settings(server), max_age=-1) as index:
            assert len(await index.releases("demo")) == 2


async def test_an_index_out_of_reach_tells_nothing_and_is_left_alone(tmp_path: Path) -> None:
    with serve({"/simple/demo/": Answer(status=503), "/simple/other/": DEMO}) as server:
        async with PackageIndex(tmp_path, settings=settings(server)) as index:
            assert await index.releases("demo") == ()
            assert await index.releases("other") == ()
        assert server.asked("/simple/other/") == 0


async def test_an_index_that_does_not_answer_in_time_is_out_of_reach(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        asked = IndexSettings((f"http://127.0.0.1:{silent.getsockname()[1]}/simple",), False, (), Network())
        async with PackageIndex(tmp_path, settings=asked, patience=0.1) as index:
            assert await index.releases("demo") == ()


async def test_a_project_that_the_index_does_not_know_hinders_no_other(tmp_path: Path) -> None:
    with serve({"/simple/demo/": DEMO}) as server:
        async with PackageIndex(tmp_path, settings=settings(server)) as index:
            assert await index.releases("unknown") == ()
            assert len(await index.releases("demo")) == 2


async def test_a_page_that_makes_no_sense_tells_nothing(tmp_path: Path) -> None:
    with serve({"/simple/demo/": Answer(b"{}", headers=JSON)}) as server:
        async with PackageIndex(tmp_path, settings=settings(server)) as index:
            assert await index.releases("demo") == ()


async def test_those_who_ask_at_once_cause_one_request(tmp_path: Path) -> None:
    with serve({"/simple/demo/": DEMO}) as server:
        async with PackageIndex(tmp_path, settings=settings(server)) as index, anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(index.releases, "demo")
        assert server.asked("/simple/demo/") == 1


async def test_one_who_gives_up_waiting_leaves_the_answer_to_others(tmp_path: Path) -> None:
    with serve({"/simple/demo/": DEMO}) as server:
        async with PackageIndex(tmp_path, settings=settings(server)) as index:
            with anyio.CancelScope() as scope:
                scope.cancel()
                await index.releases("demo")
            assert len(await index.releases("demo")) == 2


async def test_the_first_index_that_has_the_project_counts(tmp_path: Path) -> None:
    private = page({"filename": "demo-0.1.tar.gz"})
    with serve({"/private/demo/": private, "/simple/demo/": DEMO}) as server:
        asked = settings(server, paths=("/private", "/simple"))
        async with PackageIndex(tmp_path, settings=asked) as index:
            assert [str(one.version) for one in await index.releases("demo")] == ["0.1"]


async def test_other_indexes_have_other_answers(tmp_path: Path) -> None:
    private = page({"filename": "demo-0.1.tar.gz"})
    with serve({"/private/demo/": private, "/simple/demo/": DEMO}) as server:
        for path, count in (("/private", 1), ("/simple", 2)):
            async with PackageIndex(tmp_path, settings=settings(server, paths=(path,))) as index:
                assert len(await index.releases("demo")) == count


@pytest.mark.parametrize("damage", ["", "{", "[]", "[" * 100_000, '{"form": 1, "files": [{}]}'])
async def test_a_damaged_cache_is_read_anew(damage: str, tmp_path: Path) -> None:
    with serve({"/simple/demo/": [DEMO]}) as server:
        async with PackageIndex(tmp_path, settings=settings(server)) as index:
            await index.releases("demo")
        kept_of(tmp_path, "demo").write_text(damage)
        async with PackageIndex(tmp_path, settings=settings(server)) as index:
            assert len(await index.releases("demo")) == 2


async def test_metadata_are_fetched_once_and_kept(tmp_path: Path) -> None:
    path = f"/files/{WHEEL}.metadata"
    with serve({"/simple/demo/": DEMO, path: Answer(METADATA.encode())}) as server:
        for _ in range(2):
            async with PackageIndex(tmp_path, settings=settings(server)) as index:
                (wheel,) = (await index.releases("demo"))[0].wheels
                assert await index.metadata(wheel) == METADATA
        assert server.asked(path) == 1


async def test_metadata_that_the_index_says_it_lacks_are_not_asked_for(tmp_path: Path) -> None:
    with serve({}) as server:
        async with PackageIndex(tmp_path, settings=settings(server)) as index:
            assert await index.metadata(IndexFile(WHEEL, f"{server.url}/{WHEEL}", metadata=False)) is None
        assert server.requests == []


async def test_an_index_that_keeps_silent_about_metadata_is_tried_a_few_times(tmp_path: Path) -> None:
    with serve({}) as server:
        async with PackageIndex(tmp_path, settings=settings(server)) as index:
            for turn in range(40):
                assert await index.metadata(IndexFile(WHEEL, f"{server.url}/{turn}/{WHEEL}")) is None
        assert 0 < len(server.requests) < 20


async def test_answers_of_the_future_are_as_good_as_new(tmp_path: Path) -> None:
    """A clock that was set back must not make every build ask again."""
    with serve({"/simple/demo/": DEMO}) as server:
        async with PackageIndex(tmp_path, settings=settings(server)) as index:
            await index.releases("demo")
        os.utime(kept_of(tmp_path, "demo"), (time.time() + 9999, time.time() + 9999))
        async with PackageIndex(tmp_path, settings=settings(server)) as index:
            await index.releases("demo")
        assert server.asked("/simple/demo/") == 1


@pytest.mark.parametrize(
    "name", ["demo-1/../../x.tar.gz", "/x/demo-1.tar.gz", ".demo-1.tar.gz", "demo-1\0.tar.gz", "d" * 300]
)
@pytest.mark.parametrize("form", ["json", "html"])
def test_names_that_are_no_file_s_are_left_out(name: str, form: str) -> None:
    good = "demo-1.0.tar.gz"
    if form == "json":
        body = json.dumps({"files": [{"filename": one, "url": "x"} for one in (name, good)]}).encode()
    else:
        body = f'<a href="{quote(name, safe="")}">x</a><a href="{good}">x</a>'.encode()
    assert [file.name for file in parse_page(body, f"text/{form}", "http://x/")] == [good]


def test_pages_in_html_tell_of_interpreters_and_metadata() -> None:
    body = (
        b'<a href="a-1-py3-none-any.whl" data-requires-python="&gt;=3.8" data-core-metadata="sha256=00">a</a>'
        b'<a href="a-2-py3-none-any.whl" data-dist-info-metadata="true">a</a><a href="a-3-py3-none-any.whl">a</a>'
    )
    one, two, three = parse_page(body, "text/html", "http://x/")
    assert (one.requires_python, one.metadata, two.metadata, three.metadata) == (">=3.8", True, True, None)


def test_a_release_with_a_wheel_for_one_platform_is_native() -> None:
    (release,) = releases_of([IndexFile("a-1-py3-none-any.whl", ""), IndexFile("a-1-cp39-cp39-win32.whl", "")], "a")
    assert release.native is True


def test_of_source_archives_the_usual_form_is_preferred() -> None:
    (release,) = releases_of([IndexFile("a-1.zip", ""), IndexFile("a-1.tar.gz", ""), IndexFile("a-1.tar.bz2", "")], "a")
    assert release.sdist is not None
    assert release.sdist.name == "a-1.tar.gz"
