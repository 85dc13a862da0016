"""The sandboxes of a race: which checkpoint an edge forks, how the CPU is shared among the forks, what they spent."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

from specbuild.sandbox.contract import Backend, Checkpoint, Limits, Sandbox, Spent
from specbuild.scheduler import cpu_weights
from specbuild.tree import Edge, Tree


class Forks:
    """The forks of one race's running edges, and the checkpoints that they came to."""

    def __init__(self, tree: Tree, backend: Backend, limits: Limits) -> None:
        self._tree = tree
        self._backend = backend
        self._limits = limits
        self._checkpoints: dict[str, Checkpoint] = {}
        self._open: dict[str, tuple[Sandbox, int]] = {}
        """Edge → its sandbox, and the CPU weight of that."""
        self._latest: dict[str, Sandbox] = {}
        """The last fork of each edge whose spending was not asked for yet."""

    def keep(self, edge: Edge, checkpoint: Checkpoint) -> None:
        """What the work of an edge came to: later edges fork it."""
        self._checkpoints[edge.key] = checkpoint

    async def reuse(self, edge: Edge) -> bool:
        """Take the checkpoint that an earlier race left, if there is one. Raises SandboxError."""
        known = await self._backend.find(edge.key)
        if known is not None:
            self.keep(edge, known)
        return known is not None

    async def graft(self, edge: Edge) -> bool:
        """Take over what the twin of an edge has changed, if that can be. Raises SandboxError."""
        side = self._checkpoints.get(edge.twin or "")
        if side is None:
            return False
        made = await self._backend.graft(self._checkpoints[edge.parent or ""], side, edge.key)
        if made is not None:
            self.keep(edge, made)
        return made is not None

    @asynccontextmanager
    async def fork(self, edge: Edge) -> AsyncGenerator[Sandbox]:
        """A sandbox for the work of an edge. Raises SandboxError."""
        weight = cpu_weights(self._tree).get(edge.key, self._limits.cpu_weight)
        parent = self._checkpoints[edge.parent or ""]
        async with self._backend.fork(parent, limits=replace(self._limits, cpu_weight=weight)) as sandbox:
            self._open[edge.key] = (sandbox, weight)
            self._latest[edge.key] = sandbox
            try:
                yield sandbox
            finally:
                del self._open[edge.key]

    @asynccontextmanager
    async def spare(self, key: str) -> AsyncGenerator[Sandbox]:
        """A sandbox on what an edge came to, with the least share of the CPU, for work that is in no race.

        Raises SandboxError.
        """
        limits = replace(self._limits, cpu_weight=1)
        async with self._backend.fork(self._checkpoints[key], limits=limits) as sandbox:
            yield sandbox

    async def share_cpu(self) -> None:
        """Give the edges that run the weights that their ranks call for."""
        for key, weight in cpu_weights(self._tree).items():
            held = self._open.get(key)
            if held is not None and held[1] != weight:
                self._open[key] = (held[0], weight)
                await held[0].set_cpu_weight(weight)

    def spent(self, edge: Edge) -> Spent:
        """What the last fork of an edge has used; asked for once, and nothing if there was none."""
        fork = self._latest.pop(edge.key, None)
        return fork.spent if fork else Spent()
