"""The docker backend beyond the contract: what it leaves alone, what it clears up, how it keeps to engines' bounds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from specbuild.cli.disk import clean_cache, held_by_engines
from specbuild.config import Settings
from specbuild.sandbox.contract import Bind, Command, End, RootfsTar
from specbuild.sandbox.docker import DockerBackend, images
from specbuild.testing.engines import PrivateEngine, docker_engine
from specbuild.testing.trial import frozen, new_marker, out, processes, seen, shell, until

pytestmark = [pytest.mark.engine, pytest.mark.root, pytest.mark.slow]

RUN = """
import os, sys, anyio
from pathlib import Path
from specbuild.cli.disk import clean_cache, held_by_engines
from specbuild.config import Settings
from specbuild.sandbox.contract import RootfsTar
from specbuild.sandbox.docker import DockerBackend
from specbuild.sandbox.docker.endpoint import Endpoint
from specbuild.testing.trial import frozen, shell

async def main(store, address, tiny):
    async with DockerBackend(Path(store), Endpoint(address)) as backend:
        base = await backend.import_base("base", RootfsTar(Path(tiny)))
        state = await frozen(backend, base, "echo lost > /lost")
        async with backend.fork(state) as box:
            await box.run(shell("sleep $1", os.environ["MARKER"]))

anyio.run(main, *sys.argv[1:])
"""


@pytest.fixture
def engine(docker: PrivateEngine) -> PrivateEngine:
    return docker


def load(engine: PrivateEngine, tiny: Path, name: str) -> None:
    """Makes an image that is not ours."""
    engine.ask("POST", f"images/create?fromSrc=-&repo={name}&tag=1", data=tiny.read_bytes())


def foreign(engine: PrivateEngine, tiny: Path) -> tuple[str, str]:
    """An image and a container that are not ours; their ids."""
    load(engine, tiny, "foreign")
    image = engine.ask("GET", "images/foreign:1/json")["Id"]
    made = engine.ask("POST", "containers/create?name=foreign", {"Image": "foreign:1", "Cmd": ["/bin/sleep", "1000"]})
    engine.ask("POST", f"containers/{made['Id']}/start")
    dangling = engine.ask("POST", f"commit?container={made['Id']}", {})["Id"]
    assert engine.ask("GET", f"images/{dangling}/json")["RepoTags"] in ([], None)
    return image, made["Id"]


async def test_a_killed_run_is_cleared_up_and_nothing_of_others(
    engine: PrivateEngine, tiny: Path, tmp_path: Path
) -> None:
    image, container = foreign(engine, tiny)
    before = {found["Id"] for found in engine.ask("GET", "images/json?all=1")}
    marker = new_marker()
    run = _start(marker, tmp_path, engine.address, tiny)
    await until(lambda: bool(processes(marker)), 120)
    run.send_signal(signal.SIGKILL)
    await anyio.to_thread.run_sync(run.wait)
    assert engine.leftovers() != []
    async with DockerBackend(tmp_path, engine.endpoint) as backend:
        assert processes(marker) == []
        assert engine.leftovers() == []
        assert await backend.keys() == ["base"]
        assert await backend.prune(everything=True) > 0
        assert await backend.keys() == []
    assert engine.ask("GET", f"containers/{container}/json")["State"]["Running"]
    assert {found["Id"] for found in engine.ask("GET", "images/json?all=1")} == before
    assert engine.ask("GET", f"images/{image}/json")["RepoTags"] == ["foreign:1"]
    engine.ask("DELETE", f"containers/{container}?force=1")


def _start(marker: str, *words: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", RUN, *map(str, words)], env=os.environ | {"MARKER": marker})


async def test_cleaning_the_cache_cleans_the_engine_of_ours_alone(
    engine: PrivateEngine, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", engine.address)
    load(engine, tiny, "others")
    before = {found["Id"] for found in engine.ask("GET", "images/json?all=1")}
    async with DockerBackend(tmp_path / "docker") as backend:
        base = await backend.import_base("base", RootfsTar(tiny))
        kept = await frozen(backend, base, "echo kept > /kept")
        await backend.keep(kept.key, "somebody")
        await backend.forget("somebody")
    assert {found["Id"] for found in engine.ask("GET", "images/json?all=1")} > before
    assert await clean_cache(Settings(cache_dir=tmp_path)) > 1_000_000
    assert {found["Id"] for found in engine.ask("GET", "images/json?all=1")} == before


async def test_what_an_engine_holds_is_cleaned_whichever_engine_is_named_now(
    engine: PrivateEngine, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {found["Id"] for found in engine.ask("GET", "images/json?all=1")}
    async with DockerBackend(tmp_path / "docker", engine.endpoint) as backend:
        await backend.import_base("base", RootfsTar(tiny))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/another")
    assert held_by_engines(tmp_path)[engine.address] > 1_000_000
    away = tmp_path / "away"
    engine.socket.rename(away)
    told: list[str] = []
    try:
        await clean_cache(Settings(cache_dir=tmp_path), notify=told.append)
    finally:
        away.rename(engine.socket)
    assert [engine.address in line for line in told] == [True], told
    assert held_by_engines(tmp_path), "it is not forgotten that there is something"
    assert await clean_cache(Settings(cache_dir=tmp_path), notify=told.append) > 1_000_000
    assert {found["Id"] for found in engine.ask("GET", "images/json?all=1")} == before
    assert held_by_engines(tmp_path) == {}
    assert len(told) == 1


async def test_another_stores_run_is_left_alone(engine: PrivateEngine, tiny: Path, tmp_path: Path) -> None:
    async with DockerBackend(tmp_path / "one", engine.endpoint) as one:
        base = await one.import_base("base", RootfsTar(tiny))
        async with one.fork(base) as box:
            await out(box, "echo x > /x")
            async with DockerBackend(tmp_path / "two", engine.endpoint) as two:
                await two.prune(everything=True)
            assert await out(box, "cat /x") == "x"
        await one.prune(everything=True)


async def test_an_image_that_somebody_has_tagged_stays(engine: PrivateEngine, tiny: Path, tmp_path: Path) -> None:
    async with DockerBackend(tmp_path, engine.endpoint) as backend:
        await backend.import_base("base", RootfsTar(tiny))
        state = await backend.shop.images.require("base")
        engine.ask("POST", f"images/{state.image}/tag?repo=mine&tag=1")
    async with DockerBackend(tmp_path, engine.endpoint) as backend:
        await backend.prune(everything=True)
    assert engine.ask("GET", "images/mine:1/json")["Id"] == state.image
    engine.ask("DELETE", "images/mine:1")


async def test_an_image_that_somebody_has_removed_is_no_checkpoint(
    engine: PrivateEngine, tiny: Path, tmp_path: Path
) -> None:
    async with DockerBackend(tmp_path, engine.endpoint) as backend:
        await backend.import_base("base", RootfsTar(tiny))
        image = (await backend.shop.images.require("base")).image
    engine.ask("DELETE", f"images/{image}?force=1")
    async with DockerBackend(tmp_path, engine.endpoint) as backend:
        assert await backend.find("base") is None
        base = await backend.import_base("base", RootfsTar(tiny))
        assert await seen(backend, base, "cat /etc/hostname") == "tiny"
        await backend.prune(everything=True)


async def test_deep_chains_are_flattened(
    engine: PrivateEngine, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "MOST_LAYERS", 4)
    async with DockerBackend(tmp_path, engine.endpoint) as backend:
        state = await backend.import_base("base", RootfsTar(tiny))
        for number in range(9):
            state = await frozen(backend, state, f"echo {number} > /{number}; rm -f /{number - 2}; chmod 700 /")
        assert await seen(backend, state, "cat /7 /8; ls / | grep -c '^[0-9]'; stat -c %a /") == "7\n8\n2\n700"
        known = await backend.shop.images.require(state.key)
        assert known.layers <= 6
        assert known.depth == 10


async def test_a_new_bind_makes_another_container_of_the_same_files(
    engine: PrivateEngine, tiny: Path, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    async with DockerBackend(tmp_path / "store", engine.endpoint) as backend:
        base = await backend.import_base("base", RootfsTar(tiny))
        async with backend.fork(base) as box:
            await out(box, "echo first > /first")
            for folder in (one, two):
                bind = Bind(folder, "/dev/specbuild/it", writable=True)
                done = await box.run(shell("cat /first > /dev/specbuild/it/copy; echo more >> /first", binds=(bind,)))
                assert done.ok, done
            state = await box.freeze("state")
        assert ((one / "copy").read_text(), (two / "copy").read_text()) == ("first\n", "first\nmore\n")
        assert await seen(backend, state, "cat /first") == "first\nmore\nmore"
    assert engine.leftovers() == []


async def test_neither_program_nor_environment_is_known_to_the_engine(
    engine: PrivateEngine, tiny: Path, tmp_path: Path
) -> None:
    started = anyio.Event()
    told: list[object] = []
    command = Command(["/bin/sh", "-c", "echo up; sleep 60"], env={"PATH": "/bin", "TOKEN": "s3cret"}, network=False)
    async with DockerBackend(tmp_path, engine.endpoint) as backend:
        base = await backend.import_base("base", RootfsTar(tiny))
        async with backend.fork(base) as box, anyio.create_task_group() as group:
            group.start_soon(lambda: box.run(command, on_line=lambda _: started.set()))
            await started.wait()
            told += [engine.ask("GET", f"containers/{found['Id']}/json") for found in _ours(engine)]
            group.cancel_scope.cancel()
    assert len(told) == 1
    assert "s3cret" not in str(told)
    assert "sleep 60" not in str(told)


async def test_what_a_killed_command_was_to_read_is_not_read_by_the_next(
    engine: PrivateEngine, tiny: Path, tmp_path: Path
) -> None:
    async with DockerBackend(tmp_path, engine.endpoint) as backend:
        base = await backend.import_base("base", RootfsTar(tiny))
        async with backend.fork(base) as box:
            done = await box.run(shell("echo up; sleep 60", stdin=b"old", timeout=0.5))
            assert done.end is End.TIMEOUT
            assert await out(box, "cat; echo end") == "end"


def _ours(engine: PrivateEngine) -> list[dict[str, str]]:
    return [box for box in engine.ask("GET", "containers/json?all=1") if "specbuild" in box["Labels"]]


FORKS = int(os.environ.get("SPECBUILD_TEST_FORKS", "24"))
"""200 by hand; engines take seconds for each on a machine of few cores."""


@pytest.mark.timeout(1200)
async def test_many_forks_live_at_once_and_are_gone_afterwards(
    engine: PrivateEngine, tiny: Path, tmp_path: Path
) -> None:
    marker = new_marker()
    said: dict[int, str] = {}
    async with DockerBackend(tmp_path, engine.endpoint) as backend:
        base = await backend.import_base("base", RootfsTar(tiny))
        state = await frozen(backend, base, "echo shared > /shared")

        async def branch(number: int) -> None:
            async with backend.fork(state) as box:
                command = shell("cat /shared; echo $1; sleep $2", str(number), marker, timeout=None)
                await box.run(command, on_line=lambda line: said.__setitem__(number, line))

        async with anyio.create_task_group() as group:
            for number in range(FORKS):
                group.start_soon(branch, number)
            await until(lambda: all(said.get(number) == str(number) for number in range(FORKS)), seconds=1000)
            group.cancel_scope.cancel()
        assert processes(marker) == []
    assert engine.leftovers() == []


def test_a_private_engine_takes_its_rules_out_of_the_firewall_however_it_ends() -> None:
    names: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(names)
    assert names[0] not in firewall()


def interrupted(names: list[str]) -> None:
    with docker_engine(network=True) as private:
        names.append(private.bridge)
        assert private.bridge in firewall()
        raise KeyboardInterrupt


def firewall() -> str:
    listed = (["iptables", "-t", table, "-S"] for table in ("filter", "nat"))
    return "".join(subprocess.run(each, capture_output=True, text=True, check=True).stdout for each in listed)
