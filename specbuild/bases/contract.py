"""What provides root filesystems."""

from __future__ import annotations

from typing import Protocol

from specbuild.recipe import BaseRef
from specbuild.sandbox.contract import Backend, Checkpoint


class BaseProvider(Protocol):
    """Knows a family of bases by name (`host`, `debian:RELEASE`)."""

    @property
    def name(self) -> str: ...

    def claims(self, base: str) -> bool:
        """Whether that name is one of its own."""
        ...

    def cached(self, base: str) -> BaseRef | None:
        """The reference of a base that needs no making or fetching now; quick."""
        ...

    async def resolve(self, base: str) -> BaseRef:
        """The base's reference with its digest, making or fetching it if need be.

        Raises BaseUnavailableError (with what to do about it) or TransientError.
        """
        ...

    async def provide(self, ref: BaseRef, backend: Backend) -> Checkpoint:
        """The base as a Checkpoint of `backend`, under `recipe.checkpoint_root(ref)`."""
        ...
