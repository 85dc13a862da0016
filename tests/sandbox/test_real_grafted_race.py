"""System packages beside other steps in real sandboxes: one environment comes of it, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbuild.outcome import Outcome
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.sandbox.contract import RootfsTar
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.speculate import RaceResult, race
from specbuild.testing.fakes import Recorder, ScriptWorkshop
from specbuild.testing.leftovers import leftovers
from specbuild.testing.promises import check_promises
from specbuild.testing.trial import seen
from specbuild.tree import Entry

pytestmark = [pytest.mark.sandbox, pytest.mark.root]

_INSTALL = "sleep 0.3; mkdir -p /db /usr/{name}; echo {name} >> /db/status; echo lib > /usr/{name}/lib"


def packages(name: str) -> Step:
    """Something that, as a package manager does, keeps one database of all that it installs."""
    return Step(kind=StepKind.SYSTEM, run=_INSTALL.format(name=name), cwd="/", caches=("apt",))


def other(run: str, kind: StepKind = StepKind.DEPENDENCIES) -> Step:
    return Step(kind=kind, run=run, cwd="/")


async def raced(backend: OverlayBackend, tiny: Path, *steps: Step, check: str) -> RaceResult:
    test = Step(kind=StepKind.TEST, run=check, cwd="/")
    base = BaseRef(name="tiny", digest="sha256:tiny")
    recipe = Recipe(base=base, steps=steps, check=Check(level=Level.TESTS, runner="command", step=test))
    workshop = ScriptWorkshop(backend, source=RootfsTar(tiny))
    entry = Entry("only", recipe, 0.9, 10.0, 0)
    result = await race([entry], backend, workshop, slots=2, reporter=Recorder(), beside=True)
    check_promises(result)
    return result


def outcomes(result: RaceResult, step: Step) -> list[Outcome]:
    return [done.outcome for done in result.executions if done.work == step]


async def test_what_was_installed_beside_is_in_the_environment(tmp_path: Path, tiny: Path) -> None:
    store = tmp_path / "store"
    gcc, cairo = packages("gcc"), packages("cairo")
    async with OverlayBackend(store) as backend:
        result = await raced(
            backend,
            tiny,
            packages("python"),
            other("sleep 0.1; mkdir -p /opt/venv; echo 1 > /opt/venv/uv", StepKind.TOOLCHAIN),
            gcc,
            other("echo 2 > /opt/venv/dependency"),
            cairo,
            other("cat /usr/gcc/lib /usr/cairo/lib > /opt/venv/built"),
            check="cat /opt/venv/uv /opt/venv/dependency /opt/venv/built; test -e /usr/python/lib",
        )
        assert result.winner is not None, result.ends
        assert outcomes(result, gcc) == [Outcome.OK, Outcome.GRAFTED]
        assert outcomes(result, cairo) == [Outcome.OK, Outcome.GRAFTED]
        leaf = await backend.find(result.winner.recipe.checkpoints[-1])
        assert leaf is not None
        assert await seen(backend, leaf, "cat /db/status; cd /opt/venv; echo *") == (
            "python\ngcc\ncairo\nbuilt dependency uv"
        )
    assert leftovers(store) == []


async def test_a_step_that_touches_the_same_files_takes_its_turn(tmp_path: Path, tiny: Path) -> None:
    gcc = packages("gcc")
    async with OverlayBackend(tmp_path / "store") as backend:
        result = await raced(
            backend,
            tiny,
            packages("python"),
            other("echo by-hand >> /db/status", StepKind.TOOLCHAIN),
            gcc,
            check="cat /db/status",
        )
        assert result.winner is not None, result.ends
        assert outcomes(result, gcc) == ["ok", "ok"], "beside, in vain, and in its turn"
        leaf = await backend.find(result.winner.recipe.checkpoints[-1])
        assert leaf is not None
        assert await seen(backend, leaf, "cat /db/status") == "python\nby-hand\ngcc"
