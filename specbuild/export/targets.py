"""What an Environment can be exported to, and how a user says so: `FORMAT` or `FORMAT:PLACE`."""

from __future__ import annotations

import contextlib
import difflib
import secrets
import shutil
from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from specbuild.errors import UsageError
from specbuild.model import Frozen
from specbuild.oci.reference import parse_reference


class Format(StrEnum):
    """Kinds of exports."""

    DOCKERFILE = "dockerfile"
    SETUP_SH = "setup-sh"
    OCI = "oci"
    DOCKER_ARCHIVE = "docker-archive"
    ENGINE = "engine"
    REGISTRY = "registry"
    DEVCONTAINER = "devcontainer"
    ROOTFS = "rootfs"
    SBOM = "sbom"
    LOCK = "lock"


WORDS = {
    Format.DOCKERFILE: "a Dockerfile for any builder",
    Format.SETUP_SH: "a shell script for a bare machine",
    Format.OCI: "an OCI image layout: a folder, or an archive if its name ends in .tar",
    Format.DOCKER_ARCHIVE: "an image for `docker load` and `podman load`",
    Format.ENGINE: "an image in the local container engine",
    Format.REGISTRY: "an image in a registry",
    Format.DEVCONTAINER: "a folder with devcontainer.json and its Dockerfile",
    Format.ROOTFS: "all files as one tar archive",
    Format.SBOM: "a CycloneDX bill of materials, in JSON",
    Format.LOCK: "the lock, for `build --locked`",
}
"""What each one is, for people."""

IMAGES = frozenset({Format.OCI, Format.DOCKER_ARCHIVE, Format.ENGINE, Format.REGISTRY, Format.ROOTFS})
"""Formats that are made of the Environment's files, not only of its Recipe."""

_DEFAULTS = {
    Format.DOCKERFILE: "Dockerfile",
    Format.SETUP_SH: "setup.sh",
    Format.OCI: "{name}.oci",
    Format.DOCKER_ARCHIVE: "{name}.docker.tar",
    Format.DEVCONTAINER: ".devcontainer",
    Format.ROOTFS: "{name}.rootfs.tar",
    Format.SBOM: "sbom.cdx.json",
    Format.LOCK: "specbuild.lock",
}
"""Where it goes when no place is named; `{name}` is the image's, of characters that files may have."""


@dataclass(frozen=True, slots=True)
class Target:
    """A format and a place: a path, or the name of an image."""

    format: Format
    place: str = ""

    def path(self, name: str) -> Path:
        """Where files go; `name` is the image's name."""
        return Path(self.place or _DEFAULTS[self.format].format(name=name.rpartition("/")[2].replace(":", "-")))


class Exported(Frozen):
    """What was exported, and where it is."""

    schema_version: int = 1
    format: Format
    place: str
    """The path, or the name of the image."""
    digest: str = ""
    """`sha256:…`: of the manifest of an image, else of the file."""
    layers: int | None = None
    """Of an image."""
    size_bytes: int | None = None
    """Of a file, or of all blobs of an image."""
    client: str = ""
    """`docker` or `podman`, if its engine was given the image."""


def parse_target(text: str) -> Target:
    """`FORMAT` or `FORMAT:PLACE`. Raises UsageError for an unknown format, or what is no name of an image."""
    name, _, place = text.partition(":")
    if name not in {each.value for each in Format}:
        near = difflib.get_close_matches(name, [each.value for each in Format], n=1)
        guess = f"did you mean {near[0]!r}? " if near else ""
        raise UsageError(f"there is no export format {name!r}", hint=f"{guess}known: {', '.join(Format)}")
    kind = Format(name)
    if kind is Format.REGISTRY and not place:
        raise UsageError("a registry needs the name of the image", hint="registry:HOST/NAME:TAG")
    if kind in {Format.REGISTRY, Format.ENGINE} and place:
        place = _image_name(place)
    return Target(kind, place)


def _image_name(text: str) -> str:
    """The name with its tag, without which engines load nothing. Raises UsageError before anything is made."""
    reference = parse_reference(text)
    if reference.digest:
        raise UsageError(
            f"{text!r} names an image by its digest, which it has from what it holds",
            hint=f"give it a tag: {reference.name}:TAG",
        )
    return reference.familiar


_MARKS = ("oci-layout", "devcontainer.json")
"""Files by which a folder is known to be an export."""


@contextlib.contextmanager
def new_output(path: Path, *, force: bool) -> Generator[Path]:
    """A name beside `path` to write to, which gets that name when all is written and goes if it fails.

    Raises UsageError if something is there already, unless `force`; a folder that is no export is never replaced.
    """
    draft = path.parent / f".specbuild-{secrets.token_hex(8)}"
    try:
        _check_place(path, force=force)
        path.parent.mkdir(parents=True, exist_ok=True)
        yield draft
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        draft.replace(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}", hint="name another place") from error
    finally:
        with contextlib.suppress(OSError):  # it says nothing that was not said
            shutil.rmtree(draft) if draft.is_dir() else draft.unlink(missing_ok=True)


def _check_place(path: Path, *, force: bool) -> None:
    """Raises UsageError for what may not be replaced, OSError for what is no place."""
    if not (path.exists() or path.is_symlink()):
        return
    if not force:
        raise UsageError(f"{path} exists already", hint="name another place, or give --force to replace it")
    if not (path.is_file() or path.is_dir() or path.is_symlink()):
        raise UsageError(f"{path} is a device or a pipe, which is not replaced", hint="name another place")
    if path.is_dir() and not any((path / mark).is_file() for mark in _MARKS) and any(path.iterdir()):
        raise UsageError(f"the folder {path} holds files that are no export", hint="name another folder")
