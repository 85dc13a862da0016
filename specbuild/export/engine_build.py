"""A Dockerfile is built by the user's engine: a step of it that failed is told apart from trouble of the engine."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from specbuild.errors import SandboxError
from specbuild.export.engine import Engine
from specbuild.tail import last_lines

_BUILD_WITHIN = 7200.0
"""Seconds: steps have no limits of their own there."""
_REMOVE_WITHIN = 120.0
_TRIES, _PAUSE = 20, 0.5
_SHOWN = 20

_STEP_FAILED = re.compile(
    r"(?:returned a non-zero code"  # Docker's first builder
    r"|(?:did not complete successfully|\]): exit code"  # BuildKit, and BuildKit of Docker 20
    r"|while running runtime: exit status)"  # Buildah, in Podman
    r":? (?P<status>\d+)\s*$",
    re.MULTILINE,
)
_ACCOUNT = re.compile(r"^(?:The command '|(?:[Ee]rror:? )?building at STEP )", re.MULTILINE)
"""Begins what a builder says of a step that failed, after the step's own output: its whole script once more."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_REMARK = re.compile(r"^Removing intermediate container [0-9a-f]+\n", re.MULTILINE)
_NOISE = re.compile(r'^time="[^"]*" level=warning msg="missing .* build argument\b.*\n', re.MULTILINE)
"""What Podman says of each build argument that was not given."""
_VERTEX = re.compile(r"^#(?P<number>\d+) ERROR: ", re.MULTILINE)
"""BuildKit mixes the outputs of all steps, each line with its step's number."""
_IMAGE = re.compile(r"^ ?-{2,3}> (?:Using cache )?(?P<id>[0-9a-f]{11,64})$", re.MULTILINE)
"""An image that a builder made of an instruction."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What a builder is told besides the Dockerfile."""

    base: str
    """The image that every stage starts from, by a name that nobody else uses."""
    network: str = ""
    """The engine's network for the steps; its default if empty."""
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    context: str = ""
    """The folder that the Dockerfile copies from; empty if from none."""


@dataclass(frozen=True, slots=True)
class StepFailed:
    """A step of the Dockerfile ended with another status than 0."""

    status: int
    output: str
    """The last lines that it printed."""


async def build_image(engine: Engine, name: str, dockerfile: str, options: BuildOptions) -> StepFailed | None:
    """Build the image `name`, without layers of earlier builds: None, or the step that failed.

    What the builder leaves of a build that failed, or was cancelled, is removed. Raises SandboxError for trouble of
    the engine.
    """
    words = ["--tag", name, "--no-cache", "--force-rm"]
    words += ["--network", options.network] if options.network else []
    arguments = {**options.arguments, "BASE": options.base}
    words += [word for key, value in arguments.items() for word in ("--build-arg", f"{key}={value}")]
    with tempfile.TemporaryDirectory(prefix="specbuild-") as folder:
        file, log, context = Path(folder) / "Dockerfile", Path(folder) / "log", Path(folder) / "empty"
        file.write_text(dockerfile, encoding="utf-8")
        context.mkdir()
        words += ["--file", str(file), options.context or str(context)]
        status: int | None = None
        try:
            status = await engine.build(*words, output=log, timeout=_BUILD_WITHIN)
        finally:
            if status != 0:
                await _remove_unfinished(engine, _read(log), options.base)
        output = _read(log)
    if status == 0:
        return None
    if failed := step_failed(output):
        return failed
    end = "\n".join(last_lines(output, _SHOWN))
    raise SandboxError(f"{engine.name} build failed with exit code {status}:\n{end}")


def plain(output: str) -> str:
    """A builder's output without colours, and without its remarks on arguments that were not given."""
    return _NOISE.sub("", _COLOUR.sub("", output))


def step_failed(output: str) -> StepFailed | None:
    """What the output of a build that failed tells of a step; None if no step of it did."""
    found = list(_STEP_FAILED.finditer(output[-(64 << 10) :]))
    if not found:
        return None
    return StepFailed(int(found[-1]["status"]), "\n".join(last_lines(_own_output(output), _SHOWN)))


async def remove_image(engine: Engine, image: str) -> None:
    """Remove an image, whatever else happens; one that is not there is no matter.

    A build that was cancelled may hold it for a moment.
    """
    with anyio.move_on_after(_REMOVE_WITHIN, shield=True):
        for _ in range(_TRIES):
            done = await engine.call("rmi", image, timeout=_REMOVE_WITHIN, ok=range(256))
            if done.returncode == 0 or b"no such image" in done.stderr.lower() or b"not known" in done.stderr:
                return
            await anyio.sleep(_PAUSE)


async def prune_images(engine: Engine, label: str) -> None:
    """Remove images without a name that have the label, such as stages that a builder leaves behind."""
    with anyio.move_on_after(_REMOVE_WITHIN, shield=True):
        await engine.call(
            *("image", "prune", "--force", "--filter", f"label={label}"), timeout=_REMOVE_WITHIN, ok=range(256)
        )


def _own_output(output: str) -> str:
    """What the step printed, and the builder before it."""
    if vertex := _VERTEX.search(output):
        return "\n".join(re.findall(rf"^#{vertex['number']} \d+\.\d+ (.*)$", output, re.MULTILINE))
    accounts = list(_ACCOUNT.finditer(output))
    return _REMARK.sub("", output[: accounts[-1].start()] if accounts else output)


def _read(log: Path) -> str:
    return plain(log.read_text(encoding="utf-8", errors="replace")) if log.exists() else ""


async def _remove_unfinished(engine: Engine, output: str, base: str) -> None:
    with anyio.move_on_after(_REMOVE_WITHIN, shield=True):
        if engine.podman:
            await _remove_working_containers(engine, base)
        else:
            await _remove_newest_image(engine, output)


async def _remove_working_containers(engine: Engine, base: str) -> None:
    """Those that Podman's builder leaves when it is ended: they have no label, and are told by their image alone."""
    listed = await engine.call("ps", "--all", "--external", "--format", "{{.ID}} {{.Image}}", ok=range(256))
    for line in listed.stdout.decode().splitlines():
        identity, _, image = line.partition(" ")
        if image == base:
            await engine.call("rm", "--force", identity, ok=range(256))


async def _remove_newest_image(engine: Engine, output: str) -> None:
    """Images below it that have no name go with it. A base stays: it has one."""
    made = _IMAGE.findall(output)
    if not made:
        return
    names = await engine.call("image", "inspect", "--format", "{{.RepoTags}}{{.RepoDigests}}", made[-1], ok=range(256))
    if names.stdout.strip() == b"[][]":
        await remove_image(engine, made[-1])
