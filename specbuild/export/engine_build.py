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
_VERTEX = re.compile(r"^#(?P<number>\d+) ERROR: ", re.MULTILINE)
"""BuildKit mixes the outputs of all steps, each line with its step's number."""
_IMAGE = re.compile(r"^ ?-{2,3}> (?:Using cache )?(?P<id>[0-9a-f]{11,64})$", re.MULTILINE)
"""An image that a builder made of an instruction."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What a builder is told besides the Dockerfile."""

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

    What the builder leaves of a build that failed is removed. Raises SandboxError for trouble of the engine, such as
    a base that it cannot have.
    """
    words = ["build", "--tag", name, "--no-cache", "--force-rm"]
    words += ["--network", options.network] if options.network else []
    words += [word for key, value in options.arguments.items() for word in ("--build-arg", f"{key}={value}")]
    # In a file: Podman opens its standard input by name, which event loops may have made a socket, which has none.
    with tempfile.TemporaryDirectory(prefix="specbuild-") as folder:
        file = Path(folder) / "Dockerfile"
        file.write_text(dockerfile, encoding="utf-8")
        words += ["--file", str(file), options.context or folder]
        done = await engine.call(*words, timeout=_BUILD_WITHIN, ok=range(256), merged=True)
    if done.returncode == 0:
        return None
    output = _COLOUR.sub("", done.stdout.decode(errors="replace"))
    await _remove_unfinished(engine, output)
    if failed := step_failed(output):
        return failed
    end = "\n".join(last_lines(output, _SHOWN))
    raise SandboxError(f"{engine.name} build failed with exit code {done.returncode}:\n{end}")


def step_failed(output: str) -> StepFailed | None:
    """What the output of a build that failed tells of a step; None if no step of it did."""
    found = list(_STEP_FAILED.finditer(output[-(64 << 10) :]))
    if not found:
        return None
    return StepFailed(int(found[-1]["status"]), "\n".join(last_lines(_own_output(output), _SHOWN)))


async def remove_image(engine: Engine, image: str) -> None:
    """Remove an image, whatever else happens; one that is not there is no matter."""
    with anyio.move_on_after(_REMOVE_WITHIN, shield=True):
        await engine.call("rmi", image, timeout=_REMOVE_WITHIN, ok=range(256))


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


async def _remove_unfinished(engine: Engine, output: str) -> None:
    """The newest image of the build; those below it that have no name go with it. A base stays: it has one."""
    made = _IMAGE.findall(output)
    if not made:
        return
    names = await engine.call("image", "inspect", "--format", "{{.RepoTags}}{{.RepoDigests}}", made[-1], ok=range(256))
    if names.stdout.strip() == b"[][]":
        await remove_image(engine, made[-1])
