"""Worlds of commands that want for names, tell of it or lie, install packages, clash and break: for fake backends."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from specbuild.model import digest_of
from specbuild.recipe import Recipe, Step
from specbuild.testing.fakes import Behaviour, Files
from specbuild.warmers import APT_TOLD

FIXED = "/fixed/"
"""Where `fix x` leaves `x`."""
DATABASE = "/db"
"""What every installation of packages adds to."""
LISTS = "apt-get update -qq\n"
"""What a warmer runs before a Step that installs packages, where nothing has."""


@dataclass(frozen=True)
class Doing:
    """What a command does: it takes its time, and fails for want of names, of which its output tells."""

    seconds: float
    needs: tuple[str, ...] = ()
    tells: float | None = None
    """Share of its time after which it tells; None: at its end."""
    lies: str = ""
    """What it tells of although it does not want for it."""
    breaks: bool = False
    """Whether our machinery breaks under it."""
    clashes: bool = False
    """Whether it writes what installations of packages write."""


class World:
    """What commands do; `fix x` brings x if it works.

    What a command leaves tells which files it has seen, but for those that install packages, which see their own alone.
    """

    def __init__(
        self,
        doings: Mapping[str, Doing],
        fixes: Mapping[str, tuple[float, bool]],
        *,
        installing: Collection[str] = (),
        installed: Collection[str] = (),
    ) -> None:
        """`fixes` are seconds, and whether it works; `installing` are the commands that install packages, `installed`
        what fixes bring in this way."""
        self.doings = doings
        self._fixes = fixes
        self._installing = installing
        self._installed = installed

    def __call__(self, command: str, files: Files) -> Behaviour:
        if APT_TOLD in files:
            return self._fetch(command.removeprefix(LISTS))
        writes = self._writes(command, files)
        if command.startswith("fix "):
            seconds, works = self._fixes[command.split()[1]]
            return Behaviour(seconds, exit_code=int(not works), writes=writes)
        doing = self.doings[command]
        missing = [name for name in doing.needs if FIXED + name not in files]
        told = missing[0] if missing else doing.lies
        if doing.breaks:
            return Behaviour(doing.seconds, breaks="the sandbox is gone")
        failed = int(bool(missing))
        if not told:
            return Behaviour(doing.seconds, writes=writes)
        if doing.tells is None:
            return Behaviour(doing.seconds, exit_code=failed, output=(f"END {told}",), writes=writes)
        says = ((doing.tells * doing.seconds, f"FAIL {told}"),)
        return Behaviour(doing.seconds, exit_code=failed, says=says, writes=writes)

    def _fetch(self, command: str) -> Behaviour:
        """A download of packages: it has the faults of what it is for."""
        if command.startswith("fix "):
            seconds, works = self._fixes[command.split()[1]]
            return Behaviour(seconds / 2, exit_code=int(not works))
        doing = self.doings[command]
        return Behaviour(doing.seconds / 2, breaks="no such mirror" if doing.breaks else "", hangs=bool(doing.lies))

    def _writes(self, command: str, files: Files) -> Files:
        word, _, rest = command.partition(" ")
        name = rest.split()[0] if word == "fix" else ""
        installs = name in self._installed if name else command in self._installing
        seen = "" if installs else digest_of(sorted((path, data.decode()) for path, data in files.items()))
        writes = {f"/did/{command}": seen.encode()}
        if name:
            writes[FIXED + name] = b""
        if installs or (not name and self.doings[command].clashes):
            writes[DATABASE] = files.get(DATABASE, b"") + command.encode() + b"\n"
        return writes

    def states(self, recipe: Recipe) -> Iterable[tuple[str, Files | None]]:
        """The states of a Recipe that is run in its own order, by their keys; None from where it fails."""
        files: Files | None = {}
        for key, step in zip(recipe.checkpoints, (None, *recipe.steps), strict=True):
            files = self._after(files, step) if step and files is not None else files
            yield key, files

    def verifies(self, recipe: Recipe) -> bool:
        """Whether a Recipe that is run in its own order verifies."""
        *_, (_, files) = self.states(recipe)
        return files is not None and self._after(files, recipe.check.step) is not None

    def _after(self, files: Files, step: Step) -> Files | None:
        done = self(step.run, files)
        return None if done.exit_code or done.breaks else {**files, **done.writes}
