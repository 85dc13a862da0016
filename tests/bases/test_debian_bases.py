"""Debian bases: really made, found again, and clear words where they cannot be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from specbuild.bases.bootstrap import KEYRING, Order, Tool, command, environment
from specbuild.bases.bootstrap_errors import explain, lacks_pockets
from specbuild.bases.debian import DebianBases
from specbuild.bases.programs import run_program
from specbuild.bases.releases import find_release
from specbuild.bases.shelf import Record, Shelf
from specbuild.bases.tools import find_tool
from specbuild.errors import BaseUnavailableError, ConfigError, SpecBuildError, StoreError, TransientError

BOOKWORM = find_release("bookworm")
assert BOOKWORM is not None
TOOL = Tool(("mmdebstrap",), "mmdebstrap", KEYRING)
NOWHERE = "http://127.0.0.1:9/debian"
"""Nobody listens on the discard port."""


def shelve(cache: Path, *, checked: float) -> Record:
    """Put a pretended base of bookworm on the shelf of `cache`."""
    shelf = Shelf(cache / "bases")
    shelf.open()
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    record = Record(
        name="debian:bookworm",
        architecture=machine,
        digest="0" * 64,
        made="2026-01-01T00:00:00+00:00",
        checked=checked,
        tool="mmdebstrap",
        python="3.11.2",
        sources=("bookworm",),
        packages=(),
    )
    draft = shelf.folder / "draft"
    draft.write_bytes(b"")
    shelf.put(f"debian-bookworm-{machine}", record, draft)
    return record


@pytest.fixture
def made(debian_cache: Path) -> Path:
    return debian_cache


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.root
async def test_a_base_is_made_once_and_found_again_under_every_name(made: Path) -> None:
    tar = next((made / "bases").glob("*.tar"))
    before = tar.stat().st_mtime_ns
    told: list[str] = []
    for name in ("debian:bookworm", "debian:12", "debian:12.5"):
        ref = await DebianBases(made, notify=told.append).resolve(name)
        assert (ref.name, ref.python, ref.release, ref.portable) == ("debian:bookworm", "3.11", "bookworm", True)
        assert ref.digest == f"sha256:{tar.stem}"
    assert tar.stat().st_mtime_ns == before
    assert not told


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.root
def test_a_base_holds_what_images_hold_and_nothing_of_the_host(made: Path) -> None:
    with tarfile.open(next((made / "bases").glob("*.tar"))) as archive:

        def text(name: str) -> str:
            file = archive.extractfile(f"./{name}")
            assert file is not None
            return file.read().decode()

        assert text("etc/hostname") == "localhost\n"
        assert text("etc/resolv.conf") == ""
        assert text("etc/machine-id") == ""
        assert "exit 101" in text("usr/sbin/policy-rc.d")
        assert "Suites: bookworm\n" in text("etc/apt/sources.list.d/debian.sources")
        names = {member.name for member in archive}
    assert "./etc/apt/apt.conf.d/00specbuild-host" not in names
    assert not any(name.startswith("./var/cache/apt/archives/") and name.endswith(".deb") for name in names)


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.root
def test_a_record_tells_packages_and_sources(made: Path) -> None:
    record = json.loads(next((made / "bases").glob("debian-bookworm-*.json")).read_text())
    assert "bookworm" in record["sources"]
    assert {"apt", "dpkg", "libc6"} <= {name for name, _ in record["packages"]}


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.root
async def test_making_it_again_gives_the_same_bytes(made: Path, tmp_path: Path) -> None:
    first = await DebianBases(made).resolve("debian:bookworm")
    again = await DebianBases(tmp_path).resolve("debian:bookworm", background=True)
    assert again == first


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.root
def test_cancelling_ends_the_tool_and_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir(mode=0o755)
    tmp_path.chmod(0o755)
    monkeypatch.setenv("TMPDIR", str(temporary))

    async def give_up() -> bool:
        with anyio.move_on_after(4.0) as scope:
            await DebianBases(tmp_path / "cache").resolve("debian:bookworm")
        return scope.cancelled_caught

    assert anyio.run(give_up)
    assert not list(temporary.iterdir())
    assert [path.suffix for path in (tmp_path / "cache/bases").iterdir()] == [".lock"]
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()


def test_a_program_ends_with_all_its_children_when_this_process_is_killed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    child = f"sh -c 'echo $$ > {mark}; sleep 600' & wait"
    code = (
        "import anyio, pathlib, specbuild.bases.programs as p\n"
        f"log = pathlib.Path({str(tmp_path / 'log')!r})\n"
        f"async def main(): await p.run_program(['sh', '-c', {child!r}], log=log, env={{'PATH': '/usr/bin:/bin'}})\n"
        "anyio.run(main)\n"
    )
    engine = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    _wait_until(lambda: mark.exists() and mark.read_text() != "")
    engine.kill()
    engine.wait()
    grandchild = int(mark.read_text())
    _wait_until(lambda: not Path(f"/proc/{grandchild}").exists())


def _wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for something that is to come; fail if it does not."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.network
def test_mmdebstrap_is_fetched_where_it_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without = tmp_path / "bin"
    without.mkdir()
    for name in ("perl", "apt-get", "dpkg-deb", "apt-config", "sh", "tar"):
        found = shutil.which(name)
        assert found is not None
        (without / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(without))
    monkeypatch.setattr("specbuild.bases.programs.SYSTEM_FOLDERS", (str(without),))
    tool = anyio.run(find_tool, tmp_path / "tools")
    assert tool.kind == "mmdebstrap"
    printed = subprocess.run([*tool.argv, "--version"], capture_output=True, text=True, check=True).stdout
    assert printed.startswith("mmdebstrap")
    assert anyio.run(find_tool, tmp_path / "tools") == tool


async def test_a_machine_with_nothing_to_make_bases_with_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("specbuild.bases.programs.SYSTEM_FOLDERS", (str(tmp_path),))
    with pytest.raises(BaseUnavailableError) as caught:
        await find_tool(tmp_path / "tools")
    assert "install" in caught.value.hint


async def test_a_mirror_that_nobody_answers_is_a_passing_trouble(tmp_path: Path) -> None:
    with pytest.raises(TransientError, match="cannot be reached"):
        await DebianBases(tmp_path, mirror=NOWHERE).resolve("debian:bookworm")
    assert [path.suffix for path in (tmp_path / "bases").iterdir()] == [".lock"]


async def test_an_aged_base_serves_while_the_mirror_is_away(tmp_path: Path) -> None:
    record = shelve(tmp_path, checked=0.0)
    told: list[str] = []
    ref = await DebianBases(tmp_path, mirror=NOWHERE, notify=told.append).resolve("debian:bookworm")
    assert ref.digest == f"sha256:{record.digest}"
    assert any("2026-01-01 is used" in line for line in told)


async def test_a_base_that_is_here_needs_no_network(tmp_path: Path) -> None:
    record = shelve(tmp_path, checked=time.time())
    bases = DebianBases(tmp_path, mirror=NOWHERE)
    assert (await bases.resolve("debian:bookworm")).digest == f"sha256:{record.digest}"
    assert bases.cached("debian:trixie") is None


async def test_an_unknown_release_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no Debian release 'potato'") as caught:
        await DebianBases(tmp_path).resolve("debian:potato")
    assert "bookworm" in caught.value.hint


@pytest.mark.parametrize(
    ("tail", "kind", "hint"),
    [
        ("Temporary failure resolving 'mirror.test'", TransientError, "try again"),
        ("E: Failed to fetch http://m.test/x  503  Service Unavailable", TransientError, "try again"),
        ("cp: error writing: No space left on device", StoreError, "space"),
        ("W: GPG error: ... NO_PUBKEY 0E98404D386FA1D9", BaseUnavailableError, "debian-archive-keyring"),
        (
            "E: The repository 'http://m.test bookworm Release' does not have a Release file.",
            BaseUnavailableError,
            "MIRROR",
        ),
        ("E: unable to pick chroot mode automatically", BaseUnavailableError, "uidmap"),
        ("something else", BaseUnavailableError, "--base host"),
    ],
)
def test_a_failure_is_explained(tail: str, kind: type[SpecBuildError], hint: str) -> None:
    assert BOOKWORM is not None
    error = explain(BOOKWORM, TOOL, 1, tail)
    assert type(error) is kind
    assert hint in error.hint
    assert tail in error.message


def test_an_explanation_shows_no_credentials() -> None:
    assert BOOKWORM is not None
    error = explain(BOOKWORM, TOOL, 1, "E: Failed to fetch http://ann:s3cret@mirror.test/debian")
    assert "s3cret" not in error.message
    assert "mirror.test" in error.message


async def test_what_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    left = tmp_path / "bases/.bookworm.abc"
    left.mkdir(parents=True)
    with pytest.raises(TransientError):
        await DebianBases(tmp_path, mirror=NOWHERE).resolve("debian:bookworm")
    assert not left.exists()


def test_only_missing_updates_are_done_without() -> None:
    gone = "E: The repository 'http://m.test/debian-security bullseye-security Release' does not have a Release file."
    assert lacks_pockets(gone)
    assert lacks_pockets(
        "Err:1 http://m.test/s bullseye-security InRelease\n  404  Not Found [IP: 192.0.2.1 80]\n"
        "E: Failed to fetch http://m.test/s/dists/bullseye-security/InRelease  404  Not Found\n"
        "E: The repository 'http://m.test/s bullseye-security InRelease' is not signed."
    )
    assert not lacks_pockets("W: GPG error: http://m.test bullseye-security InRelease: NO_PUBKEY 1")
    assert not lacks_pockets(
        gone + "\nE: The repository 'http://m.test/debian bullseye Release' does not have a Release file."
    )
    assert not lacks_pockets("Temporary failure resolving")


def test_the_hosts_environment_does_not_reach_the_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    assert BOOKWORM is not None
    monkeypatch.setenv("A_TOKEN", "secret")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.test:1")
    env = environment(BOOKWORM)
    assert "secret" not in env.values()
    assert env["http_proxy"] == "http://proxy.test:1"
    assert env["SOURCE_DATE_EPOCH"] == str(BOOKWORM.epoch)


@pytest.mark.root
async def test_debootstrap_is_called_by_a_script_that_the_shell_accepts(tmp_path: Path) -> None:
    assert BOOKWORM is not None
    order = Order(BOOKWORM, (), tmp_path / "apt.conf", tmp_path / "root.tar")
    argv = command(Tool(("/usr/sbin/debootstrap",), "debootstrap", KEYRING), order)
    assert await run_program(["sh", "-n", "-c", argv[-1]], log=tmp_path / "log", env={"PATH": "/usr/bin:/bin"}) == 0
