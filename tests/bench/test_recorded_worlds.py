"""Repositories as journals tell of them, simulated: hand-made journals, by hand calculation; recorded races, again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.journals import read_project
from bench.recorded import RecordedWorld, read_worlds
from bench.simulate import main, recorded_machines
from bench.simulated import MODES, Conditions, Machine, Run, run
from bench.tables import Results
from bench.thinking import Latency
from bench.validation import comparisons, figures
from bench.worlds import world
from specbuild.errors import UsageError
from specbuild.events import (
    CandidateEnded,
    CandidateProposed,
    Event,
    FailureSeen,
    Notice,
    Phase,
    Planned,
    RepairMade,
    StepEnded,
    StepStarted,
    Verified,
)
from specbuild.failures import Failure, MissingHeader
from specbuild.journal import Journal
from specbuild.recipe import Level
from specbuild.verify.verdict import Verdict

Work = tuple[str, str]
"""Kind, command."""

FAILURE = MissingHeader(header="cairo.h", evidence="cairo.h: No such file")
SYSTEM, FIX, INSTALL, TEST = ("system", "apt"), ("system", "fix"), ("dependencies", "install"), ("test", "pytest")
BROKEN, REPAIRED = [SYSTEM, INSTALL, TEST], [SYSTEM, FIX, INSTALL, TEST]


@dataclass
class Script:
    """Writes the journal of a build, one thing after another."""

    salt: str
    at: float = 1.0
    events: list[Event] = field(default_factory=list[Event])

    def begin(self) -> None:
        """The race; its base is there in no time."""
        self.events.append(Phase(at=self.at, name="race", detail="1 candidates, 3 at once"))
        base = {"at": self.at, "node": "base", "title": "base debian:bookworm"}
        self.events.append(StepStarted.model_validate({**base, "step_kind": "base", "candidates": ("c1",)}))
        self.events.append(StepEnded.model_validate({**base, "ok": True}))

    def propose(self, name: str, works: Sequence[Work], *, prior: float = 0.8, foreseen: bool | None = None) -> None:
        """A candidate; with `foreseen` given it repairs the failure of the one before its last dot."""
        made: tuple[RepairMade, ...] = ()
        if foreseen is not None:
            repair = RepairMade(
                failure=FAILURE, name="apt:cairo", title="fix", why="", probability=0.9, foreseen=foreseen
            )
            made = (repair,)
        base = Planned(node="base", kind="base", digest="bookworm")
        self.events.append(
            CandidateProposed(
                at=self.at,
                candidate=name,
                strategy="declared",
                base="debian:bookworm",
                prior=prior,
                reason="",
                steps=tuple(command for _, command in works[:-1]),
                repairs=made,
                of=name.rpartition(".")[0],
                expected_seconds=50.0,
                path=(base, *(self._planned(works, n) for n in range(len(works)))),
            )
        )

    def graft(self, works: Sequence[Work], place: int, seconds: float) -> None:
        """The work is not run, since its side is taken over."""
        self.run(works, place, seconds, cpu=0.0)
        last = self.events.pop()
        self.events.append(last.model_copy(update={"note": "grafted", "exit_code": None, "end": ""}))

    def aside(self, works: Sequence[Work], place: int, seconds: float, *, cpu: float) -> None:
        """The work, which the moment of its end does not wait for, runs before its turn."""
        command, node = works[place][1], self._planned(works, place).side
        self.events.append(StepStarted(at=self.at, node=node, title=command, step_kind="system", candidates=("c1",)))
        ended = StepEnded(at=self.at + seconds, node=node, title=command, ok=True, exit_code=0, end="exited")
        self.events.append(ended.model_copy(update={"seconds": seconds, "cpu_seconds": cpu}))

    def run(
        self,
        works: Sequence[Work],
        place: int,
        seconds: float,
        *,
        cpu: float,
        ok: bool = True,
        told: float | None = None,
    ) -> None:
        """A piece of work from now on, alone; its output tells of the failure after `told` seconds."""
        kind, command = works[place]
        node, began = self._planned(works, place).node, self.at
        self.events.append(StepStarted(at=began, node=node, title=command, step_kind=kind, candidates=("c1",)))
        if told is not None:
            self.events.append(seen(began + told, node, command, kind))
        self.at += seconds
        check = kind == "test"
        self.events.append(
            StepEnded(
                at=self.at,
                node=node,
                title=command,
                ok=ok,
                exit_code=None if check else int(not ok),
                end="" if check else "exited",
                seconds=seconds,
                cpu_seconds=cpu,
            )
        )
        if check:
            verdict = Verdict(level=Level.TESTS, ok=ok, reason="", passed=int(ok), failed=int(not ok))
            self.events.append(Verified(at=self.at, candidates=("c1",), verdict=verdict))

    def commit(self, name: str) -> None:
        self.events.append(CandidateEnded(at=self.at, candidate=name, end="committed", why=""))

    def write(self, path: Path) -> None:
        with Journal(path) as journal:
            for event in self.events:
                journal.emit(event)

    def _planned(self, works: Sequence[Work], place: int) -> Planned:
        kind, command = works[place]
        node = ".".join((self.salt, *(command for _, command in works[: place + 1])))
        side = f"{self.salt}.side.{command}" if command.startswith("packages") else ""
        return Planned(node=node, kind=kind, digest=command, side=side)


def seen(at: float, node: str, title: str, kind: str, probability: float = 0.9) -> FailureSeen:
    failure: Failure = FAILURE
    return FailureSeen(
        at=at,
        node=node,
        title=title,
        step_kind=kind,
        candidates=("c1",),
        failure=failure,
        words="",
        probability=probability,
    )


def sequential(*, cpu: float = 0.5) -> Script:
    """Installing (20 s) fails, as its output tells after 8 s; with a fix (4 s) it takes 12 s. `cpu` is cores in use."""
    told = Script("one")
    told.propose("c1", BROKEN)
    told.begin()
    told.run(BROKEN, 0, 10, cpu=10 * cpu)
    told.run(BROKEN, 1, 20, cpu=20 * cpu, ok=False, told=8)
    told.propose("c1.1", REPAIRED, foreseen=False)
    for place, seconds in enumerate((10.0, 4.0, 12.0, 6.0)):
        told.run(REPAIRED, place, seconds, cpu=seconds * cpu)
    told.commit("c1.1")
    return told


def recorded(folder: Path, **journals: Script) -> RecordedWorld:
    """The world of a project with such journals, by mode; from a machine of two cores."""
    for mode, script in journals.items():
        script.write(folder / "project" / f"{mode}-0.jsonl")
    (found,) = read_worlds(folder, 2)
    return found


@pytest.mark.parametrize(
    ("mode", "machine", "seconds"),
    [
        ("sequential", "2/3", 1 + 10 + 20 + 10 + 4 + 12 + 6),
        ("checkpoint", "2/3", 1 + 10 + 20 + 4 + 12 + 6),
        ("strategy", "2/3", 1 + 10 + 20 + 4 + 12 + 6),
        ("full", "2/3", 1 + 10 + 8 + 4 + 12 + 6),
        ("full", "1/2", 1 + 10 + 8 + 4 + 12 + 6),
    ],
)
def test_a_sequential_recording_tells_what_every_mode_takes(
    tmp_path: Path, mode: str, machine: str, seconds: float
) -> None:
    done = run(recorded(tmp_path, sequential=sequential()), MODES[mode], Machine.parse(machine))
    assert done.committed
    assert done.seconds == pytest.approx(seconds, abs=0.01)
    assert done.assumed == 0
    assert done.alone_seconds == pytest.approx(10 + 4 + 12 + 6)


def test_steps_that_keep_a_core_busy_share_it_where_there_is_one(tmp_path: Path) -> None:
    found = recorded(tmp_path, sequential=sequential(cpu=1.0))
    two, one = (run(found, MODES["full"], Machine(cores, 2)) for cores in (2, 1))
    assert two.seconds == pytest.approx(1 + 10 + 8 + 4 + 12 + 6, abs=0.01)
    assert two.cpu_seconds > two.seconds
    assert one.cpu_seconds < one.seconds <= 1 + 10 + 20 + 4 + 12 + 6 + 0.5


def test_work_that_keeps_more_cores_busy_than_there_are_takes_longer(tmp_path: Path) -> None:
    found = recorded(tmp_path, sequential=sequential(cpu=1.4))
    one = run(found, MODES["checkpoint"], Machine(1, 1))
    assert one.seconds == pytest.approx(1 + 1.4 * (10 + 20 + 4 + 12 + 6), abs=0.01)
    assert found.oracle(2) == pytest.approx(32)
    assert found.oracle(1) == pytest.approx(1.4 * 32)


def test_what_was_foreseen_forks_before_anything_runs(tmp_path: Path) -> None:
    full = Script("two")
    full.propose("c1", BROKEN)
    full.begin()
    full.at += 2
    full.events.append(seen(full.at, "", "install", "dependencies", 0.7))
    full.at += 1
    full.propose("c1.1", REPAIRED, foreseen=True)
    found = recorded(tmp_path, sequential=sequential(), full=full)
    done = run(found, MODES["full"], Machine(2, 3))
    assert done.seconds == pytest.approx(1 + 10 + 4 + 12 + 6, abs=0.01), "it is there while the first step runs"


def test_medians_are_taken_over_modes_of_what_had_the_cpu_to_itself(tmp_path: Path) -> None:
    slower = sequential()
    slower.events = [replaced(event) for event in slower.events]
    found = recorded(tmp_path, sequential=sequential(), checkpoint=slower)
    done = run(found, MODES["checkpoint"], Machine(2, 3))
    assert done.seconds == pytest.approx(1 + 1.5 * (10 + 20 + 4 + 12 + 6), abs=0.1)


def replaced(event: Event) -> Event:
    """The same in a build that took twice as long after its race began."""
    return event.model_copy(update={"at": 1 + (event.at - 1) * 2})


OTHER = [SYSTEM, ("dependencies", "other"), TEST]
"""Of which only the first step ever ran."""


def with_unseen(*, prior: float) -> Script:
    script = sequential()
    told = Script("one")
    told.propose("c2", OTHER, prior=prior)
    script.events.insert(1, told.events[0])
    return script


def test_what_never_ran_takes_what_its_kind_takes_and_its_share_is_told(tmp_path: Path) -> None:
    found = recorded(tmp_path, sequential=with_unseen(prior=0.98))
    done = run(found, MODES["strategy"], Machine(4, 4))
    assert done.seconds == pytest.approx(1 + 10 + 12 + 6, abs=0.01), "as long as the other install and the same test"
    assert done.assumed == pytest.approx((12 + 6) / (10 + 18 + 12 + 6), abs=0.01), "beside 18 s of the failing one"


def test_what_never_ran_passes_by_its_odds_or_not_at_all(tmp_path: Path) -> None:
    seconds = 1 + 10 + 20 + 4 + 12 + 6
    for prior, unseen in ((0.02, True), (0.98, False)):
        with_unseen(prior=prior).write(tmp_path / "project" / "sequential-0.jsonl")
        (found,) = read_worlds(tmp_path, 2, unseen=unseen)
        assert run(found, MODES["strategy"], Machine(4, 4)).seconds == pytest.approx(seconds, abs=0.01)


def grafting(*, refused: bool = False) -> Script:
    """Packages (8 s) are installed beside the toolchain (6 s) and taken over at once, unless they are refused."""
    works = [SYSTEM, ("toolchain", "uv"), ("system", "packages"), INSTALL, TEST]
    script = Script("one")
    script.propose("c1", works)
    script.begin()
    script.run(works, 0, 10, cpu=5)
    script.aside(works, 2, 8, cpu=4)
    script.run(works, 1, 6, cpu=3)
    script.at += 2
    if refused:
        script.run(works, 2, 8, cpu=4)
    else:
        script.graft(works, 2, 0.5)
    script.run(works, 3, 12, cpu=6)
    script.run(works, 4, 6, cpu=3)
    script.commit("c1")
    return script


def test_what_was_installed_beside_is_grafted_again(tmp_path: Path) -> None:
    found = recorded(tmp_path, full=grafting())
    seconds = {mode: run(found, MODES[mode], Machine(2, 3)).seconds for mode in ("full", "both", "sequential")}
    assert seconds["full"] == pytest.approx(1 + 10 + 8 + 0.5 + 12 + 6, abs=0.01)
    assert seconds["both"] == seconds["sequential"] == pytest.approx(1 + 10 + 6 + 8 + 12 + 6, abs=0.01)


def test_what_could_not_be_grafted_is_run_at_its_place_again(tmp_path: Path) -> None:
    found = recorded(tmp_path, full=grafting(refused=True))
    full = run(found, MODES["full"], Machine(2, 3))
    assert full.seconds == pytest.approx(1 + 10 + 8 + 8 + 12 + 6, abs=0.01)


def test_a_step_that_always_had_company_takes_what_its_cpu_seconds_say(tmp_path: Path) -> None:
    """On two busy cores it took 40 s for the CPU seconds that its kind spends in 20."""
    script = with_unseen(prior=0.5)
    node = "one.apt.other"
    started = StepStarted(at=60.0, node=node, title="other", step_kind="dependencies", candidates=("c2",))
    hog = StepStarted(at=60.0, node="one.apt.fix", title="fix", step_kind="system", candidates=("c2",))
    script.events += [started, hog]
    for one, cpu in ((started, 10.0), (hog, 70.0)):
        script.events.append(
            StepEnded(
                at=100.0,
                node=one.node,
                title=one.title,
                ok=True,
                exit_code=0,
                end="exited",
                seconds=40.0,
                cpu_seconds=cpu,
            )
        )
    found = recorded(tmp_path, sequential=script)
    other = next(recipe for recipe in found.recipes.values() if recipe.steps[1].run == "other")
    piece = found.pieces[other.checkpoints[2]]
    assert piece.seconds == pytest.approx(20)
    assert piece.cores == pytest.approx(0.5)


def test_a_check_that_was_ended_early_ends_early_again(tmp_path: Path) -> None:
    works = [SYSTEM, TEST]
    repaired = [SYSTEM, FIX, TEST]
    script = Script("one")
    script.propose("c1", works)
    script.begin()
    script.run(works, 0, 10, cpu=1)
    script.run(works, 1, 7, cpu=1, ok=False, told=5)
    script.events.pop()
    early = script.events.pop().model_copy(update={"note": "30 of 100 tests had failed, so that it was given up"})
    script.events.append(early)
    script.propose("c1.1", repaired, foreseen=True)
    script.run(repaired, 1, 4, cpu=1)
    script.run(repaired, 2, 60, cpu=6)
    script.commit("c1.1")
    found = recorded(tmp_path, full=script)
    early_on, patient = (run(found, MODES[mode], Machine(1, 2)).seconds for mode in ("full", "strategy"))
    assert early_on == pytest.approx(1 + 10 + 7 + 4 + 60, abs=0.3), "the repair joins in once it is doomed"
    assert patient == pytest.approx(1 + 10 + 60 + 4 + 60, abs=0.1), "as long as a suite takes"


def test_agents_think_before_commands_or_meanwhile(tmp_path: Path) -> None:
    found = recorded(tmp_path, sequential=sequential())
    conditions = Conditions(thinking=Latency.parse("10"))
    before, meanwhile = (run(found, MODES[mode], Machine(2, 3), conditions) for mode in ("sequential", "full"))
    assert before.seconds == pytest.approx(1 + 6 * 10 + (10 + 20 + 10 + 4 + 12 + 6), abs=0.01)
    assert meanwhile.seconds == pytest.approx(1 + 10 + 10 + 8 + 10 + 4 + 12 + 6, abs=0.01)


def test_each_build_is_compared_at_the_slots_that_it_had(tmp_path: Path) -> None:
    """One had the machine to itself, the other one only what others had left of it."""
    crowded = sequential()
    crowded.events.insert(4, Notice(at=1.0, message="others keep 1.9 cores busy: 1 at once instead of 3"))
    found = recorded(tmp_path, full=sequential(), command=crowded)
    assert [one.slots for one in found.recordings] == [1, 3]
    results: Results = {}
    for machine in recorded_machines([found], 2):
        results[str(machine)] = {mode: [run(found, MODES[mode], machine)] for mode in ("full", "command")}
    seconds = {one.mode: one.simulated for one in comparisons([found], results, 2)}
    assert seconds == {"full": pytest.approx(41, abs=0.01), "command": pytest.approx(53, abs=0.01)}


def test_a_journal_that_tells_no_paths_is_refused(tmp_path: Path) -> None:
    script = sequential()
    script.events = [
        event.model_copy(update={"path": ()}) if isinstance(event, CandidateProposed) else event
        for event in script.events
    ]
    with pytest.raises(UsageError, match="which work"):
        recorded(tmp_path, sequential=script)
    with pytest.raises(UsageError, match="no journals"):
        read_worlds(tmp_path / "project", 2)


def test_recorded_races_come_out_as_they_were(tmp_path: Path) -> None:
    """Races of random repositories, recorded by the events of the real engine and simulated from these."""
    machine, real = Machine(2, 3), dict[tuple[str, str], Run]()
    worlds = [world(7_000_000 + number) for number in range(8)]
    for one in worlds:
        for name, mode in MODES.items():
            with Journal(tmp_path / one.name / f"{name}-0.jsonl") as journal:
                journal.emit(Phase(at=0.0, name="race", detail="6 candidates, 3 at once"))
                real[one.name, name] = run(one, mode, machine, reporter=journal)
    found = read_worlds(tmp_path, machine.cores)
    assert recorded_machines(found, machine.cores) == [machine]
    again = {name: [run(one, mode, machine) for one in found] for name, mode in MODES.items()}
    compared = comparisons(found, {str(machine): again}, machine.cores)
    assert len(compared) == 8 * len(MODES)
    for row in compared:
        assert row.real == pytest.approx(real[row.project, row.mode].seconds)
        if row.mode in ("sequential", "checkpoint"):
            assert row.error == pytest.approx(0, abs=0.01)
    total = figures(compared)
    assert total["agree"] == total["of"]
    assert total["mean_absolute_error"] is not None
    assert total["mean_absolute_error"] < 0.03
    for one, other in zip(worlds, found, strict=True):
        there, here = (run(some, MODES["full"], Machine(16, 16)).seconds for some in (one, other))
        assert here == pytest.approx(there, rel=0.3), "what many cores would give is told from two"


def test_recordings_are_read_by_mode(tmp_path: Path) -> None:
    recorded(tmp_path, sequential=sequential(), full=sequential())
    assert sorted(one.mode for one in read_project(tmp_path / "project")) == ["full", "sequential"]


def test_a_simulation_is_told_in_json_markdown_and_a_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sequential().write(tmp_path / "traces" / "project" / "sequential-0.jsonl")
    names = [tmp_path / name for name in ("out.json", "out.md", "out.svg")]
    files = [f"--{kind}={path}" for kind, path in zip(("json", "markdown", "plot"), names, strict=True)]
    assert main([f"--traces={tmp_path / 'traces'}", "--cores=2", "--machines=1,16", "--thinking=10", *files]) == 0
    told, text, svg = json.loads(names[0].read_text()), names[1].read_text(), names[2].read_text()
    assert text == capsys.readouterr().out
    assert told["machines"]["16/16"]["full"]["mean_seconds"] == pytest.approx(41, abs=0.01)
    assert told["machines"]["16/16"]["full"]["gap_closed"] == pytest.approx((63 - 41) / (63 - 32), abs=0.01)
    assert told["validation"]["cores"] == 2
    assert told["validation"]["modes"]["sequential"]["mean_absolute_error"] == pytest.approx(0, abs=0.001)
    assert told["thinking"]["machines"]["16/16"]["saved"] == pytest.approx(1 - 61 / 123, abs=0.001)
    assert "63.0 → 63.0 (+0%)" in text
    assert svg.count("<polyline") == len(MODES) + 1
    ElementTree.fromstring(svg)  # noqa: S314 - our own


def test_with_a_limit_what_is_not_committed_counts_with_it(tmp_path: Path) -> None:
    sequential().write(tmp_path / "traces" / "project" / "sequential-0.jsonl")
    path = tmp_path / "out.json"
    assert main([f"--traces={tmp_path / 'traces'}", "--cores=2", "--machines=2", "--limit=50", f"--json={path}"]) == 0
    modes = json.loads(path.read_text())["machines"]["2/2"]
    assert (modes["sequential"]["success"], modes["sequential"]["mean_seconds"]) == (0, 50)
    assert (modes["full"]["success"], modes["full"]["mean_seconds"]) == (1, pytest.approx(41, abs=0.01))
