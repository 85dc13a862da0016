"""Conformance: the network of a Command, and the host paths that it is shown."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from specbuild.errors import SandboxError
from specbuild.sandbox.contract import Bind, Sandbox
from specbuild.testing.trial import Check, Trial, new_key, out, seen, shell

CONNECT_TCP = """perl -MIO::Socket::INET -e '
    print IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $ARGV[0], Timeout => 3) ? 1 : 0' "$1"
"""
CONNECT_ABSTRACT = r"""perl -MSocket -e '
    socket(S, AF_UNIX, SOCK_STREAM, 0);
    print connect(S, pack("S", AF_UNIX) . "\0$ARGV[0]") ? 1 : 0' "$1"
"""


@contextmanager
def tcp_listener() -> Generator[int]:
    """The port of a server on the host's loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@contextmanager
def abstract_listener() -> Generator[str]:
    """The name of a server on an abstract unix socket of the host."""
    name = f"specbuild-test-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(f"\0{name}")
        server.listen()
        yield name


async def without_network_the_hosts_loopback_is_not_there(trial: Trial) -> None:
    with tcp_listener() as port:
        async with trial.fork() as box:
            assert (await box.run(shell(CONNECT_TCP, str(port)))).tail.strip() == "0"


async def without_network_abstract_sockets_are_not_there(trial: Trial) -> None:
    with abstract_listener() as name:
        async with trial.fork() as box:
            assert (await box.run(shell(CONNECT_ABSTRACT, name))).tail.strip() == "0"


async def without_network_there_is_a_loopback_of_its_own(trial: Trial) -> None:
    script = (
        "perl -MIO::Socket::INET -e '"
        'my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", Listen => 1) or die; my $p = $s->sockport;'
        'if (!fork) { IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $p)->print("own"); exit }'
        "print $s->accept->getline'"
    )
    async with trial.fork() as box:
        assert await out(box, script) == "own"


async def without_network_no_interface_but_loopback_is_there(trial: Trial) -> None:
    async with trial.fork() as box:
        names = await out(box, "tail -n +3 /proc/net/dev | tr -d ' '")
        assert [line.partition(":")[0] for line in names.splitlines()] == ["lo"]


def _name_servers(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("nameserver")]


async def with_network_names_can_be_looked_up(trial: Trial) -> None:
    host = _name_servers(_read("/etc/resolv.conf"))
    async with trial.fork() as box:
        done = await box.run(shell("cat /etc/resolv.conf", network=True))
        assert bool(_name_servers(done.tail)) == bool(host)


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except FileNotFoundError:
        return ""


async def what_the_network_needs_is_not_frozen(trial: Trial) -> None:
    async with trial.session() as (backend, base), backend.fork(base) as box:
        await box.run(shell("cat /etc/resolv.conf; cat /etc/hosts; true", network=True))
        kept = await box.freeze(new_key())
        assert kept.size_bytes < 1 << 20
        async with backend.fork(kept) as fork:
            with suppress(FileNotFoundError):
                assert await fork.read_file("/etc/resolv.conf") == b""


async def the_network_can_be_on_and_off_in_turn(trial: Trial) -> None:
    with tcp_listener() as port:
        async with trial.fork() as box:
            assert (await box.run(shell("echo on > /on", network=True))).ok
            assert (await box.run(shell(CONNECT_TCP, str(port)))).tail.strip() == "0"
            assert (await box.run(shell("cat /on", network=True))).tail.strip() == "on"


def _shown(trial: Trial) -> Path:
    folder = trial.folder / "shown"
    folder.mkdir()
    folder.chmod(0o755)
    (folder / "file").write_text("of the host")
    return folder


async def a_bind_shows_a_folder_that_cannot_be_written(trial: Trial) -> None:
    folder = _shown(trial)
    binds = (Bind(folder, "/dev/specbuild/shown"),)
    async with trial.fork() as box:
        change = "echo x > new; echo x >> file; rm -f file; chmod 777 file; true"
        script = f"cat /dev/specbuild/shown/file; cd /dev/specbuild/shown; {change}"
        done = await box.run(shell(script, binds=binds))
        assert done.tail.startswith("of the host")
    assert [path.name for path in folder.iterdir()] == ["file"]
    assert (folder / "file").read_text() == "of the host"


async def a_bind_can_show_a_file(trial: Trial) -> None:
    folder = _shown(trial)
    binds = (Bind(folder / "file", "/dev/specbuild/certificates.pem"), Bind(folder, "/dev/specbuild/deep/er"))
    async with trial.fork() as box:
        done = await box.run(shell("cat /dev/specbuild/certificates.pem; ls /dev/specbuild/deep/er", binds=binds))
        assert done.tail.split() == ["of", "the", "hostfile"]


async def what_is_written_to_a_writable_bind_is_on_the_host(trial: Trial) -> None:
    folder = _shown(trial)
    binds = (Bind(folder, "/dev/specbuild/cache", writable=True),)
    async with trial.session() as (backend, base):
        async with backend.fork(base) as box:
            done = await box.run(
                shell("cd /dev/specbuild/cache; mkdir sub; echo made > sub/new; mv file moved", binds=binds)
            )
            assert done.ok, done
        assert (folder / "sub/new").read_text() == "made\n"
        assert (folder / "moved").read_text() == "of the host"
        async with backend.fork(base) as box:
            done = await box.run(
                shell("cd /dev/specbuild/cache; cat sub/new; echo again >> sub/new; rm moved", binds=binds)
            )
            assert (done.ok, done.tail.strip()) == (True, "made")
    (folder / "sub/new").unlink()
    (folder / "sub").rmdir()
    assert list(folder.iterdir()) == []


async def binds_leave_nothing_in_the_files(trial: Trial) -> None:
    folder = _shown(trial)
    binds = (Bind(folder, "/dev/specbuild/cache", writable=True), Bind(folder / "file", "/dev/specbuild/one"))
    async with trial.session() as (backend, base), backend.fork(base) as box:
        assert (await box.run(shell("echo x > /dev/specbuild/cache/x; echo y > /y", binds=binds))).ok
        assert await out(box, "ls -A /dev/specbuild 2>/dev/null || true") == ""
        kept = await box.freeze(new_key())
        assert await seen(backend, kept, "ls -A /dev/specbuild 2>/dev/null || true; cat /y") == "y"


async def binds_are_shown_without_network_too(trial: Trial) -> None:
    folder = _shown(trial)
    async with trial.fork() as box:
        for network in (True, False):
            done = await box.run(
                shell("cat /dev/specbuild/x/file", binds=(Bind(folder, "/dev/specbuild/x"),), network=network)
            )
            assert done.tail == "of the host"


async def a_bind_of_nothing_is_our_failure(trial: Trial) -> None:
    async with trial.fork() as box:
        with pytest.raises(SandboxError, match="missing"):
            await box.run(shell("true", binds=(Bind(trial.folder / "missing", "/dev/specbuild/x"),)))
        assert await out(box, "echo still usable") == "still usable"


async def a_bind_beside_its_place_is_refused(trial: Trial) -> None:
    folder = _shown(trial)
    async with trial.fork() as box:
        for target in ("/etc", "/dev/specbuild/../../etc", "/dev/specbuild/", "relative"):
            with pytest.raises((SandboxError, ValueError)):
                await box.run(shell("true", binds=(Bind(folder, target),)))


async def devices_and_setuid_programs_in_a_bind_do_nothing(trial: Trial) -> None:
    folder = _shown(trial)
    (folder / "program").write_text("#!/bin/sh\necho ran\n")
    (folder / "program").chmod(0o4755)
    async with trial.fork() as box:
        done = await box.run(
            shell("grep ' /dev/specbuild/x ' /proc/self/mounts", binds=(Bind(folder, "/dev/specbuild/x"),))
        )
        options = done.tail.split()[3].split(",")
        assert {"ro", "nosuid", "nodev"} <= set(options)


async def sandboxes_do_not_see_each_others_processes(trial: Trial) -> None:
    async with trial.session() as (backend, base), backend.fork(base) as one, backend.fork(base) as two:
        for box in (one, two):
            assert await _visible(box) <= 4


async def _visible(box: Sandbox) -> int:
    return int(await out(box, "ls -d /proc/[0-9]* | wc -l"))


CHECKS: tuple[Check, ...] = (
    without_network_the_hosts_loopback_is_not_there,
    without_network_abstract_sockets_are_not_there,
    without_network_there_is_a_loopback_of_its_own,
    without_network_no_interface_but_loopback_is_there,
    with_network_names_can_be_looked_up,
    what_the_network_needs_is_not_frozen,
    the_network_can_be_on_and_off_in_turn,
    a_bind_shows_a_folder_that_cannot_be_written,
    a_bind_can_show_a_file,
    what_is_written_to_a_writable_bind_is_on_the_host,
    binds_leave_nothing_in_the_files,
    binds_are_shown_without_network_too,
    a_bind_of_nothing_is_our_failure,
    a_bind_beside_its_place_is_refused,
    devices_and_setuid_programs_in_a_bind_do_nothing,
    sandboxes_do_not_see_each_others_processes,
)
