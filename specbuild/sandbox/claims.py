"""Who needs which Checkpoints of a store: sessions for as long as they live, and names until they are forgotten.

    ROOT/lock                  flock, held for every change
    ROOT/sessions/SESSION      one file a session, flock'ed for as long as its process lives; says who that is
    ROOT/leases/SESSION/KEY    Checkpoints that a session uses; the file holds the key
    ROOT/kept/NAME             a Checkpoint that is kept under a name; the file holds its key

What a Checkpoint is, and where its files lie, is each backend's own. A session is dead when nobody holds the lock on
its file, which the kernel takes from a process however it ends.

Everything here is synchronous, short, and may be called from any thread.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from specbuild.errors import StoreError

_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_MOST_ABOUT = 4096
"""Bytes that a session's file has, whatever is written down in it."""


class Held(Protocol):
    """A Checkpoint, as a backend has it."""

    @property
    def key(self) -> str: ...

    @property
    def parent(self) -> str | None:
        """The key of the state below it; None for a base."""
        ...


T = TypeVar("T", bound=Held)


def file_name(key: str) -> str:
    """`key` if it can be the name of a file and the tag of an image, else its digest."""
    return key if _SAFE_NAME.fullmatch(key) else hashlib.sha256(key.encode()).hexdigest()


@contextlib.contextmanager
def usable(root: Path) -> Generator[None]:
    """What the system says against a store under `root`, as StoreError."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"the store {root} cannot be used: {error}", hint="see `cache_dir`") from error


def with_ancestors(keys: Iterable[str], known: Mapping[str, T], also: Callable[[T], Iterable[str]]) -> set[str]:
    """Those of `keys` that are known, and everything that they need: parents, and what is needed `also`."""
    needed: set[str] = set()
    pending = [key for key in keys if key in known]
    while pending:
        key = pending.pop()
        if key not in needed:
            needed.add(key)
            one = known[key]
            below = also(one) if one.parent is None else (one.parent, *also(one))
            pending += [other for other in below if other in known]
    return needed


def _nothing(_: Held) -> tuple[str, ...]:
    return ()


class Claims(Generic[T]):
    """One session's view of the claims on the Checkpoints of the store under `root`."""

    def __init__(self, root: Path, look_up: Callable[[str], T | None]) -> None:
        """`look_up` tells what the store has under a key; called with the lock held."""
        self.root = root
        self.session = ""
        self._look_up = look_up
        self._fd: int | None = None
        self._leased: dict[str, T] = {}
        self._count = 0
        self._counting = threading.Lock()

    @property
    def is_open(self) -> bool:
        """Whether this is in a session."""
        return self._fd is not None

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Nobody else changes the store meanwhile. Held for less than a few milliseconds, never while waiting."""
        fd = os.open(self.root / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    # Sessions

    def open(self, about: str = "") -> None:
        """Begin a session: `about` is written down for whoever finds it dead. Raises StoreError."""
        with usable(self.root):
            for name in ("sessions", "leases", "kept"):
                (self.root / name).mkdir(parents=True, exist_ok=True)
            self.session = secrets.token_hex(5)
            with self.locked():
                file = self.root / "sessions" / self.session
                self._fd = os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC)
                fcntl.flock(self._fd, fcntl.LOCK_EX)
                self.describe(about)
                (self.root / "leases" / self.session).mkdir()

    def describe(self, about: str) -> None:
        """Write down what should be known of this session once it is dead, in place of what was."""
        if self._fd is None:
            raise StoreError(f"no session is open on the store {self.root}")
        os.pwrite(self._fd, about.encode().ljust(_MOST_ABOUT), 0)

    def close(self) -> None:
        """End the session: its leases end."""
        if self._fd is None:
            return
        with self.locked():
            self.end(self.session)
        os.close(self._fd)
        self._fd = None
        self._leased.clear()

    def end(self, session: str) -> None:
        """Drop what a session has claimed. The lock is held."""
        shutil.rmtree(self.root / "leases" / session, ignore_errors=True)
        (self.root / "sessions" / session).unlink(missing_ok=True)

    def dead(self) -> dict[str, str]:
        """Sessions whose process is gone, with what they wrote down of themselves. The lock is held."""
        found = {file.name: _last_words(file) for file in (self.root / "sessions").iterdir()}
        return {session: about for session, about in found.items() if about is not None}

    def alive(self) -> set[str]:
        """Sessions whose process lives, this one too. The lock is held."""
        return {file.name for file in (self.root / "sessions").iterdir()} - self.dead().keys()

    def new_name(self) -> str:
        """A name that nothing else on this machine has, and that tells its session: what is before its point."""
        with self._counting:
            self._count += 1
            return f"{self.session}.{self._count}"

    # What this session uses

    def lease(self, key: str) -> T | None:
        """The Checkpoint of that key, which stays as long as this session does; None if there is none."""
        if known := self._leased.get(key):
            return known
        with self.locked():
            found = self._look_up(key)
            if found is not None:
                self.hold(found)
        return found

    def require(self, key: str) -> T:
        """As `lease`. Raises StoreError where there is none."""
        found = self.lease(key)
        if found is None:
            raise _missing(key)
        return found

    def hold(self, one: T) -> None:
        """Lease what the store has. The lock is held."""
        (self.root / "leases" / self.session / file_name(one.key)).write_text(one.key)
        self._leased[one.key] = one

    def drop(self, key: str) -> None:
        """Take it that the store has that Checkpoint no more. The lock is held."""
        self._leased.pop(key, None)

    # What is kept for later

    def keep(self, key: str, name: str) -> None:
        """Keep a Checkpoint under a name, also if the machine goes down. Raises StoreError for an unknown key."""
        kept = self.root / "kept"
        with self.locked():
            if self._look_up(key) is None:
                raise _missing(key)
            temporary = kept / f".{secrets.token_hex(6)}"
            temporary.write_text(key)
            _write_through(temporary)
            temporary.rename(kept / file_name(name))
            _write_through(kept)

    def forget(self, name: str) -> None:
        """No longer. An unknown name is fine."""
        with self.locked():
            (self.root / "kept" / file_name(name)).unlink(missing_ok=True)

    # What nobody needs

    def give_up(
        self,
        known: Mapping[str, T],
        *,
        bases: bool,
        ending: bool = False,
        also: Callable[[T], Iterable[str]] = _nothing,
    ) -> list[T]:
        """Those of the store's Checkpoints, by key, that nobody needs: the store's to remove. The lock is held.

        Needed is what is kept or leased, and whatever that needs: its parent, and what is told by `also`. Bases stay
        unless `bases`; with `ending`, this session's own leases no longer count.
        """
        needed = with_ancestors(self._claimed(without=self.session if ending else None), known, also)
        gone = [one for one in known.values() if one.key not in needed and (bases or one.parent is not None)]
        for one in gone:
            self.drop(one.key)
        return gone

    def _claimed(self, *, without: str | None) -> set[str]:
        files = [*(self.root / "kept").glob("[!.]*")]
        for session in (self.root / "leases").iterdir():
            if session.name != without:
                files += session.iterdir()
        return {file.read_text() for file in files}


def _missing(key: str) -> StoreError:
    return StoreError(f"checkpoint {key} is not in the store", hint="build it again")


def _last_words(file: Path) -> str | None:
    """What a session has written down of itself; None while its process lives."""
    fd = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    else:
        return os.read(fd, 1 << 16).decode("utf-8", "replace").strip()
    finally:
        os.close(fd)


def _write_through(path: Path) -> None:
    """Have a file or folder on the disk before anything else is done."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
