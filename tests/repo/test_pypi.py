"""Source distributions, from indexes on the loopback interface and from the user's own."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from specbuild.errors import (
    IntegrityError,
    NoSourceDistributionError,
    PackageNotFoundError,
    RepoAccessError,
    RepoTooLargeError,
    TransientError,
)
from specbuild.repo.digest import read_tree
from specbuild.repo.fetch import fetch_repo
from specbuild.repo.index_page import IndexFile, parse_page
from specbuild.repo.source import RepoLimits
from specbuild.testing.http_server import Answer, Server, serve

JSON = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
open_tar: Callable[..., tarfile.TarFile] = tarfile.open
NO_HASHES: dict[str, str] = {}
HTML = {"Content-Type": "text/html; charset=utf-8"}


def sdist(name: str, version: str, *, mode: str = "w:gz") -> bytes:
    packed = io.BytesIO()
    with open_tar(None, mode, packed) as tar:
        for path, content in {"setup.py": b"setup()", "PKG-INFO": b"Name: x"}.items():
            info = tarfile.TarInfo(f"{name}-{version}/{path}")
            info.size, info.mtime = len(content), 1_500_000_000
            tar.addfile(info, io.BytesIO(content))
    return packed.getvalue()


SDIST = sdist("my_pkg", "1.0")
SHA = hashlib.sha256(SDIST).hexdigest()


def json_page(*names: str, **extra: object) -> Answer:
    files = [{"filename": name, "url": f"../../files/{name}", "hashes": NO_HASHES, **extra} for name in names]
    return Answer(json.dumps({"meta": {"api-version": "1.1"}, "files": files}).encode(), headers=JSON)


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """No settings of pip and uv but those that a test makes."""
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "UV_INDEX_URL", "UV_INDEX",
                 "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "HTTP_PROXY", "http_proxy"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    return monkeypatch


async def test_an_sdist_is_found_checked_and_unpacked(settings: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = json_page("my_pkg-1.0.tar.gz", hashes={"sha256": SHA}, **{"upload-time": "2020-01-02T03:04:05.6Z"})
    with serve({"/simple/my-pkg/": page, "/files/my_pkg-1.0.tar.gz": Answer(SDIST)}) as server:
        settings.setenv("PIP_INDEX_URL", f"{server.url}/simple")
        repo = await fetch_repo("pypi:My.Pkg==1.0.0", tmp_path / "work")
        assert "application/vnd.pypi.simple.v1+json" in server.requests[0].headers["accept"]
        _check_commands(repo.fetch, tmp_path, repo.digest)
    assert repo.kind == "pypi"
    assert repo.revision == "1.0"
    assert repo.date == datetime(2020, 1, 2, 3, 4, 5, 600000, UTC)
    assert set(repo.tracked) == {"setup.py"}


def _check_commands(commands: str, tmp_path: Path, digest: str) -> None:
    folder = tmp_path / "anew"
    folder.mkdir()
    subprocess.run(["sh", "-eu", "-c", commands], cwd=folder, check=True, capture_output=True)
    assert read_tree(folder).digest == digest


async def test_an_html_page_is_understood(settings: pytest.MonkeyPatch, tmp_path: Path) -> None:
    body = f'<html><head><base href="/files/"></head><a href="my_pkg-1.0.tar.gz#sha256={SHA}">x</a></html>'.encode()
    routes = {"/simple/my-pkg/": Answer(body, headers=HTML), "/files/my_pkg-1.0.tar.gz": Answer(SDIST)}
    with serve(routes) as server:
        settings.setenv("UV_DEFAULT_INDEX", f"{server.url}/simple/")
        repo = await fetch_repo("pypi:my-pkg==1.0", tmp_path / "work")
    assert repo.date == datetime.fromtimestamp(1_500_000_000, UTC)


async def test_a_wrong_hash_is_refused(settings: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = json_page("my_pkg-1.0.tar.gz", hashes={"sha256": "0" * 64})
    with serve({"/simple/my-pkg/": page, "/files/my_pkg-1.0.tar.gz": Answer(SDIST)}) as server:
        settings.setenv("PIP_INDEX_URL", f"{server.url}/simple")
        with pytest.raises(IntegrityError):
            await fetch_repo("pypi:my-pkg==1.0", tmp_path / "work")
    assert list((tmp_path / "work").iterdir()) == []


async def _found(
    server: Server, settings: pytest.MonkeyPatch, spec: str, tmp_path: Path
) -> tuple[str | None, str, tuple[str, ...]]:
    settings.setenv("PIP_INDEX_URL", f"{server.url}/simple")
    repo = await fetch_repo(spec, tmp_path / "work")
    asked = [request.path for request in server.requests if request.path.startswith("/files/")]
    return repo.revision, asked[-1], repo.notes


async def test_the_newest_final_release_is_the_default(settings: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = ["p-1.9.tar.gz", "p-1.10.tar.gz", "p-2.0rc1.tar.gz", "p-extra-3.0.tar.gz", "p-1.11-py3-none-any.whl"]
    routes = {"/simple/p/": json_page(*names), "/files/p-1.10.tar.gz": Answer(sdist("p", "1.10"))}
    with serve(routes) as server:
        revision, _, notes = await _found(server, settings, "pypi:p", tmp_path)
    assert revision == "1.10"
    assert notes == ("1.11 is newer than 1.10, but there are only wheels of it",)


async def test_a_withdrawn_release_is_taken_only_when_it_is_named(settings: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = [
        {"filename": "p-1.0.tar.gz", "url": "../../files/p-1.0.tar.gz", "hashes": NO_HASHES},
        {"filename": "p-2.0.tar.gz", "url": "../../files/p-2.0.tar.gz", "hashes": NO_HASHES, "yanked": "broken"},
    ]
    routes = {
        "/simple/p/": Answer(json.dumps({"files": files}).encode(), headers=JSON),
        "/files/p-1.0.tar.gz": Answer(sdist("p", "1.0")),
        "/files/p-2.0.tar.gz": Answer(sdist("p", "2.0")),
    }
    with serve(routes) as server:
        assert (await _found(server, settings, "pypi:p", tmp_path))[0] == "1.0"
        revision, _, notes = await _found(server, settings, "pypi:p==2", tmp_path)
    assert revision == "2.0"
    assert notes == ("p-2.0.tar.gz was withdrawn by its authors: broken",)


@pytest.mark.parametrize(
    ("name", "mode"), [("p-1.0.tar.bz2", "w:bz2"), ("p-1.0.tgz", "w:gz"), ("p-1.0.tar.xz", "w:xz"), ("p-1.0.tar", "w")]
)
async def test_source_distributions_of_old_kinds_are_taken(
    settings: pytest.MonkeyPatch, tmp_path: Path, name: str, mode: str
) -> None:
    with serve({"/simple/p/": json_page(name), f"/files/{name}": Answer(sdist("p", "1.0", mode=mode))}) as server:
        settings.setenv("PIP_INDEX_URL", f"{server.url}/simple")
        repo = await fetch_repo("pypi:p==1.0", tmp_path / "work")
        _check_commands(repo.fetch, tmp_path, repo.digest)
    assert set(repo.tracked) == {"setup.py"}


async def test_further_indexes_come_before_the_default_one(settings: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (
        serve({"/simple/p/": json_page("p-9.tar.gz")}) as public,
        serve({"/simple/p/": json_page("p-1.0.tar.gz"), "/files/p-1.0.tar.gz": Answer(sdist("p", "1.0"))}) as private,
    ):
        settings.setenv("PIP_INDEX_URL", f"{public.url}/simple")
        settings.setenv("PIP_EXTRA_INDEX_URL", f"{private.url}/simple")
        assert (await fetch_repo("pypi:p", tmp_path / "work")).revision == "1.0"
        assert public.requests == []


async def test_files_of_an_index_are_fetched_with_its_credentials(settings: pytest.MonkeyPatch, tmp_path: Path) -> None:
    routes = {"/simple/p/": json_page("p-1.0.tar.gz"), "/files/p-1.0.tar.gz": Answer(sdist("p", "1.0"))}
    with serve(routes) as server:
        settings.setenv("PIP_INDEX_URL", f"{server.url.replace('http://', 'http://me:secret@')}/simple")
        repo = await fetch_repo("pypi:p==1.0", tmp_path / "work")
    assert all("authorization" in request.headers for request in server.requests)
    assert "secret" not in repo.fetch


async def test_a_local_folder_of_distributions_is_searched_first(settings: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "p-1.0.tar.gz").write_bytes(sdist("p", "1.0"))
    settings.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    settings.setenv("PIP_NO_INDEX", "1")
    repo = await fetch_repo("pypi:p==1.0", tmp_path / "work")
    assert set(repo.tracked) == {"setup.py"}
    assert repo.fetch == ""


async def test_what_is_not_there_is_told_with_what_is(settings: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = [f"p-1.{minor}.tar.gz" for minor in range(30)] + ["p-1.99-py3-none-any.whl"]
    with serve({"/simple/p/": json_page(*names), "/simple/w/": json_page("w-1-py3-none-any.whl")}) as server:
        settings.setenv("PIP_INDEX_URL", f"{server.url.replace('//', '//me:secret@')}/simple")
        with pytest.raises(PackageNotFoundError, match="no package 'q'") as unknown:
            await fetch_repo("pypi:q", tmp_path / "work")
        with pytest.raises(PackageNotFoundError, match=r"no version 1\.7\.5") as absent:
            await fetch_repo("pypi:p==1.7.5", tmp_path / "work")
        with pytest.raises(NoSourceDistributionError, match=r"p 1\.99 has only wheels") as wheels:
            await fetch_repo("pypi:p==1.99", tmp_path / "work")
        with pytest.raises(NoSourceDistributionError, match="w has only wheels"):
            await fetch_repo("pypi:w", tmp_path / "work")
    assert "1.5, 1.6, 1.7, 1.8, 1.9, 1.10" in absent.value.hint
    assert "1.29" in wheels.value.hint
    assert "secret" not in unknown.value.message


async def test_an_index_that_refuses_says_where_credentials_go(settings: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with serve({"/simple/p/": Answer(status=401)}) as server:
        settings.setenv("PIP_INDEX_URL", f"{server.url}/simple")
        with pytest.raises(RepoAccessError) as error:
            await fetch_repo("pypi:p==1", tmp_path / "work")
    assert "netrc" in error.value.hint


@pytest.mark.parametrize("body", [b"{}", b"not json", b"[]", b'{"files": [{}]}', b'{"files": 1}', b'{"files": ["x"]}'])
async def test_a_page_that_is_no_index_page_is_transient(
    settings: pytest.MonkeyPatch, tmp_path: Path, body: bytes
) -> None:
    with serve({"/simple/p/": Answer(body, headers=JSON)}) as server:
        settings.setenv("PIP_INDEX_URL", f"{server.url}/simple")
        with pytest.raises(TransientError, match="no page of a package index"):
            await fetch_repo("pypi:p==1", tmp_path / "work")


async def test_a_download_beyond_the_limit_is_refused(settings: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with serve({"/simple/p/": json_page("p-1.tar.gz"), "/files/p-1.tar.gz": Answer(bytes(5000))}) as server:
        settings.setenv("PIP_INDEX_URL", f"{server.url}/simple")
        with pytest.raises(RepoTooLargeError):
            await fetch_repo("pypi:p==1", tmp_path / "work", limits=RepoLimits(max_download_bytes=1000))


@pytest.mark.parametrize(
    ("file", "project", "version"),
    [
        ("python-dateutil-2.8.2.tar.gz", "python-dateutil", "2.8.2"),
        ("python_dateutil-2.9.0.post0.tar.gz", "python-dateutil", "2.9.0.post0"),
        ("zope.interface-5.4.0.zip", "zope-interface", "5.4.0"),
        ("pytz-2004d.tar.gz", "pytz", "2004d"),
        ("foo-2-1.0.tar.gz", "foo-2", "1.0"),
        ("foo-1.0-1.tar.gz", "foo", "1.0-1"),
        ("foo-bar-1.0.tar.gz", "foo", None),
        ("foo-1.0-py3-none-any.whl", "foo", None),
        ("foo-1.0.exe", "foo", None),
    ],
)
def test_names_of_source_distributions_are_read(file: str, project: str, version: str | None) -> None:
    assert IndexFile(file, "https://example.org/" + file).version(project) == version


def test_addresses_on_a_page_may_be_relative_and_quoted() -> None:
    page = b'<a href="../../f/a%2Bb-1.0.tar.gz?x=1#md5=abc" data-yanked="bad">a</a><a>no</a>'
    (file,) = parse_page(page, "text/html", "https://example.org/simple/a/")
    assert file == IndexFile(
        "a+b-1.0.tar.gz", "https://example.org/f/a%2Bb-1.0.tar.gz?x=1", {"md5": "abc"}, None, "bad"
    )


@pytest.mark.network
async def test_a_small_sdist_comes_from_the_users_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()  # the real settings
    repo = await fetch_repo("pypi:iniconfig==2.0.0", tmp_path / "work")
    assert repo.revision == "2.0.0"
    assert "pyproject.toml" in repo.tracked
    assert repo.date is not None
    assert repo.date.year == 2023
    _check_commands(repo.fetch, tmp_path, repo.digest)
