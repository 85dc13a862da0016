"""The proof of an emitted Dockerfile: a real engine builds it, and the Check is run and judged in a container of it."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread

from specbuild.clock import Clock
from specbuild.commit import Replay
from specbuild.environment import Environment
from specbuild.events import Replayed
from specbuild.export.container import running
from specbuild.export.dockerfile import dockerfile
from specbuild.export.engine import Engine, find_engine
from specbuild.export.image import make_base_image
from specbuild.export.image_files import write_docker_archive
from specbuild.export.layers import Compression
from specbuild.export.lock import read_lock
from specbuild.export.text import fetchable
from specbuild.library import Library
from specbuild.opened import OpenEnvironment, load_repo
from specbuild.recipe import SHELL, Step
from specbuild.sandbox.contract import Command
from specbuild.sandbox.passthrough import base_environment
from specbuild.verify import same, verify

_BUILD_WITHIN = 7200.0
"""Seconds for a build by an engine: steps have no limits of their own there."""
_REMOVE_WITHIN = 120.0


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What a user may have to tell an engine."""

    base: str = ""
    """The image to start from, in place of the one that the Environment was verified on."""
    network: str = ""
    """The engine's network to build in, and to test in where the tests may use one."""
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    """Build arguments of the Dockerfile: `CA_CERTIFICATE`, `PIP_INDEX_URL`, …"""


async def replay_by_engine(won: OpenEnvironment, options: EngineOptions, clock: Clock) -> Environment:
    """The Environment with what came of building its Dockerfile with the user's engine, and testing inside.

    Where the base was made on this machine, the engine is given that very base. Raises SandboxUnavailableError without
    an engine, SandboxError if it cannot build or run the image, UsageError if files that it takes are gone.
    """
    engine = await find_engine()
    clock.phase("replay", f"with {engine.name}")
    began = clock.now()
    async with _base_image(won, options, engine) as base, _built(won, options, engine, base) as image:
        replay = await _judge(won, options, engine, image, clock, began)
    agrees = replay.verdict.ok and (won.verdict is None or same(won.verdict, replay.verdict))
    clock.reporter.emit(Replayed(at=clock.now(), same=agrees, verdict=replay.verdict))
    return replay.outcome(won.lock)


@asynccontextmanager
async def _base_image(won: OpenEnvironment, options: EngineOptions, engine: Engine) -> AsyncGenerator[str]:
    """The name of the image to start from; empty for the one that the Dockerfile names."""
    base = won.committed().base
    if options.base or not base.name.startswith("debian:"):
        yield options.base
        return
    name = f"specbuild/base:{base.release}-{base.digest.removeprefix('sha256:')[:12]}"
    with tempfile.TemporaryDirectory(prefix="specbuild-") as work:
        async with won.files() as (source, _):
            none = Compression.NONE
            image = await make_base_image(won, source, Path(work), compression=none, name=name)
            archive = Path(work) / "base.tar"
            await anyio.to_thread.run_sync(write_docker_archive, image, archive)
        await engine.load(archive)
    try:
        yield name
    finally:
        await _remove(engine, name)


@asynccontextmanager
async def _built(won: OpenEnvironment, options: EngineOptions, engine: Engine, base: str) -> AsyncGenerator[str]:
    """The name of the image that the Dockerfile gives."""
    name = f"specbuild/replay:{won.id}"
    arguments = {**options.arguments, **({"BASE": base} if base else {})}
    words = [word for key, value in arguments.items() for word in ("--build-arg", f"{key}={value}")]
    network = ["--network", options.network] if options.network else []
    if fetchable(won):
        context = ["-"]
    else:
        place = Library(won.settings.cache_dir).place(won.id)
        context = ["--file", "-", str(load_repo(won, place).path)]
    text = dockerfile(won).encode()
    await engine.call("build", "--tag", name, *network, *words, *context, stdin=text, timeout=_BUILD_WITHIN)
    try:
        yield name
    finally:
        await _remove(engine, name)
        # Of a stage that the first builder leaves behind; the label says that it is ours.
        with anyio.move_on_after(_REMOVE_WITHIN, shield=True):
            ours = f"label=specbuild.environment={won.id}"
            await engine.call("image", "prune", "--force", "--filter", ours, timeout=_REMOVE_WITHIN, ok=range(256))


async def _judge(
    won: OpenEnvironment, options: EngineOptions, engine: Engine, image: str, clock: Clock, began: float
) -> Replay:
    recipe = won.committed()
    tracked = load_repo(won, Library(won.settings.cache_dir).place(won.id)).tracked
    network = options.network if recipe.check.step.network else "none"
    async with running(engine, image, network=network) as container:
        packages = await read_lock(container, _command, recipe)
        verdict = await verify(
            container,
            recipe.check,
            command=_command,
            tracked=tracked,
            min_pass_ratio=won.settings.min_pass_ratio,
            on_line=clock.line("replay"),
        )
    return Replay(won, verdict, packages, clock.now() - began)


def _command(step: Step) -> Command:
    env = {**base_environment(), **dict(step.env)}
    return Command(argv=(*SHELL, step.run), cwd=step.cwd, env=env, network=step.network, timeout=step.timeout)


async def _remove(engine: Engine, image: str) -> None:
    with anyio.move_on_after(_REMOVE_WITHIN, shield=True):
        await engine.call("rmi", image, timeout=_REMOVE_WITHIN, ok=range(256))
