"""Exports in real engines: archives load and their tests pass inside, Dockerfiles build to the same."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import anyio
import pytest

from specbuild.environment import Environment, RepoInfo, Seconds
from specbuild.export.dockerfile import dockerfile
from specbuild.export.image import make_base_image, make_image
from specbuild.export.image_files import write_docker_archive, write_layout_tar
from specbuild.export.layers import Compression
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind, source_step
from specbuild.sandbox.contract import Command, RootfsTar
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.sandbox.passthrough import base_environment
from specbuild.testing.engines import PrivateEngine
from specbuild.testing.rootfs import tiny_rootfs
from specbuild.verify.verdict import Verdict

pytestmark = [pytest.mark.sandbox, pytest.mark.root, pytest.mark.engine, pytest.mark.slow]

BASE = BaseRef(name="tiny:1", digest="sha256:" + "a" * 64)
STEPS = (
    Step(
        kind=StepKind.SYSTEM,
        run="mkdir -p /opt/tool; printf 'first\\n' >/opt/tool/old; : >/opt/tool/gone\nln /opt/tool/old /opt/tool/same",
        cwd="/",
        env=(("NOTE", 'it\'s "$HOME"\n# two lines'),),
    ),
    source_step("d" * 64),
    Step(
        kind=StepKind.BUILD,
        run='cd /opt/tool; rm gone\ncat >note <<EOF\n$NOTE \\\\ `echo "done"`\n#end\nEOF\nchown 7:8 note',
        env=(("NOTE", "a 'b' \"c\""),),
    ),
)
TESTS = """\
set -- /opt/tool/*
test "$*" = "/opt/tool/note /opt/tool/old /opt/tool/same"
test "$(stat -c %u:%g /opt/tool/note)" = 7:8
test "$(stat -c %i /opt/tool/old)" = "$(stat -c %i /opt/tool/same)"
test "$(cat /opt/tool/note)" = "a 'b' \\"c\\" \\\\ done
#end"
test "$PWD" = /repo; test "$SIDE" = "in tests"; test "$ALL" = 'for $all'
echo "passed: $(cat file)"
"""


def environment() -> Environment:
    test = Step(kind=StepKind.TEST, run=TESTS, env=(("SIDE", "in tests"),), network=False)
    check = Check(level=Level.TESTS, runner="command", step=test)
    return Environment(
        id="tiny",
        outcome="committed",
        specbuild_version="0.1",
        created="2026-01-02T03:04:05Z",
        repo=RepoInfo(origin="/x/tiny", kind="folder", revision=None, digest="d" * 64, date=None),
        base=BASE,
        recipe=Recipe(base=BASE, steps=STEPS, check=check, test_env=(("ALL", "for $all"),)),
        verdict=Verdict(level=Level.TESTS, ok=True, reason="", passed=1),
        seconds=Seconds(total=1, to_commit=1),
    )


async def write_archives(folder: Path, source: Path) -> None:
    """`image.tar`, `layout.tar` and `base.tar` of the environment, whose source tree is `source`."""
    made = environment()
    assert made.recipe is not None
    async with OverlayBackend(folder / "store") as backend:
        state = await backend.import_base(made.recipe.checkpoints[0], RootfsTar(tiny_rootfs(folder / "tiny.tar")))
        for key, step in zip(made.recipe.checkpoints[1:], made.recipe.steps, strict=True):
            async with backend.fork(state) as box:
                if step.kind is StepKind.SOURCE:
                    await box.copy_in(source, "/repo")
                else:
                    env = {**base_environment(), **dict(step.env)}
                    done = await box.run(Command(["/bin/sh", "-euc", step.run], cwd=step.cwd, env=env, network=False))
                    assert done.ok, done.tail
                state = await box.freeze(key)
        (folder / "work").mkdir()
        plain = await make_image(made, backend, state.key, folder / "work", compression=Compression.NONE)
        write_docker_archive(plain, folder / "image.tar")
        (folder / "packed").mkdir()
        packed = await make_image(made, backend, state.key, folder / "packed", compression=Compression.GZIP)
        write_layout_tar(packed, folder / "layout.tar")
        (folder / "below").mkdir()
        base = await make_base_image(
            made, backend, folder / "below", compression=Compression.NONE, name="localhost/tiny:1"
        )
        write_docker_archive(base, folder / "base.tar")


@pytest.fixture(scope="module", name="folder")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archives")
    (folder / "source").mkdir()
    (folder / "source" / "file").write_text("the tree")
    anyio.run(write_archives, folder, folder / "source")
    return folder


def output(engine: PrivateEngine, image: str) -> str:
    return engine.call("run", "--rm", "--network=none", image).stdout.decode().strip().splitlines()[-1]


def test_an_archive_loads_and_its_tests_pass_inside(engine: PrivateEngine, folder: Path) -> None:
    said = engine.call("load", "--input", str(folder / "image.tar")).stdout.decode()
    name = said.split("Loaded image")[1].partition(":")[2].strip()
    assert output(engine, name) == "passed: the tree"
    with tarfile.open(folder / "image.tar") as tar:
        listing = tar.extractfile("manifest.json")
        assert listing is not None
        config = json.load(listing)[0]["Config"].rpartition("/")[2]
    told = engine.call("image", "inspect", "--format", "{{.Id}}", name).stdout.decode().strip()
    assert told.removeprefix("sha256:") == config, "both engines know it by the digest of its configuration"
    assert b"base" in engine.call("history", name).stdout


def test_podman_takes_the_layout_too(engine: PrivateEngine, folder: Path) -> None:
    if engine.name == "docker":  # 25 and newer do
        return
    said = engine.call("load", "--input", str(folder / "layout.tar")).stdout.decode()
    assert output(engine, said.split("Loaded image")[1].partition(":")[2].strip()) == "passed: the tree"


def test_the_dockerfile_builds_and_its_tests_pass_inside(engine: PrivateEngine, folder: Path) -> None:
    engine.call("load", "--input", str(folder / "base.tar"))
    text = dockerfile(environment())
    engine.call(
        *("build", "--tag", "localhost/built:1", "--network=none", "--build-arg", "BASE=localhost/tiny:1"),
        *("--file", "-", str(folder / "source")),
        stdin=text.encode(),
    )
    assert output(engine, "localhost/built:1") == "passed: the tree"


def test_a_step_that_fails_ends_the_build(engine: PrivateEngine, folder: Path) -> None:
    engine.call("load", "--input", str(folder / "base.tar"))
    made = environment()
    assert made.recipe is not None
    bad = made.recipe.steps[0].model_copy(update={"run": "false\ntouch /late"})
    text = dockerfile(made.model_copy(update={"recipe": made.recipe.model_copy(update={"steps": (bad,)})}))
    done = engine.call(
        *("build", "--tag", "localhost/bad:1", "--network=none", "--build-arg", "BASE=localhost/tiny:1"),
        *("--file", "-", str(folder / "source")),
        stdin=text.encode(),
        check=False,
    )
    assert done.returncode != 0
    assert engine.call("image", "inspect", "localhost/bad:1", check=False).returncode != 0
