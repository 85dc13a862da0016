"""What engines refuse is told in errors of our own, each with its remedy."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from specbuild.errors import (
    EngineAccessError,
    EngineBusyError,
    EngineError,
    EngineFullError,
    EngineNotRunningError,
    EngineTooOldError,
    PullLimitError,
    SandboxError,
)
from specbuild.sandbox.docker import DockerBackend
from specbuild.sandbox.docker.endpoint import Endpoint
from specbuild.sandbox.docker.engine import Engine
from specbuild.sandbox.docker.refusals import refusal
from specbuild.sandbox.docker.request import Request

REFUSALS = {
    "write /var/lib/docker/tmp/x: no space left on device": EngineFullError,
    "toomanyrequests: You have reached your pull rate limit": PullLimitError,
    "client version 1.22 is too old. Minimum supported API version is 1.24": EngineTooOldError,
    "authorization denied by plugin": EngineAccessError,
    "something else": EngineError,
}


@asynccontextmanager
async def answering(
    path: Path, answers: Mapping[str, tuple[int, object]], api: str = "1.41"
) -> AsyncGenerator[Endpoint]:
    """An engine that says the same each time; what it does not know it never answers."""

    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        while line := await reader.readline():
            call = line.split()[1].decode().rpartition("/")[2].partition("?")[0]
            while (await reader.readline()).strip():
                pass
            if call not in answers:
                await reader.read()  # until the other side has had enough
                break
            status, body = answers[call]
            data = json.dumps(body).encode()
            lines = [f"HTTP/1.1 {status} X", f"Api-Version: {api}", "Content-Type: application/json"]
            head = "\r\n".join([*lines, f"Content-Length: {len(data)}", "", ""])
            writer.write(head.encode() + data)
            await writer.drain()

    server = await asyncio.start_unix_server(serve, path)
    try:
        yield Endpoint(f"unix://{path}")
    finally:
        server.close()
        for writer in writers:
            writer.close()
            await writer.wait_closed()


@pytest.mark.parametrize("message", REFUSALS)
def test_refusals_have_their_own_classes(message: str) -> None:
    error = refusal(500, message, "POST commit")
    assert type(error) is REFUSALS[message]
    assert isinstance(error, SandboxError)
    assert message in error.message
    assert error.hint or type(error) is EngineError


async def test_an_engine_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EngineNotRunningError, match=r"nothing\.sock") as caught:
        await DockerBackend(tmp_path, Endpoint(f"unix://{tmp_path}/nothing.sock")).__aenter__()
    assert "start" in caught.value.hint


async def test_an_engine_that_has_gone(tmp_path: Path) -> None:
    async with answering(tmp_path / "sock", {}):
        pass
    with pytest.raises(EngineNotRunningError):
        await Engine(Endpoint(f"unix://{tmp_path}/sock")).__aenter__()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may use every socket")
async def test_a_socket_that_may_not_be_used(tmp_path: Path) -> None:
    async with answering(tmp_path / "sock", {}) as endpoint:
        (tmp_path / "sock").chmod(0)
        with pytest.raises(EngineAccessError) as caught:
            await Engine(endpoint).__aenter__()
        assert "group" in caught.value.hint


async def test_an_engine_that_is_too_old(tmp_path: Path) -> None:
    async with answering(tmp_path / "sock", {"_ping": (200, "OK")}, "1.24") as endpoint:
        with pytest.raises(EngineTooOldError, match=r"1\.24"):
            await Engine(endpoint).__aenter__()


async def test_an_engine_that_does_not_answer(tmp_path: Path) -> None:
    async with (
        answering(tmp_path / "sock", {"_ping": (200, "OK")}) as endpoint,
        Engine(endpoint) as engine,
    ):
        with pytest.raises(EngineBusyError, match="info"):
            await engine.json(Request("GET", "info", within=0.2))


async def test_what_an_engine_refuses_is_told_with_its_words(tmp_path: Path) -> None:
    answers = {"_ping": (200, "OK"), "commit": (500, {"message": "no space left on device"})}
    async with answering(tmp_path / "sock", answers) as endpoint, Engine(endpoint) as engine:
        with pytest.raises(EngineFullError, match="no space left") as caught:
            await engine.json(Request("POST", "commit"))
        assert caught.value.status == 500


@pytest.mark.parametrize("api", ["", "x.y", "1", "9" * 5000 + ".1"])
async def test_a_server_that_is_no_engine_is_told(tmp_path: Path, api: str) -> None:
    async with answering(tmp_path / "sock", {"_ping": (200, "OK")}, api) as endpoint:
        with pytest.raises(EngineError, match="no container engine") as caught:
            await Engine(endpoint).__aenter__()
        assert "DOCKER_HOST" in caught.value.hint


@pytest.mark.parametrize("info", [[], None, "page"])
async def test_an_engine_that_tells_nothing_of_itself_is_none(tmp_path: Path, info: object) -> None:
    async with answering(tmp_path / "sock", {"_ping": (200, "OK"), "info": (200, info)}) as endpoint:
        with pytest.raises(EngineError, match="no container engine"):
            await DockerBackend(tmp_path, endpoint).__aenter__()


async def test_an_engine_that_goes_meanwhile_is_told_whatever_was_asked(tmp_path: Path) -> None:
    async with answering(tmp_path / "sock", {"_ping": (200, "OK")}) as endpoint:
        engine = await Engine(endpoint).__aenter__()
    try:
        with pytest.raises(EngineNotRunningError) as caught:
            await engine.attached("some").__aenter__()
        assert "ssl" not in caught.value.message
        with pytest.raises(EngineNotRunningError):
            await engine.json(Request("GET", "info"))
    finally:
        await engine.__aexit__()


async def test_an_engine_over_ssh_without_its_library_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncssh", None)
    with pytest.raises(EngineAccessError, match="SSH") as caught:
        await Engine(Endpoint("ssh://localhost")).__aenter__()
    assert "pip install" in caught.value.hint


async def test_the_probe_says_what_is_wrong(tmp_path: Path) -> None:
    probe = await DockerBackend(tmp_path, Endpoint(f"unix://{tmp_path}/nothing.sock")).probe()
    assert not probe.ok
    assert "nothing.sock" in probe.findings[0].detail
    assert probe.findings[0].hint
