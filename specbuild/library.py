"""Where builds and their Environments are kept: one folder a build under the cache."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from specbuild.environment import Environment
from specbuild.errors import UsageError
from specbuild.journal import is_being_written
from specbuild.storage import write_whole

FILE = "environment.json"


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of one build."""

    id: str
    folder: Path

    @property
    def logs(self) -> Path:
        """Whole outputs of steps."""
        return self.folder / "logs"

    @property
    def source(self) -> Path:
        """The private copy of the Repo."""
        return self.folder / "source"

    @property
    def journal(self) -> Path:
        """Every event, a line of JSON each."""
        return self.folder / "journal.jsonl"

    @property
    def is_building(self) -> bool:
        """Whether the build goes on, in this process or another."""
        return is_being_written(self.journal)


class Library:
    """The builds under one cache folder."""

    def __init__(self, cache_dir: Path) -> None:
        self._root = cache_dir / "builds"

    def new_place(self) -> Place:
        """A folder for a new build."""
        name = f"b{secrets.token_hex(5)}"
        place = Place(name, self._root / name)
        place.logs.mkdir(parents=True)
        place.source.mkdir()
        return place

    def places(self) -> list[Place]:
        """The folders of all builds, whatever became of them."""
        return [self.place(path.name) for path in self._root.iterdir()] if self._root.is_dir() else []

    def place(self, build_id: str) -> Place:
        """The folder of a build, whether it is there or not."""
        return Place(build_id, self._root / build_id)

    def save(self, environment: Environment) -> Path:
        """Write an Environment into its build's folder; the path of the file."""
        path = self._root / environment.id / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, environment.model_dump_json(indent=2) + "\n")
        return path

    def find(self, ref: str) -> Environment:
        """The Environment of a file, an output folder, an id or its unique beginning, or `last`.

        Raises UsageError if there is none, more than one, or it cannot be read.
        """
        return _read(self._locate(ref))

    def find_journal(self, ref: str) -> Path:
        """The journal of an output folder, of a build by its id or unique beginning, or of the `last` one.

        Builds that failed or were interrupted have one too. Raises UsageError if there is none, or more than one.
        """
        if Path(ref, "journal.jsonl").is_file():
            return Path(ref, "journal.jsonl")
        begun = sorted(
            (place for place in self.places() if place.journal.is_file()),
            key=lambda place: place.journal.stat().st_mtime,
        )
        found = begun[-1:] if ref == "last" else [place for place in begun if ref and place.id.startswith(ref)]
        if len(found) == 1:
            return found[0].journal
        if found:
            raise UsageError(
                f"{ref!r} could be any of: {', '.join(place.id for place in found)}", hint="give more of its id"
            )
        raise UsageError(
            f"there is no build {ref!r} here",
            hint="name an output folder, the id of a build, a journal.jsonl, or `last`",
        )

    def environments(self) -> list[Path]:
        """The files of all Environments that were saved, oldest first."""
        return sorted(self._root.glob(f"*/{FILE}"), key=lambda path: path.stat().st_mtime)

    def _locate(self, ref: str) -> Path:
        path = Path(ref)
        if path.is_file():
            return path
        if (path / FILE).is_file():
            return path / FILE
        saved = self.environments()
        found = saved[-1:] if ref == "last" else [file for file in saved if ref and file.parent.name.startswith(ref)]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(file.parent.name for file in found)
            raise UsageError(f"{ref!r} could be any of: {names}", hint="give more of its id")
        raise UsageError(
            f"there is no environment {ref!r}: it is neither a file, an output folder, nor the id of a build here",
            hint="name the `environment.json` or the output folder of a build, or `last`",
        )


def _read(path: Path) -> Environment:
    try:
        return Environment.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = f"{'.'.join(map(str, first['loc']))}: " if first["loc"] else ""
        raise UsageError(
            f"{path} is not an environment of this version of SpecBuild: {where}{first['msg']}",
            hint="build the repository again",
        ) from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint="see who owns it") from error
