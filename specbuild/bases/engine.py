"""`engine:IMAGE`: an image that a container engine on this machine has already, taken over layer by layer."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from specbuild.bases.images import explained, reference_of
from specbuild.errors import (
    BaseUnavailableError,
    ConfigError,
    EngineNotRunningError,
    UnreachableError,
    UsageError,
)
from specbuild.oci.engine import Engine, SavedLayers, is_name, open_engine
from specbuild.oci.reference import Reference, parse_reference
from specbuild.recipe import BaseRef, checkpoint_root
from specbuild.sandbox.contract import Backend, Checkpoint, ImageLayer, ImageLayers
from specbuild.sandbox.docker.endpoint import Endpoint, find_endpoint
from specbuild.sandbox.docker.refusals import unreachable

PREFIX = "engine:"


class EngineBases:
    """Offers the images of a local engine. See `BaseProvider`."""

    def __init__(
        self,
        cache_dir: Path,
        *,
        environ: Mapping[str, str] | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self._folder = cache_dir / "images"
        self._environ = os.environ if environ is None else environ
        self._notify = notify

    @property
    def name(self) -> str:
        """`engine`."""
        return "engine"

    def claims(self, base: str) -> bool:
        """Whether that is `engine:` and something."""
        return base.startswith(PREFIX)

    def cached(self, base: str) -> BaseRef | None:
        """None: only the engine knows what a name stands for now."""
        del base
        return None

    async def resolve(self, base: str) -> BaseRef:
        """The reference of the image by its id. Raises ConfigError or BaseUnavailableError."""
        name = base.removeprefix(PREFIX)
        reference = _reference(name)
        with explained(base):
            async with self._engine() as engine:
                image = await engine.inspect(name)
        return reference_of(base, image.id, image.config, reference)

    async def provide(self, ref: BaseRef, backend: Backend) -> Checkpoint:
        """The image as a Checkpoint of `backend`, which gets the layers that it lacks.

        Raises BaseUnavailableError if the engine has no image of that id any more.
        """
        key = checkpoint_root(ref)
        if found := await backend.find(key):
            return found
        if self._notify:
            self._notify(f"taking over {ref.name} from the engine; its layers are kept for later builds")
        self._folder.mkdir(parents=True, exist_ok=True)
        with explained(ref.name), tempfile.TemporaryDirectory(prefix=".engine.", dir=self._folder) as folder:
            async with self._engine() as engine:
                image = await engine.inspect(ref.digest)
                saved = SavedLayers(engine, image, Path(folder))
                layers = (ImageLayer(diff_id, partial(saved.fetch, diff_id)) for diff_id in image.diff_ids)
                return await backend.import_base(key, ImageLayers(tuple(layers)))

    @asynccontextmanager
    async def _engine(self) -> AsyncGenerator[Engine]:
        endpoint, path = _endpoint(self._environ)
        try:
            async with open_engine(path) as engine:
                yield engine
        except UnreachableError as error:
            told = unreachable(endpoint, _system_error(error) or error)
            raise BaseUnavailableError(told.message, hint=told.hint) from error


def _system_error(error: BaseException | None) -> OSError | None:
    """What the system said, below the words of those that passed it on."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error


def _reference(name: str) -> Reference | None:
    """What an image's name says of it; None for an id. Raises ConfigError for what is neither."""
    if not is_name(name):
        raise ConfigError(
            f"{name!r} is neither the name nor the id of an image",
            hint="engine:NAME:TAG, or engine:ID, as `docker images` shows them",
        )
    try:
        return parse_reference(name)
    except UsageError:  # an id
        return None


def _endpoint(environ: Mapping[str, str]) -> tuple[Endpoint, Path]:
    """Where the user's engine listens. Raises BaseUnavailableError unless that is a socket of this machine."""
    try:
        endpoint = find_endpoint(environ)
    except (ConfigError, EngineNotRunningError) as error:
        raise BaseUnavailableError(error.message, hint=error.hint) from error
    if endpoint.socket is None:
        raise BaseUnavailableError(
            f"images can be taken from an engine on this machine only, and {endpoint.origin} is {endpoint.address}",
            hint="push the image to a registry, and name it without `engine:`",
        )
    return endpoint, endpoint.socket
