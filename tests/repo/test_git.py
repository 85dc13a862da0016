"""Cloning repositories through git's own transports."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import datetime
from pathlib import Path

import anyio
import pytest

from specbuild.errors import (
    EmptyRepoError,
    RepoAccessError,
    RepoError,
    RepoNotFoundError,
    RepoSchemeError,
    RepoTooLargeError,
    RevisionNotFoundError,
    TransientError,
    UsageError,
)
from specbuild.repo import clone as cloning
from specbuild.repo.fetch import fetch_repo
from specbuild.repo.git import Git, GitFailed, explain, prepare_scratch
from specbuild.repo.source import RepoLimits
from specbuild.retry import Retry
from specbuild.testing.http_server import Answer, serve

WHEN = "2021-05-06T07:08:09+00:00"


@pytest.fixture(autouse=True)
def _own_git_settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("home")
    (home / ".gitconfig").write_text(
        "[user]\n\tname = A\n\temail = a@example.org\n[init]\n\tdefaultBranch = main\n"
        '[protocol "file"]\n\tallow = always\n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_COMMITTER_DATE", WHEN)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cloning, "_RETRY", Retry(attempts=2, first=0.01))


def run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def git(folder: Path, *arguments: str) -> str:
    return run("git", "-C", folder, *arguments)


def commit(folder: Path, name: str) -> str:
    (folder / name).write_text(name)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", name)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Tags v1.0 and v1.1, then one commit more on main; a branch feature/x."""
    folder = tmp_path / "p"
    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, "one")
    git(folder, "tag", "-am", "1", "v1.0")
    commit(folder, "two")
    git(folder, "tag", "v1.1")
    commit(folder, "three")
    git(folder, "checkout", "-qb", "feature/x", "v1.0")
    commit(folder, "x")
    git(folder, "checkout", "-q", "main")
    return folder


async def test_the_head_is_cloned_with_all_tags(source: Path, tmp_path: Path) -> None:
    repo = await fetch_repo(f"file://{source}", tmp_path / "work")
    assert repo.kind == "git"
    assert repo.revision == git(source, "rev-parse", "main")
    assert repo.date == datetime.fromisoformat(WHEN)
    assert set(repo.tracked) == {"one", "two", "three"}
    assert git(repo.path, "tag").split() == ["v1.0", "v1.1"]
    assert git(repo.path, "describe", "--tags").startswith("v1.1-1-g")
    assert git(repo.path, "status", "--porcelain") == ""
    assert [path.name for path in (tmp_path / "work").iterdir()] == [repo.path.parent.name]
    assert [path.name for path in repo.path.parent.iterdir()] == ["tree"]


@pytest.mark.parametrize(
    ("revision", "names"), [("v1.0", {"one"}), ("v1.1", {"one", "two"}), ("feature/x", {"one", "x"})]
)
@pytest.mark.parametrize("form", ["file://{}@{}", "git+file://{}@{}", "{}@{}"])
async def test_a_tag_or_branch_is_checked_out(
    source: Path, tmp_path: Path, revision: str, names: set[str], form: str
) -> None:
    repo = await fetch_repo(form.format(source, revision), tmp_path / "work")
    assert set(repo.tracked) == names
    assert repo.revision == git(source, "rev-parse", f"{revision}^{{commit}}")


@pytest.mark.parametrize("length", [7, 40])
async def test_a_commit_is_checked_out(source: Path, tmp_path: Path, length: int) -> None:
    wanted = git(source, "rev-parse", "v1.1")
    repo = await fetch_repo(f"file://{source}@{wanted[:length]}", tmp_path / "work")
    assert repo.revision == wanted


async def test_a_tag_comes_before_a_branch_of_the_same_name(source: Path, tmp_path: Path) -> None:
    git(source, "branch", "v1.0", "main")
    repo = await fetch_repo(f"file://{source}@v1.0", tmp_path / "work")
    assert set(repo.tracked) == {"one"}


async def test_a_reference_that_no_clone_brings_is_fetched(source: Path, tmp_path: Path) -> None:
    git(source, "update-ref", "refs/pull/7/head", "feature/x")
    repo = await fetch_repo(f"file://{source}@refs/pull/7/head", tmp_path / "work")
    assert set(repo.tracked) == {"one", "x"}


async def test_an_unknown_revision_names_the_nearest(source: Path, tmp_path: Path) -> None:
    with pytest.raises(RevisionNotFoundError, match=r"'v1\.2'") as error:
        await fetch_repo(f"file://{source}@v1.2", tmp_path / "work")
    assert "v1.1" in error.value.hint
    assert list((tmp_path / "work").iterdir()) == []


async def test_a_revision_cannot_be_an_option(source: Path, tmp_path: Path) -> None:
    with pytest.raises(RevisionNotFoundError):
        await fetch_repo(f"file://{source}@--upload-pack=touch {tmp_path}/ran", tmp_path / "work")
    assert not (tmp_path / "ran").exists()


async def test_submodules_are_fetched_with_their_submodules(source: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "--quiet", "add", "../p", "lib/p")
    commit(outer, "o")
    top = tmp_path / "top"
    top.mkdir()
    git(top, "init", "-q")
    git(top, "submodule", "--quiet", "add", f"file://{outer}", "outer")
    commit(top, "t")
    before = git(outer, "status", "--porcelain")
    repo = await fetch_repo(f"file://{top}", tmp_path / "work")
    assert "outer/lib/p/three" in repo.tracked
    assert git(repo.path / "outer/lib/p", "describe", "--tags").startswith("v1.1-1-g")
    assert git(outer, "status", "--porcelain") == before
    moved = repo.path.rename(tmp_path / "moved")
    assert git(moved / "outer/lib/p", "rev-parse", "HEAD") == git(source, "rev-parse", "main")


async def test_a_submodule_that_cannot_be_had_is_told_of(source: Path, tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    git(top, "init", "-q")
    git(top, "submodule", "--quiet", "add", f"file://{source}", "p")
    commit(top, "t")
    shutil.rmtree(source)
    repo = await fetch_repo(f"file://{top}", tmp_path / "work")
    assert "t" in repo.tracked
    assert any("submodules" in note for note in repo.notes)


async def test_a_bare_repository_is_cloned(source: Path, tmp_path: Path) -> None:
    run("git", "clone", "-q", "--bare", source, tmp_path / "bare")
    repo = await fetch_repo(str(tmp_path / "bare"), tmp_path / "work")
    assert repo.kind == "git"
    assert set(repo.tracked) == {"one", "two", "three"}


async def test_a_shallow_repository_is_cloned(source: Path, tmp_path: Path) -> None:
    run("git", "clone", "-q", "--depth=1", f"file://{source}", tmp_path / "shallow")
    repo = await fetch_repo(f"file://{tmp_path / 'shallow'}", tmp_path / "work")
    assert set(repo.tracked) == {"one", "two", "three"}


async def test_hooks_of_the_users_template_do_not_get_in(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = tmp_path / "template" / "hooks" / "post-checkout"
    hook.parent.mkdir(parents=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(tmp_path / "template"))
    repo = await fetch_repo(f"file://{source}", tmp_path / "work")
    assert not (tmp_path / "ran").exists()
    assert not (repo.path / ".git" / "hooks").exists()


async def test_the_callers_repository_is_not_mistaken_for_the_one_to_clone(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    git(tmp_path / "other", "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other" / ".git" / "index"))
    repo = await fetch_repo(f"file://{source}", tmp_path / "work")
    assert set(repo.tracked) == {"one", "two", "three"}


async def test_a_repository_without_commits_is_empty(tmp_path: Path) -> None:
    (tmp_path / "e").mkdir()
    git(tmp_path / "e", "init", "-q")
    with pytest.raises(EmptyRepoError):
        await fetch_repo(f"file://{tmp_path / 'e'}", tmp_path / "work")


async def test_a_repository_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(RepoNotFoundError):
        await fetch_repo(f"file://{tmp_path}/none", tmp_path / "work")


async def test_a_clone_that_outgrows_the_limit_is_stopped(source: Path, tmp_path: Path) -> None:
    with pytest.raises(RepoTooLargeError):
        await fetch_repo(f"file://{source}", tmp_path / "work", limits=RepoLimits(free_bytes=1 << 60))
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.root
async def test_a_local_repository_of_another_owner_is_cloned(source: Path, tmp_path: Path) -> None:
    run("chown", "-R", "65534:65534", source)
    repo = await fetch_repo(f"file://{source}@v1.0", tmp_path / "work")
    assert set(repo.tracked) == {"one"}


async def test_a_repository_is_cloned_over_http_with_credentials_that_do_not_stay(source: Path, tmp_path: Path) -> None:
    run("git", "clone", "-q", "--bare", source, tmp_path / "bare")
    git(tmp_path / "bare", "update-server-info")
    files = {p.relative_to(tmp_path / "bare"): p for p in (tmp_path / "bare").rglob("*") if p.is_file()}
    routes = {f"/p.git/{name}": Answer(path.read_bytes()) for name, path in files.items()}
    routes["/p.git/info/refs?service=git-upload-pack"] = Answer((tmp_path / "bare/info/refs").read_bytes())
    with serve(routes) as server:
        url = server.url.replace("http://", "http://me:secret@") + "/p.git"
        repo = await fetch_repo(f"{url}@v1.0", tmp_path / "work")
        clean = f"{server.url}/p.git"
    assert set(repo.tracked) == {"one"}
    assert repo.origin == f"{clean}@v1.0"
    assert git(repo.path, "config", "remote.origin.url") == clean
    assert "secret" not in repo.fetch
    assert f"git checkout --quiet --detach {repo.revision}" in repo.fetch
    assert not any("secret" in path.read_text(errors="replace") for path in repo.path.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, RepoAccessError),
        (403, RepoAccessError),
        (404, RepoNotFoundError),
        (429, TransientError),
        (503, TransientError),
    ],
)
async def test_each_trouble_of_http_has_its_error(status: int, error: type[Exception], tmp_path: Path) -> None:
    refs = "/p.git/info/refs?service=git-upload-pack"
    with serve({refs: Answer(status=status, headers={"WWW-Authenticate": "Basic realm=x"})}) as server:
        with pytest.raises(error) as raised:
            await fetch_repo(f"{server.url}/p.git", tmp_path / "work")
        assert server.asked(refs) == (2 if error is TransientError else 1)
    assert getattr(raised.value, "hint", "")
    assert list((tmp_path / "work").iterdir()) == []


async def test_a_server_that_is_not_there_is_transient(tmp_path: Path) -> None:
    with serve({}) as server:
        url = server.url
    with pytest.raises(TransientError):
        await fetch_repo(f"{url}/p.git", tmp_path / "work")


async def test_a_page_that_is_no_repository_is_said_to_be_none(tmp_path: Path) -> None:
    page = Answer(b"<html>hello</html>")
    with serve({"/p/info/refs?service=git-upload-pack": page}) as server, pytest.raises(EmptyRepoError) as error:
        await fetch_repo(f"{server.url}/p", tmp_path / "work")
    assert "web page" in error.value.hint


async def test_an_ssh_address_goes_to_ssh_without_asking_anyone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/asked\necho "Permission denied (publickey)." >&2\nexit 255\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("GIT_SSH_COMMAND", raising=False)
    monkeypatch.delenv("GIT_SSH", raising=False)
    for url in (
        "git@example.org:group/p.git@v1",
        "ssh://git@example.org/group/p@v1",
        "git+ssh://git@example.org/group/p",
    ):
        with pytest.raises(RepoAccessError) as error:
            await fetch_repo(url, tmp_path / "work")
        asked = (tmp_path / "asked").read_text()
        assert "BatchMode=yes" in asked
        assert "git@example.org" in asked
        assert "@v1" not in asked
        assert "group/p" in error.value.message


@pytest.mark.parametrize("url", ["svn://example.org/p", "ext://sh", "hg+https://example.org/p", "npm:left-pad"])
async def test_an_address_of_an_unknown_kind_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(RepoSchemeError):
        await fetch_repo(url, tmp_path / "work")


@pytest.mark.parametrize("url", ["", " ", "https://example.org/p#subdirectory=x", "pypi:a[b]", "pypi:a>=1"])
async def test_an_address_that_makes_no_sense_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        await fetch_repo(url, tmp_path / "work")


async def test_a_cancelled_clone_leaves_neither_processes_nor_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\necho $$ >{tmp_path}/pid\nexec sleep 1000\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))

    async def wait_and_cancel() -> None:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():  # noqa: ASYNC110
            await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_and_cancel)
        await fetch_repo("git@example.org:p.git", tmp_path / "work")
    pid = int((tmp_path / "pid").read_text())
    with anyio.fail_after(10):
        while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:  # noqa: ASYNC110, ASYNC240
            await anyio.sleep(0.01)
    assert list((tmp_path / "work").iterdir()) == []


async def test_more_output_than_a_pipe_holds_is_read(tmp_path: Path, source: Path) -> None:
    prepare_scratch(tmp_path / "scratch")
    for number in range(3000):
        (source / f"{number:0200}").touch()
    names = await Git(source, tmp_path / "scratch").names("ls-files", "--others", "-z")
    assert len(names) == 3000


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("fatal: unable to access 'https://h/': Could not resolve host: h", TransientError),
        ("fatal: Authentication failed for 'https://me:pw@h/p'", RepoAccessError),
        ("Host key verification failed.\nfatal: Could not read from remote repository.", RepoAccessError),
        ("fatal: unable to access 'https://h/': SSL certificate problem: self-signed certificate", RepoAccessError),
        ("fatal: transport 'ext' not allowed", RepoSchemeError),
        ("fatal: something new", RepoError),
    ],
)
def test_gits_words_become_errors(words: str, error: type[Exception]) -> None:
    explained = explain(GitFailed(128, words), "https://you:secret@h/p")
    assert type(explained) is error
    assert "secret" not in explained.message
    assert "pw@" not in explained.message
