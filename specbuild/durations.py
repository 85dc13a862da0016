"""How long work is expected to take: what was measured of the very same work before, else what its kind takes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from specbuild.recipe import BaseRef, Check, Step, StepKind

KIND_SECONDS: Mapping[StepKind, float] = MappingProxyType(
    {
        StepKind.SYSTEM: 20.0,
        StepKind.TOOLCHAIN: 6.0,
        StepKind.SOURCE: 0.5,
        StepKind.DEPENDENCIES: 10.0,
        StepKind.BUILD: 8.0,
        StepKind.TEST: 15.0,
    }
)
"""How the expected seconds of a Recipe are spread over its Steps before anything was learned: medians seen over the
public corpus on two cores, rounded. Only the proportions matter."""

BASE_SECONDS = 2.0
"""Of providing a base that is in the cache."""


class Durations:
    """Expected seconds of work."""

    def __init__(self, learned: Mapping[str, float] | None = None) -> None:
        """`learned` maps names of work (see `name_of`) to seconds."""
        self._learned = learned or {}

    def usual(self, work: BaseRef | Step | Check) -> float:
        """What work of its kind takes; of a Recipe's work only the proportions matter."""
        match work:
            case Step():
                return KIND_SECONDS[work.kind]
            case Check():
                return KIND_SECONDS[StepKind.TEST]
            case BaseRef():
                return BASE_SECONDS

    def learned(self, work: BaseRef | Step | Check) -> float | None:
        """What this very work took before; None if that is not known."""
        return self._learned.get(name_of(work))


def name_of(work: BaseRef | Step | Check) -> str:
    """Names work across builds: the same command on whatever state."""
    return f"work:{work.digest if not isinstance(work, BaseRef) else work.name}"
