"""Attempts to reach what listens on the host, and to change its network."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from specbuild.testing.checks_isolation import CONNECT_ABSTRACT, CONNECT_TCP, abstract_listener, tcp_listener
from specbuild.testing.escapes import REFUSALS, REPORT, perl, system_call
from specbuild.testing.remote import Remote

pytestmark = [pytest.mark.root, pytest.mark.sandbox, pytest.mark.slow]

CONNECT_FILE = (
    perl("socket(S, AF_UNIX, SOCK_STREAM, 0); print connect(S, pack_sockaddr_un($ARGV[0])) ? 1 : 0") + ' "$1"'
)


def test_reaching_a_local_server_without_network(engine: Remote) -> None:
    with tcp_listener() as port:
        assert engine.run(CONNECT_TCP, str(port)).tail.strip() in {"0", ""}


def test_reaching_an_abstract_socket_without_network(engine: Remote) -> None:
    with abstract_listener() as name:
        assert engine.run(CONNECT_ABSTRACT, name).tail.strip() == "0"


@pytest.fixture
def sockets() -> Iterator[list[str]]:
    """Sockets where services of a machine have theirs."""
    paths = [f"{folder}/specbuild-test.sock" for folder in ("/tmp", "/run", "/var/tmp", "/root", "/usr/lib")]
    servers: list[socket.socket] = []
    for path in paths:
        servers.append(socket.socket(socket.AF_UNIX))
        servers[-1].bind(path)
        servers[-1].listen()
        Path(path).chmod(0o666)
    yield paths
    for server, path in zip(servers, paths, strict=True):
        server.close()
        Path(path).unlink()


def test_reaching_sockets_by_their_path(engine: Remote, sockets: list[str]) -> None:
    for path in sockets:
        for network in (True, False):
            assert engine.run(CONNECT_FILE, path, network=network).tail.strip() == "0"


def test_reaching_a_container_engine(engine: Remote) -> None:
    for path in (
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/podman/podman.sock",
    ):
        assert engine.run(CONNECT_FILE, path, network=True).tail.strip() == "0"


def test_reading_packets_of_the_host(portable: Remote) -> None:
    for family, kind in (("17", "3"), ("2", "3"), ("10", "3")):
        outcome = portable.run(system_call("socket", family, kind, "1"), network=True).tail.strip()
        assert outcome in REFUSALS


def test_reading_packets_of_the_host_by_packet_sockets(engine: Remote) -> None:
    assert engine.run(system_call("socket", "17", "3", "768"), network=True).tail.strip() in REFUSALS


def test_changing_interfaces_of_the_host(portable: Remote) -> None:
    code = (
        "socket(S, AF_INET, SOCK_DGRAM, 0); my $i = pack(q(a16s), q(lo), 0) . (qq(\\0) x 22);"
        f"ioctl(S, 0x8913, $i); my $r = ioctl(S, 0x8914, $i) ? 0 : -1; {REPORT}"
    )
    assert portable.run(perl(code), network=True).tail.strip() in REFUSALS


def test_changing_the_hosts_name(portable: Remote) -> None:
    before = socket.gethostname()
    portable.run("hostname stolen; echo stolen > /proc/sys/kernel/hostname; true")
    assert socket.gethostname() == before
