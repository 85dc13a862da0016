"""`engine:IMAGE`: an image that a container engine on this machine has already, taken over layer by layer."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from specbuild.bases.images import explained, reference_of
from specbuild.errors import BaseUnavailableError, ConfigError, EngineNotRunningError, UsageError
from specbuild.oci.engine import Engine, SavedLayers, open_engine
from specbuild.oci.reference import parse_reference
from specbuild.recipe import BaseRef, checkpoint_root
from specbuild.sandbox.contract import Backend, Checkpoint, ImageLayer, ImageLayers
from specbuild.sandbox.docker.endpoint import find_endpoint

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
        """The reference of the image by its id. Raises BaseUnavailableError or TransientError."""
        name = base.removeprefix(PREFIX)
        with explained(base):
            async with self._engine() as engine:
                image = await engine.inspect(name)
        try:
            reference = parse_reference(name)
        except UsageError:  # an id
            reference = None
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
        async with open_engine(_socket(self._environ)) as engine:
            yield engine


def _socket(environ: Mapping[str, str]) -> Path:
    """Where the user's engine listens, if that is on this machine and lets him in. Raises BaseUnavailableError."""
    try:
        endpoint = find_endpoint(environ)
    except (ConfigError, EngineNotRunningError) as error:
        raise BaseUnavailableError(error.message, hint=error.hint) from error
    path = endpoint.socket
    if path is None:
        raise BaseUnavailableError(
            f"images can be taken from an engine on this machine only, and {endpoint.origin} is {endpoint.address}",
            hint="push the image to a registry, and name it without `engine:`",
        )
    if os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK):  # noqa: PTH110 - False for what may not be seen
        raise BaseUnavailableError(
            f"the container engine at {path} does not let this user in",
            hint="join its group, or start Podman's for this user: `systemctl --user start podman.socket`",
        )
    return path
