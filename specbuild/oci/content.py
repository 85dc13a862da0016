"""What a registry holds: manifests, indexes of several platforms, configurations; read with nothing taken on trust."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from specbuild.errors import DownloadError, ImageNotFoundError, IntegrityError
from specbuild.oci.places import from_json, table, tables
from specbuild.oci.reference import is_digest

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar"
OCI_LAYER_GZIP = f"{OCI_LAYER}+gzip"
OCI_LAYER_ZSTD = f"{OCI_LAYER}+zstd"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"

INDEXES = frozenset({OCI_INDEX, DOCKER_LIST})
MANIFESTS = frozenset({OCI_MANIFEST, DOCKER_MANIFEST})
ACCEPTED = ", ".join((OCI_INDEX, OCI_MANIFEST, DOCKER_LIST, DOCKER_MANIFEST))

LARGEST_MANIFEST = 4 << 20
"""Bytes; the least that the distribution specification has registries accept, and the most that they do."""

_ARCHITECTURES = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "armv7l": "arm",
    "armv6l": "arm",
    "i686": "386",
    "loongarch64": "loong64",
}
"""The kernel's names and Go's, which images use; the others are the same."""
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)=([^\0\ud800-\udfff]*)", re.DOTALL)
_ALSO_RUNS = {"amd64": ("386",), "arm64": ("arm",)}
"""Of which other architectures programs run there, too."""
_ARM_VARIANTS = ("v8", "v7", "v6", "v5")


class _Foreign(BaseModel):
    """What others write: fields that we do not know are theirs."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)


class Platform(_Foreign):
    """What an image runs on, in Go's words."""

    os: str = "linux"
    architecture: str = ""
    variant: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.os, self.architecture, self.variant) if part)


class Descriptor(_Foreign):
    """A piece of content by its digest."""

    media_type: str
    digest: str
    size: int = Field(ge=0)
    """Bytes."""
    platform: Platform | None = None


class Index(_Foreign):
    """One image for several platforms."""

    manifests: tuple[Descriptor, ...]


class Manifest(_Foreign):
    """One image for one platform."""

    config: Descriptor
    layers: tuple[Descriptor, ...]


class _RunConfig(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    Env: tuple[str, ...] | None = None
    User: str | None = None
    WorkingDir: str | None = None


class _Rootfs(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    diff_ids: tuple[str, ...] = ()


class _History(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    created_by: str | None = None


class ImageConfig(BaseModel):
    """What an image says of itself (OCI image configuration)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    os: str = "linux"
    architecture: str = ""
    config: _RunConfig | None = None
    rootfs: _Rootfs = _Rootfs()
    history: tuple[_History, ...] | None = None

    @property
    def diff_ids(self) -> tuple[str, ...]:
        """Digests of the layers' tar archives before compression, lowest first."""
        return self.rootfs.diff_ids

    @property
    def env(self) -> tuple[tuple[str, str], ...]:
        """The variables that its commands start with, but for those that no process, shell or Dockerfile can have."""
        found = map(_VARIABLE.fullmatch, (self.config.Env if self.config else None) or ())
        return tuple((match[1], match[2]) for match in found if match)

    @property
    def user(self) -> str:
        """Whom its commands run as; empty for root."""
        user = (self.config.User if self.config else None) or ""
        return "" if user.partition(":")[0] in {"root", "0"} else user

    @property
    def commands(self) -> tuple[str, ...]:
        """What its layers were made by, lowest first."""
        return tuple(entry.created_by or "" for entry in self.history or ())


def check_digest(what: str, data: bytes, digest: str) -> None:
    """Raises IntegrityError unless `data` has that digest."""
    algorithm, _, wanted = digest.partition(":")
    if not is_digest(digest):
        raise IntegrityError(f"{what} is promised under {digest!r}, which is no digest that can be checked")
    if (found := hashlib.new(algorithm, data).hexdigest()) != wanted:
        raise mismatch(what, f"{algorithm}:{found}", digest)


def mismatch(what: str, found: str, wanted: str) -> IntegrityError:
    """What to raise when content is not what it was promised to be."""
    return IntegrityError(
        f"{what} has the digest {found}, but {wanted} was promised",
        hint="a proxy or mirror may hold a damaged copy; if not, do not trust that registry",
    )


def parse_manifest(what: str, data: bytes, media_type: str) -> Manifest | Index:
    """A manifest or an index. Raises DownloadError for anything else, such as the first schema of Docker's."""
    value = _json(what, data)
    kind = str(value.get("mediaType") or media_type.partition(";")[0].strip())
    if kind in INDEXES or (kind not in MANIFESTS and "manifests" in value):
        return Index(manifests=tuple(_sound_entries(value)))
    if kind in MANIFESTS or ("config" in value and "layers" in value):
        manifest = _checked(what, Manifest, value)
        for descriptor in (manifest.config, *manifest.layers):
            if not is_digest(descriptor.digest):
                raise DownloadError(f"{what} refers to {descriptor.digest!r}, which is no digest that can be checked")
        return manifest
    raise DownloadError(
        f"{what} is of the kind {kind or 'unknown'!r}, which is no image that can be used",
        hint="images in Docker's first schema have to be pushed again by a newer tool",
    )


def _sound_entries(index: dict[str, Any]) -> Iterator[Descriptor]:
    """What makes sense of an index: an entry that is odd says nothing of the others."""
    for entry in tables(index.get("manifests")):
        with contextlib.suppress(ValidationError):
            yield Descriptor.model_validate(entry)


def parse_config(what: str, data: bytes) -> ImageConfig:
    """An image's configuration. Raises DownloadError."""
    return _checked(what, ImageConfig, _json(what, data))


def _json(what: str, data: bytes) -> dict[str, Any]:
    try:
        value = from_json(data)
    except ValueError as error:
        raise DownloadError(f"{what} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise DownloadError(f"{what} is no JSON object")
    return table(value)  # pyright: ignore[reportUnknownArgumentType]


_Model = TypeVar("_Model", bound=BaseModel)


def _checked(what: str, model: type[_Model], value: dict[str, Any]) -> _Model:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DownloadError(f"{what} is not as it has to be: {where}: {first['msg']}") from error


def host_platform() -> Platform:
    """What this machine runs."""
    machine = os.uname().machine
    variant = machine[3:5] if machine.startswith("armv") else ""
    return Platform(architecture=_ARCHITECTURES.get(machine, machine), variant=variant)


def choose_platform(what: str, index: Index, platform: Platform) -> Descriptor:
    """The image of the index for `platform`: of the ARM variants the newest that it can run.

    One that does not say what it is for may be for anything, and comes last. Raises ImageNotFoundError where it has
    none.
    """
    able = [entry for entry in index.manifests if _runs(entry, platform)]
    able = able or [entry for entry in index.manifests if entry.platform is None and _is_manifest(entry)]
    if not able:
        names = sorted({str(entry.platform) for entry in index.manifests if _is_image(entry)})
        raise ImageNotFoundError(
            f"{what} has no image for {platform}", status=404, hint=f"it has: {', '.join(names) or 'none at all'}"
        )
    return min(able, key=lambda entry: _preference(entry, platform))


def _is_image(entry: Descriptor) -> bool:
    """Attestations lie beside images under the platform `unknown/unknown`."""
    offered = entry.platform
    return entry.media_type in MANIFESTS and offered is not None and offered.architecture not in {"", "unknown"}


def _is_manifest(entry: Descriptor) -> bool:
    return entry.media_type in {*MANIFESTS, *INDEXES} and is_digest(entry.digest)


def _runs(entry: Descriptor, wanted: Platform) -> bool:
    offered = entry.platform
    if not _is_manifest(entry) or offered is None:
        return False
    if (offered.os, offered.architecture) != (wanted.os, wanted.architecture):
        return False
    return wanted.architecture != "arm" or _newness(offered.variant) >= _newness(wanted.variant)


def _newness(variant: str) -> int:
    """Position in `_ARM_VARIANTS`: the newest first; an image that names none is for version 7 at most."""
    return _ARM_VARIANTS.index(variant) if variant in _ARM_VARIANTS else _ARM_VARIANTS.index("v7")


def _preference(entry: Descriptor, wanted: Platform) -> tuple[int, int]:
    variant = entry.platform.variant if entry.platform else ""
    # Higher levels of x86-64 (`v3`) are named by variants, too: the plain image runs everywhere.
    plain = 0 if variant in {wanted.variant, ""} or wanted.architecture in {"arm", "arm64"} else 1
    return plain, _newness(variant) if wanted.architecture == "arm" else 0


def can_run(config: ImageConfig, platform: Platform) -> bool:
    """Whether an image is one for `platform`, as far as its configuration tells."""
    able = {platform.architecture, "", *_ALSO_RUNS.get(platform.architecture, ())}
    return config.os in {platform.os, ""} and config.architecture in able


def descriptor_of(data: bytes, media_type: str) -> Descriptor:
    """The Descriptor of some bytes."""
    return Descriptor(media_type=media_type, digest=f"sha256:{hashlib.sha256(data).hexdigest()}", size=len(data))


def chain_ids(diff_ids: Iterable[str]) -> tuple[str, ...]:
    """For each layer the digest that names it on top of those below it (OCI image specification, ChainID)."""
    chain: list[str] = []
    for diff_id in diff_ids:
        below = chain[-1] if chain else ""
        joined = hashlib.sha256(f"{below} {diff_id}".encode()).hexdigest() if below else ""
        chain.append(f"sha256:{joined}" if below else diff_id)
    return tuple(chain)
