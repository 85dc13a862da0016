"""What this machine knows of its Checkpoints in an engine: which image is which.

    ROOT/id                    a name for this ledger, which is a label of everything that belongs to it
    ROOT/engine                the address of the engine
    ROOT/states/KEY.json       a Checkpoint: its image's id, and where it comes from

Who needs them is told beside that, by `claims`. The engine holds the files; that an image is one of ours is also
written in its labels. Everything here is synchronous, short, and may be called from any thread.
"""

from __future__ import annotations

import json
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from specbuild.sandbox.claims import Claims, file_name, usable
from specbuild.sandbox.contract import Checkpoint
from specbuild.storage import write_whole

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class State:
    """A Checkpoint and its image."""

    key: str
    parent: str | None
    depth: int
    size_bytes: int
    image: str
    """The id of the image: the digest of its configuration."""
    layers: int
    """How many layers the image has."""
    flat: str | None = None
    """The id of an image of few layers with the same files, once one was needed."""
    between: tuple[str, ...] = ()
    """Images on the way from the parent's: a Sandbox whose container had to be made anew has left them."""

    @property
    def checkpoint(self) -> Checkpoint:
        """As the contract has it."""
        return Checkpoint(self.key, self.parent, self.depth, self.size_bytes)

    @property
    def start(self) -> str:
        """The image that a fork starts from."""
        return self.flat or self.image

    @property
    def images(self) -> tuple[str, ...]:
        """All its images, children before their parents."""
        return tuple(image for image in (self.flat, self.image, *reversed(self.between)) if image)


class Ledger:
    """The ledger under `root` of the engine at `address`, with one session's claims."""

    def __init__(self, root: Path, address: str = "") -> None:
        self.root = root
        self._address = address
        self.id = ""
        self.claims = Claims(root, self._load)

    def open(self) -> None:
        """Begin a session. Raises StoreError."""
        with usable(self.root):
            (self.root / "states").mkdir(parents=True, exist_ok=True)
            with self.claims.locked():
                self.id = self._own_id()
                write_whole(self.root / "engine", self._address)
        self.claims.open()

    def _own_id(self) -> str:
        file = self.root / "id"
        if not file.exists():
            file.write_text(secrets.token_hex(8))
        return file.read_text()

    def add(self, state: State) -> State:
        """Write down a new state; the one that had its key before, if there was one."""
        with self.claims.locked():
            existing = self._load(state.key)
            if existing is None:
                self._save(state)
            self.claims.hold(existing or state)
        return existing or state

    def add_flat(self, key: str, image: str) -> State | None:
        """Write down a flat image, unless there is one; the state as it is now, None when it is gone."""
        with self.claims.locked():
            state = self._load(key)
            if state is not None and state.flat is None:
                state = replace(state, flat=image)
                self._save(state)
            if state is not None:
                self.claims.hold(state)
        return state

    def drop(self, key: str) -> None:
        """Forget a state whose image is gone."""
        with self.claims.locked():
            self.claims.drop(key)
            self._file(key).unlink(missing_ok=True)

    def states(self) -> list[State]:
        """All that are known."""
        return [state for file in sorted((self.root / "states").glob("[!.]*.json")) if (state := _read(file))]

    def collect(self, *, bases: bool, ending: bool = False) -> list[State]:
        """Take out all states that nobody needs, as `Claims.give_up` has it; those, children before their parents."""
        with self.claims.locked():
            known = {state.key: state for state in self.states()}
            gone = self.claims.give_up(known, bases=bases, ending=ending)
            for state in gone:
                self._file(state.key).unlink(missing_ok=True)
        return sorted(gone, key=lambda state: -state.depth)

    def _file(self, key: str) -> Path:
        return self.root / "states" / f"{file_name(key)}.json"

    def _save(self, state: State) -> None:
        file = self._file(state.key)
        temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
        temporary.write_text(json.dumps({"schema": SCHEMA, **asdict(state)}))
        temporary.rename(file)

    def _load(self, key: str) -> State | None:
        return _read(self._file(key))


def held(ledgers: Path) -> dict[str, int]:
    """Bytes of Checkpoints by the address of the engine that holds them, of all ledgers in a folder."""
    found: dict[str, int] = {}
    for file in sorted(ledgers.glob("*/engine")):
        with suppress(OSError):
            states = Ledger(file.parent).states()
            if states and (address := file.read_text()):
                found[address] = found.get(address, 0) + sum(state.size_bytes for state in states)
    return found


def _read(file: Path) -> State | None:
    """What is written of a state; None where nothing is, or nothing that makes sense to this version."""
    try:
        values: dict[str, Any] = json.loads(file.read_text())
        if values.pop("schema") != SCHEMA:
            return None
        values["between"] = tuple(values["between"])
        return State(**values)
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None
