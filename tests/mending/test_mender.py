"""The mender: failures become candidates, and outcomes of repairs become knowledge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from specbuild.events import CandidateProposed, Notice, RepairJudged
from specbuild.execution import Execution
from specbuild.failures import Failure, MissingModule, NetworkTrouble, ServiceNeeded
from specbuild.field import Field
from specbuild.knowledge.outcomes import Outcomes
from specbuild.knowledge.query import Knowledge
from specbuild.mending import MOST_REPAIRS, SPREADS, Mender
from specbuild.outcome import Outcome
from specbuild.recipe import UV, BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.repo.facts import Evidence, Facts, TestNeed
from specbuild.strategies.contract import Candidate
from specbuild.testing.fakes import Recorder
from specbuild.tree import Edge, Entry, Tree, Work, check_key

BASE = BaseRef(name="debian:test", digest="sha256:0", release="test")
BUILD = Step(kind=StepKind.BUILD, run="build")
OTHER = Step(kind=StepKind.SYSTEM, run="apt other")
CHECK = Check(level=Level.TESTS, runner="pytest", step=Step(kind=StepKind.TEST, run="pytest"))
HERE = Evidence(file="tests/test_it.py")
FACTS = Facts(
    test_needs=tuple(
        TestNeed(kind="import", name=name, evidence=HERE)
        for name in ("toml", "simplejson", *(f"module{number}" for number in range(30)))
    )
)


class Scene:
    """A race's field with one candidate, and its mender."""

    def __init__(self, folder: Path, outcomes: Outcomes | None = None, elsewhere: Sequence[Candidate] = ()) -> None:
        self.recorder = Recorder()
        self.field = Field(lambda: 1.0, self.recorder, lambda recipe: None)
        self.asked_for: list[str] = []

        async def prepare(release: str) -> None:
            self.asked_for.append(release)

        async def other(base: str) -> Sequence[Candidate]:
            del base
            return elsewhere

        self.mender = Mender(
            self.field,
            FACTS,
            Knowledge(folder, architecture="amd64"),
            reporter=self.recorder,
            now=lambda: 1.0,
            prepare=prepare,
            elsewhere=other,
            outcomes=outcomes,
        )
        recipe = Recipe(base=BASE, steps=(Step(kind=StepKind.SYSTEM, run="apt"), BUILD), check=CHECK)
        candidate = Candidate(recipe=recipe, strategy="declared", prior=0.8, reason="it is declared")
        self.tree = Tree()
        (self.first,) = self.field.enter([candidate])
        self.tree.add(self.first)

    def edge_of(self, entry: Entry, work: Work) -> Edge:
        if not self.tree.knows(entry.recipe):
            self.tree.add(entry)
        return next(self.tree.edge(key) for key in self.tree.path(entry.id) if self.tree.edge(key).work == work)

    async def mend(self, entry: Entry, work: Work, *failures: Failure, foreseen: bool = False) -> list[Entry]:
        return await self.mender.mend(self.edge_of(entry, work), [entry], failures, foreseen=foreseen)

    def ended(self, entry: Entry, work: Work, outcome: Outcome, *failures: Failure) -> None:
        key = self.edge_of(entry, work).key
        self.mender.observe(
            Execution(key, work, start=0, end=2, outcome=outcome, candidates=(entry.id,), failures=failures)
        )

    def judged(self) -> list[tuple[str, bool]]:
        return [(e.name, e.worked) for e in self.recorder.events if isinstance(e, RepairJudged)]


def inserted(entry: Entry) -> list[str]:
    """The commands of the steps that the first recipe did not have."""
    return [step.run for step in entry.recipe.steps if step.run not in ("apt", "build")]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


NO_YAML = MissingModule(language="python", module="yaml", evidence="No module named 'yaml'")
NO_TOML = MissingModule(language="python", module="toml")
UNKNOWN = MissingModule(language="python", module="unheard")


async def test_a_failure_becomes_candidates_that_have_its_repair_before_what_failed(scene: Scene) -> None:
    made = await scene.mend(scene.first, CHECK, NO_TOML)
    assert made
    best = made[0]
    assert best.id == "c1.1"
    assert best.recipe.steps[:2] == scene.first.recipe.steps
    assert f"{UV} pip install" in inserted(best)[0]
    assert "toml" in inserted(best)[0]
    assert best.prior < scene.first.prior
    assert best.against is None
    proposed = [e for e in scene.recorder.events if isinstance(e, CandidateProposed) and e.of == "c1"]
    assert proposed[0].repairs[0].failure == NO_TOML


async def test_the_index_of_the_release_is_made_ready_before_repairs_are_sought(scene: Scene) -> None:
    await scene.mend(scene.first, CHECK, NO_TOML)
    assert scene.asked_for == ["test"]


async def test_infrastructure_is_not_repaired(scene: Scene) -> None:
    assert await scene.mend(scene.first, BUILD, NetworkTrouble(host="x")) == []


async def test_several_failures_are_repaired_together_in_the_order_of_the_output(scene: Scene) -> None:
    made = await scene.mend(scene.first, CHECK, NO_TOML, MissingModule(language="python", module="simplejson"))
    runs = inserted(made[0])
    assert "toml" in runs[0]
    assert "simplejson" in runs[-1]
    alone = next(entry for entry in made if len(inserted(entry)) == 1 and "toml" in inserted(entry)[0])
    assert alone.recipe.checkpoints[3] == made[0].recipe.checkpoints[3], "the first repair is shared"


async def test_what_is_foreseen_gives_the_same_recipe_as_what_is_observed(scene: Scene, tmp_path: Path) -> None:
    ahead = await scene.mend(scene.first, CHECK, NO_TOML, foreseen=True)
    observed = await Scene(tmp_path).mend(scene.first, CHECK, NO_TOML)
    assert [entry.recipe.digest for entry in ahead] == [entry.recipe.digest for entry in observed]
    assert ahead[0].against == check_key(scene.first.recipe)
    assert await scene.mend(scene.first, CHECK, NO_TOML) == [], "they are in the race already"


async def test_a_candidate_that_was_given_up_enters_again_when_its_repair_is_needed_after_all(scene: Scene) -> None:
    ahead = await scene.mend(scene.first, CHECK, NO_TOML, foreseen=True)
    for entry in ahead:
        scene.mender.give_up(entry)
    observed = await scene.mend(scene.first, CHECK, NO_TOML)
    assert [entry.recipe.digest for entry in observed] == [entry.recipe.digest for entry in ahead]
    assert {entry.id for entry in observed}.isdisjoint(entry.id for entry in ahead)
    assert observed[0].against is None


async def test_a_repair_that_did_not_work_is_not_made_again(scene: Scene) -> None:
    (best, *_) = await scene.mend(scene.first, CHECK, NO_TOML)
    scene.ended(best, CHECK, Outcome.FAILED, NO_TOML)
    again = await scene.mend(best, CHECK, NO_TOML)
    names = {repair.name for entry in again for repair in scene.field.runners[entry.id].repairs[1:]}
    assert scene.field.runners[best.id].repairs[0].name not in names


async def test_where_every_repair_was_in_vain_nothing_else_is_tried(scene: Scene) -> None:
    for entry in await scene.mend(scene.first, CHECK, NO_TOML):
        scene.ended(entry, CHECK, Outcome.FAILED, NO_TOML)
    other = MissingModule(language="python", module="simplejson")
    assert await scene.mend(scene.first, CHECK, NO_TOML, other) == []
    assert await scene.mend(scene.first, CHECK, other) != [], "alone it can be cured"


async def test_a_chain_of_repairs_has_an_end(scene: Scene) -> None:
    entry = scene.first
    for number in range(MOST_REPAIRS + 5):
        made = await scene.mend(entry, CHECK, MissingModule(language="python", module=f"module{number}"))
        if not made:
            break
        entry = made[0]
        scene.ended(entry, CHECK, Outcome.FAILED, NO_YAML)
    assert len(scene.field.runners[entry.id].repairs) == MOST_REPAIRS


async def test_a_repair_that_has_worked_no_longer_counts_against_its_candidate(scene: Scene) -> None:
    (unsure, *_) = await scene.mend(scene.first, CHECK, NO_TOML)
    scene.ended(unsure, CHECK, Outcome.FAILED, NO_YAML)
    (sure, *_) = await scene.mend(unsure, CHECK, MissingModule(language="python", module="simplejson"))
    assert sure.prior > unsure.prior * 0.9


async def test_repairs_that_hardly_lead_anywhere_are_not_made(scene: Scene) -> None:
    entry, made = scene.first, [scene.first]
    for number in range(MOST_REPAIRS):
        made = await scene.mend(entry, CHECK, MissingModule(language="python", module=f"module{number}"))
        if not made:
            break
        entry = made[0]
    assert not made
    assert 1 < len(scene.field.runners[entry.id].repairs) < MOST_REPAIRS


async def test_a_failure_in_one_branch_is_foreseen_in_another(scene: Scene) -> None:
    other = scene.field.enter(
        [
            Candidate(
                recipe=scene.first.recipe.model_copy(update={"test_env": (), "steps": (OTHER, BUILD)}),
                strategy="newest",
                prior=0.5,
                reason="it is newest",
            )
        ]
    )[0]
    foresight = await scene.mender.spread(other, CHECK, [NO_TOML])
    assert foresight.odds == pytest.approx(0.5 * (1 - SPREADS))
    (repaired, *_) = foresight.entries
    assert repaired.id == "c2.1"
    assert repaired.against == check_key(other.recipe)
    again = await scene.mender.spread(repaired, CHECK, [NO_TOML])
    assert again.odds is None, "it has the repair"


async def test_repairs_are_judged_by_whether_the_failure_is_gone(scene: Scene) -> None:
    (best, *_) = await scene.mend(scene.first, CHECK, NO_TOML)
    name = scene.field.runners[best.id].repairs[0].name
    scene.ended(best, CHECK, Outcome.FAILED, NO_YAML)
    assert scene.judged() == [(name, True)], "another failure came: this one is gone"


async def test_a_repair_whose_own_step_fails_did_not_work(scene: Scene) -> None:
    (best, *_) = await scene.mend(scene.first, CHECK, NO_TOML)
    name = scene.field.runners[best.id].repairs[0].name
    scene.ended(best, best.recipe.steps[2], Outcome.FAILED)
    assert scene.judged() == [(name, False)]


async def test_what_was_cancelled_judges_nothing(scene: Scene) -> None:
    (best, *_) = await scene.mend(scene.first, CHECK, NO_TOML)
    scene.ended(best, CHECK, Outcome.CANCELLED)
    assert scene.judged() == []


async def test_outcomes_are_kept_and_change_the_order_of_repairs_in_the_next_build(tmp_path: Path) -> None:
    with Outcomes(tmp_path / "knowledge") as outcomes:
        first = Scene(tmp_path, outcomes)
        made = await first.mend(first.first, CHECK, UNKNOWN)
        assert len(made) > 1, "there are rivals"
        loser = first.field.runners[made[0].id].repairs[0].name
        for _ in range(20):
            first.ended(made[0], CHECK, Outcome.FAILED, UNKNOWN)
            await first.mender.learn()
        second = Scene(tmp_path, outcomes)
        again = await second.mend(second.first, CHECK, UNKNOWN)
        assert second.field.runners[again[0].id].repairs[0].name != loser
        assert outcomes.usual_seconds("kind:system") is None


async def test_durations_of_steps_that_ended_well_are_learned(tmp_path: Path) -> None:
    with Outcomes(tmp_path / "knowledge") as outcomes:
        scene = Scene(tmp_path, outcomes)
        scene.ended(scene.first, BUILD, Outcome.OK)
        scene.ended(scene.first, CHECK, Outcome.FAILED)
        await scene.mender.learn()
        assert outcomes.usual_seconds("kind:build") == pytest.approx(2.0)
        assert outcomes.usual_seconds("kind:test") is None


async def test_advice_is_given_in_words_for_every_failure_that_was_looked_at(scene: Scene) -> None:
    await scene.mend(scene.first, CHECK, NO_TOML)
    assert any("toml" in title for title in scene.mender.advice("c1", NO_TOML))
    assert scene.mender.advice("c1", NO_YAML) == ()


async def test_a_service_starts_with_the_check_and_changes_no_step_before_its_packages(scene: Scene) -> None:
    made = await scene.mend(scene.first, CHECK, ServiceNeeded(service="redis", address="localhost:6379"))
    assert made
    assert [name for name, _ in made[0].recipe.check.services] == ["redis"]
    assert made[0].recipe.check.digest != CHECK.digest


async def test_an_index_that_cannot_be_read_is_told_of_once_and_done_without(scene: Scene, tmp_path: Path) -> None:
    index = Knowledge(tmp_path, architecture="amd64").index("test")
    index.parent.mkdir(parents=True, exist_ok=True)
    index.write_bytes(b"no index")
    (first, *_) = await scene.mend(scene.first, CHECK, MissingModule(language="python", module="toml"))
    assert "toml" in inserted(first)[0]
    assert await scene.mend(first, CHECK, MissingModule(language="python", module="simplejson"))
    (notice,) = [event for event in scene.recorder.events if isinstance(event, Notice)]
    assert notice.warning
    assert str(index) in notice.message
    assert "made anew" in notice.message
