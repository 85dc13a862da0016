"""Exports an Environment to a target: makes what the format asks for, and puts it in its place."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import assert_never

import anyio.to_thread

from specbuild.environment import Environment
from specbuild.errors import StoreError
from specbuild.export.devcontainer import devcontainer
from specbuild.export.dockerfile import dockerfile
from specbuild.export.engine import find_engine
from specbuild.export.image import Image, image_name, make_image, source_date
from specbuild.export.image_files import write_docker_archive, write_layout, write_layout_tar
from specbuild.export.layers import Compression, write_root
from specbuild.export.publish import push
from specbuild.export.sbom import sbom
from specbuild.export.script import setup_script
from specbuild.export.targets import Exported, Format, Target, new_output
from specbuild.lockfile import lock_of
from specbuild.sandbox.contract import LayerSource
from specbuild.storage import FULL

Files = Callable[[], AbstractAsyncContextManager[tuple[LayerSource, str]]]
"""Opens the store that has the Environment's files: the store, and the key of its Checkpoint."""


async def deliver(
    environment: Environment, target: Target, files: Files, *, force: bool = False, client: str = "auto"
) -> Exported:
    """Export the Environment. What exists already stays as it is unless `force`; `client` leads to an engine.

    Raises UsageError for what cannot be exported or written, or a date that is none, StoreError for trouble with the
    store.
    """
    source_date()  # what cannot be meant is told before layers are made
    match target.format:
        case Format.DOCKERFILE:
            return _text(environment, target, dockerfile(environment), force=force)
        case Format.SETUP_SH:
            return _text(environment, target, setup_script(environment), force=force, mode=0o755)
        case Format.OCI | Format.DOCKER_ARCHIVE:
            return await _image_file(environment, target, files, force=force)
        case Format.ROOTFS:
            return await _rootfs(environment, target, files, force=force)
        case Format.LOCK:
            return _text(environment, target, lock_of(environment).dump(), force=force)
        case Format.SBOM:
            return _text(environment, target, sbom(environment), force=force)
        case Format.DEVCONTAINER:
            return _folder(environment, target, devcontainer(environment), force=force)
        case Format.ENGINE:
            return await _into_engine(environment, target, files, client)
        case Format.REGISTRY:
            return await _into_registry(environment, target, files)
        case _:
            assert_never(target.format)


def _text(environment: Environment, target: Target, text: str, *, force: bool, mode: int = 0o644) -> Exported:
    path = target.path(image_name(environment))
    data = text.encode()
    with new_output(path, force=force) as draft:
        draft.write_bytes(data)
        draft.chmod(mode)
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return Exported(format=target.format, place=str(path), digest=digest, size_bytes=len(data))


def _folder(environment: Environment, target: Target, texts: dict[str, str], *, force: bool) -> Exported:
    path = target.path(image_name(environment))
    with new_output(path, force=force) as draft:
        draft.mkdir()
        for name, text in texts.items():
            (draft / name).write_text(text, encoding="utf-8")
    return Exported(format=target.format, place=str(path), size_bytes=sum(map(len, texts.values())))


async def _into_engine(environment: Environment, target: Target, files: Files, client: str) -> Exported:
    with _scratch() as work:
        archive = work / "image.tar"
        none = Compression.NONE
        async with made_image(environment, files, work, compression=none, name=target.place) as image:
            await anyio.to_thread.run_sync(write_docker_archive, image, archive)
        engine = await find_engine(client)
        await engine.load(archive)
    return described(image, target.format, image.name).model_copy(update={"client": engine.name})


async def _into_registry(environment: Environment, target: Target, files: Files) -> Exported:
    with _scratch() as work:
        gzip = Compression.GZIP
        async with made_image(environment, files, work, compression=gzip, name=target.place) as image:
            await push(image, target.place)
    return described(image, target.format, target.place)


async def _image_file(environment: Environment, target: Target, files: Files, *, force: bool) -> Exported:
    path = target.path(image_name(environment))
    archive = target.format is Format.DOCKER_ARCHIVE
    with new_output(path, force=force) as draft:
        # Engines unpack what they load at once: compressing it would only cost time.
        compression = Compression.NONE if archive else Compression.GZIP
        async with made_image(environment, files, path.parent, compression=compression) as image:
            if archive:
                write: Callable[[Image, Path], None] = write_docker_archive
            else:
                write = write_layout_tar if path.suffix == ".tar" else write_layout
            await anyio.to_thread.run_sync(write, image, draft)
    return described(image, target.format, str(path))


@contextmanager
def _scratch() -> Generator[Path]:
    """A folder for an image on its way. Raises StoreError when its disk is full."""
    try:
        with tempfile.TemporaryDirectory(prefix="specbuild-") as work:
            yield Path(work)
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise StoreError(
            f"the image does not fit in {tempfile.gettempdir()}, where it is made: {error.strerror or error}",
            hint="set TMPDIR to a folder with more room",
        ) from error


@asynccontextmanager
async def made_image(
    environment: Environment, files: Files, folder: Path, *, compression: Compression, name: str = ""
) -> AsyncGenerator[Image]:
    """The image of an Environment, its layers in a temporary folder inside of `folder`."""
    async with files() as (source, key):
        with tempfile.TemporaryDirectory(prefix=".specbuild-", dir=folder) as work:
            yield await make_image(environment, source, key, Path(work), compression=compression, name=name)


def described(image: Image, kind: Format, place: str) -> Exported:
    """What is told of an image that was exported."""
    size = len(image.config.data) + len(image.manifest.data) + sum(layer.size for layer in image.blobs.values())
    return Exported(format=kind, place=place, digest=image.digest, layers=len(image.layers), size_bytes=size)


async def _rootfs(environment: Environment, target: Target, files: Files, *, force: bool) -> Exported:
    path = target.path(image_name(environment))
    with new_output(path, force=force) as draft:
        async with files() as (source, key):
            digest = await write_root(source, key, draft)
    return Exported(format=target.format, place=str(path), digest=digest, size_bytes=path.stat().st_size)
