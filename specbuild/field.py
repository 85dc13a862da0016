"""The field of a race: its candidates by id, in the order in which they entered it, and who repairs whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from specbuild.events import CandidateProposed, Planned, RepairMade, Reporter
from specbuild.execution import kind, title
from specbuild.recipe import Recipe, salted
from specbuild.sides import sides
from specbuild.strategies.contract import Candidate
from specbuild.tree import Entry, Work, check_key


def _nothing(candidate: str) -> str:
    del candidate
    return ""


@dataclass(frozen=True, slots=True)
class Runner:
    """A candidate in the race, with all that was repaired of it."""

    id: str
    candidate: Candidate
    repairs: tuple[RepairMade, ...] = ()
    """From the first on; the last ones are new in this candidate."""
    of: str = ""
    """The candidate that it repairs."""


class Field:
    """The candidates of one race."""

    def __init__(
        self,
        now: Callable[[], float],
        reporter: Reporter,
        expect: Callable[[Recipe], None],
        *,
        salt: Callable[[str], str] = _nothing,
    ) -> None:
        """`expect` is told of every Recipe before it is run.

        `salt` gives a text for a candidate's id: Recipes of different salts share no checkpoint.
        """
        self._salt = salt
        self._now = now
        self._reporter = reporter
        self._expect = expect
        self._digests: set[str] = set()
        self._children: dict[str, int] = {}
        self._roots = 0
        self.runners: dict[str, Runner] = {}

    @property
    def candidates(self) -> dict[str, Candidate]:
        """By id, in order of entry."""
        return {name: runner.candidate for name, runner in self.runners.items()}

    def enter(self, candidates: Iterable[Candidate]) -> list[Entry]:
        """Give candidates of strategies their ids (`c1`, `c2`, …), and make them known; none is entered twice."""
        entries: list[Entry] = []
        for candidate in candidates:
            if candidate.recipe.digest not in self._digests:
                self._roots += 1
                self._digests.add(candidate.recipe.digest)
                entries.append(self._enter(Runner(f"c{self._roots}", candidate), None))
        return entries

    def enter_repaired(
        self, of: str, candidate: Candidate, repairs: tuple[RepairMade, ...], against: str | None
    ) -> Entry | None:
        """The same for a repaired candidate (`c3.1`); None if its Recipe is in the race already.

        One that was given up enters again under another id.
        """
        plain = salted(candidate.recipe, "").digest
        if plain in self._digests:
            return None
        self._digests.add(plain)
        number = self._children[of] = self._children.get(of, 0) + 1
        made = (*self.runners[of].repairs, *repairs)
        return self._enter(Runner(f"{of}.{number}", candidate, made, of), against)

    def give_up(self, candidate: str) -> None:
        """A candidate is out of the race without having failed."""
        self._digests.discard(salted(self.runners[candidate].candidate.recipe, "").digest)

    def _enter(self, runner: Runner, against: str | None) -> Entry:
        recipe = salted(runner.candidate.recipe, self._salt(runner.id))
        runner = replace(runner, candidate=runner.candidate.model_copy(update={"recipe": recipe}))
        candidate, order = runner.candidate, len(self.runners)
        self.runners[runner.id] = runner
        self._expect(candidate.recipe)
        parent = self.runners.get(runner.of)
        self._reporter.emit(_proposed(self._now(), runner, runner.repairs[len(parent.repairs) if parent else 0 :]))
        return Entry(
            id=runner.id,
            recipe=candidate.recipe,
            prior=candidate.prior,
            expected_seconds=candidate.expected_seconds,
            order=order,
            against=against,
        )


def _proposed(at: float, runner: Runner, new: tuple[RepairMade, ...]) -> CandidateProposed:
    candidate = runner.candidate
    return CandidateProposed(
        at=at,
        candidate=runner.id,
        strategy=candidate.strategy,
        base=candidate.recipe.base.name,
        prior=candidate.prior,
        reason=candidate.reason,
        steps=tuple(title(step) for step in candidate.recipe.steps),
        repairs=new,
        of=runner.of,
        expected_seconds=candidate.expected_seconds,
        path=tuple(_path(candidate.recipe)),
    )


def _path(recipe: Recipe) -> Iterator[Planned]:
    """All work of a Recipe, with the nodes of its salt and the digests without."""
    plain = salted(recipe, "")
    works: tuple[Work, ...] = (recipe.base, *plain.steps, recipe.check)
    beside = sides(recipe)
    for node, work in zip((*recipe.checkpoints, check_key(recipe)), works, strict=True):
        side = beside[node].key if node in beside else ""
        yield Planned(node=node, kind=kind(work), digest=work.digest, side=side)
