"""Images as files: an OCI image layout (folder or tar), and the archive that `docker load` and `podman load` take.

https://github.com/opencontainers/image-spec/blob/v1.1.0/image-layout.md. An archive is a layout too, with the
`manifest.json` of `docker save` beside its index, so engines of any age and their tools find what they look for.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from specbuild.export.image import Image

_INDEX = "application/vnd.oci.image.index.v1+json"


def write_layout(image: Image, folder: Path) -> None:
    """An OCI image layout in the empty folder; the files of layers are moved into it. Raises OSError."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    for name, data in _small_files(image):
        (folder / name).write_bytes(data)
    for digest, layer in image.blobs.items():
        layer.path.rename(blobs / _hexadecimal(digest))


def write_layout_tar(image: Image, path: Path) -> None:
    """The same as a tar archive; each layer's file is removed once it is in it. Raises OSError."""
    _write_tar(image, path, dict(_small_files(image)))


def write_docker_archive(image: Image, path: Path) -> None:
    """What `docker load -i` and `podman load -i` take. Raises OSError."""
    listing = [
        {
            "Config": _blob_path(image.config.digest),
            "RepoTags": [image.name],
            "Layers": [_blob_path(layer.digest) for layer in image.layers],
        }
    ]
    _write_tar(image, path, {**dict(_small_files(image)), "manifest.json": _json(listing)})


def _write_tar(image: Image, path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "x", format=tarfile.PAX_FORMAT) as tar:
        for folder in ("blobs", "blobs/sha256"):
            tar.addfile(_member(folder, folder=True))
        for name, data in sorted(files.items()):
            tar.addfile(_member(name, len(data)), io.BytesIO(data))
        for digest, layer in image.blobs.items():
            with layer.path.open("rb") as content:
                tar.addfile(_member(_blob_path(digest), layer.size), content)
            layer.path.unlink()


def _member(name: str, size: int = 0, *, folder: bool = False) -> tarfile.TarInfo:
    """Of nobody and no time, so that the archive is the same whenever it is written."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o755 if folder else 0o644
    if folder:
        member.type = tarfile.DIRTYPE
    return member


def _small_files(image: Image) -> Iterator[tuple[str, bytes]]:
    """All files of a layout but its layers."""
    entry = image.manifest.descriptor | {
        "platform": dict(image.platform),
        "annotations": {
            "org.opencontainers.image.ref.name": image.name.rpartition(":")[2],
            "io.containerd.image.name": _full_name(image.name),
        },
    }
    yield "oci-layout", _json({"imageLayoutVersion": "1.0.0"})
    yield "index.json", _json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": [entry]})
    for blob in (image.config, image.manifest):
        yield _blob_path(blob.digest), blob.data


def _full_name(name: str) -> str:
    """With the registry that engines assume."""
    first = name.partition("/")[0]
    return name if "." in first or ":" in first or first == "localhost" else f"docker.io/{name}"


def _blob_path(digest: str) -> str:
    return f"blobs/sha256/{_hexadecimal(digest)}"


def _hexadecimal(digest: str) -> str:
    return digest.removeprefix("sha256:")


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
