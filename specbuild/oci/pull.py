"""Bringing an image here: its manifest and configuration at once, its layers when somebody lacks them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio

from specbuild.errors import DownloadError, ImageNotFoundError, TransientError
from specbuild.http import Network
from specbuild.oci import blobs
from specbuild.oci.blobs import BlobStore
from specbuild.oci.content import (
    LARGEST_MANIFEST,
    Descriptor,
    ImageConfig,
    Index,
    Manifest,
    Platform,
    can_run,
    choose_platform,
    descriptor_of,
    host_platform,
    parse_config,
    parse_manifest,
)
from specbuild.oci.hosts import Endpoint, endpoints
from specbuild.oci.places import Places
from specbuild.oci.reference import Reference, is_digest
from specbuild.oci.registry import Registry, open_registry
from specbuild.retry import Retry

T = TypeVar("T")

AT_ONCE = 4
"""Blobs that are downloaded at the same time from one registry."""
_MIRROR_ATTEMPTS = 2
"""How often a mirror is asked: the next server may not be in trouble."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image for one platform, as far as it is known without its layers."""

    reference: Reference
    digest: str
    """Of its manifest: what pins it."""
    manifest: Manifest
    config: ImageConfig


class Puller:
    """The servers that may have one image, mirrors first. Made by `open_puller`."""

    def __init__(
        self, reference: Reference, asked: tuple[Endpoint, ...], reach: Callable[[Endpoint], Awaitable[Registry]],
        store: BlobStore,
    ) -> None:  # fmt: skip
        self.reference = reference
        self.store = store
        self._endpoints = asked
        self._reach = reach
        self._registries: dict[Endpoint, Registry] = {}
        self._opening = anyio.Lock()
        self._limiter = anyio.Semaphore(AT_ONCE)

    async def resolve(self, platform: Platform | None = None) -> Image:
        """The image for `platform`, by default for this machine.

        Raises ImageNotFoundError, RegistryDeniedError, IntegrityError, DownloadError for what is no image, and
        TransientError, UnreachableError or RateLimitedError when trying again later may help.
        """
        name = str(self.reference)
        wanted = self.reference.wanted
        chosen, told = platform or host_platform(), False
        for _ in range(3):  # an index may hold another one
            digest, parsed = await self._first(partial(_manifest, name, wanted))
            if isinstance(parsed, Manifest):
                config = await self._config(name, parsed)
                if not told:
                    _check_platform(name, config, chosen)
                return Image(self.reference, digest, parsed, config)
            entry = choose_platform(name, parsed, chosen)
            wanted, told = entry.digest, entry.platform is not None
        raise DownloadError(f"{name} is an index of indexes without end")

    async def _config(self, name: str, manifest: Manifest) -> ImageConfig:
        if manifest.config.size > LARGEST_MANIFEST:
            raise DownloadError(f"the configuration of {name} is larger than any can be")
        path = await self.blob(manifest.config)
        config = parse_config(f"the configuration of {name}", await anyio.Path(path).read_bytes())
        if len(config.diff_ids) != len(manifest.layers):
            raise DownloadError(
                f"{name} has {len(manifest.layers)} layers, but its configuration speaks of {len(config.diff_ids)}",
                hint="it may be no image of a root filesystem",
            )
        return config

    async def blob(self, descriptor: Descriptor) -> Path:
        """A blob's file, checked by its digest. Any number may be asked for at once. Raises as `resolve` does."""
        async with self._limiter:
            return await self.store.fetch(descriptor, self._download)

    async def _download(self, descriptor: Descriptor, target: Path) -> None:
        await self._first(lambda registry: blobs.download(registry, descriptor, target))

    async def _first(self, ask: Callable[[Registry], Awaitable[T]]) -> T:
        """What the first server gives that gives it; a mirror that has it not, or is in trouble, does not matter."""
        for endpoint in self._endpoints[:-1]:
            try:
                return await ask(await self._registry(endpoint))
            except (DownloadError, TransientError):
                continue
        return await ask(await self._registry(self._endpoints[-1]))

    async def _registry(self, endpoint: Endpoint) -> Registry:
        async with self._opening:
            if endpoint not in self._registries:
                self._registries[endpoint] = await self._reach(endpoint)
        return self._registries[endpoint]


def _check_platform(name: str, config: ImageConfig, platform: Platform) -> None:
    """Of an image that no index tells the platform of. Raises ImageNotFoundError."""
    if not can_run(config, platform):
        found = Platform(os=config.os, architecture=config.architecture)
        raise ImageNotFoundError(f"{name} has no image for {platform}", status=404, hint=f"it is for {found} alone")


async def _manifest(name: str, wanted: str, registry: Registry) -> tuple[str, Manifest | Index]:
    """What one server has under a tag or digest, and the digest that pins it."""
    body, kind = await registry.manifest(wanted)
    return wanted if is_digest(wanted) else descriptor_of(body, kind).digest, parse_manifest(name, body, kind)


@asynccontextmanager
async def open_puller(
    reference: Reference,
    folder: Path,
    *,
    places: Places | None = None,
    network: Network | None = None,
    retry: Retry | None = None,
) -> AsyncGenerator[Puller]:
    """A Puller that keeps blobs in `folder` until it is closed. Raises UsageError for what the user has blocked."""
    chosen = places or Places()
    async with AsyncExitStack() as stack:
        patient = retry or Retry()
        hasty = replace(patient, attempts=min(patient.attempts, _MIRROR_ATTEMPTS))

        async def reach(endpoint: Endpoint) -> Registry:
            pauses = patient if endpoint == asked[-1] else hasty
            return await stack.enter_async_context(open_registry(endpoint, chosen, network=network, retry=pauses))

        store = BlobStore(folder)
        asked = endpoints(reference, chosen)
        with store.in_use():
            yield Puller(reference, asked, reach, store)
