"""Copying folders, with git and without, without touching the original."""

from __future__ import annotations

import os
import socket
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from specbuild.errors import EmptyRepoError, RepoAccessError, RepoNotFoundError, RepoTooLargeError, RepoToolMissingError
from specbuild.repo.fetch import fetch_repo
from specbuild.repo.source import Repo, RepoLimits

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
    monkeypatch.setenv("GIT_AUTHOR_DATE", WHEN)


def run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def git(folder: Path, *arguments: str) -> str:
    return run("git", "-C", folder, *arguments)


def make_repository(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    for name, content in {"setup_py": "s", **files}.items():
        (folder / name.replace("_py", ".py")).write_text(content)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    git(folder, "tag", "-am", "one", "v1.0")
    return folder


def state(folder: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Everything of a folder that a change would show in."""
    found: dict[str, tuple[int, int, int, bytes]] = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path.relative_to(folder))] = (about.st_mode, about.st_mtime_ns, about.st_ctime_ns, content)
    return found


def names(repo: Repo) -> set[str]:
    return {
        str(path.relative_to(repo.path))
        for path in repo.path.rglob("*")
        if ".git" not in path.relative_to(repo.path).parts and (path.is_symlink() or not path.is_dir())
    }


async def test_git_decides_what_belongs_to_the_source(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "p", **{".gitignore": "ignored\n"})
    (source / "ignored").write_text("secret")
    (source / "new").write_text("n")
    (source / "setup.py").write_text("changed")
    before = state(source)
    repo = await fetch_repo(str(source), tmp_path / "work")
    assert state(source) == before
    assert names(repo) == {"setup.py", ".gitignore", "new"}
    assert (repo.path / "setup.py").read_text() == "changed"
    assert set(repo.tracked) == {"setup.py", ".gitignore"}
    assert repo.kind == "folder"
    assert repo.revision == git(source, "rev-parse", "HEAD") + "-dirty"
    assert repo.date == datetime.fromisoformat(WHEN)
    assert repo.fetch == ""


async def test_the_history_is_kept_without_hooks_and_secrets(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "p")
    hook = source / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch /tmp/never\n")
    git(source, "remote", "add", "origin", "https://me:secret@example.org/p.git")
    git(source, "config", "http.extraHeader", "Authorization: secret")
    git(source, "config", "filter.x.clean", "secret")
    repo = await fetch_repo(str(source), tmp_path / "work")
    assert git(repo.path, "describe", "--tags", "--dirty") == "v1.0"
    assert git(repo.path, "config", "remote.origin.url") == "https://example.org/p.git"
    assert "secret" not in (repo.path / ".git" / "config").read_text()
    assert not (repo.path / ".git" / "hooks").exists()
    assert repo.revision == git(source, "rev-parse", "HEAD")
    git(repo.path, "fsck", "--strict")


async def test_no_command_that_a_repository_names_is_run(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "p", **{".gitattributes": "* filter=evil diff=evil\n"})
    evil = f"touch {tmp_path / 'ran'}; cat"
    for name in ("core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "core.pager"):
        git(source, "config", name, evil)
    os.utime(source / "setup.py", (1, 1))
    await fetch_repo(str(source), tmp_path / "work")
    assert not (tmp_path / "ran").exists()


async def test_links_stay_links_and_are_never_followed(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "p")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("secret")
    (source / "out").symlink_to(tmp_path / "outside")
    (source / "dangling").symlink_to("nowhere")
    with_git = await fetch_repo(str(source), tmp_path / "work")
    (source / ".git").rename(tmp_path / "git")
    for repo in (with_git, await fetch_repo(str(source), tmp_path / "work")):
        assert (repo.path / "out").readlink() == tmp_path / "outside"
        assert (repo.path / "dangling").is_symlink()


async def test_a_tracked_file_behind_what_is_a_link_now_is_passed_over(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "p")
    (source / "d").mkdir()
    (source / "d" / "f").write_text("f")
    git(source, "add", "-A")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("secret")
    (source / "d" / "f").unlink()
    (source / "d").rmdir()
    (source / "d").symlink_to(tmp_path / "outside")
    repo = await fetch_repo(str(source), tmp_path / "work")
    assert (repo.path / "d").is_symlink()
    assert (tmp_path / "outside" / "f").read_text() == "secret"
    assert set(repo.tracked) == {"setup.py"}


async def test_submodules_come_with_their_own_history(tmp_path: Path) -> None:
    make_repository(tmp_path / "inner")
    make_repository(tmp_path / "lib")
    git(tmp_path / "lib", "submodule", "--quiet", "add", str(tmp_path / "inner"), "deep")
    git(tmp_path / "lib", "commit", "-qm", "deep")
    source = make_repository(tmp_path / "p")
    git(source, "submodule", "--quiet", "add", str(tmp_path / "lib"), "vendor/lib")
    git(source, "submodule", "--quiet", "update", "--init", "--recursive")
    git(source, "commit", "-qm", "vendor")
    (source / "vendor/lib/new").write_text("n")
    before = state(source)
    repo = await fetch_repo(str(source), tmp_path / "work")
    assert state(source) == before
    assert "vendor/lib/deep/setup.py" in repo.tracked
    assert (repo.path / "vendor/lib/new").read_text() == "n"
    assert git(repo.path / "vendor/lib/deep", "describe", "--tags") == "v1.0"
    assert git(repo.path, "submodule", "status", "--recursive").count("vendor/lib") == 2
    assert not repo.notes


async def test_a_submodule_that_is_not_there_is_an_empty_folder(tmp_path: Path) -> None:
    make_repository(tmp_path / "lib")
    source = make_repository(tmp_path / "p")
    git(source, "submodule", "--quiet", "add", str(tmp_path / "lib"), "lib")
    git(source, "commit", "-qm", "lib")
    git(source, "submodule", "--quiet", "deinit", "-f", "lib")
    repo = await fetch_repo(str(source), tmp_path / "work")
    assert (repo.path / "lib").is_dir()
    assert list((repo.path / "lib").iterdir()) == []


async def test_a_linked_work_tree_gets_a_history_of_its_own(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "p")
    git(source, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    (tmp_path / "side" / "more").write_text("m")
    git(tmp_path / "side", "add", "more")
    git(tmp_path / "side", "commit", "-qm", "more")
    repo = await fetch_repo(str(tmp_path / "side"), tmp_path / "work")
    assert (repo.path / ".git").is_dir()
    assert git(repo.path, "rev-parse", "--abbrev-ref", "HEAD") == "side"
    assert git(repo.path, "describe", "--tags", "--abbrev=0") == "v1.0"
    assert repo.revision == git(tmp_path / "side", "rev-parse", "HEAD")


async def test_borrowed_objects_are_copied(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin")
    run("git", "clone", "-q", "--shared", origin, tmp_path / "p")
    repo = await fetch_repo(str(tmp_path / "p"), tmp_path / "work")
    (tmp_path / "origin").rename(tmp_path / "gone")
    assert git(repo.path, "log", "--format=%s") == "first"
    git(repo.path, "fsck", "--strict")


async def test_a_sub_folder_of_a_repository_is_copied_alone(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "p")
    (source / "sub").mkdir()
    (source / "sub" / "x").write_text("x")
    repo = await fetch_repo(str(source / "sub"), tmp_path / "work")
    assert names(repo) == {"x"}
    assert not (repo.path / ".git").exists()
    assert repo.revision == git(source, "rev-parse", "HEAD")
    assert any("only sub of" in note for note in repo.notes)


async def test_a_folder_that_the_repository_around_it_ignores_is_a_plain_one(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "p", **{".gitignore": "/sub\n"})
    (source / "sub").mkdir()
    (source / "sub" / "x").write_text("x")
    repo = await fetch_repo(str(source / "sub"), tmp_path / "work")
    assert names(repo) == {"x"}
    assert repo.revision is None


async def test_a_history_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    source = tmp_path / "p"
    source.mkdir()
    (source / "setup.py").write_text("s")
    (source / ".git").write_text("gitdir: /nowhere/at/all\n")
    repo = await fetch_repo(str(source), tmp_path / "work")
    assert names(repo) == {"setup.py"}
    assert any("version control cannot be read" in note for note in repo.notes)


async def test_without_git_what_tools_leave_behind_is_left_out_and_told(tmp_path: Path) -> None:
    source = tmp_path / "p"
    for path in (
        "src/a.py",
        "src/__pycache__/a.pyc",
        "node_modules/x/y",
        "myenv/pyvenv.cfg",
        "myenv/bin/python",
        ".tox/z",
    ):
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text("x")
    (source / "empty").mkdir()
    os.utime(source / "src" / "a.py", (1_600_000_000, 1_600_000_000))
    repo = await fetch_repo(str(source), tmp_path / "work")
    assert names(repo) == {"src/a.py"}
    assert (repo.path / "empty").is_dir()
    assert repo.revision is None
    assert repo.date == datetime.fromtimestamp(1_600_000_000, UTC)
    assert repo.notes == ("left out of the copy, as no source: .tox, myenv, node_modules, src/__pycache__",)


async def test_metadata_that_builds_rewrite_is_not_tracked(tmp_path: Path) -> None:
    source = tmp_path / "p"
    files = {
        "pkg/__init__.py": "",
        "pkg/_version.py": "# file generated by setuptools-scm\nversion = '1'\n",
        "pkg/version.py": "version = '1'\n",
        "pkg/fast.c": "/* Generated by Cython 3.0.11 */\n",
        "pkg/slow.c": "int x;\n",
        "PKG-INFO": "Name: p\n",
        "p.egg-info/SOURCES.txt": "",
    }
    for path, content in files.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(content)
    repo = await fetch_repo(str(source), tmp_path / "work")
    assert set(repo.tracked) == {"pkg/__init__.py", "pkg/version.py", "pkg/slow.c"}


async def test_pipes_and_sockets_are_passed_over(tmp_path: Path) -> None:
    source = tmp_path / "p"
    source.mkdir()
    (source / "x").write_text("x")
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(source / "socket"))
        repo = await fetch_repo(str(source), tmp_path / "work")
    assert names(repo) == {"x"}


async def test_names_that_are_no_utf8_are_kept(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "p")
    (source / os.fsdecode(b"odd \xff\nname")).write_text("x")
    git(source, "add", "-A")
    repo = await fetch_repo(str(source), tmp_path / "work")
    assert os.fsdecode(b"odd \xff\nname") in repo.tracked
    assert len(names(repo)) == 2


async def test_a_work_folder_inside_the_source_is_not_copied_into_itself(tmp_path: Path) -> None:
    for source in (make_repository(tmp_path / "with"), tmp_path / "without"):
        source.mkdir(exist_ok=True)
        (source / "x").write_text("x")
        first = await fetch_repo(str(source), source / "cache")
        assert "x" in names(first)
        assert not any("cache" in name for name in names(first))


async def test_equal_folders_have_equal_digests_with_and_without_git(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "p")
    with_git = await fetch_repo(str(source), tmp_path / "work")
    (source / ".git").rename(tmp_path / "git")
    without = await fetch_repo(str(source), tmp_path / "work")
    assert with_git.digest == without.digest
    assert with_git.path != without.path


async def test_executable_files_stay_so_and_times_are_kept(tmp_path: Path) -> None:
    source = tmp_path / "p"
    source.mkdir()
    (source / "run").write_text("r")
    (source / "run").chmod(0o4755)
    os.utime(source / "run", (1_600_000_000, 1_600_000_000))
    repo = await fetch_repo(str(source), tmp_path / "work")
    about = (repo.path / "run").stat()
    assert about.st_mode & 0o7777 == 0o755
    assert about.st_mtime == 1_600_000_000


async def test_what_is_too_large_is_refused_before_anything_is_copied(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "p", big="x" * 100_000)
    with pytest.raises(RepoTooLargeError, match="limit"):
        await fetch_repo(str(source), tmp_path / "work", limits=RepoLimits(max_bytes=50_000))
    with pytest.raises(RepoTooLargeError, match="free"):
        await fetch_repo(str(source), tmp_path / "work", limits=RepoLimits(free_bytes=1 << 60))
    assert list((tmp_path / "work").iterdir()) == []


async def test_folders_nested_without_end_are_refused(tmp_path: Path) -> None:
    deep = tmp_path / "p" / "/".join("d" * 450)
    deep.mkdir(parents=True)
    (deep / "x").write_text("x")
    with pytest.raises(RepoTooLargeError, match="nested deeper"):
        await fetch_repo(str(tmp_path / "p"), tmp_path / "work")


async def test_an_empty_folder_is_told_from_a_missing_one(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(EmptyRepoError):
        await fetch_repo(str(tmp_path / "empty"), tmp_path / "work")
    with pytest.raises(RepoNotFoundError):
        await fetch_repo(str(tmp_path / "none"), tmp_path / "work")


async def test_a_repository_without_commits_is_fine_if_it_has_files(tmp_path: Path) -> None:
    source = tmp_path / "p"
    source.mkdir()
    git(source, "init", "-q")
    (source / "x").write_text("x")
    repo = await fetch_repo(str(source), tmp_path / "work")
    assert repo.revision is None
    assert dict(repo.tracked) == {}


async def test_without_git_a_repository_says_so_and_a_plain_folder_does_not_need_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make_repository(tmp_path / "p")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RepoToolMissingError, match="git"):
        await fetch_repo(str(source), tmp_path / "work")
    (source / ".git").rename(tmp_path / "git")
    assert (await fetch_repo(str(source), tmp_path / "work")).revision is None


@pytest.mark.root
async def test_a_repository_of_another_owner_is_read(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "p")
    run("chown", "-R", "65534:65534", source)
    repo = await fetch_repo(str(source), tmp_path / "work")
    assert repo.revision is not None


@pytest.mark.root
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents:
        if not parent.stat().st_mode & 0o001:
            parent.chmod(0o755)
    source = tmp_path / "p"
    source.mkdir()
    (source / "key").write_text("x")
    (source / "key").chmod(0)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = _as_nobody(source, tmp_path / "work")
        finally:
            os._exit(status)  # whatever happens, it must not go on with the tests
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def _as_nobody(source: Path, work: Path) -> int:
    import anyio

    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    try:
        anyio.run(fetch_repo, str(source), work)
    except RepoAccessError as error:
        return 7 if "key" in error.message and error.hint else 1
    return 0
