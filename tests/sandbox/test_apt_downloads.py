"""apt itself in real sandboxes, through the relay, from an archive on the loopback interface that counts."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest

from specbuild.config import Settings
from specbuild.downloads import shared_downloads
from specbuild.events import Event, StepStarted
from specbuild.failures import Failure
from specbuild.predictors import reader
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind, checkpoint_root
from specbuild.sandbox.contract import Checkpoint, Command, Completed, RootfsTar
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.speculate import RaceResult, race
from specbuild.testing.apt_archive import USE, installable_routes, pool_path
from specbuild.testing.fakes import Recorder
from specbuild.testing.http_server import Answer, Server, serve
from specbuild.testing.leftovers import leftovers
from specbuild.testing.trial import until
from specbuild.tree import Entry
from specbuild.workshop import BuildWorkshop, Surroundings

pytestmark = [pytest.mark.sandbox, pytest.mark.root]

BASE = BaseRef(name="debian:bookworm", digest="sha256:bookworm")
PACKAGES = {"one": b"1" * 100_000, "two": b"2" * 300_000}
INSTALL = "apt-get install -y -qq --no-install-recommends"


class Shop(BuildWorkshop):
    """The real workshop, on a base from a tar, with the archive for its only source."""

    def __init__(self, backend: OverlayBackend, folder: Path, surroundings: Surroundings, tar: Path, url: str) -> None:
        super().__init__(backend, folder, {}, surroundings)
        self._store, self._tar, self._url = backend, tar, url

    async def provide(self, base: BaseRef) -> Checkpoint:
        bare = await self._store.import_base("0" * 64, RootfsTar(self._tar))
        async with self._store.fork(bare) as sandbox:
            done = await sandbox.run(Command(("/bin/sh", "-c", USE.format(url=self._url)), env={"PATH": "/usr/bin"}))
            assert done.ok, done.tail
            return await sandbox.freeze(checkpoint_root(base))


@pytest.fixture(scope="module")
def cache(public: Path) -> Iterator[Path]:
    """One cache for all tests here, so that the base is unpacked once."""
    folder = public / "apt-downloads"
    yield folder
    anyio.run(empty, folder / "store")


async def empty(store: Path) -> None:
    async with OverlayBackend(store) as backend:
        await backend.prune(everything=True)


@dataclass
class Site:
    """Where branches run."""

    backend: OverlayBackend
    shop: Shop
    server: Server
    surroundings: Surroundings

    async def branch(self, run: str) -> Completed:
        """One Step in a fresh fork of the base."""
        base = await self.shop.provide(BASE)
        async with self.backend.fork(base) as sandbox:
            command = self.surroundings.command(apt(run), BASE)
            done = await sandbox.run(command)
        if not done.ok and self.surroundings.relay:
            self.surroundings.relay.distrust(done.tail)
        return done


def apt(run: str) -> Step:
    return Step(kind=StepKind.SYSTEM, run=run, cwd="/", caches=("apt",))


@asynccontextmanager
async def site(cache: Path, debian: Path, routes: Mapping[str, Answer | Sequence[Answer]]) -> AsyncGenerator[Site]:
    settings = Settings(cache_dir=cache)
    backend = OverlayBackend(cache / "store")
    with serve(routes) as server:
        async with backend, shared_downloads(Surroundings.of(settings), backend, pytest.fail) as surroundings:
            yield Site(backend, Shop(backend, cache, surroundings, debian, server.url), server, surroundings)
    assert leftovers(cache / "store") == []


UPDATE_AND_INSTALL = f"apt-get update -qq\n{INSTALL} one two\ncksum /opt/one /opt/two"


async def test_the_second_branch_and_the_next_build_download_no_package(cache: Path, debian: Path) -> None:
    async with site(cache, debian, installable_routes(PACKAGES)) as here:
        first, second = [await here.branch(UPDATE_AND_INSTALL) for _ in range(2)]
        async with shared_downloads(Surroundings.of(Settings(cache_dir=cache)), here.backend, pytest.fail) as again:
            third = await replace(here, surroundings=again).branch(UPDATE_AND_INSTALL)
        assert first.ok, first.tail
        assert first.tail.splitlines()[-2:] == second.tail.splitlines()[-2:] == third.tail.splitlines()[-2:]
        assert [here.server.asked(pool_path(name)) for name in PACKAGES] == [1, 1]
        assert here.server.asked("/dists/test/Release") == 3, "what is new is asked for each time"


async def test_a_damaged_kept_file_fails_once_and_is_fetched_anew(cache: Path, debian: Path) -> None:
    routes: dict[str, Answer | Sequence[Answer]] = {**installable_routes(PACKAGES)}
    good = routes[pool_path("one")]
    assert isinstance(good, Answer)
    routes[pool_path("one")] = [replace(good, body=good.body[:-1] + b"x"), good]
    async with site(cache, debian, routes) as here:
        failed = await here.branch(UPDATE_AND_INSTALL)
        assert not failed.ok
        assert [failure.kind for failure in told(failed)] == ["registry-trouble"], failed.tail
        assert (await here.branch(UPDATE_AND_INSTALL)).ok


@pytest.mark.parametrize("trouble", ["refuses", "overloaded", "relay gone"])
async def test_trouble_on_the_way_is_told_as_that_of_the_network(cache: Path, debian: Path, trouble: str) -> None:
    routes: dict[str, Answer | Sequence[Answer]] = {**installable_routes(PACKAGES)}
    routes[pool_path("two")] = {"refuses": Answer(cut=-1), "overloaded": Answer(status=503)}.get(trouble, Answer(b""))
    async with site(cache, debian, routes) as here:
        stop = "sed -i 's/127.0.0.1:[0-9]*/127.0.0.1:9/' /tmp/apt.conf\n" if trouble == "relay gone" else ""
        move = 'cp "$APT_CONFIG" /tmp/apt.conf; export APT_CONFIG=/tmp/apt.conf\n' if stop else ""
        done = await here.branch(f"{move}apt-get update -qq\n{stop}{INSTALL} one two")
        assert not done.ok
        kinds = {failure.kind for failure in told(done)}
        assert kinds, done.tail
        assert kinds <= {"network-trouble", "registry-trouble"}


def told(done: Completed) -> list[Failure]:
    reading = reader()
    return [failure for line in done.tail.splitlines() for failure in reading.feed(line)] + reading.finish()


class Observer(Recorder):
    """Counts what the server had been asked for when a Step began."""

    def __init__(self, server: Server, title: str, path: str) -> None:
        super().__init__()
        self._server, self._title, self._path = server, title, path
        self.before: int | None = None

    def emit(self, event: Event) -> None:
        super().emit(event)
        if isinstance(event, StepStarted) and event.title == self._title:
            self.before = self._server.asked(self._path)


WAIT = "bash -c 'exec 3<>/dev/tcp/{address}; printf \"GET /soon HTTP/1.0\\r\\n\\r\\n\" >&3; cat <&3'"
"""Ends when the server has answered."""


@pytest.mark.parametrize("warm", [True, False])
async def test_packages_of_a_later_step_are_there_before_it_starts(cache: Path, debian: Path, *, warm: bool) -> None:
    soon = threading.Event()
    async with site(cache, debian, {**installable_routes(PACKAGES), "/soon": Answer(b"now", gate=soon)}) as here:
        wait = WAIT.format(address=here.server.url.removeprefix("http://").replace(":", "/"))
        slow = Step(kind=StepKind.TOOLCHAIN, run=wait, cwd="/")
        later = apt(f"{INSTALL} two").model_copy(update={"title": "later"})
        check = Check(
            level=Level.TESTS, runner="command", step=Step(kind=StepKind.TEST, run="test -e /opt/two", cwd="/")
        )
        recipe = Recipe(base=BASE, steps=(apt(f"apt-get update -qq\n{INSTALL} one"), slow, later), check=check)
        here.shop.expect(recipe)
        observer = Observer(here.server, "later", pool_path("two"))

        async def let_go() -> None:
            if warm:
                await until(lambda: here.server.asked(pool_path("two")) == 1, seconds=240)
            soon.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(let_go)
            result: RaceResult = await race(
                [Entry("c1", recipe, 0.9, 30.0, 0)], here.backend, here.shop, slots=3, reporter=observer, warm=warm
            )
            assert result.winner is not None, result.ends
        assert here.server.asked(pool_path("two")) == 1
        assert observer.before == int(warm)
