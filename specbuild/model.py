"""The base of every model that leaves the process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable, hashable, strictly checked value."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As in pydantic, but cached properties (digests) are not copied: they may not hold for the copy."""
        copied = super().model_copy(update=update, deep=deep)
        held = vars(copied)
        for name in held.keys() - type(self).model_fields.keys():
            del held[name]
        return copied


def digest_of(value: Any) -> str:
    """The sha256, in hexadecimal, of a JSON-serialisable value in canonical form."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
