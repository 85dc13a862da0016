"""An environment is used where it was built, whatever backend is usual on the machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import specbuild
from specbuild import Settings
from specbuild.environment import Environment, Holder, RepoInfo, Seconds
from specbuild.errors import ConfigError, EngineNotRunningError, UsageError
from specbuild.opened import OpenEnvironment
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.sandbox.backends import open_backend
from specbuild.sandbox.contract import RootfsTar
from specbuild.testing.engines import PrivateEngine, docker_engine
from specbuild.testing.rootfs import tiny_rootfs

pytestmark = [pytest.mark.sandbox, pytest.mark.root]

CHECK = Check(level=Level.COMMAND, runner="command", step=Step(kind=StepKind.TEST, run="true"))
RECIPE = Recipe(base=BaseRef(name="debian:bookworm", digest="sha256:0"), steps=(), check=CHECK)
REPO = RepoInfo(origin="/somewhere", kind="folder", revision=None, digest="0", date=None)


@pytest.fixture(scope="module")
def engine() -> Iterator[PrivateEngine]:
    with docker_engine() as running:
        yield running


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_rootfs(tmp_path_factory.mktemp("root") / "tiny.tar")


async def kept(root: Path, cache: Path, backend: str, engine: str = "") -> Environment:
    """An environment whose files a backend holds."""
    opening = open_backend(Settings(cache_dir=cache, backend=backend), engine=engine)
    async with opening as opened:
        await opened.import_base(RECIPE.checkpoints[-1], RootfsTar(root))
        await opened.keep(RECIPE.checkpoints[-1], "e")
        holder = Holder(backend=opened.name, engine=opening.engine)
    return Environment(
        id="e",
        outcome="committed",
        specbuild_version="1",
        created="2026-01-01T00:00:00+00:00",
        repo=REPO,
        base=RECIPE.base,
        recipe=RECIPE,
        seconds=Seconds(total=1.0, to_commit=1.0),
        held_by=holder,
    )


async def runs(environment: Environment, settings: Settings) -> str:
    done = await OpenEnvironment.of(environment, settings).run(["cat", "/etc/hostname"], network=False)
    return done.tail.strip()


@pytest.mark.engine
@pytest.mark.slow
async def test_what_an_engine_holds_is_run_there(engine: PrivateEngine, root: Path, tmp_path: Path) -> None:
    environment = await kept(root, tmp_path, "docker", engine.address)
    assert environment.held_by == Holder(backend="docker", engine=engine.address)
    read = Environment.model_validate_json(environment.model_dump_json())
    for named in ("auto", "docker"):
        assert await runs(read, Settings(cache_dir=tmp_path, backend=named)) == "tiny"
    with pytest.raises(UsageError, match=f"held by docker at {engine.address}, not by overlay") as told:
        await runs(read, Settings(cache_dir=tmp_path, backend="overlay"))
    assert "leave out --backend" in told.value.hint
    async with open_backend(Settings(cache_dir=tmp_path, backend="docker"), engine=engine.address) as backend:
        await backend.forget("e")
        await backend.prune(everything=True)
    with pytest.raises(UsageError, match=f"not in docker at {engine.address} any more"):
        await runs(read, Settings(cache_dir=tmp_path))


async def test_an_engine_that_is_not_there_any_more_is_named(root: Path, tmp_path: Path) -> None:
    environment = await kept(root, tmp_path, "overlay")
    gone = environment.model_copy(update={"held_by": Holder(backend="docker", engine=f"unix://{tmp_path}/gone.sock")})
    with pytest.raises(EngineNotRunningError, match=r"gone\.sock.*does not answer"):
        await runs(gone, Settings(cache_dir=tmp_path))


async def test_what_overlay_holds_is_run_there_whatever_engine_is_set(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    environment = await kept(root, tmp_path, "overlay")
    assert environment.held_by == Holder(backend="overlay")
    assert await runs(environment, Settings(cache_dir=tmp_path)) == "tiny"
    with pytest.raises(EngineNotRunningError):
        await runs(environment, Settings(cache_dir=tmp_path, backend="docker"))


async def test_environments_of_earlier_versions_are_where_the_settings_say(root: Path, tmp_path: Path) -> None:
    environment = await kept(root, tmp_path, "overlay")
    older = Environment.model_validate_json(environment.model_dump_json(exclude={"held_by"}))
    assert older.held_by is None
    assert await runs(older, Settings(cache_dir=tmp_path, backend="overlay")) == "tiny"


async def test_what_cannot_fork_is_told_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/gone.sock")
    nowhere = tmp_path / "no-such-folder"
    with pytest.raises(EngineNotRunningError, match="does not answer: No such file or directory"):
        await specbuild.build(nowhere, settings=Settings(cache_dir=tmp_path, backend="docker"))
    with pytest.raises(ConfigError, match="no sandbox backend 'podman'") as told:
        await specbuild.build(nowhere, settings=Settings(cache_dir=tmp_path, backend="podman"))
    assert "Podman's too" in told.value.hint
