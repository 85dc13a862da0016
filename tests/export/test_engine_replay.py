"""What an engine makes of the emitted Dockerfile is judged and compared, and nothing is left in the engine."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from specbuild import Settings
from specbuild.cli import app
from specbuild.clock import Clock
from specbuild.engine_replay import EngineOptions, replay_by_engine
from specbuild.environment import Environment, Package, RepoInfo, Seconds
from specbuild.errors import SandboxError
from specbuild.events import Event, Replayed
from specbuild.library import Library
from specbuild.opened import OpenEnvironment, save_repo
from specbuild.recipe import SOURCE_DIR, BaseRef, Check, Level, Recipe, Step, StepKind, source_step
from specbuild.repo.fetch import fetch_repo
from specbuild.sandbox.backends import open_backend
from specbuild.sandbox.contract import Command, RootfsTar
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.sandbox.passthrough import base_environment
from specbuild.testing.clients import Client
from specbuild.testing.rootfs import tiny_rootfs
from specbuild.verify.verdict import Verdict

pytestmark = [pytest.mark.sandbox, pytest.mark.root, pytest.mark.engine, pytest.mark.slow]

BASE = BaseRef(name="debian:tiny", digest="sha256:" + "b" * 64, release="tiny")
PACKAGES = (
    Package(name="bash", version="5.2", ecosystem="debian", architecture="all"),
    Package(name="sed", version="4.9", ecosystem="debian", architecture="all"),
)
REPORT = "/tmp/report.xml"
OPTIONS = EngineOptions(network="none")
# What a package manager would leave, and the program that tells of it.
INSTALL = """\
printf 'ii \\tbash\\t5.2\\tall\\nii \\tsed\\t4.9\\tall\\n' >/packages
printf '#!/bin/sh\\ncat /packages\\n' >/usr/bin/dpkg-query
chmod +x /usr/bin/dpkg-query"""
TESTS = f"""\
{{ echo '<testsuite>'; while read -r name; do echo "<testcase classname='a' name='$name'/>"; done <names
echo '</testsuite>'; }} >{REPORT}
cat file"""


class Events:
    """Keeps what was reported."""

    def __init__(self) -> None:
        self.seen: list[Event] = []

    def emit(self, event: Event) -> None:
        self.seen.append(event)


def recipe(tree: str) -> Recipe:
    steps = (
        Step(kind=StepKind.SYSTEM, run=INSTALL, title="install packages", cwd="/", network=False),
        source_step(tree),
        Step(kind=StepKind.BUILD, run="cp given file", title="build the project", network=False),
    )
    test = Step(kind=StepKind.TEST, run=TESTS, network=False, timeout=60)
    return Recipe(base=BASE, steps=steps, check=Check(level=Level.TESTS, runner="command", step=test, report=REPORT))


async def build(settings: Settings, source: Path) -> OpenEnvironment:
    """An Environment of a folder, as a build would have left it in the cache."""
    place = Library(settings.cache_dir).new_place()
    repo = await fetch_repo(str(source), place.source)
    save_repo(repo, place)
    made = recipe(repo.digest)
    async with open_backend(settings) as backend:
        assert isinstance(backend, OverlayBackend)
        state = await backend.import_base(made.checkpoints[0], RootfsTar(tiny_rootfs(settings.cache_dir / "tiny.tar")))
        for key, step in zip(made.checkpoints[1:], made.steps, strict=True):
            async with backend.fork(state) as box:
                if step.kind is StepKind.SOURCE:
                    await box.copy_in(repo.path, SOURCE_DIR)
                else:
                    argv = ["/bin/sh", "-euc", step.run]
                    done = await box.run(Command(argv, cwd=step.cwd, env=base_environment(), network=False))
                    assert done.ok, done.tail
                state = await box.freeze(key)
        await backend.keep(state.key, place.id)
    environment = Environment(
        id=place.id,
        outcome="committed",
        specbuild_version="0.1",
        created="2026-01-02T03:04:05Z",
        repo=RepoInfo(origin=str(source), kind="folder", revision=None, digest=repo.digest, date=None),
        base=BASE,
        recipe=made,
        verdict=Verdict(level=Level.TESTS, ok=True, reason="", passed=3, collected=3),
        lock=PACKAGES,
        seconds=Seconds(total=1, to_commit=1),
    )
    Library(settings.cache_dir).save(environment)
    return OpenEnvironment.of(environment, settings)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenEnvironment]:
    source, cache = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("cache")
    (source / "given").write_text("the tree\n")
    (source / "names").write_text("one\ntwo\nthree\n")
    settings = Settings(cache_dir=cache, backend="overlay")
    yield anyio.run(build, settings, source)
    shutil.rmtree(cache)


@contextmanager
def leaves_nothing(client: Client) -> Generator[None]:
    before = images(client)
    yield
    assert images(client) == before
    external = ["--external"] if client.name == "podman" else []  # those of its builder
    assert client("ps", "--all", *external, "--quiet").stdout == b""


def images(client: Client) -> list[bytes]:
    return sorted(client("images", "--all", "--quiet", "--no-trunc").stdout.split())


async def replayed(
    client: Client, built: OpenEnvironment, monkeypatch: pytest.MonkeyPatch, **changes: object
) -> tuple[Environment, Replayed]:
    """What came of it, and what was told of it."""
    for name, value in client.env.items():
        monkeypatch.setenv(name, value)
    changed = OpenEnvironment.of(built.model_copy(update=changes), built.settings)
    events = Events()
    after = await replay_by_engine(changed, OPTIONS, Clock(events))
    (told,) = (event for event in events.seen if isinstance(event, Replayed))
    return after, told


async def test_the_same_verdict_and_packages_are_reproducible(
    client: Client, built: OpenEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    with leaves_nothing(client):
        after, told = await replayed(client, built, monkeypatch)
    assert after.reproducible is True
    assert not after.differences
    assert after.verdict is not None
    assert after.verdict.repeatable is True
    assert told.same
    assert told.verdict.passed == 3
    assert after.replayed == told.verdict


async def test_other_packages_are_told_one_by_one(
    client: Client, built: OpenEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = PACKAGES[0].model_copy(update={"version": "5.1"})
    after, told = await replayed(client, built, monkeypatch, lock=(older,))
    assert told.same, "the verdict is"
    assert after.reproducible is False
    assert after.differences is not None
    assert after.differences.lines() == ["+ debian sed 4.9", "~ debian bash 5.1 -> 5.2"]


async def test_other_counts_are_another_verdict(
    client: Client, built: OpenEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert built.verdict is not None
    after, told = await replayed(client, built, monkeypatch, verdict=built.verdict.model_copy(update={"passed": 30}))
    assert not told.same
    assert after.reproducible is False
    assert after.verdict is not None
    assert (after.verdict.passed, after.verdict.repeatable) == (30, False)
    assert after.replayed is not None
    assert after.replayed.passed == 3


async def test_a_step_that_fails_is_told_with_its_output(
    client: Client, built: OpenEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = built.committed()
    bad = made.steps[2].model_copy(update={"run": "echo 'no such thing' >&2\nexit 7\necho 'not reached'"})
    broken = made.model_copy(update={"steps": (*made.steps[:2], bad)})
    with leaves_nothing(client):
        after, told = await replayed(client, built, monkeypatch, recipe=broken)
    assert after.reproducible is False
    assert not told.verdict.ok
    assert "exited with status 7" in told.verdict.reason
    assert told.verdict.reason.splitlines()[-1] == "no such thing"


@pytest.mark.parametrize("known", [False, True])
async def test_an_authority_that_is_not_known_is_told_with_the_remedy(
    known: bool, client: Client, built: OpenEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in client.env.items():
        monkeypatch.setenv(name, value)
    made = built.committed()
    words = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"
    bad = made.steps[2].model_copy(update={"run": f"echo '{words}' >&2\nexit 1"})
    broken = made.model_copy(update={"steps": (*made.steps[:2], bad)})
    changed = OpenEnvironment.of(built.model_copy(update={"recipe": broken}), built.settings)
    given = {"CA_CERTIFICATE": "a certificate"} if known else {}
    after = await replay_by_engine(changed, EngineOptions(network="none", arguments=given), Clock(Events()))
    assert after.replayed is not None
    assert ("--build-arg CA_CERTIFICATE=" in after.replayed.reason) is not known


async def test_an_image_of_another_engine_is_given_as_it_is_in_the_store(
    client: Client, built: OpenEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = built.committed()
    base = made.base.model_copy(update={"name": "engine:nowhere:1", "release": None})
    key = made.model_copy(update={"base": base}).checkpoints[0]
    async with open_backend(built.settings) as backend:
        assert isinstance(backend, OverlayBackend)
        await backend.import_base(key, RootfsTar(tiny_rootfs(built.settings.cache_dir / "tiny.tar")))
    with leaves_nothing(client):
        _, told = await replayed(client, built, monkeypatch, recipe=made.model_copy(update={"base": base}), base=base)
    assert told.verdict.passed == 3


async def test_trouble_of_the_engine_is_no_verdict(
    client: Client, built: OpenEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in client.env.items():
        monkeypatch.setenv(name, value)
    options = EngineOptions(base="localhost/no-such-image:1", network="none")
    with leaves_nothing(client), pytest.raises(SandboxError, match="no-such-image"):
        await replay_by_engine(built, options, Clock(Events()))


async def test_a_replay_that_is_cancelled_ends_its_step_and_leaves_nothing(
    client: Client, built: OpenEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in client.env.items():
        monkeypatch.setenv(name, value)
    made, name = built.committed(), f"endless{secrets.token_hex(6)}"
    script = f"cp /bin/sh /bin/{name}\nexec /bin/{name} -c 'sleep 300; true'"
    endless = made.steps[2].model_copy(update={"run": script})
    changed = built.model_copy(update={"recipe": made.model_copy(update={"steps": (*made.steps[:2], endless)})})
    with leaves_nothing(client):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(replay_by_engine, OpenEnvironment.of(changed, built.settings), OPTIONS, Clock(Events()))
            with anyio.fail_after(120):
                while not running_as(name):  # noqa: ASYNC110 - a process of the engine's
                    await anyio.sleep(0.05)
            tasks.cancel_scope.cancel()
        assert not running_as(name)


def running_as(name: str) -> list[int]:
    """Processes whose program has that name."""
    return [int(comm.parent.name) for comm in Path("/proc").glob("[0-9]*/comm") if name.startswith(text_of(comm))]


def text_of(path: Path) -> str:
    try:
        return path.read_text().strip() or "?"
    except OSError:  # it has ended
        return "?"


def test_the_command_line_ends_with_0_only_if_it_is_the_same(
    client: Client, built: OpenEnvironment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {**client.env, "SPECBUILD_CACHE_DIR": str(built.settings.cache_dir)}.items():
        monkeypatch.setenv(name, value)
    command = ["replay", "--docker", "--network", "none"]
    assert app.main([*command, "--json", built.id]) == 0
    assert json.loads(capsys.readouterr().out)["reproducible"] is True
    library = Library(built.settings.cache_dir)
    library.save(built.model_copy(update={"lock": ()}))
    assert app.main([*command, built.id]) == 1
    library.save(built)
    said = capsys.readouterr().out
    assert "packages differ" in said
    assert "+ debian bash 5.2" in said
