"""The exports of one Environment, each taken as a user would: by the command line, loaded into an engine, run there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio

from bench.inside import NotSameError, committed, compared, container, in_words, network, run_tests
from specbuild.config import load_settings
from specbuild.engine_replay import write_base_archive
from specbuild.environment import Environment
from specbuild.export.image import runtime_config
from specbuild.library import Library
from specbuild.opened import load_repo, open_environment
from specbuild.sandbox.certificates import CA_VARIABLES
from specbuild.testing.clients import Client

_WITHIN = 3600.0
"""Seconds for one command."""
_BASE = "localhost/specbuild-bench/base:1"


@dataclass(frozen=True)
class Outcome:
    """What came of one export."""

    ok: bool
    seconds: float
    said: str
    """Counts of the tests inside, or what was wrong."""


@dataclass(frozen=True)
class Bench:
    """What all exports of a run share."""

    cache: Path
    work: Path
    """A folder for files."""
    engines: Sequence[Client]
    certificates: str = ""
    """In PEM, of authorities that only this machine trusts."""
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    """Build arguments: where package indexes are."""

    def specbuild(self, *words: str, env: Mapping[str, str] | None = None, ok: Iterable[int] = (0,)) -> str:
        """What `specbuild WORDS` prints to stdout. Raises NotSameError if it ends otherwise."""
        done = subprocess.run(
            [sys.executable, "-m", "specbuild", *words],
            env={**os.environ, "SPECBUILD_CACHE_DIR": str(self.cache), **(env or {})},
            capture_output=True,
            timeout=_WITHIN,
            check=False,
        )
        if done.returncode not in ok:
            raise NotSameError(f"exit code {done.returncode}: {done.stderr.decode().strip()[-2000:]}")
        return done.stdout.decode()

    def export(self, made: Environment, kind: str, place: Path) -> dict[str, int]:
        """What is told of the export, which is at `place` then."""
        told = json.loads(self.specbuild("export", made.id, "--to", f"{kind}:{place}", "--force", "--json"))
        (one,) = told["exports"]
        return dict(one)

    @property
    def build_arguments(self) -> list[str]:
        """For builders of Dockerfiles."""
        named = {**self.arguments, **({"CA_CERTIFICATE": self.certificates} if self.certificates else {})}
        return [word for name, value in named.items() for word in ("--build-arg", f"{name}={value}")]

    def given(self) -> tuple[Path, list[str]]:
        """A folder for containers, and options by which they see it as /given and trust whom this machine trusts."""
        folder = self.work / "given"
        folder.mkdir(exist_ok=True)
        options = ["--volume", f"{folder}:/given:ro"]
        if self.certificates:
            (folder / "ca.pem").write_text(self.certificates)
            options += [word for name in CA_VARIABLES for word in ("--env", f"{name}=/given/ca.pem")]
        return folder, options


def measure(bench: Bench, made: Environment, *, builders: Sequence[str], every: bool) -> dict[str, Outcome]:
    """Name of an export and of an engine → what came of it; with `every`, of all formats.

    `builders` are the engines that build the Dockerfile, which takes the most time.
    """
    outcomes: dict[str, Outcome] = {}

    def note(name: str, function: Callable[[], str]) -> None:
        outcomes[name] = _timed(function)
        print(f"  {name}: {outcomes[name].seconds} s {outcomes[name].said}", flush=True)

    for engine in bench.engines:
        if engine.name in builders:
            note(f"dockerfile {engine.name}", partial(replay, bench, made, engine))
    for kind in ("docker-archive", "oci"):
        archive = bench.work / f"{kind}.tar"
        note(kind, partial(image, bench, made, kind, archive))
        for engine in bench.engines:
            if kind == "oci" and engine.name == "docker":
                continue  # takes layouts from version 25 on, with containerd's store of images
            note(f"{kind} {engine.name}", partial(loaded, made, engine, archive))
        archive.unlink(missing_ok=True)
    note("sbom", partial(bill, bench, made))
    if every:
        for engine in bench.engines:
            for kind, function in (("setup-sh", script), ("rootfs", root), ("devcontainer", editor)):
                note(f"{kind} {engine.name}", partial(function, bench, made, engine))
        note("lock", partial(locked, bench, made))
    return outcomes


def _timed(function: Callable[[], str]) -> Outcome:
    began = time.monotonic()
    try:
        said, ok = function(), True
    except (NotSameError, AssertionError, subprocess.TimeoutExpired) as error:
        said, ok = str(error), False
    return Outcome(ok, round(time.monotonic() - began, 1), said)


def replay(bench: Bench, made: Environment, engine: Client) -> str:
    """The engine builds the Dockerfile on the very base, and the check runs inside."""
    words = ["replay", made.id, "--docker", "--network", "host", "--json", *bench.build_arguments]
    after = Environment.model_validate_json(bench.specbuild(*words, env=engine.env, ok=(0, 1)))
    if not after.reproducible or after.replayed is None:
        why = after.replayed.reason if after.replayed else ""
        differences = after.differences.lines() if after.differences else []
        raise NotSameError("\n".join([f"not reproducible: {why}", *differences]))
    return f"{in_words(after.replayed)}, {len(after.lock)} packages the same"


def image(bench: Bench, made: Environment, kind: str, place: Path) -> str:
    """The file alone."""
    told = bench.export(made, kind, place)
    return f"{told['layers']} layers, {told['size_bytes'] / 1e6:.0f} MB"


def loaded(made: Environment, engine: Client, archive: Path) -> str:
    """The archive loads, and a container of the image passes the tests."""
    name = engine.load(archive)
    try:
        return run_tests(made, engine, name)
    finally:
        engine("rmi", "--force", name, check=False)


def bill(bench: Bench, made: Environment) -> str:
    """The SBOM is valid by the official schema, and has every package."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    bench.export(made, "sbom", bench.work / "sbom.json")
    text = (bench.work / "sbom.json").read_text()
    if wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise NotSameError(str(wrong))
    components = json.loads(text)["components"]
    if len(components) != len(made.lock) + 1:
        raise NotSameError(f"{len(components)} components of {len(made.lock)} packages and a base")
    return f"valid, {len(components)} components, {sum('hashes' in each for each in components)} with a hash"


def script(bench: Bench, made: Environment, engine: Client) -> str:
    """`setup.sh` fetches the tree and makes the environment in a container of the bare base, and its tests pass."""
    folder, options = bench.given()
    bench.export(made, "setup-sh", folder / "setup.sh")
    words = ("/bin/sh", "/given/setup.sh", "--test")
    with _base(bench, made, engine) as base:
        return run_tests(made, engine, base, *words, options=["--network", "host", *options])


def root(bench: Bench, made: Environment, engine: Client) -> str:
    """All files as one archive: imported, the tests pass with the variables and the command of the image."""
    archive, name = bench.work / "root.tar", "localhost/specbuild-bench/root:1"
    bench.export(made, "rootfs", archive)
    engine("import", str(archive), name, timeout=_WITHIN)
    archive.unlink()
    config = runtime_config(made)
    env = [word for pair in config["Env"] for word in ("--env", pair)]
    try:
        return run_tests(made, engine, name, *config["Cmd"], options=["--workdir", config["WorkingDir"], *env])
    finally:
        engine("rmi", "--force", name, check=False)


def editor(bench: Bench, made: Environment, engine: Client) -> str:
    """What an editor does with `.devcontainer`: build, mount the user's checkout, prepare it; then the tests run."""
    checkout, name = bench.work / "checkout", "localhost/specbuild-bench/editor:1"
    shutil.rmtree(checkout, ignore_errors=True)
    shutil.copytree(load_repo(made, Library(bench.cache).place(made.id)).path, checkout, symlinks=True)
    folder = checkout / ".devcontainer"
    bench.export(made, "devcontainer", folder)
    about = json.loads((folder / "devcontainer.json").read_text())
    with _base(bench, made, engine) as base:
        words = ["--tag", name, "--network", "host", "--build-arg", f"BASE={base}", *bench.build_arguments]
        words += ["--file", str(folder / about["build"]["dockerfile"]), str(folder / about["build"]["context"])]
        engine("build", *words, timeout=_WITHIN)
    mount = f"{checkout}:{about['workspaceFolder']}"
    _, options = bench.given()
    try:
        with container(engine, name, "--volume", mount, *network(committed(made)), *options) as box:
            engine("exec", box, *about["onCreateCommand"], timeout=_WITHIN)
            done = engine("exec", box, *runtime_config(made)["Cmd"], check=False, timeout=_WITHIN)
            return compared(made, engine, box, done.stdout + done.stderr, done.returncode)
    finally:
        engine("rmi", "--force", name, check=False)


def locked(bench: Bench, made: Environment) -> str:
    """`build --locked` in an empty cache gives the same counts and packages."""
    lock, out, fresh = bench.work / "specbuild.lock", bench.work / "out", bench.cache.with_name(bench.cache.name + "-2")
    bench.export(made, "lock", lock)
    env = {"SPECBUILD_CACHE_DIR": str(fresh)}
    words = ["build", made.repo.origin, "--locked", str(lock), "--no-replay", "--output", str(out), "--json"]
    try:
        again = Environment.model_validate_json(bench.specbuild(*words, env=env))
    finally:
        bench.specbuild("cache", "clean", env=env, ok=range(256))
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(out, ignore_errors=True)
    if again.lock != made.lock or again.verdict is None:
        raise NotSameError("other packages")
    return f"{in_words(again.verdict)}, {len(again.lock)} packages the same"


@contextmanager
def _base(bench: Bench, made: Environment, engine: Client) -> Generator[str]:
    """The bare base of the Environment, as an image."""
    archive = bench.work / "base.tar"

    async def write() -> None:
        opened = await open_environment(made, settings=load_settings(cache_dir=bench.cache))
        await write_base_archive(opened, archive, _BASE)

    anyio.run(write)
    try:
        yield engine.load(archive)
    finally:
        engine("rmi", "--force", _BASE, check=False)
        archive.unlink()
