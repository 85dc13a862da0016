"""A mender for races of scripts: lines that begin with `FAIL x` tell of a failure, whose repair is a Step `fix x`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from specbuild.execution import Execution, Foresight
from specbuild.failures import Failure, MissingCommand
from specbuild.recipe import Recipe, Step, StepKind, checkpoint_root
from specbuild.tree import Edge, Entry, Work, check_key


class ScriptReader:
    """Takes `FAIL x` for a missing command `x`, as it comes; `END x` when the output has ended."""

    def __init__(self) -> None:
        self._late: list[Failure] = []

    def feed(self, line: str) -> Iterable[Failure]:
        """The failure that the line tells of."""
        word, _, name = line.partition(" ")
        failure = MissingCommand(command=name, evidence=line)
        if word == "END":
            self._late.append(failure)
        return [failure] if word == "FAIL" else []

    def finish(self) -> Iterable[Failure]:
        """What showed at the end."""
        return self._late


class ScriptMender:
    """Inserts `fix x` before what fails for want of `x`; with `rivals`, also `fix x in way 2`, `… 3` and so on.

    `observed` holds every execution that it was told of.
    """

    def __init__(
        self,
        *,
        rivals: Mapping[str, int] | None = None,
        most: int = 8,
        installed: Collection[str] = (),
        early: Collection[str] = (),
    ) -> None:
        """What is named in `installed` comes as a system package (`specbuild.sides`), what is named in `early` before
        all other Steps, wherever it is missed."""
        self._rivals = rivals or {}
        self._installed = installed
        self._early = early
        self._most = most
        self._known: set[str] = set()
        self._repaired: dict[str, tuple[str, ...]] = {}
        self.observed: list[Execution] = []

    def reader(self) -> ScriptReader:
        """A new reader."""
        return ScriptReader()

    async def mend(
        self, edge: Edge, broken: Sequence[Entry], failures: Sequence[Failure], *, foreseen: bool
    ) -> list[Entry]:
        """One Recipe with all failures repaired, and one for each rival of the first."""
        made: list[Entry] = []
        for entry in broken:
            had = self._repaired.get(entry.id, ())
            names = [f.command for f in failures if isinstance(f, MissingCommand) and f.command not in had]
            if names and len(had) < self._most:
                made += self._ways(entry, edge, names, foreseen=foreseen)
        return made

    async def foresee(self, entry: Entry) -> Foresight:
        """Nothing."""
        del entry
        return Foresight()

    async def spread(self, entry: Entry, work: Work, failures: Sequence[Failure]) -> Foresight:
        """Nothing."""
        del entry, work, failures
        return Foresight()

    def observe(self, done: Execution) -> None:
        """Keep it."""
        self.observed.append(done)

    def give_up(self, entry: Entry) -> None:
        """It may be wanted again."""
        self._known.discard(entry.recipe.digest)

    def _ways(self, entry: Entry, edge: Edge, names: list[str], *, foreseen: bool) -> Iterable[Entry]:
        for way in range(1, self._rivals.get(names[0], 1) + 1):
            fixes = [f"fix {name}" for name in names]
            if way > 1:
                fixes[0] += f" in way {way}"
            recipe = self._with(entry.recipe, edge, fixes)
            if recipe.digest not in self._known:
                self._known.add(recipe.digest)
                name = f"{entry.id}.{'+'.join(fixes)}"
                while name in self._repaired:
                    name += "'"  # the same at another place
                self._repaired[name] = (*self._repaired.get(entry.id, ()), *names)
                against = edge.key if foreseen else None
                yield Entry(name, recipe, entry.prior * 0.9**way, entry.expected_seconds, entry.order + way, against)

    def _with(self, recipe: Recipe, edge: Edge, fixes: list[str]) -> Recipe:
        keys = [*recipe.checkpoints[1:], check_key(recipe)]
        place = keys.index(edge.key) if edge.key != checkpoint_root(recipe.base) else 0
        early = tuple(self._step(fix) for fix in fixes if fix.split()[1] in self._early)
        late = tuple(self._step(fix) for fix in fixes if fix.split()[1] not in self._early)
        steps = (*early, *recipe.steps[:place], *late, *recipe.steps[place:])
        return recipe.model_copy(update={"steps": steps})

    def _step(self, fix: str) -> Step:
        if fix.split()[1] in self._installed:
            return package_step(fix)
        return Step(kind=StepKind.SYSTEM, run=fix)


def package_step(command: str) -> Step:
    """A Step that installs system packages, as `specbuild.sides` knows them."""
    return Step(kind=StepKind.SYSTEM, run=command, cwd="/", caches=("apt",))
