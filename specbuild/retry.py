"""How often and after which pauses a thing is tried again that may work the next time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retry:
    """Exponential pauses with jitter, so that many clients that failed together do not come back together."""

    attempts: int = 5
    """Tries in all, the first one included."""
    first: float = 0.5
    """Seconds before the second try; doubled for each further one."""
    longest: float = 30.0
    """No pause is longer, not even one that the server asks for."""

    def pauses(self) -> Iterator[float]:
        """Seconds to wait before the second try, the third, and so on."""
        for turn in range(self.attempts - 1):
            yield min(self.longest, self.first * 2**turn) * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret
