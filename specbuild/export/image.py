"""The Environment as an OCI image: its layers as files, the configuration and the manifest as bytes.

https://github.com/opencontainers/image-spec/blob/v1.1.0/config.md and manifest.md. The same Checkpoint and Environment
give the same digests.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from specbuild.environment import Environment
from specbuild.errors import ConfigError
from specbuild.export.layers import Compression, LayerFile, write_layers
from specbuild.export.text import committed, one_line, title_of, without_users
from specbuild.recipe import SHELL, SOURCE_DIR, Check, Recipe, Step, StepKind
from specbuild.sandbox.contract import LayerSource
from specbuild.sandbox.passthrough import base_environment

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"

_LAST_SECOND = 253_402_300_799
"""Of the year 9999, the last that the labels' form (RFC 3339) has."""
_LONGEST_NAME = 100
"""Characters; engines take 255 for all of a name, and files are named after it."""
_LONGEST_TAG = 128
_LABEL = "org.opencontainers.image"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386", "ppc64le": "ppc64le"}
"""The kernel's names and Go's; the others are the same."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes with their address."""

    data: bytes
    media_type: str

    @property
    def digest(self) -> str:
        """`sha256:…`."""
        return f"sha256:{hashlib.sha256(self.data).hexdigest()}"

    @property
    def descriptor(self) -> dict[str, Any]:
        """As manifests and indexes refer to it."""
        return {"mediaType": self.media_type, "digest": self.digest, "size": len(self.data)}


@dataclass(frozen=True, slots=True)
class Image:
    """A whole image. Its layers lie in a folder that is the caller's."""

    name: str
    """`repository:tag`, for what gives images names."""
    layers: tuple[LayerFile, ...]
    """Lowest first; each file once in `blobs`, even if two layers are alike."""
    config: Blob
    manifest: Blob
    platform: Mapping[str, str]

    @property
    def digest(self) -> str:
        """What registries and engines know the image by: of its manifest."""
        return self.manifest.digest

    @property
    def blobs(self) -> dict[str, LayerFile]:
        """The layers' files by digest."""
        return {layer.digest: layer for layer in self.layers}


async def make_image(
    environment: Environment, source: LayerSource, key: str, folder: Path, *, compression: Compression, name: str = ""
) -> Image:
    """The image of an Environment whose files are the Checkpoint `key`; its layers become files in `folder`.

    Raises UsageError for an Environment that was not committed, StoreError if files are gone, OSError.
    """
    _, recipe, _ = committed(environment)
    states = await write_layers(source, key, folder, compression=compression)
    return assemble(environment, recipe, states, name=name or image_name(environment))


async def make_base_image(
    environment: Environment, source: LayerSource, folder: Path, *, compression: Compression, name: str
) -> Image:
    """The image of the bare base of an Environment. Raises as `make_image` does."""
    _, recipe, _ = committed(environment)
    bare = recipe.model_copy(update={"steps": ()})
    states = await write_layers(source, bare.checkpoints[0], folder, compression=compression)
    env = base_environment(recipe.base)
    config = {"Env": [f"{key}={value}" for key, value in env.items()], "Cmd": ["/bin/sh"]}
    return assemble(environment, bare, states, name=name, runtime=config)


def assemble(
    environment: Environment,
    recipe: Recipe,
    states: Sequence[Sequence[LayerFile]],
    *,
    name: str,
    runtime: Mapping[str, Any] | None = None,
) -> Image:
    """Configuration and manifest for layers that are there; pure, but for `SOURCE_DATE_EPOCH`.

    `states` are the layers of the base, then those of each step. `runtime` is what containers start with, by default
    the tests. A layer without any file stays out; its step is in the history as one that left nothing.
    """
    created = created_at(environment)
    platform = {"architecture": _architecture(), "os": "linux"}
    real = tuple(layer for layers in states for layer in layers if layer.entries)
    config = {
        "created": created,
        **platform,
        "config": runtime_config(environment) if runtime is None else dict(runtime),
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in real]},
        "history": _history(recipe, states, created),
    }
    config_blob = Blob(_json(config), CONFIG)
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config_blob.descriptor,
        "layers": [{"mediaType": each.media_type, "digest": each.digest, "size": each.size} for each in real],
        "annotations": labels(environment),
    }
    return Image(name, real, config_blob, Blob(_json(manifest), MANIFEST), platform)


def created_at(environment: Environment) -> str:
    """When the image was made, as it says: `SOURCE_DATE_EPOCH`, else the date of the revision, else of the build.

    https://reproducible-builds.org/specs/source-date-epoch/. Raises ConfigError for a variable that is no number.
    """
    moment = source_date() or datetime.fromisoformat(environment.repo.date or environment.created).astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def source_date() -> datetime | None:
    """What `SOURCE_DATE_EPOCH` says, if it is set. Raises ConfigError for what is no time of the years up to 9999."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if not given:
        return None
    seconds = int(given) if re.fullmatch(r"[0-9]{1,12}", given) else _LAST_SECOND + 1
    if seconds > _LAST_SECOND:
        raise ConfigError(
            f"SOURCE_DATE_EPOCH is {given!r}, which is no number of seconds since 1970",
            hint='set it as in SOURCE_DATE_EPOCH="$(git log -1 --format=%ct)", or unset it',
        )
    return datetime.fromtimestamp(seconds, UTC)


def runtime_config(environment: Environment) -> dict[str, Any]:
    """What a container of the image starts with: the tests, in the source tree, unless another command is given."""
    base, recipe, check = committed(environment)
    env = {**base_environment(base), **dict(recipe.test_env)}
    return {
        "Env": [f"{name}={value}" for name, value in env.items()],
        "Cmd": test_command(check, env),
        "WorkingDir": SOURCE_DIR,
        "Labels": labels(environment),
    }


def test_command(check: Check, env: Mapping[str, str]) -> list[str]:
    """The program and arguments that run the tests where the variables are `env`, services and folder included."""
    step = check.whole
    lines = [f"export {name}={shlex.quote(value)}" for name, value in step.env if env.get(name) != value]
    if step.cwd != SOURCE_DIR:
        lines.append(f"cd {shlex.quote(step.cwd)}")
    return [*SHELL, "\n".join([*lines, step.run])]


def labels(environment: Environment) -> dict[str, str]:
    """https://github.com/opencontainers/image-spec/blob/v1.1.0/annotations.md, sorted."""
    base, repo = environment.base, environment.repo
    found = {
        f"{_LABEL}.title": image_name(environment).rpartition(":")[0],
        f"{_LABEL}.created": created_at(environment),
        f"{_LABEL}.source": without_users(repo.origin) if "://" in repo.origin else "",
        f"{_LABEL}.revision": repo.revision or "",
        f"{_LABEL}.version": repo.revision or repo.digest,
        # The annotations `base.name` and `base.digest` are of images in registries, which our own bases are not.
        "specbuild.base": f"{base.name}@{base.digest}" if base and base.portable else "",
        "specbuild.environment": environment.id,
        "specbuild.version": environment.specbuild_version,
        "specbuild.source.digest": repo.digest,
    }
    return {name: found[name] for name in sorted(found) if found[name]}


def image_name(environment: Environment) -> str:
    """`specbuild/NAME:TAG`, from where the source tree came from and its revision."""
    origin = re.sub(r"^pypi:|\.git$|\.(?:tar\.\w+|tgz|zip|whl)$", "", environment.repo.origin.rstrip("/"))
    stem, _, version = origin.rpartition("/")[2].partition("==")
    name = re.sub(r"[^a-z0-9]+", "-", stem.lower())[:_LONGEST_NAME].strip("-") or "environment"
    words = version or (environment.repo.revision or environment.repo.digest)[:12]
    tag = re.sub(r"[^\w.-]+", "-", words, flags=re.ASCII).lstrip("-.")[:_LONGEST_TAG]
    return f"specbuild/{name}:{tag or 'latest'}"


def _history(recipe: Recipe, states: Sequence[Sequence[LayerFile]], created: str) -> list[dict[str, Any]]:
    """What `docker history` shows: an entry for each layer, and one for each step that left none."""
    made_by = [(f"{recipe.base.name} {recipe.base.digest}", "base")]
    made_by += [(_created_by(step), title_of(step)) for step in recipe.steps]
    entries: list[dict[str, Any]] = []
    for (created_by, comment), layers in zip(made_by, states, strict=True):
        entry = {"created": created, "created_by": created_by, "comment": comment}
        count = sum(1 for layer in layers if layer.entries)
        entries += [entry] * count if count else [{**entry, "empty_layer": True}]
    return entries


def _created_by(step: Step) -> str:
    if step.kind is StepKind.SOURCE:
        return f"COPY . {SOURCE_DIR}"
    env = "".join(f"{name}={shlex.quote(value)} " for name, value in step.env)
    return f"cd {shlex.quote(step.cwd)}; {env}/bin/sh -eu -c {shlex.quote(one_line(step.run))}"


def _architecture() -> str:
    machine = os.uname().machine
    return _ARCHITECTURES.get(machine, machine)


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogateescape")
