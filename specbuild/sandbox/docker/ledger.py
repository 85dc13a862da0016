"""What this machine knows of its Checkpoints in an engine: which image is which, and who needs what.

    ROOT/id                    a name for this ledger, which is a label of everything that belongs to it
    ROOT/lock                  flock, held for every change
    ROOT/sessions/SESSION      one file a session, flock'ed for as long as its process lives
    ROOT/leases/SESSION/KEY    Checkpoints that a session uses; the file holds the key
    ROOT/kept/NAME             a Checkpoint that is kept under a name; the file holds its key
    ROOT/states/KEY.json       a Checkpoint: its image's id, and where it comes from

The engine holds the files; that an image is one of ours is also written in its labels. Everything here is synchronous,
short, and may be called from any thread.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import threading
from collections.abc import Generator, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from specbuild.errors import StoreError
from specbuild.sandbox.contract import Checkpoint

SCHEMA = 1
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


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


def file_name(key: str) -> str:
    """`key` if it can be the name of a file and a tag, else its digest."""
    return key if _SAFE_NAME.fullmatch(key) else hashlib.sha256(key.encode()).hexdigest()


class Ledger:
    """One session's view of the ledger under `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.id = ""
        self.session = ""
        self._session_fd: int | None = None
        self._leased: dict[str, State] = {}
        self._count = 0
        self._counting = threading.Lock()

    @property
    def is_open(self) -> bool:
        """Whether this is in a session."""
        return self._session_fd is not None

    def open(self) -> None:
        """Begin a session. Raises StoreError."""
        try:
            for name in ("sessions", "leases", "kept", "states"):
                (self.root / name).mkdir(parents=True, exist_ok=True)
            with self.locked():
                self.id = self._own_id()
                self.session = secrets.token_hex(5)
                fd = os.open(self.root / "sessions" / self.session, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC)
                fcntl.flock(fd, fcntl.LOCK_EX)
                self._session_fd = fd
                (self.root / "leases" / self.session).mkdir()
        except OSError as error:
            raise StoreError(f"the store {self.root} cannot be used: {error}", hint="see `cache_dir`") from error

    def _own_id(self) -> str:
        file = self.root / "id"
        if not file.exists():
            file.write_text(secrets.token_hex(8))
        return file.read_text()

    def close(self) -> None:
        """End the session: its leases end."""
        if self._session_fd is None:
            return
        with self.locked():
            self.end_session(self.session)
        os.close(self._session_fd)
        self._session_fd = None
        self._leased.clear()

    def end_session(self, session: str) -> None:
        """Drop what a session has in the tables. The lock is held."""
        shutil.rmtree(self.root / "leases" / session, ignore_errors=True)
        (self.root / "sessions" / session).unlink(missing_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Nobody else changes the ledger meanwhile. Held for less than a few milliseconds, never while waiting."""
        fd = os.open(self.root / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def new_name(self) -> str:
        """An id for a Sandbox or an image, unique on this machine, that tells its session."""
        with self._counting:
            self._count += 1
            return f"{self.session}.{self._count}"

    # States

    def find(self, key: str) -> State | None:
        """The state of that key, leased to this session."""
        if state := self._leased.get(key):
            return state
        with self.locked():
            state = self._load(key)
            if state is not None:
                self._lease(state)
        return state

    def add(self, state: State) -> State:
        """Write down a new state; the one that had its key before, if there was one."""
        with self.locked():
            existing = self._load(state.key)
            if existing is None:
                self._save(state)
            self._lease(existing or state)
        return existing or state

    def add_flat(self, key: str, image: str) -> State | None:
        """Write down a flat image, unless there is one; the state as it is now, None when it is gone."""
        with self.locked():
            state = self._load(key)
            if state is not None and state.flat is None:
                state = replace(state, flat=image)
                self._save(state)
            if state is not None:
                self._lease(state)
        return state

    def drop(self, key: str) -> None:
        """Forget a state whose image is gone."""
        with self.locked():
            self._leased.pop(key, None)
            self._file(key).unlink(missing_ok=True)

    def _file(self, key: str) -> Path:
        return self.root / "states" / f"{file_name(key)}.json"

    def _save(self, state: State) -> None:
        file = self._file(state.key)
        temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
        temporary.write_text(json.dumps({"schema": SCHEMA, **asdict(state)}))
        temporary.rename(file)

    def _load(self, key: str) -> State | None:
        return _read(self._file(key))

    def _lease(self, state: State) -> None:
        (self.root / "leases" / self.session / file_name(state.key)).write_text(state.key)
        self._leased[state.key] = state

    def states(self) -> list[State]:
        """All that are known."""
        return [state for file in sorted((self.root / "states").glob("[!.]*.json")) if (state := _read(file))]

    # Who needs what

    def keep(self, key: str, name: str) -> None:
        """Keep a Checkpoint under a name. Raises StoreError for an unknown key."""
        with self.locked():
            if self._load(key) is None:
                raise StoreError(f"checkpoint {key} is not in the store", hint="build it again")
            temporary = self.root / "kept" / f".{secrets.token_hex(6)}"
            temporary.write_text(key)
            temporary.rename(self.root / "kept" / file_name(name))

    def forget(self, name: str) -> None:
        """No longer. An unknown name is fine."""
        with self.locked():
            (self.root / "kept" / file_name(name)).unlink(missing_ok=True)

    def collect(self, *, bases: bool, ending: bool = False) -> list[State]:
        """Take out all states that nobody keeps or leases; those, children before their parents.

        Bases stay unless `bases`; with `ending`, this session's own leases no longer count.
        """
        with self.locked():
            known = {state.key: state for state in self.states()}
            needed = _with_ancestors(self._roots(without=self.session if ending else None), known)
            gone = [
                state for state in known.values() if state.key not in needed and (bases or state.parent is not None)
            ]
            for state in gone:
                self._file(state.key).unlink(missing_ok=True)
                self._leased.pop(state.key, None)
        return sorted(gone, key=lambda state: -state.depth)

    def _roots(self, *, without: str | None) -> set[str]:
        files = [*(self.root / "kept").glob("[!.]*")]
        for session in (self.root / "leases").iterdir():
            if session.name != without:
                files += session.iterdir()
        return {file.read_text() for file in files}

    def end_dead_sessions(self) -> None:
        """Drop the sessions whose process is gone."""
        with self.locked():
            for file in (self.root / "sessions").iterdir():
                if not _is_locked(file):
                    self.end_session(file.name)

    def alive_sessions(self) -> set[str]:
        """Those whose process lives, this one too."""
        with self.locked():
            return {file.name for file in (self.root / "sessions").iterdir() if _is_locked(file)}


def _is_locked(file: Path) -> bool:
    fd = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


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


def _with_ancestors(keys: Iterable[str], known: dict[str, State]) -> set[str]:
    needed: set[str] = set()
    for key in keys:
        current: str | None = key
        while current is not None and current in known and current not in needed:
            needed.add(current)
            current = known[current].parent
    return needed
