"""Images of registries as bases: `python:3.9`, `ghcr.io/owner/name@sha256:…`, `localhost:5000/tool:1`.

CACHE/images/KEY.json    what was found under a name: its digest pins it until the record is too old
CACHE/images/blobs/      blobs on their way into a store (see `specbuild.oci.blobs`)
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from specbuild.bases.releases import RELEASES
from specbuild.errors import BaseUnavailableError, DownloadError, TransientError, UsageError
from specbuild.http import Network
from specbuild.model import Frozen, digest_of
from specbuild.oci.content import ImageConfig, host_platform
from specbuild.oci.places import Places
from specbuild.oci.pull import Image, Puller, open_puller
from specbuild.oci.reference import Reference, parse_reference
from specbuild.recipe import BaseRef, checkpoint_root
from specbuild.retry import Retry
from specbuild.sandbox.contract import Backend, Checkpoint, ImageLayer, ImageLayers
from specbuild.storage import held

MAX_AGE = 86_400.0
"""Seconds for which a tag is taken to name what it did when it was last asked for."""

_FAMILIES = re.compile(rf"(?<![a-z])({'|'.join(release.name for release in RELEASES)})(?![a-z])")
"""Debian's images name their release in their history, others in their tags."""

Notify = Callable[[str], None]


def _silent(message: str) -> None:
    del message


class ImageRecord(Frozen):
    """What was found under a name."""

    schema_version: int = 1
    base: BaseRef
    checked: float
    """In seconds since 1970."""


class ImageBases:
    """Offers images of registries. See `BaseProvider`."""

    def __init__(
        self,
        cache_dir: Path,
        *,
        places: Places | None = None,
        network: Network | None = None,
        retry: Retry | None = None,
        max_age: float = MAX_AGE,
        notify: Notify = _silent,
    ) -> None:
        self._folder = cache_dir / "images"
        self._open = partial(
            open_puller, folder=self._folder / "blobs", places=places, network=network, retry=retry
        )  # fmt: skip
        self._max_age = max_age
        self._notify = notify

    @property
    def name(self) -> str:
        """`image`."""
        return "image"

    def claims(self, base: str) -> bool:
        """Whether that is the name of an image with a registry, an owner, a tag or a digest; a bare word is none."""
        if not re.search(r"[:/@]", base):
            return False
        try:
            parse_reference(base)
        except UsageError:
            return False
        return True

    def cached(self, base: str) -> BaseRef | None:
        """What was found under that name lately; ever, if the name is a digest."""
        record = self._record(base)
        fresh = record and (parse_reference(base).digest or time.time() - record.checked <= self._max_age)
        return record.base if record and fresh else None

    async def resolve(self, base: str) -> BaseRef:
        """The reference of the image for this machine, with its digest; its layers are not fetched yet.

        Raises UsageError, BaseUnavailableError or TransientError.
        """
        if ref := self.cached(base):
            return ref
        reference = parse_reference(base)
        try:
            with explained(base):
                async with self._open(reference) as puller:
                    image = await puller.resolve()
        except TransientError as error:
            old = self._record(base)
            if old is None:
                raise
            self._notify(f"{base} is taken to be what it was: {error.message}")
            return old.base
        ref = _reference(base, image)
        if image.config.user:
            self._notify(f"{base} is made for the user {image.config.user}; steps run as root in it")
        self._keep(ref)
        return ref

    async def provide(self, ref: BaseRef, backend: Backend) -> Checkpoint:
        """The image as a Checkpoint of `backend`, which gets the layers that it lacks. Raises as `resolve` does."""
        key = checkpoint_root(ref)
        if found := await backend.find(key):
            return found
        self._folder.mkdir(parents=True, exist_ok=True)
        async with held(self._folder / f"{key}.lock"):
            if found := await backend.find(key):  # another process has brought it meanwhile
                return found
            self._notify(f"fetching {ref.name}; its layers are kept for later builds")
            with explained(ref.name):
                async with self._open(parse_reference(ref.name).pinned(ref.digest)) as puller:
                    return await backend.import_base(key, layers_of(await puller.resolve(), puller))

    def _path(self, base: str) -> Path:
        return self._folder / f"{digest_of([str(parse_reference(base)), str(host_platform())])}.json"

    def _record(self, base: str) -> ImageRecord | None:
        try:
            record = ImageRecord.model_validate_json(self._path(base).read_bytes())
        except (OSError, ValidationError):  # none, or of another version of SpecBuild
            return None
        return record.model_copy(update={"base": record.base.model_copy(update={"name": base})})

    def _keep(self, ref: BaseRef) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._path(ref.name)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_text(ImageRecord(base=ref, checked=time.time()).model_dump_json(indent=1), encoding="utf-8")
        draft.replace(path)


def layers_of(image: Image, puller: Puller) -> ImageLayers:
    """The image as a source of a base, whose layers are fetched while `puller` is open."""
    pairs = zip(image.config.diff_ids, image.manifest.layers, strict=True)
    return ImageLayers(tuple(ImageLayer(diff_id, partial(puller.blob, blob)) for diff_id, blob in pairs))


@contextlib.contextmanager
def explained(base: str) -> Generator[None]:
    """Final refusals become a base's: BaseUnavailableError, since other bases may be had."""
    try:
        yield
    except DownloadError as error:
        raise BaseUnavailableError(f"the image {base} cannot be had: {error.message}", hint=error.hint) from error


def _reference(base: str, image: Image) -> BaseRef:
    return reference_of(base, image.digest, image.config, image.reference)


def reference_of(base: str, digest: str, config: ImageConfig, reference: Reference | None = None) -> BaseRef:
    """What recipes need to know of an image, as far as its configuration tells."""
    version = re.match(r"(\d+\.\d+)", dict(config.env).get("PYTHON_VERSION", ""))
    told = [reference.tag or "" if reference else "", *config.commands]
    family = next((match[1] for text in told if (match := _FAMILIES.search(text))), None)
    return BaseRef(
        name=base, digest=digest, python=version[1] if version else None, release=family, env=config.env
    )  # fmt: skip
