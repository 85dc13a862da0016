"""The base of every model that leaves the process."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable, hashable, strictly checked value."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def digest_of(value: Any) -> str:
    """The sha256, in hexadecimal, of a JSON-serialisable value in canonical form."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
