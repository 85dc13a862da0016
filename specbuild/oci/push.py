"""Publishing an image: its blobs, unless they are there already, then its manifest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import anyio

from specbuild.errors import DownloadError, ImageNotFoundError, TransientError
from specbuild.http import Answer, Network
from specbuild.oci.addresses import resolved
from specbuild.oci.content import Descriptor, check_digest, descriptor_of
from specbuild.oci.hosts import endpoints
from specbuild.oci.places import Places
from specbuild.oci.reference import Reference, is_digest
from specbuild.oci.registry import Registry, open_registry
from specbuild.retry import Retry
from specbuild.together import joined

AT_ONCE = 3
"""Blobs that are uploaded at the same time."""
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Upload:
    """A blob to be published."""

    descriptor: Descriptor
    source: Path | bytes
    """Its content: a file, which is read as it is sent, or the bytes themselves."""
    elsewhere: str = ""
    """A repository of the same registry that may have it, from which it is mounted then."""


Progress = Callable[[Upload, bool], None]
"""Told of each blob when it is there, and whether it had to be sent."""


def _silent(upload: Upload, sent: bool) -> None:
    del upload, sent


async def push_image(
    reference: Reference,
    manifest: bytes,
    media_type: str,
    uploads: Sequence[Upload],
    *,
    places: Places | None = None,
    network: Network | None = None,
    retry: Retry | None = None,
    progress: Progress = _silent,
) -> str:
    """Publish an image under `reference`; the digest of its manifest.

    `uploads` are the blobs that the manifest refers to: its configuration and layers. Raises RegistryDeniedError,
    RequestRefusedError, IntegrityError for a reference by another digest than the manifest's, TransientError.
    """
    if reference.digest:
        check_digest("the manifest", manifest, reference.digest)
    chosen = places or Places()
    (endpoint,) = endpoints(reference, chosen, push=True)
    async with open_registry(endpoint, chosen, network=network, retry=retry, push=True) as registry:
        async with joined() as tasks:
            limiter = anyio.Semaphore(AT_ONCE)
            for upload in {each.descriptor.digest: each for each in uploads}.values():
                tasks.start_soon(_push_one, registry, upload, limiter, progress)
        return await push_manifest(registry, reference.wanted, manifest, media_type)


async def _push_one(registry: Registry, upload: Upload, limiter: anyio.Semaphore, progress: Progress) -> None:
    async with limiter:
        progress(upload, await push_blob(registry, upload))


async def push_blob(registry: Registry, upload: Upload) -> bool:
    """See that the repository has the blob; whether it had to be sent."""
    if await has_blob(registry, upload.descriptor):
        return False
    pauses = registry.retry.pauses()
    while True:
        try:
            location = await _begin(registry, upload)
            if location is None:
                return False
            await _send(registry, upload, location)
        except TransientError as trouble:  # an upload that broke off is begun anew: few registries resume them
            await registry.pause(next(pauses, None), trouble)
        else:
            return True


async def has_blob(registry: Registry, descriptor: Descriptor) -> bool:
    """Whether the repository has it, whole."""

    async def look(answer: Answer) -> bool:
        return answer.headers.get("content-length", "") in {"", str(descriptor.size)}

    try:
        return await registry.ask("HEAD", f"blobs/{descriptor.digest}", look)
    except ImageNotFoundError:
        return False


async def _begin(registry: Registry, upload: Upload) -> str | None:
    """Where to send it; None if the registry could take it from elsewhere."""
    query = {"mount": upload.descriptor.digest, "from": upload.elsewhere} if upload.elsewhere else {}

    async def look(answer: Answer) -> str | None:
        if answer.status == 201:
            return None
        location = answer.headers.get("location", "")
        if answer.status != 202 or not location:
            raise DownloadError(f"{registry.shown} tells of no place to send a blob to (HTTP {answer.status})")
        return resolved(answer.url, location)

    path = f"blobs/uploads/{'?' if query else ''}{urlencode(query)}"
    return await registry.once("POST", path, look, content=lambda: b"")


async def _send(registry: Registry, upload: Upload, location: str) -> None:
    descriptor = upload.descriptor
    joint = "&" if urlsplit(location).query else "?"
    headers = {"Content-Type": "application/octet-stream", "Content-Length": str(descriptor.size)}

    async def look(answer: Answer) -> None:
        if answer.status != 201:
            raise DownloadError(f"{registry.shown} does not say that it has taken a blob (HTTP {answer.status})")

    await registry.once(
        "PUT",
        f"{location}{joint}{urlencode({'digest': descriptor.digest})}",
        look,
        headers=headers,
        content=lambda: upload.source if isinstance(upload.source, bytes) else _pieces(upload.source),
    )


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    async with await anyio.open_file(path, "rb") as file:
        while piece := await file.read(_PIECE):
            yield piece


async def push_manifest(registry: Registry, wanted: str, manifest: bytes, media_type: str) -> str:
    """Publish a manifest or index under a tag or its digest, once its blobs are there; its digest."""

    async def look(answer: Answer) -> str:
        return answer.headers.get("docker-content-digest", "")

    headers = {"Content-Type": media_type}
    told = await registry.ask("PUT", f"manifests/{wanted}", look, headers=headers, content=lambda: manifest)
    if is_digest(told):
        check_digest(f"the manifest that {registry.shown} took", manifest, told)
        return told
    return descriptor_of(manifest, media_type).digest
