"""What the sandbox tests share: root filesystems, an ordinary user, loops of both kinds."""

from __future__ import annotations

import asyncio
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import uvloop

from specbuild.bases.masks import Machine, masks
from specbuild.sandbox.contract import HostRoot, RootfsTar
from specbuild.testing.leftovers import leftovers
from specbuild.testing.remote import Remote
from specbuild.testing.rootfs import debian_rootfs, tiny_rootfs

for _part in ("files", "copying", "commands", "ends", "isolation", "store"):
    pytest.register_assert_rewrite(f"specbuild.testing.checks_{_part}")

USER = "sbtest"
"""An ordinary user with a range of subordinate ids, made for the time of the tests unless it is there."""


_BOTH = ("conformance_overlay", "test_relay")
_UVLOOP = ("_podman", "test_apt_downloads")


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The conformance suite and what talks to sockets run on both loops, what is slow on one of them each."""
    both = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
    if any(name in item.nodeid for name in _BOTH):
        return both
    chosen = "uvloop" if any(name in item.nodeid for name in _UVLOOP) else "asyncio"
    return {chosen: both[chosen]}


@pytest.fixture(scope="session")
def public() -> Iterator[Path]:
    """A folder that every user may read."""
    folder = Path(tempfile.mkdtemp(prefix="specbuild-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def tiny(public: Path) -> Path:
    """The tar of a root filesystem that a test unpacks in no time."""
    return tiny_rootfs(public / "tiny.tar")


@pytest.fixture(scope="session")
def debian(public: Path) -> Path:
    """The tar of Debian's minbase, where every user may read it."""
    return Path(shutil.copy(debian_rootfs(), public / "debian.tar"))


@pytest.fixture(scope="session")
def ordinary_user() -> Iterator[str]:
    """The name of an ordinary user who may map a range of ids."""
    try:
        pwd.getpwnam(USER)
        made = False
    except KeyError:
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", USER], check=True)
        made = True
    for table, option in (("/etc/subuid", "--add-subuids"), ("/etc/subgid", "--add-subgids")):
        if f"{USER}:" not in Path(table).read_text():
            subprocess.run(["usermod", option, "500000-565535", USER], check=True)
    yield USER
    if made:
        subprocess.run(["userdel", "--remove", USER], check=True, capture_output=True)


@pytest.fixture(scope="module")
def users_folder(ordinary_user: str) -> Iterator[Path]:
    """A folder of the ordinary user's, for stores."""
    home = Path(pwd.getpwnam(ordinary_user).pw_dir)
    folder = _own_folder(home / f"tests-{secrets.token_hex(4)}", ordinary_user)
    yield folder
    shutil.rmtree(folder)


def _own_folder(folder: Path, user: str) -> Path:
    account = pwd.getpwnam(user)
    folder.mkdir()
    os.chown(folder, account.pw_uid, account.pw_gid)
    return folder


def host_masks(*private: Path) -> tuple[str, ...]:
    """What the `host` base masks here."""
    return masks(Machine(Path("/")), private)


@pytest.fixture(scope="module", params=["debian-as-root", "debian-as-user", "host-as-root"])
def engine(request: pytest.FixtureRequest) -> Iterator[Remote]:
    """An engine that runs each attempt in a fresh sandbox, on each kind of base and by each kind of user."""
    yield from _engine(request, request.param)


@pytest.fixture(scope="module", params=["debian-as-root", "debian-as-user"])
def portable(request: pytest.FixtureRequest) -> Iterator[Remote]:
    """As `engine`, for what is promised of portable bases only."""
    yield from _engine(request, request.param)


def _engine(request: pytest.FixtureRequest, kind: str) -> Iterator[Remote]:
    user = None
    if kind == "debian-as-user":
        user = str(request.getfixturevalue("ordinary_user"))
        store = _own_folder(request.getfixturevalue("users_folder") / secrets.token_hex(4), user)
    else:
        store = request.getfixturevalue("tmp_path_factory").mktemp("store")
    base = HostRoot(host_masks(store)) if kind == "host-as-root" else RootfsTar(request.getfixturevalue("debian"))
    with Remote.start(store, base, user=user, env={"SPECBUILD_TEST": SECRET}) as remote:
        yield remote
    assert leftovers(store) == []


SECRET = "the-secret-of-the-host"


@pytest.fixture
def secrets_of_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    """Files that hold SECRET, where people and programs of the host keep things, readable by everybody."""
    folders = ["/root", "/home", "/tmp", "/var/tmp", "/run", "/srv", "/mnt", str(tmp_path_factory.getbasetemp())]
    files = [Path(folder) / f"specbuild-test-{secrets.token_hex(6)}" for folder in folders if Path(folder).is_dir()]
    for file in files:
        file.write_text(SECRET)
        file.chmod(0o644)
    yield files
    for file in files:
        file.unlink()


@pytest.fixture
def shared(public: Path) -> Iterator[Path]:
    """An empty folder on the host that every engine may read."""
    folder = public / secrets.token_hex(6)
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)
