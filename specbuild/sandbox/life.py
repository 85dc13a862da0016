"""What a Sandbox is doing: one thing at a time, and nothing more once its life is over."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from specbuild.errors import StoreError

FROZEN = "frozen already"
DISCARDED = "discarded"


class Life:
    """The life of one Sandbox."""

    def __init__(self, sandbox: str) -> None:
        """`sandbox` names it in errors."""
        self._sandbox = sandbox
        self._doing = ""
        self.over = ""
        """What has ended it, in words; empty while it lives."""

    @contextlib.contextmanager
    def doing(self, what: str) -> Generator[None]:
        """It is doing that. Raises StoreError when it is at something else, or its life is over."""
        if why := self.over or self._doing:
            raise StoreError(f"sandbox {self._sandbox} is {why}, which does not go with {what}")
        self._doing = f"busy with {what}"
        try:
            yield
        finally:
            self._doing = ""

    def end(self, why: str) -> None:
        """It can do nothing more. What has ended it first stays the reason."""
        self.over = self.over or why
