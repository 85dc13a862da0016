"""The proof of an emitted Dockerfile: a real engine builds it, and the Check is run and judged in a container of it."""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio.to_thread

from specbuild.clock import Clock
from specbuild.commit import Replay
from specbuild.environment import Environment
from specbuild.events import Replayed
from specbuild.export.container import running
from specbuild.export.dockerfile import dockerfile, dockerfile_base
from specbuild.export.engine import Engine, find_engine
from specbuild.export.engine_build import BuildOptions, StepFailed, build_image, prune_images, remove_image
from specbuild.export.image import make_base_image
from specbuild.export.image_files import write_docker_archive
from specbuild.export.layers import Compression
from specbuild.export.lock import read_lock
from specbuild.export.text import fetchable
from specbuild.library import Library
from specbuild.opened import OpenEnvironment, layer_source, load_repo
from specbuild.recipe import SHELL, BaseRef, Step
from specbuild.sandbox.backends import open_backend
from specbuild.sandbox.contract import Command
from specbuild.sandbox.passthrough import base_environment
from specbuild.verify import verify
from specbuild.verify.verdict import Verdict

_LOCAL = ("debian:", "engine:")
"""Bases that no registry has: made on this machine, or taken from an engine that may be another one."""
_UNTRUSTED = re.compile(
    r"CERTIFICATE_VERIFY_FAILED|certificate verif\w+ failed|self[- ]signed certificate|invalid peer certificate"
    r"|unable to get local issuer certificate|SSL certificate problem",
    re.IGNORECASE,
)
"""Python's, OpenSSL's, uv's, curl's and git's words for a certificate that nobody vouches for."""


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

    Where no registry has the base, the engine is given that very base. A step of the Dockerfile that fails
    makes the Verdict not ok. Raises SandboxUnavailableError without an engine, SandboxError if it cannot build or run
    the image for reasons of its own, UsageError if files that it takes are gone.
    """
    engine = await find_engine(won.settings.client)
    clock.phase("replay", f"with {engine.name}")
    began = clock.now()
    async with _base_image(won, options, engine, clock) as base, _built(won, options, engine, base, clock) as built:
        if isinstance(built, StepFailed):
            replay = Replay(won, _not_built(won, built, options), None, clock.now() - began)
        else:
            replay = await _judge(won, options, engine, built, clock, began)
    clock.reporter.emit(Replayed(at=clock.now(), same=replay.agrees, verdict=replay.verdict))
    return replay.outcome(won.lock)


async def write_base_archive(won: OpenEnvironment, archive: Path, name: str) -> None:
    """Write the bare base of an Environment as an archive that engines load. Raises as `replay_by_engine` does."""
    with tempfile.TemporaryDirectory(prefix=".specbuild-", dir=archive.parent) as work:
        async with open_backend(won.settings) as backend:
            await won.workshop(backend).provide(won.committed().base)  # the Environment's own files may be pruned
            source = layer_source(backend)
            image = await make_base_image(won, source, Path(work), compression=Compression.NONE, name=name)
            await anyio.to_thread.run_sync(write_docker_archive, image, archive)


@asynccontextmanager
async def _base_image(
    won: OpenEnvironment, options: EngineOptions, engine: Engine, clock: Clock
) -> AsyncGenerator[str]:
    """A name of the image to start from that nobody else uses."""
    base = won.committed().base
    name = f"localhost/specbuild/base:{secrets.token_hex(6)}"
    clock.phase("replay", f"{engine.name} is given the base {options.base or base.name}")
    try:
        if options.base or not base.name.startswith(_LOCAL):
            await engine.alias(options.base or dockerfile_base(base), name)
        else:
            with tempfile.TemporaryDirectory(prefix="specbuild-") as work:
                await write_base_archive(won, Path(work) / "base.tar", name)
                await engine.load(Path(work) / "base.tar")
        yield name
    finally:
        await remove_image(engine, name)


@asynccontextmanager
async def _built(
    won: OpenEnvironment, options: EngineOptions, engine: Engine, base: str, clock: Clock
) -> AsyncGenerator[str | StepFailed]:
    """The name of the image that the Dockerfile gives, or the step that failed."""
    name = f"localhost/specbuild/replay:{secrets.token_hex(6)}"
    source = "" if fetchable(won) else str(load_repo(won, Library(won.settings.cache_dir).place(won.id)).path)
    clock.phase("replay", f"{engine.name} builds the Dockerfile")
    build = BuildOptions(base, options.network, options.arguments, source)
    try:
        yield await build_image(engine, name, dockerfile(won), build) or name
    finally:
        await remove_image(engine, name)
        # Of a stage that the first builder leaves behind; the label says that it is ours.
        await prune_images(engine, f"specbuild.environment={won.id}")


def _not_built(won: OpenEnvironment, failed: StepFailed, options: EngineOptions) -> Verdict:
    how = f"a step of the Dockerfile exited with status {failed.status}; its last lines:\n{failed.output}"
    if _UNTRUSTED.search(failed.output) and "CA_CERTIFICATE" not in options.arguments:
        how += '\nbehind a certificate authority of your own: --build-arg CA_CERTIFICATE="$(cat ca.pem)"'
    return Verdict(level=won.committed().check.level, ok=False, reason=how)


async def _judge(
    won: OpenEnvironment, options: EngineOptions, engine: Engine, image: str, clock: Clock, began: float
) -> Replay:
    recipe = won.committed()
    clock.phase("replay", recipe.check.step.title or "verify")
    tracked = load_repo(won, Library(won.settings.cache_dir).place(won.id)).tracked
    network = options.network if recipe.check.step.network else "none"
    async with running(engine, image, within=recipe.check.step.timeout, network=network) as container:

        def command(step: Step) -> Command:
            return _command(step, recipe.base)

        packages = await read_lock(container, command, recipe)
        verdict = await verify(
            container,
            recipe.check,
            command=command,
            tracked=tracked,
            min_pass_ratio=won.settings.min_pass_ratio,
            on_line=clock.line("replay"),
        )
    return Replay(won, verdict, packages, clock.now() - began)


def _command(step: Step, base: BaseRef) -> Command:
    env = {**base_environment(base), **dict(step.env)}
    return Command(argv=(*SHELL, step.run), cwd=step.cwd, env=env, network=step.network, timeout=step.timeout)
