"""Small images for tests: layers out of entries, manifests around layers."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specbuild.oci.content import (
    OCI_CONFIG,
    OCI_INDEX,
    OCI_LAYER,
    OCI_MANIFEST,
    Descriptor,
    descriptor_of,
    host_platform,
)
from specbuild.oci.push import Upload


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a layer's archive."""

    name: str
    kind: bytes = tarfile.REGTYPE
    data: bytes = b""
    link: str = ""
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    mtime: float = 1_600_000_000
    xattrs: Mapping[str, str] = field(default_factory=dict[str, str])
    device: tuple[int, int] = (0, 0)


def folder(name: str, mode: int = 0o755, **more: Any) -> Item:
    """A folder."""
    return Item(name, tarfile.DIRTYPE, mode=mode, **more)


def file(name: str, data: bytes | str = b"", **more: Any) -> Item:
    """A regular file."""
    return Item(name, data=data.encode() if isinstance(data, str) else data, **more)


def link(name: str, target: str, **more: Any) -> Item:
    """A hard link."""
    return Item(name, tarfile.LNKTYPE, link=target, **more)


def symlink(name: str, target: str, **more: Any) -> Item:
    """A symbolic link."""
    return Item(name, tarfile.SYMTYPE, link=target, mode=0o777, **more)


def layer(*items: Item) -> bytes:
    """The tar archive of a layer."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for item in items:
            entry = tarfile.TarInfo(item.name)
            entry.type, entry.mode, entry.linkname = item.kind, item.mode, item.link
            entry.uid, entry.gid, entry.mtime = item.uid, item.gid, item.mtime
            entry.devmajor, entry.devminor = item.device
            entry.size = len(item.data)
            entry.pax_headers = {f"SCHILY.xattr.{name}": value for name, value in item.xattrs.items()}
            tar.addfile(entry, io.BytesIO(item.data))
    return sink.getvalue()


def extended(name: str, records: Mapping[str, str], data: bytes = b"", *, kind: bytes = tarfile.REGTYPE) -> bytes:
    """One entry of an archive behind an extended header of exactly these records, whether they make sense or not."""
    body = b"".join(_record(key, value) for key, value in records.items())
    head, entry = tarfile.TarInfo("PaxHeader"), tarfile.TarInfo(name)
    head.type, head.size = tarfile.XHDTYPE, len(body)
    entry.type, entry.size = kind, len(data)
    blocks = (head.tobuf(tarfile.USTAR_FORMAT), body, entry.tobuf(tarfile.USTAR_FORMAT), data)
    return b"".join(block + bytes(-len(block) % tarfile.BLOCKSIZE) for block in blocks)


def _record(key: str, value: str) -> bytes:
    """`LENGTH KEY=VALUE`, where the length is that of all of it."""
    rest = f" {key}={value}\n".encode("utf-8", "surrogateescape")
    length = len(rest)
    while length != len(rest) + len(str(length)):
        length = len(rest) + len(str(length))
    return str(length).encode() + rest


def compress(data: bytes, by: str) -> bytes:
    """`data` compressed by `gzip`, `zstd` or nothing (an empty name)."""
    if by == "gzip":
        return gzip.compress(data, 1, mtime=0)
    if by == "zstd":
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
        return zstd.compress(data)
    return data


@dataclass(frozen=True, slots=True)
class MadeImage:
    """An image that can be published with `push_image`."""

    manifest: bytes
    uploads: tuple[Upload, ...]
    """The configuration first, then the layers from the lowest up."""
    diff_ids: tuple[str, ...]
    media_type: str = OCI_MANIFEST

    @property
    def descriptor(self) -> Descriptor:
        """Of its manifest."""
        return descriptor_of(self.manifest, self.media_type)

    @property
    def blobs(self) -> tuple[Descriptor, ...]:
        """Of its layers."""
        return tuple(upload.descriptor for upload in self.uploads[1:])


def image(
    *layers: bytes,
    compression: str | Sequence[str] = "gzip",
    created_by: Sequence[str] = (),
    platform: Mapping[str, str] | None = None,
    **config: Any,
) -> MadeImage:
    """An image out of layers; `config` is its `config` object (`Env`, `User`, …).

    It is of this machine's platform, as far as `platform` says nothing else.
    """
    ways = [compression] * len(layers) if isinstance(compression, str) else compression
    diff_ids = tuple(f"sha256:{hashlib.sha256(data).hexdigest()}" for data in layers)
    blobs = [compress(data, way) for data, way in zip(layers, ways, strict=True)]
    kinds = [f"{OCI_LAYER}+{way}" if way else OCI_LAYER for way in ways]
    described = [descriptor_of(blob, kind) for blob, kind in zip(blobs, kinds, strict=True)]
    host = host_platform()
    about = {
        "architecture": host.architecture,
        "os": host.os,
        **(platform or {}),
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
        "history": [{"created_by": words} for words in created_by],
    }
    text = json.dumps(about).encode()
    configured = descriptor_of(text, OCI_CONFIG)
    manifest = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": _plain(configured),
        "layers": [_plain(each) for each in described],
    }
    uploads = [Upload(each, blob) for each, blob in zip(described, blobs, strict=True)]
    return MadeImage(json.dumps(manifest).encode(), (Upload(configured, text), *uploads), diff_ids)


def index(images: Mapping[str, Descriptor]) -> bytes:
    """An index of manifests by platform (`linux/arm64/v8`)."""
    entries: list[dict[str, Any]] = []
    for name, descriptor in images.items():
        system, architecture, *variant = name.split("/")
        platform = {"os": system, "architecture": architecture, **({"variant": variant[0]} if variant else {})}
        entries.append({**_plain(descriptor), "platform": platform})
    return json.dumps({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries}).encode()


def _plain(descriptor: Descriptor) -> dict[str, Any]:
    return {"mediaType": descriptor.media_type, "digest": descriptor.digest, "size": descriptor.size}
