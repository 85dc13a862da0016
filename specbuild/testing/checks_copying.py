"""Conformance: reading, writing and copying files from outside, which must not lead outside."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from specbuild.errors import SandboxError
from specbuild.sandbox.contract import Sandbox
from specbuild.testing.trial import Check, Trial, new_key, out

SECRET = b"of the host\n"


def _secret(trial: Trial) -> Path:
    file = trial.folder / "secret"
    file.write_bytes(SECRET)
    return file


async def a_file_reads_as_it_was_written(trial: Trial) -> None:
    data = bytes(range(256)) * 1000
    async with trial.fork() as box:
        await box.write_file("/new/folder/file", data)
        assert await box.read_file("/new/folder/file") == data
        await out(box, "printf 'by the command' > /new/folder/file")
        assert await box.read_file("/new/folder/file") == b"by the command"
        await box.write_file("/new/folder/file", b"")
        assert (
            await out(box, "wc -c < /new/folder/file; stat -c %a:%u:%g /new/folder/file /new") == "0\n644:0:0\n755:0:0"
        )


async def a_file_is_written_with_its_mode(trial: Trial) -> None:
    async with trial.fork() as box:
        await box.write_file("/bin/hello", b"#!/bin/sh\necho hello\n", mode=0o755)
        await box.write_file("/etc/private", b"x", mode=0o600)
        assert await out(box, "hello; stat -c %a /etc/private") == "hello\n600"


async def files_written_from_outside_are_frozen(trial: Trial) -> None:
    async with trial.session() as (backend, base), backend.fork(base) as box:
        await box.write_file("/etc/hostname", b"renamed\n")
        await box.write_file("/a/b", b"x")
        kept = await box.freeze(new_key())
        async with backend.fork(kept) as fork:
            assert await out(fork, "cat /etc/hostname /a/b") == "renamed\nx"
        async with backend.fork(base) as fork:
            assert await fork.read_file("/etc/hostname") == b"tiny\n"


async def reading_what_is_not_a_file_fails(trial: Trial) -> None:
    async with trial.fork() as box:
        await out(box, "mkfifo /pipe; ln -s /round /round; ln -s /nowhere /dangling")
        for path in ("/missing", "/dangling"):
            with pytest.raises(FileNotFoundError):
                await box.read_file(path)
        with pytest.raises(IsADirectoryError):
            await box.read_file("/etc")
        for path in ("/pipe", "/round", "/etc/hostname/below"):
            with anyio.fail_after(30), pytest.raises((OSError, SandboxError)):
                await box.read_file(path)


async def reading_more_than_the_limit_fails(trial: Trial) -> None:
    async with trial.fork() as box:
        await box.write_file("/file", b"x" * 1000)
        assert len(await box.read_file("/file", limit=1000)) == 1000
        with pytest.raises(SandboxError, match="999"):
            await box.read_file("/file", limit=999)


async def reading_follows_links_inside_only(trial: Trial) -> None:
    secret = _secret(trial)
    up = "../" * 40
    async with trial.fork() as box:
        await out(
            box,
            f'ln -s "$1" /link; ln -s "{up}$1" /up; ln -s / /root/slash; ln -s "$(dirname "$1")" /folder',
            str(secret),
        )
        await out(box, "ln -s /etc/hostname /inside; ln -s ../../../etc /etc-again")
        for path in ("/link", "/up", f"/{up}{secret}", f"/root/slash{secret}", f"/folder/{secret.name}"):
            with pytest.raises((FileNotFoundError, NotADirectoryError)):
                await box.read_file(path)
        for path in ("/inside", "/etc-again/hostname", f"/{up}etc/hostname", "/root/slash/etc/hostname"):
            assert await box.read_file(path) == b"tiny\n"


async def reading_through_proc_does_not_lead_outside(trial: Trial) -> None:
    secret = _secret(trial)
    async with trial.fork() as box:
        await out(
            box,
            'ln -s "/proc/self/root$1" /self; ln -s "/proc/1/root$1" /one; ln -s /proc/self/environ /env',
            str(secret),
        )
        for path in ("/self", "/one", "/env", f"/proc/self/root{secret}", "/proc/1/environ"):
            with pytest.raises((OSError, SandboxError)):
                await box.read_file(path)


async def writing_does_not_lead_outside(trial: Trial) -> None:
    secret = _secret(trial)
    async with trial.fork() as box:
        await out(box, 'mkdir -p "$1"; ln -s "$1" /folder; ln -s "$1/secret" /file', str(trial.folder))
        await box.write_file("/folder/secret", b"written inside")
        await box.write_file("/folder/new/file", b"made inside")
        assert await out(box, f"cat {secret} {trial.folder}/new/file") == "written insidemade inside"
        try:
            await box.write_file("/file", b"through the link")
        except (OSError, SandboxError):
            assert await box.read_file("/folder/secret") == b"written inside"
        else:
            assert await box.read_file("/file") == b"through the link"
    assert secret.read_bytes() == SECRET
    assert [path.name for path in trial.folder.iterdir()] == ["secret"]


def _tree(folder: Path) -> Path:
    tree = folder / "tree"
    (tree / "sub/empty").mkdir(parents=True)
    (tree / "file").write_text("content")
    (tree / "sub/run").write_text("#!/bin/sh\necho ran\n")
    (tree / "sub/run").chmod(0o755)
    (tree / "private").write_text("mine")
    (tree / "private").chmod(0o600)
    (tree / "inner").symlink_to("sub/run")
    (tree / "outer").symlink_to(folder / "secret")
    (tree / "spare name\n").write_text("odd")
    (tree / os.fsdecode(b"\xff\xfe")).write_text("bytes")
    os.utime(tree / "file", (981173106, 981173106))
    return tree


async def copying_in_keeps_content_modes_and_links(trial: Trial) -> None:
    tree = _tree(trial.folder)
    _secret(trial)
    async with trial.session() as (backend, base), backend.fork(base) as box:
        await box.copy_in(tree, "/repo")
        look = (
            "cd /repo; cat file 'spare name\n' \"$(printf '\\377\\376')\"; echo; sub/run; readlink inner outer;"
            "stat -c %a:%u:%g private sub/run; [ -d sub/empty ] && echo empty"
        )
        expected = f"contentoddbytes\nran\nsub/run\n{trial.folder / 'secret'}\n600:0:0\n755:0:0\nempty"
        assert await out(box, look) == expected
        kept = await box.freeze(new_key())
        async with backend.fork(kept) as fork:
            assert await out(fork, look) == expected
    assert (tree / "private").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in trial.folder.iterdir()) == ["secret", "tree"]


async def copying_in_adds_to_a_folder_that_is_there(trial: Trial) -> None:
    tree = _tree(trial.folder)
    async with trial.fork() as box:
        await out(box, "mkdir -p /repo/sub; echo old > /repo/sub/old; echo old > /repo/file")
        await box.copy_in(tree, "/repo")
        assert await out(box, "cat /repo/sub/old /repo/file; ls /repo/sub") == "old\ncontentempty\nold\nrun"
        await box.copy_in(tree, "/made/for/it")
        assert await out(box, "cat /made/for/it/file") == "content"


async def copying_in_does_not_lead_outside(trial: Trial) -> None:
    tree = trial.folder / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub/file").write_text("copied")
    outside = trial.folder / "outside"
    outside.mkdir()
    async with trial.fork() as box:
        await out(box, 'ln -s "$1" /target; mkdir /other; ln -s "$1" /other/sub', str(outside))
        for target in ("/target", "/other"):
            await _copy_or_refuse(box, tree, target)
    assert list(outside.iterdir()) == []


async def _copy_or_refuse(box: Sandbox, tree: Path, target: str) -> None:
    try:
        await box.copy_in(tree, target)
    except (OSError, SandboxError):
        return
    assert await box.read_file(f"{target}/sub/file") == b"copied"


async def copying_in_a_folder_that_is_not_there_fails(trial: Trial) -> None:
    async with trial.fork() as box:
        with pytest.raises((OSError, SandboxError)):
            await box.copy_in(trial.folder / "missing", "/repo")


CHECKS: tuple[Check, ...] = (
    a_file_reads_as_it_was_written,
    a_file_is_written_with_its_mode,
    files_written_from_outside_are_frozen,
    reading_what_is_not_a_file_fails,
    reading_more_than_the_limit_fails,
    reading_follows_links_inside_only,
    reading_through_proc_does_not_lead_outside,
    writing_does_not_lead_outside,
    copying_in_keeps_content_modes_and_links,
    copying_in_adds_to_a_folder_that_is_there,
    copying_in_does_not_lead_outside,
    copying_in_a_folder_that_is_not_there_fails,
)
