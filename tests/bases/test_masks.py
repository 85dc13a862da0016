"""What sandboxes on the running system do not see of it."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from specbuild.bases.host import HostBases
from specbuild.bases.masks import Machine, masks, outermost
from specbuild.errors import BaseUnavailableError
from specbuild.sandbox.overlay import OverlayBackend

NOBODY = 65534


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine in a folder: system folders, two homes, a foreign top-level folder, a secret in /etc."""
    for folder in (
        "usr/bin",
        "etc/ssl/private",
        "etc/apt",
        "root",
        "home/ann",
        "data/team",
        "opt/tool",
        "var/lib/docker",
    ):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "var/run").symlink_to("../run")
    (tmp_path / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nbob:x:1001:1001::/data/bob:/bin/sh\n")
    (tmp_path / "etc/shadow").write_text("root:*:1::::::\n")
    (tmp_path / "etc/token").write_text("secret")
    (tmp_path / "etc/token").chmod(0o640)
    (tmp_path / "etc/open.conf").write_text("")
    (tmp_path / "etc/open.conf").chmod(0o644)
    return Machine(tmp_path)


def test_homes_secrets_and_foreign_folders_are_masked(machine: Machine) -> None:
    found = masks(machine)
    for path in ("/root", "/home", "/data", "/etc/shadow", "/etc/token", "/etc/ssl/private", "/var/lib/docker"):
        assert path in found


def test_the_system_stays_visible(machine: Machine) -> None:
    assert not {"/usr", "/bin", "/etc", "/etc/open.conf", "/opt", "/var", "/var/run"} & set(masks(machine))


def test_no_mask_lies_below_another_or_behind_a_link(machine: Machine) -> None:
    found = masks(machine)
    assert list(found) == sorted(found)
    assert not any(one != other and other.startswith(f"{one}/") for one in found for other in found)


def test_data_roots_of_engines_are_masked_wherever_they_are(machine: Machine) -> None:
    (machine.root / "etc/docker").mkdir()
    (machine.root / "opt/docker-data").mkdir()
    (machine.root / "etc/docker/daemon.json").write_text('{"data-root": "/opt/docker-data"}')
    assert "/opt/docker-data" in masks(machine)


def test_mount_points_outside_of_the_system_are_masked(machine: Machine) -> None:
    (machine.root / "proc/self").mkdir(parents=True)
    (machine.root / "usr/share vol").mkdir(parents=True)
    (machine.root / "proc/self/mountinfo").write_text(
        "22 1 8:1 / / rw - ext4 /dev/sda rw\n23 22 0:5 / /proc rw - proc proc rw\n"
        "24 22 8:2 / /usr/share\\040vol rw - ext4 /dev/sdb rw\n"
    )
    assert "/usr/share vol" in masks(machine)


@pytest.mark.root
def test_what_lies_behind_a_closed_door_is_masked_with_the_door() -> None:
    with TemporaryDirectory() as root:
        Path(root).chmod(0o755)
        machine = Machine(Path(root))
        points = ("/opt/closed/inner/volume", "/var/lib/engine/overlay/merged")
        for folder in (*points, "/proc/self"):
            machine.at(folder).mkdir(parents=True)
        machine.at("/opt/closed/inner").chmod(0o700)
        machine.at("/var/lib/engine").chmod(0o700)
        lines = [f"30 1 8:1 / {point} rw - ext4 /dev/sda rw\n" for point in points]
        machine.at("/proc/self/mountinfo").write_text("".join(lines))
        os.seteuid(NOBODY)
        try:
            found = masks(machine)
        finally:
            os.seteuid(0)
    assert {"/opt/closed/inner", "/var/lib/engine"} <= set(found)


@pytest.mark.parametrize(
    ("path", "masked"),
    [("/work/a/b", "/work"), ("/opt/mine/src", "/opt/mine"), ("/usr/src/mine", "/usr/src/mine"), ("/", "/")],
)
def test_a_private_folder_is_masked_as_high_as_nothing_of_the_system_is_lost(path: str, masked: str) -> None:
    assert outermost(Path(path)) == masked


def test_the_store_and_the_present_folder_are_masked_on_this_machine(tmp_path: Path) -> None:
    found = masks(Machine(Path("/")), [tmp_path])
    for private in (tmp_path, Path.cwd(), Path.home()):
        assert any(private.resolve().is_relative_to(mask) for mask in found)


async def test_the_host_is_named_by_its_state() -> None:
    first, again = [await HostBases().resolve("host") for _ in range(2)]
    assert first == again
    assert first.digest.startswith("sha256:")
    assert not first.portable


async def test_a_plan_knows_the_interpreter_of_the_host() -> None:
    ready = HostBases().cached("host")
    assert ready == await HostBases().resolve("host")
    assert ready.python is not None
    assert ready.python.startswith("3.")


async def test_another_mask_is_another_base(tmp_path: Path) -> None:
    private = tmp_path / "usr/src/store"
    private.mkdir(parents=True)
    root = Path("/usr/lib")
    assert (await HostBases().resolve("host")).digest != (await HostBases(private=[root]).resolve("host")).digest


async def test_a_system_that_has_changed_is_not_given_for_the_one_before(tmp_path: Path) -> None:
    now = await HostBases().resolve("host")
    before = now.model_copy(update={"digest": "sha256:0"})
    async with OverlayBackend(tmp_path / "store") as backend:
        with pytest.raises(BaseUnavailableError, match="not what it was"):
            await HostBases().provide(before, backend)


async def test_a_hidden_interpreter_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin/python3"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    told: list[str] = []
    await HostBases(notify=told.append).resolve("host")
    assert any(str(program) in line and "masked" in line for line in told)
