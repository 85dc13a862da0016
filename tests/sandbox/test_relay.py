"""The relay for apt, asked by real clients and asking a real server."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from specbuild.http import Client, Network
from specbuild.retry import Retry
from specbuild.sandbox.relay import Relay, open_relay
from specbuild.testing.http_server import Answer, Server, serve

DEB = "/debian/pool/main/h/hello/hello_1.0-1_amd64.deb"
BODY = os.urandom(900_000)


@dataclass
class Given:
    """What a client got."""

    status: int
    reason: str
    headers: dict[str, str]
    body: bytes


class Asking:
    """A client of the relay."""

    def __init__(self, client: Client, server: Server) -> None:
        self._client = client
        self._server = server

    async def get(
        self, path: str, method: str = "GET", begins: Callable[[], None] = lambda: None, **headers: str
    ) -> Given:
        pairs = [("host", "x"), *((name.replace("_", "-"), value) for name, value in headers.items())]
        url = path if "://" in path else self._server.url + path
        async with self._client.forward(method, url, headers=pairs) as answer:
            body = b""
            async for chunk in answer.chunks():
                if not body:
                    begins()
                body += chunk
            return Given(answer.status, answer.reason, dict(answer.fields), body)


@asynccontextmanager
async def asking(relay: Relay, server: Server, address: str | None = None) -> AsyncGenerator[Asking]:
    async with Client(Network(proxy=address or relay.address), retry=Retry(attempts=1)) as client:
        yield Asking(client, server)


@asynccontextmanager
async def relayed(
    folder: Path, routes: Mapping[str, Answer | Sequence[Answer]], *, most_bytes: int = 1 << 30
) -> AsyncGenerator[tuple[Relay, Server, Asking]]:
    with serve(routes) as server:
        async with open_relay(folder, most_bytes=most_bytes, grace=0.2) as relay, asking(relay, server) as client:
            yield relay, server, client


async def test_a_package_is_downloaded_once_and_comes_with_what_its_server_said(tmp_path: Path) -> None:
    said = {"Last-Modified": "Sat, 10 Jun 2023 09:00:00 GMT", "Content-Type": "application/vnd.debian.binary-package"}
    async with relayed(tmp_path, {DEB: Answer(BODY, headers=said)}) as (relay, server, client):
        first, second = await client.get(DEB), await client.get(DEB)
        assert server.asked(DEB) == 1
        assert first.body == second.body == BODY
        for name, value in said.items():
            assert first.headers[name.lower()] == second.headers[name.lower()] == value
        assert (relay.fetched, relay.counts.kept) == (1, 1)


async def test_what_was_kept_serves_later_relays_on_the_same_folder(tmp_path: Path) -> None:
    with serve({DEB: Answer(BODY)}) as server:
        for _ in range(2):
            async with open_relay(tmp_path) as relay, asking(relay, server) as client:
                assert (await client.get(DEB)).body == BODY
        assert server.asked(DEB) == 1


async def test_where_nothing_can_be_kept_downloads_are_passed_on(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    async with relayed(folder, {DEB: Answer(BODY)}) as (relay, _, client):
        shutil.rmtree(folder)
        assert (await client.get(DEB)).body == BODY
        assert relay.counts.kept == 0


async def test_all_who_ask_at_once_get_one_download_as_it_comes(tmp_path: Path) -> None:
    gate = threading.Event()
    async with relayed(tmp_path, {DEB: Answer(BODY, gate=gate)}) as (relay, server, client):
        begun = 0

        def begins() -> None:
            nonlocal begun
            begun += 1

        async def take() -> None:
            assert (await client.get(DEB, begins=begins)).body == BODY

        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(take)
                await until(lambda: begun == 5)
                assert kept(tmp_path) == [], "what is not whole has no name"
                gate.set()
        assert server.asked(DEB) == 1
        assert relay.counts.given == 5


async def test_a_client_that_goes_does_not_end_the_download_for_others(tmp_path: Path) -> None:
    gate = threading.Event()
    async with relayed(tmp_path, {DEB: Answer(BODY, gate=gate)}) as (relay, server, client):
        async with anyio.create_task_group() as tasks:
            goes = await begin(relay, server.url + DEB)

            async def stay() -> None:
                assert (await client.get(DEB)).body == BODY

            tasks.start_soon(stay)
            await until(lambda: relay.counts.given == 2)
            await goes.aclose()
            await anyio.sleep(0.1)
            gate.set()
        await settled(relay)
        assert server.asked(DEB) == 1
        assert len(kept(tmp_path)) == 1


async def test_a_download_that_nobody_wants_any_more_is_dropped_and_leaves_nothing(tmp_path: Path) -> None:
    gate = threading.Event()
    async with relayed(tmp_path, {DEB: [Answer(BODY, gate=gate), Answer(BODY)]}) as (relay, server, client):
        goes = await begin(relay, server.url + DEB)
        await goes.aclose()
        await settled(relay)
        gate.set()
        assert kept(tmp_path) == []
        assert (await client.get(DEB)).body == BODY
        assert server.asked(DEB) == 2


async def test_what_a_client_asks_for_in_advance_is_downloaded_side_by_side(tmp_path: Path) -> None:
    gate = threading.Event()
    paths = [DEB.replace("1.0", f"1.{number}") for number in range(4)]
    routes = dict.fromkeys(paths[1:], Answer(BODY)) | {paths[0]: Answer(BODY, gate=gate)}
    async with relayed(tmp_path, routes) as (relay, server, _):
        stream = await begin(relay, *(server.url + path for path in paths))
        async with stream:
            await until(lambda: len(kept(tmp_path)) == 3)
            gate.set()
            got = 0
            with anyio.fail_after(20):
                while got < 3 * len(BODY):
                    got += len(await stream.receive())
            await settled(relay)
        assert [server.asked(path) for path in paths] == [1, 1, 1, 1]


async def test_a_client_that_goes_before_the_server_has_answered_is_noticed(tmp_path: Path) -> None:
    with serve({}) as server:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port: int = listener.listeners[0].extra(SocketAttribute.local_port)  # noqa: S610 - no database
        async with listener, open_relay(tmp_path, grace=0.0) as relay, asking(relay, server):
            goes = await begin(relay, f"http://127.0.0.1:{port}{DEB}", wait=False)
            await until(lambda: relay.flying == 1)
            await goes.aclose()
            await until(lambda: relay.flying == 0)


async def test_a_download_that_ends_too_soon_is_not_kept_and_the_client_learns_of_it(tmp_path: Path) -> None:
    async with relayed(tmp_path, {DEB: [Answer(BODY, cut=500_000), Answer(BODY)]}) as (_, server, client):
        with pytest.raises(Exception, match="could not be fetched"):
            await client.get(DEB)
        assert kept(tmp_path) == []
        assert (await client.get(DEB)).body == BODY
        assert server.asked(DEB) == 2


@pytest.mark.parametrize("path", ["/debian/dists/bookworm/InRelease", "/simple/x.whl", f"{DEB}?x=1"])
async def test_what_may_change_is_asked_for_each_time_as_it_was_asked(tmp_path: Path, path: str) -> None:
    answers = [Answer(b"old", headers={"ETag": "1"}), Answer(status=304)]
    async with relayed(tmp_path, {path: answers}) as (_, server, client):
        assert (await client.get(path)).body == b"old"
        second = await client.get(path, if_none_match="1", cache_control="max-age=0", user_agent="apt")
        assert (second.status, second.body) == (304, b"")
        asked = server.requests[1].headers
        assert (asked["if-none-match"], asked["cache-control"], asked["user-agent"]) == ("1", "max-age=0", "apt")
        assert not {"proxy-authorization", "accept-encoding"} & set(asked)
        assert asked["host"] == server.url.removeprefix("http://")
        assert kept(tmp_path) == []


async def test_parts_and_other_methods_are_passed_on(tmp_path: Path) -> None:
    async with relayed(tmp_path, {DEB: Answer(b"part", status=206)}) as (_, server, client):
        assert (await client.get(DEB, range="bytes=2-")).status == 206
        assert server.requests[0].headers["range"] == "bytes=2-"
        assert (await client.get(DEB, "HEAD")).status == 501, "the server's own answer: it knows GET alone"
        assert (await client.get(DEB, "DELETE")).status == 400
        assert kept(tmp_path) == []


@pytest.mark.parametrize("status", [301, 403, 404, 503])
async def test_answers_that_are_not_the_file_are_passed_on_and_not_kept(tmp_path: Path, status: int) -> None:
    answer = Answer(b"no", status=status, headers={"Location": "http://elsewhere/"})
    async with relayed(tmp_path, {DEB: [answer, Answer(BODY)]}) as (_, _, client):
        refused = await client.get(DEB)
        assert (refused.status, refused.body, refused.headers["location"]) == (status, b"no", "http://elsewhere/")
        assert kept(tmp_path) == []
        assert (await client.get(DEB)).body == BODY


@pytest.mark.parametrize("headers", [{"Content-Length": ""}, {"Cache-Control": "no-store"}])
async def test_answers_of_unknown_length_or_not_to_be_stored_are_passed_on(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    async with relayed(tmp_path, {DEB: Answer(BODY, headers=headers)}) as (_, _, client):
        assert (await client.get(DEB)).body == BODY
        assert kept(tmp_path) == []


async def test_a_client_that_distrusts_the_kept_file_gets_a_new_one_which_is_kept_instead(tmp_path: Path) -> None:
    async with relayed(tmp_path, {DEB: [Answer(b"bad"), Answer(BODY)]}) as (_, server, client):
        assert (await client.get(DEB)).body == b"bad"
        assert (await client.get(DEB, cache_control="no-cache", pragma="no-cache")).body == BODY
        assert server.requests[1].headers["cache-control"] == "no-cache"
        assert (await client.get(DEB)).body == BODY
        assert server.asked(DEB) == 2


async def test_what_apt_could_not_use_is_forgotten(tmp_path: Path) -> None:
    plus = DEB.replace("hello_", "g++_")
    async with relayed(tmp_path, {plus: [Answer(b"bad"), Answer(BODY)]}) as (relay, server, client):
        assert (await client.get(plus)).body == b"bad"
        await settled(relay)
        relay.distrust(f"E: Failed to fetch {server.url}{plus.replace('+', '%2b')}  Hash Sum mismatch\n   Hashes of")
        assert (await client.get(plus)).body == BODY


@pytest.mark.parametrize("honest", [True, False])
async def test_an_index_named_by_its_hash_is_kept_if_that_is_its_hash(tmp_path: Path, *, honest: bool) -> None:
    digest = hashlib.sha256(BODY if honest else b"").hexdigest()
    path = f"/debian/dists/bookworm/main/binary-amd64/by-hash/SHA256/{digest}"
    async with relayed(tmp_path, {path: Answer(BODY)}) as (_, server, client):
        for _ in range(2):
            assert (await client.get(path, cache_control="max-age=0")).body == BODY
        assert server.asked(path) == (1 if honest else 2)


async def test_files_fetched_with_credentials_are_for_those_who_have_the_same(tmp_path: Path) -> None:
    async with relayed(tmp_path, {DEB: Answer(BODY)}) as (_, server, client):
        for secret in ("Basic YTpi", "Basic YTpi", "Basic Yzpk"):
            await client.get(DEB, authorization=secret)
        await client.get(DEB)
        assert [request.headers.get("authorization") for request in server.requests] == [
            "Basic YTpi",
            "Basic Yzpk",
            None,
        ]


async def test_who_does_not_know_the_token_gets_nothing(tmp_path: Path) -> None:
    with serve({DEB: Answer(BODY)}) as server:
        async with open_relay(tmp_path) as relay:
            for user in ("", "wrong@"):
                async with asking(relay, server, f"http://{user}127.0.0.1:{relay.port}") as client:
                    assert (await client.get(DEB)).status == 407
        assert server.requests == []


async def test_a_server_that_cannot_be_reached_or_is_silent_is_told_in_words(tmp_path: Path) -> None:
    async with relayed(tmp_path, {DEB: Answer(cut=-1)}) as (_, _, client):
        for path in (DEB, "/debian/dists/bookworm/InRelease", "http://127.0.0.1:9" + DEB):
            answer = await client.get(path)
            if path.endswith("InRelease"):
                assert answer.status == 404
            else:
                assert answer.status == 502
                assert "could not be fetched" in answer.reason


async def test_https_goes_through_a_tunnel(tmp_path: Path) -> None:
    async with relayed(tmp_path, {"/x": Answer(BODY)}) as (relay, server, _):
        host = server.url.removeprefix("http://")
        stream = await begin(relay, host, method="CONNECT")
        async with stream:
            await stream.send(f"GET /x HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            got = b""
            with anyio.fail_after(10):
                async for data in stream:
                    got += data
        assert got.endswith(BODY)


async def test_the_least_recently_used_files_give_way(tmp_path: Path) -> None:
    paths = [DEB.replace("1.0", f"1.{number}") for number in range(4)]
    async with relayed(tmp_path, dict.fromkeys(paths, Answer(BODY)), most_bytes=int(3.5 * len(BODY))) as (
        _,
        server,
        client,
    ):
        for path in (*paths[:3], paths[0], paths[3], paths[0], paths[1]):
            assert (await client.get(path)).body == BODY
            await anyio.sleep(0.01)
        assert [server.asked(path) for path in paths] == [1, 2, 1, 1]
        assert sum(file.stat().st_size for file in kept(tmp_path)) <= 3.5 * len(BODY)


async def test_a_kept_file_that_was_cut_off_by_a_crash_is_fetched_again(tmp_path: Path) -> None:
    async with relayed(tmp_path, {DEB: Answer(BODY)}) as (relay, server, client):
        await client.get(DEB)
        await settled(relay)
        (file,) = kept(tmp_path)
        os.truncate(file, 5000)
        assert (await client.get(DEB)).body == BODY
        assert server.asked(DEB) == 2


async def test_the_hosts_own_proxy_for_apt_is_asked(tmp_path: Path) -> None:
    """The server stands for a proxy: it is asked for whole addresses."""
    there = "http://mirror.invalid" + DEB
    with serve({there: Answer(BODY)}) as proxy, serve({DEB: Answer(b"direct")}) as mirror:
        options = [("Acquire::http::Proxy", proxy.url), ("Acquire::http::Proxy::127.0.0.1", "DIRECT")]
        async with open_relay(tmp_path, options) as relay, asking(relay, mirror) as client:
            assert (await client.get(there)).body == BODY
            assert (await client.get(DEB)).body == b"direct"


async def test_what_is_no_http_hurts_nobody_else(tmp_path: Path) -> None:
    async with relayed(tmp_path, {DEB: Answer(BODY)}) as (relay, _, client):
        for noise in (
            b"\x16\x03\x01" * 50,
            b"GET\r\n\r\n",
            b"GET http://[x HTTP/1.1\r\nHost: x\r\n\r\n",
            b"A" * 100_000,
        ):
            stream = await anyio.connect_tcp("127.0.0.1", relay.port)
            async with stream:
                await stream.send(noise)
                with anyio.fail_after(5), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                    await stream.receive()
        assert (await client.get(DEB)).body == BODY


ENGINE = """
import sys, anyio
from pathlib import Path
from specbuild.sandbox.relay import open_relay
async def main():
    async with open_relay(Path(sys.argv[1])) as relay:
        print(relay.address, flush=True)
        await anyio.sleep(60)
anyio.run(main)
"""


async def test_an_engine_that_is_killed_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    gate = threading.Event()
    with serve({DEB: Answer(BODY, gate=gate)}) as server:
        async with await anyio.open_process([sys.executable, "-c", ENGINE, str(tmp_path)]) as engine:
            assert engine.stdout is not None
            address = (await engine.stdout.receive()).decode().strip()
            async with (
                Client(Network(proxy=address)) as client,
                client.forward("GET", server.url + DEB) as answer,
            ):
                assert await anext(answer.chunks())
                engine.send_signal(signal.SIGKILL)
                await engine.wait()
        gate.set()
    assert kept(tmp_path) == []


async def begin(relay: Relay, *targets: str, method: str = "GET", wait: bool = True) -> SocketStream:
    """A connection on which something was asked for, and some of the first answer has come."""
    stream = await anyio.connect_tcp("127.0.0.1", relay.port)
    token = relay.address.removeprefix("http://").partition("@")[0]
    secret = base64.b64encode(f"{token}:".encode()).decode()
    rest = f"HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic {secret}\r\n\r\n"
    await stream.send("".join(f"{method} {target} {rest}" for target in targets).encode())
    if wait:
        with anyio.fail_after(10):
            got = await stream.receive()
        assert got.startswith(b"HTTP/1.1 200")
    return stream


def kept(folder: Path) -> list[Path]:
    """The files that have a name there."""
    return list(folder.iterdir())


async def settled(relay: Relay) -> None:
    """Until downloads are kept, or were given up."""
    await until(lambda: not relay.flying)


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        await anyio.sleep(0.01)
