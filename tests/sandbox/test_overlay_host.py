"""The host as a base: what hides its private parts, and when it cannot be one."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbuild.bases.masks import Machine
from specbuild.errors import BaseUnavailableError
from specbuild.sandbox.contract import Command, HostRoot
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.sandbox.overlay.host import Kind, Mask, check_mounts, masks
from specbuild.testing.trial import out, shell


def kinds(found: list[Mask]) -> dict[str, Kind]:
    return {mask.path: mask.kind for mask in found}


def elsewhere(folder: Path) -> list[str]:
    """Filesystems that this machine has besides that of the system, such as those of a container engine."""
    return [point for point in Machine(Path("/")).mount_points() if not folder.is_relative_to(point)]


def test_what_is_there_is_hidden_by_its_like_and_what_is_not_by_a_whiteout(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(0o1777)
    (tmp_path / "folder").chmod(0o1777)
    (tmp_path / "file").touch(0o600)
    wanted = [str(tmp_path / name) for name in ("folder", "file", "missing", "far/away")]
    found = kinds(masks(wanted))
    assert [found[path] for path in wanted[:3]] == [Kind.FOLDER, Kind.FILE, Kind.NOTHING]
    assert found[str(tmp_path / "far")] is Kind.NOTHING
    assert found[str(tmp_path)] is Kind.PARENT
    modes = {mask.path: mask.mode for mask in masks(wanted)}
    assert modes[str(tmp_path / "folder")] == 0o1777


def test_masks_in_masks_are_one_and_links_hide_what_they_lead_to(tmp_path: Path) -> None:
    (tmp_path / "real" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    found = kinds(masks([str(tmp_path / "link"), str(tmp_path / "real" / "below")]))
    assert found[str(tmp_path / "real")] is Kind.FOLDER
    assert str(tmp_path / "real" / "below") not in found
    assert str(tmp_path / "link") not in found


def test_a_system_on_several_filesystems_cannot_be_a_base() -> None:
    line = "30 1 0:26 / {} rw - ext4 /dev/x rw"
    check_mounts(["/var/lib/docker"], "\n".join(line.format(p) for p in ("/", "/proc", "/home", "/var/lib/docker/x")))
    for point in ("/usr", "/var/lib", "/opt"):
        with pytest.raises(BaseUnavailableError, match=point):
            check_mounts([], line.format(point))


@pytest.mark.root
@pytest.mark.sandbox
async def test_the_host_shows_its_programs_and_neither_its_secrets_nor_later_files(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    hidden = tmp_path / "hidden"
    hidden.mkdir(0o1777)
    hidden.chmod(0o1777)
    (hidden / "file").touch()
    later = tmp_path / "later"
    async with OverlayBackend(tmp_path / "store") as backend:
        base = await backend.import_base("host", HostRoot((*elsewhere(tmp_path), *map(str, (secret, hidden, later)))))
        later.write_text("later")
        async with backend.fork(base) as box:
            assert (
                await out(box, 'cat "$1"; ls -A "$2"; ls "$3" 2>/dev/null || true', *map(str, (secret, hidden, later)))
                == ""
            )
            assert await out(box, 'stat -c %a "$1"', str(hidden)) == "1777"
            assert await out(box, 'ls -A "$1"', str(tmp_path / "store")) == ""
            await out(box, 'echo kept > "$1/mine"; echo changed > /etc/specbuild-test', str(hidden))
            frozen = await box.freeze("child")
        async with backend.fork(frozen) as box:
            assert await out(box, 'cat "$1/mine" /etc/specbuild-test', str(hidden)) == "kept\nchanged"
    assert not Path("/etc/specbuild-test").exists()  # noqa: ASYNC240
    assert [path.name for path in hidden.iterdir()] == ["file"]


@pytest.mark.root
@pytest.mark.sandbox
async def test_root_on_the_host_base_has_no_more_rights_than_a_container(tmp_path: Path) -> None:
    async with OverlayBackend(tmp_path / "store") as backend:
        base = await backend.import_base("host", HostRoot((*elsewhere(tmp_path), "/root", "/home")))
        async with backend.fork(base) as box:
            assert "a80425fb" in await out(box, "grep CapEff /proc/self/status")
            for forbidden in ("mount -t tmpfs t /mnt", "echo 1 > /proc/sys/kernel/core_uses_pid", "unshare -Ur true"):
                assert (await box.run(shell(forbidden))).exit_code != 0
            done = await box.run(
                Command(["/bin/sh", "-c", "mknod /d c 1 5 && head -c1 /d"], env={"PATH": "/usr/bin:/bin"})
            )
            assert not done.ok
