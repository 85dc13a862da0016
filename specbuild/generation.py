"""Generations of checkpoints: package indexes go on, so what was installed from them is not taken for ever.

Every Recipe begins with a Step that asks an index. So checkpoints age as a whole: those of one generation are shared by
all builds until the oldest may be of too old an index, or the user asks for fresh ones; then a new generation begins.
Environments stay what they are, and so do the checkpoints that they are made of.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import AwareDatetime, ValidationError

from specbuild.model import Frozen
from specbuild.storage import write_whole

FILE = "generation.json"


class Generation(Frozen):
    """Checkpoints that builds share."""

    salt: str
    """What tells their keys from those of other generations; empty for the first."""
    began: AwareDatetime


def current(cache_dir: Path, *, max_age: float, refresh: bool = False) -> Generation:
    """The generation that a build belongs to; a new one if `refresh` is set, or the old one is over.

    `max_age` is in seconds. Two builds that begin one at the same time may get one each, which costs no more than the
    sharing between them. Raises OSError.
    """
    now = datetime.now(UTC)
    known = _read(cache_dir / FILE)
    if known is not None and not refresh and timedelta() <= now - known.began < timedelta(seconds=max_age):
        return known
    salt = "" if known is None and not refresh else f"{now.date().isoformat()}.{secrets.token_hex(4)}"
    began = Generation(salt=salt, began=now)
    write_whole(cache_dir / FILE, began.model_dump_json() + "\n")
    return began


def _read(file: Path) -> Generation | None:
    try:
        return Generation.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError:
        return Generation(salt="", began=datetime.min.replace(tzinfo=UTC))  # nobody knows how old its checkpoints are
