"""How earlier builds went: what a repair did for a failure, and how long steps took.

CACHE/knowledge/outcomes.v1.sqlite, in SQLite's WAL mode: any number of processes read while one writes, the others wait
their turn. Every record is one transaction that is on the disk (`synchronous = FULL`) when the call returns: a process
or machine that dies meanwhile loses that record at most, and damages nothing (https://sqlite.org/wal.html).
"""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio.to_thread

from specbuild.errors import StoreError
from specbuild.knowledge.posteriors import SHORTEST, Beta, LogNormal, Sample
from specbuild.storage import on_disk

T = TypeVar("T")

NAME = "outcomes.v1.sqlite"
"""The version of the schema is part of the name."""

PATIENCE = 30.0
"""Seconds to wait for other writers, each of which takes some milliseconds."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS repairs (
    failure TEXT NOT NULL, repair TEXT NOT NULL, worked INTEGER NOT NULL, failed INTEGER NOT NULL, last REAL NOT NULL,
    PRIMARY KEY (failure, repair)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS steps (
    kind TEXT PRIMARY KEY, count INTEGER NOT NULL, log_sum REAL NOT NULL, log_squares REAL NOT NULL, last REAL NOT NULL
    ) WITHOUT ROWID;
"""
_REPAIR = """
INSERT INTO repairs VALUES (?, ?, ?, ?, ?) ON CONFLICT (failure, repair) DO UPDATE SET
    worked = worked + excluded.worked, failed = failed + excluded.failed, last = excluded.last
"""
_STEP = """
INSERT INTO steps VALUES (?, 1, ?, ?, ?) ON CONFLICT (kind) DO UPDATE SET count = count + 1,
    log_sum = log_sum + excluded.log_sum, log_squares = log_squares + excluded.log_squares, last = excluded.last
"""


class Outcomes:
    """The store; a context manager, usable from any thread. Raises StoreError for a disk or file that will not do.

    Failures and repairs are named by signatures that the caller makes up, the same for the same thing in every build.
    """

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        """`folder` is CACHE/knowledge; it is made if need be. `clock` tells seconds since 1970."""
        self._path = folder / NAME
        self._clock = clock
        self._lock = threading.Lock()
        with on_disk(folder), self._told():
            self._db = sqlite3.connect(self._path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
            self._prepare()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; nothing more is to be written by then."""
        with self._lock:
            self._db.close()

    def record_repair(self, failure: str, repair: str, *, worked: bool) -> None:
        """Remember that a repair was tried, and whether the failure was gone after that."""
        self._write(_REPAIR, (failure, repair, int(worked), int(not worked), self._clock()))

    def record_step(self, kind: str, seconds: float) -> None:
        """Remember how long a step of that kind took."""
        value = math.log(max(seconds, SHORTEST))
        self._write(_STEP, (kind, value, value * value, self._clock()))

    def record_all(self, repairs: Iterable[tuple[str, str, bool]], steps: Iterable[tuple[str, float]]) -> None:
        """Remember many of both, all or none of them: (failure, repair, whether it worked) and (kind, seconds)."""
        now = self._clock()
        tried = [(failure, repair, int(worked), int(not worked), now) for failure, repair, worked in repairs]
        taken = [(kind, math.log(max(seconds, SHORTEST))) for kind, seconds in steps]
        with self._lock, on_disk(self._path.parent), self._told():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany(_REPAIR, tried)
                self._db.executemany(_STEP, [(kind, value, value * value, now) for kind, value in taken])
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise

    def tried(self, failure: str) -> Mapping[str, tuple[int, int]]:
        """Every repair that was tried for a failure → how often it worked and how often not."""
        query = "SELECT repair, worked, failed FROM repairs WHERE failure = ?"
        return {str(row[0]): (int(row[1]), int(row[2])) for row in self._read(query, (failure,))}

    def success(self, failure: str, repair: str, prior: Beta | None = None) -> Beta:
        """The posterior of the repair's success for that failure."""
        query = "SELECT worked, failed FROM repairs WHERE failure = ? AND repair = ?"
        row = next(iter(self._read(query, (failure, repair))), (0, 0))
        with self._told():
            return (prior or Beta()).given(int(row[0]), int(row[1]))

    def seconds(self, kind: str, prior: LogNormal) -> LogNormal:
        """The posterior of the duration of steps of that kind."""
        query = "SELECT count, log_sum, log_squares FROM steps WHERE kind = ?"
        found = self._read(query, (kind,))
        return prior.given(
            next((Sample(int(n), float(total), float(squares)) for n, total, squares in found), Sample())
        )

    def usual_seconds(self, kind: str) -> float | None:
        """The median of the seconds that steps of that kind took, as a log-normal has it; None if none was recorded."""
        row = next(iter(self._read("SELECT count, log_sum FROM steps WHERE kind = ?", (kind,))), None)
        with self._told():
            return math.exp(float(row[1]) / int(row[0])) if row else None

    async def arecord_repair(self, failure: str, repair: str, *, worked: bool) -> None:
        """`record_repair` in a worker thread."""
        await anyio.to_thread.run_sync(lambda: self.record_repair(failure, repair, worked=worked))

    async def arecord_step(self, kind: str, seconds: float) -> None:
        """`record_step` in a worker thread."""
        await anyio.to_thread.run_sync(self.record_step, kind, seconds)

    async def asuccess(self, failure: str, repair: str, prior: Beta | None = None) -> Beta:
        """`success` in a worker thread."""
        return await anyio.to_thread.run_sync(self.success, failure, repair, prior)

    async def aseconds(self, kind: str, prior: LogNormal) -> LogNormal:
        """`seconds` in a worker thread."""
        return await anyio.to_thread.run_sync(self.seconds, kind, prior)

    def _prepare(self) -> None:
        self._db.execute(f"PRAGMA busy_timeout = {int(PATIENCE * 1000)}")
        _patiently(lambda: self._db.execute("PRAGMA journal_mode = WAL"))
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")

    def _write(self, statement: str, values: tuple[object, ...]) -> None:
        with self._lock, on_disk(self._path.parent), self._told():
            self._db.execute(statement, values)

    def _read(self, query: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        with self._lock, self._told():
            return self._db.execute(query, values).fetchall()

    @contextmanager
    def _told(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError, ArithmeticError) as error:  # the last of what nobody of us wrote
            raise StoreError(
                f"what earlier builds taught cannot be kept in {self._path}: {error}",
                hint="see that the disk is not full; a damaged file can be removed, with what it taught",
            ) from error


def _patiently(act: Callable[[], T]) -> T:
    """Changing to WAL does not wait for others by itself: SQLITE_BUSY comes at once (https://sqlite.org/wal.html)."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return act()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)
