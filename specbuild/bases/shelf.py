"""The shelf of finished bases: archives named by their content, and for each name the newest record.

CACHE/bases/debian-bookworm-amd64.json   the newest record of that name
CACHE/bases/<digest>.tar                 archives; superseded ones stay until pruned, for replays
CACHE/bases/<digest>.json                the record of each
CACHE/bases/debian-bookworm-amd64.lock   held while one is being made, by whatever process
"""

from __future__ import annotations

import shutil
import time
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from specbuild.bases.rootfs_tar import digest_of_file
from specbuild.model import Frozen
from specbuild.storage import held, write_whole

SCHEMA_VERSION = 1

KEPT = 3
"""Archives of one name that are kept: the newest, and those that earlier environments may be replayed from."""


class Record(Frozen):
    """What is known of one archive."""

    schema_version: int = SCHEMA_VERSION
    name: str
    """`debian:bookworm`."""
    architecture: str
    """Debian's name of it (`amd64`)."""
    digest: str
    """sha256 of the archive before the sources were added: the same whatever the mirror."""
    stored: str | None = None
    """sha256 of the archive as it lies on the shelf, which disks and crashes may change; None in older records."""
    made: str
    """ISO 8601, UTC."""
    checked: float
    """When it was last found to be current or made, in seconds since 1970."""
    tool: str
    python: str | None
    """Version of the `python3` that its sources offer."""
    sources: tuple[str, ...]
    """Suites that it was made from."""
    packages: tuple[tuple[str, str], ...]
    """Name and version of each installed package."""

    @property
    def age(self) -> float:
        """Seconds since it was made or checked."""
        return max(0.0, time.time() - self.checked)


class Shelf:
    """Finished bases in a folder. Safe for any number of processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self) -> None:
        """Make the folder, for its owner alone."""
        self.folder.mkdir(parents=True, exist_ok=True)

    def newest(self, slot: str) -> Record | None:
        """The newest record of a slot (`debian-bookworm-amd64`) whose archive is there."""
        return self._read(self.folder / f"{slot}.json")

    def by_digest(self, digest: str) -> Record | None:
        """The record of that content."""
        return self._read(self.folder / f"{digest}.json")

    def archive(self, digest: str) -> Path:
        """Where the archive with that content is, or would be."""
        return self.folder / f"{digest}.tar"

    def _read(self, path: Path) -> Record | None:
        try:
            record = Record.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):  # none, or of another version of SpecBuild: to be made anew
            return None
        return record if self.archive(record.digest).is_file() else None

    def put(self, slot: str, record: Record, archive: Path) -> None:
        """Place an archive, made on the same filesystem, and its record. Call with the lock held."""
        record = record.model_copy(update={"stored": digest_of_file(archive)})
        archive.replace(self.archive(record.digest))
        text = record.model_dump_json(indent=1)
        for name in (record.digest, slot):
            write_whole(self.folder / f"{name}.json", text)
        self._drop_old(record)

    def discard_damaged(self, digest: str) -> bool:
        """Remove the archive if it is not what was put here any more, so that it is made anew; whether it was so.

        Reads all of it: 0.1 to 0.5 s.
        """
        record = self.by_digest(digest)
        if record is None or record.stored in (None, digest_of_file(self.archive(digest))):
            return False
        self.archive(digest).unlink(missing_ok=True)
        return True

    def sweep(self, prefix: str) -> None:
        """Remove work folders that a killed process left. Call with the lock of those that use that prefix held."""
        for left in self.folder.glob(f"{prefix}*"):
            shutil.rmtree(left, ignore_errors=True)

    def _drop_old(self, newest: Record) -> None:
        found = [record for path in self.folder.glob("*.json") if (record := self._read(path))]
        same = {r.digest: r for r in found if (r.name, r.architecture) == (newest.name, newest.architecture)}
        same.pop(newest.digest, None)
        for record in sorted(same.values(), key=lambda record: record.made, reverse=True)[KEPT - 1 :]:
            self.archive(record.digest).unlink(missing_ok=True)
            (self.folder / f"{record.digest}.json").unlink(missing_ok=True)

    def lock(self, slot: str) -> AbstractAsyncContextManager[None]:
        """Hold the lock of a slot; waits for whoever makes that base now."""
        return held(self.folder / f"{slot}.lock")


def utc_now() -> str:
    """The present time as records hold it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
