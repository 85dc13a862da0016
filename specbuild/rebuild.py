"""Building one Recipe again from its Base, in a fresh Sandbox and without checkpoints of earlier Steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from specbuild.execution import Workshop
from specbuild.recipe import Recipe
from specbuild.sandbox.contract import Backend, Completed, Limits, LineSink, Sandbox
from specbuild.scheduler import LEADER_WEIGHT
from specbuild.tail import last_lines
from specbuild.verify.verdict import Verdict


async def rebuild(
    recipe: Recipe,
    backend: Backend,
    workshop: Workshop,
    *,
    limits: Limits,
    on_line: LineSink,
    on_step: Callable[[str], None] = lambda title: None,
    logs: Path | None = None,
    look: Callable[[Sandbox], Awaitable[None]] | None = None,
) -> Verdict:
    """The Verdict of running all Steps and the Check of `recipe`, one after the other, in one Sandbox.

    `on_step` is told the title of each Step and of the Check as it begins; `look` is given the Sandbox between the last
    Step and the Check. A Step that fails makes the Verdict not ok. Raises SandboxError for trouble of our own.
    """
    base = await workshop.provide(recipe.base)
    async with backend.fork(base, limits=replace(limits, cpu_weight=LEADER_WEIGHT)) as sandbox:
        for number, step in enumerate(recipe.steps, 1):
            on_step(step.title or step.run)
            log = logs / f"replay-{number}.log" if logs else None
            done = await workshop.run_step(sandbox, step, on_line=on_line, log=log)
            if not done.ok:
                return _failed(recipe, step.title or step.run, done)
        if look is not None:
            await look(sandbox)
        on_step(recipe.check.step.title or "verify")
        log = logs / "replay-check.log" if logs else None
        return await workshop.verify(sandbox, recipe.check, on_line=on_line, log=log)


def _failed(recipe: Recipe, step: str, done: Completed) -> Verdict:
    end = "\n".join(last_lines(done.tail, 5))
    how = f"exited with status {done.exit_code}" if not done.note else f"ended: {done.note}"
    return Verdict(
        level=recipe.check.level,
        ok=False,
        reason=f"when built again, {step!r} {how}; its last lines:\n{end}",
    )
