"""Images as files: layouts and archives that refer to what they hold, the same each time."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specbuild.environment import Environment, RepoInfo, Seconds
from specbuild.errors import ConfigError, UsageError
from specbuild.export.image import Image, assemble, image_name, runtime_config, source_date, test_command
from specbuild.export.image_files import write_docker_archive, write_layout, write_layout_tar
from specbuild.export.layers import Compression, LayerFile
from specbuild.export.targets import WORDS, Format, Target, new_output, parse_target
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind, source_step
from specbuild.verify.verdict import Verdict

test_command.__test__ = False  # type: ignore[attr-defined]  # no test, for all its name

BASE = BaseRef(name="debian:bookworm", digest="sha256:" + "a" * 64, release="bookworm")


def environment(origin: str = "pypi:Demo.Thing==1.0", **check: Any) -> Environment:
    steps = (Step(kind=StepKind.SYSTEM, run="apt-get update", title="update", cwd="/"), source_step("d" * 64))
    test = Step(kind=StepKind.TEST, run="pytest", env=(("A", "x y"), ("PATH", "/opt/venv/bin")), **check)
    return Environment(
        id="demo",
        outcome="committed",
        specbuild_version="0.1",
        created="2026-01-02T03:04:05Z",
        repo=RepoInfo(origin=origin, kind="pypi", revision="1.0", digest="d" * 64, date="2020-02-03T04:05:06+02:00"),
        base=BASE,
        recipe=Recipe(
            base=BASE,
            steps=steps,
            check=Check(level=Level.TESTS, runner="pytest", step=test),
            test_env=(("PATH", "/opt/venv/bin"),),
        ),
        verdict=Verdict(level=Level.TESTS, ok=True, reason="", passed=1),
        seconds=Seconds(total=1, to_commit=1),
    )


def layer(folder: Path, number: int, *, entries: int = 1, packed: bool = True) -> LayerFile:
    folder.mkdir(exist_ok=True)
    path = folder / f"layer-{number}"
    plain = b"layer %d" % number
    data = gzip.compress(plain, mtime=0) if packed else plain
    path.write_bytes(data)
    digest, diff = (f"sha256:{hashlib.sha256(content).hexdigest()}" for content in (data, plain))
    return LayerFile(path, digest, diff, len(data), Compression.GZIP if packed else Compression.NONE, entries)


def image(folder: Path, *, packed: bool = True) -> Image:
    made = environment()
    assert made.recipe is not None
    states = [[layer(folder, 0, packed=packed)], [layer(folder, 1, packed=packed), layer(folder, 2, packed=packed)]]
    return assemble(made, made.recipe, [*states, [layer(folder, 3, entries=0, packed=packed)]], name="demo:1.0")


def check_layout(read: Callable[[str], bytes]) -> dict[str, Any]:
    """Follows every reference; the configuration."""
    assert json.loads(read("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
    (entry,) = json.loads(read("index.json"))["manifests"]

    def blob(descriptor: dict[str, Any]) -> bytes:
        data = read(f"blobs/sha256/{descriptor['digest'].removeprefix('sha256:')}")
        assert len(data) == descriptor["size"]
        assert descriptor["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
        return data

    manifest = json.loads(blob(entry))
    config: dict[str, Any] = json.loads(blob(manifest["config"]))
    blobs = [blob(each) for each in manifest["layers"]]
    packed = manifest["layers"][0]["mediaType"].endswith("+gzip")
    plain = [gzip.decompress(data) if packed else data for data in blobs]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(data).hexdigest()}" for data in plain]
    assert len([entry for entry in config["history"] if not entry.get("empty_layer")]) == len(plain)
    return config


def test_a_layout_refers_to_what_it_holds(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_layout(image(tmp_path / "work"), out)

    def read(name: str) -> bytes:
        return (out / name).read_bytes()

    config = check_layout(read)
    assert config["os"] == "linux"
    assert [(entry["comment"], entry.get("empty_layer", False)) for entry in config["history"]] == [
        ("base", False),
        ("update", False),
        ("update", False),
        ("place the source tree", True),
    ]


@pytest.mark.parametrize("write", [write_layout_tar, write_docker_archive])
def test_an_archive_is_a_layout_and_the_same_each_time(tmp_path: Path, write: Any) -> None:
    for name in ("a", "b"):
        write(image(tmp_path / f"work-{name}", packed=False), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with tarfile.open(tmp_path / "a") as tar:

        def read(name: str) -> bytes:
            member = tar.extractfile(name)
            assert member is not None
            return member.read()

        check_layout(read)
    assert not list((tmp_path / "work-a").glob("layer-[0-2]")), "what is in the archive is not kept beside it"


def test_an_archive_for_engines_names_its_parts(tmp_path: Path) -> None:
    made = image(tmp_path / "work", packed=False)
    write_docker_archive(made, tmp_path / "a.tar")
    with tarfile.open(tmp_path / "a.tar") as tar:
        member = tar.extractfile("manifest.json")
        assert member is not None
        (listed,) = json.load(member)
        assert listed["RepoTags"] == ["demo:1.0"]
        assert {listed["Config"], *listed["Layers"]} <= set(tar.getnames())
        assert len(listed["Layers"]) == 3


def test_a_container_starts_with_the_tests(tmp_path: Path) -> None:
    config = json.loads(image(tmp_path).config.data)["config"]
    assert config["WorkingDir"] == "/repo"
    assert config["Cmd"] == ["/bin/sh", "-eu", "-c", "export A='x y'\npytest"]
    assert "PATH=/opt/venv/bin" in config["Env"]
    assert config["Labels"]["org.opencontainers.image.revision"] == "1.0"
    assert config["Labels"]["specbuild.base"] == f"debian:bookworm@{BASE.digest}"


def test_what_an_image_sets_holds_in_what_is_exported_of_it() -> None:
    made = environment()
    own = (("GOPATH", "/go"), ("PATH", "/go/bin:/usr/bin"))
    base = BaseRef(name="golang:1.22", digest="sha256:" + "c" * 64, env=own)
    assert made.recipe is not None
    recipe = made.recipe.model_copy(update={"base": base, "test_env": ()})
    config = runtime_config(made.model_copy(update={"base": base, "recipe": recipe}))
    assert {"GOPATH=/go", "PATH=/go/bin:/usr/bin"} <= set(config["Env"])


def test_the_folder_and_the_services_of_tests_come_with_them() -> None:
    made = environment(cwd="/repo/a b").recipe
    assert made is not None
    check = made.check.model_copy(update={"services": (("redis", "redis-server &"),)})
    script = test_command(check, {"A": "x y", "PATH": "/opt/venv/bin"})[-1]
    assert script.startswith("cd '/repo/a b'\n/bin/sh -eu -c 'redis-server &' || ")
    assert script.endswith("pytest")


def test_the_date_is_the_revisions_unless_the_environment_names_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert json.loads(image(tmp_path).config.data)["created"] == "2020-02-03T02:05:06Z"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert json.loads(image(tmp_path).config.data)["created"] == "1970-01-02T00:00:00Z"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    with pytest.raises(ConfigError, match="soon"):
        image(tmp_path)


@pytest.mark.parametrize(
    ("origin", "name"),
    [
        ("pypi:Demo.Thing==1.0", "specbuild/demo-thing:1.0"),
        ("https://example.org/a/Some_Project.git", "specbuild/some-project:1.0"),
        ("/home/me/demo/", "specbuild/demo:1.0"),
        ("/", "specbuild/environment:1.0"),
    ],
)
def test_images_have_names_that_engines_take(origin: str, name: str) -> None:
    assert image_name(environment(origin)) == name


# --- where exports go -----------------------------------------------------------------------------------------------


def test_a_target_is_a_format_and_a_place() -> None:
    assert parse_target("oci:/a:b") == Target(Format.OCI, "/a:b")
    assert parse_target("dockerfile").path("specbuild/demo:1.0") == Path("Dockerfile")
    assert parse_target("docker-archive").path("specbuild/demo:1.0") == Path("demo-1.0.docker.tar")
    assert set(WORDS) == set(Format)


def test_an_unknown_format_is_told_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="docker-archiv") as caught:
        parse_target("docker-archiv:x")
    assert "'docker-archive'" in caught.value.hint
    assert "rootfs" in caught.value.hint


@pytest.mark.parametrize(
    ("given", "place"),
    [("tool", "tool:latest"), ("localhost:5000/a/b", "localhost:5000/a/b:latest"), ("docker.io/library/x:1", "x:1")],
)
def test_an_image_gets_the_tag_that_engines_want(given: str, place: str) -> None:
    assert parse_target(f"engine:{given}").place == parse_target(f"registry:{given}").place == place
    assert parse_target("engine").place == ""


@pytest.mark.parametrize("name", ["Tool", "a b", "-x", "a:b:c", "https://x/y", "a@sha256:" + "0" * 64, "a@sha256:1"])
def test_what_is_no_name_of_an_image_is_told_before_anything_is_made(name: str) -> None:
    for kind in ("engine", "registry"):
        with pytest.raises(UsageError, match=r"no name|by its digest"):
            parse_target(f"{kind}:{name}")


def test_a_device_is_not_replaced_even_by_force(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(UsageError, match="device or a pipe"), new_output(place, force=True) as draft:
            draft.write_text("x")
    assert Path("/dev/null").is_char_device()


def test_a_name_may_be_as_long_as_files_have_them(tmp_path: Path) -> None:
    with new_output(tmp_path / ("n" * 255), force=False) as draft:
        draft.write_text("x")
    assert (tmp_path / ("n" * 255)).read_text() == "x"
    with pytest.raises(UsageError, match="too long"), new_output(tmp_path / ("n" * 256), force=False) as draft:
        draft.write_text("x")
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("given", ["999999999999", "253402300800", "\u0663", "-1", "x", " 5", "1e3", "1" * 20])
def test_a_date_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", given)
    with pytest.raises(ConfigError, match="no number of seconds") as caught:
        source_date()
    assert "unset" in caught.value.hint


def test_what_is_there_stays_unless_it_is_forced(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(UsageError, match="exists already"), new_output(path, force=False):
        pass
    with new_output(path, force=True) as draft:
        draft.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_a_folder_of_other_files_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(UsageError, match="no export"), new_output(tmp_path, force=True):
        pass


def fail_half_way(path: Path) -> None:
    with new_output(path, force=False) as draft:
        draft.mkdir()
        (draft / "half").touch()
        raise RuntimeError("broken")


def test_an_export_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="broken"):
        fail_half_way(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
