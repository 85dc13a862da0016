"""The accounts of a race: what became of each candidate, when what ran, and what speculation cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, assert_never

from specbuild.environment import CandidateReport, Diagnosis, TimelineEntry, Waste
from specbuild.execution import Execution, kind, title
from specbuild.failures import Failure, Weight
from specbuild.field import Field, Runner
from specbuild.outcome import Outcome
from specbuild.speculate import RaceResult
from specbuild.tail import end_of, last_lines
from specbuild.tree import EdgeState, RecipeState

TAIL_LINES = 20
"""Lines of a failing step that a report shows."""

MOST_DIAGNOSES = 8
"""Diagnoses that a report gives of one candidate."""

Advice = Callable[[str, Failure], tuple[str, ...]]
"""(candidate, failure) → what would cure it, in words."""


def candidate_reports(result: RaceResult, field: Field, advice: Advice) -> tuple[CandidateReport, ...]:
    """How far each candidate came and why it ended, in the order in which they were proposed."""
    executions = {execution.key: execution for execution in result.executions}
    # A race may end while repairs are being made known: these never ran.
    raced = [runner for runner in field.runners.values() if result.tree.holds(runner.id)]
    return tuple(_report(result, runner, executions, advice) for runner in raced)


def timeline(executions: Iterable[Execution]) -> tuple[TimelineEntry, ...]:
    """Every execution in order of start."""
    return tuple(
        TimelineEntry(
            title=title(execution.work),
            kind=kind(execution.work),
            node=execution.key,
            start=round(execution.start, 3),
            end=round(execution.end, 3),
            outcome=execution.outcome,
            candidates=execution.candidates,
            cpu_seconds=round(execution.cpu_seconds, 3),
            written_bytes=execution.written_bytes,
        )
        for execution in executions
    )


def waste(result: RaceResult) -> Waste:
    """What was spent on the winner's path and beside it. Without a winner, all of it is a loser's."""
    path = _path(result)
    won = [execution for execution in result.executions if execution.key in path]
    lost = [execution for execution in result.executions if execution.key not in path]
    return Waste(
        winner_seconds=round(sum(e.end - e.start for e in won), 3),
        winner_cpu_seconds=round(sum(e.cpu_seconds for e in won), 3),
        winner_bytes=sum(e.written_bytes for e in won),
        loser_seconds=round(sum(e.end - e.start for e in lost), 3),
        loser_cpu_seconds=round(sum(e.cpu_seconds for e in lost), 3),
        loser_bytes=sum(e.written_bytes for e in lost),
        warmer_seconds=round(result.warmed.seconds, 3),
        warmer_cpu_seconds=round(result.warmed.cpu_seconds, 3),
        warmer_bytes=result.warmed.written_bytes,
    )


def _path(result: RaceResult) -> set[str]:
    """The edges that the winner's environment comes from: its own, and those whose changes were grafted onto them."""
    if result.winner is None:
        return set()
    own = set(result.tree.path(result.winner.id))
    grafted = {execution.key for execution in result.executions if execution.outcome is Outcome.GRAFTED}
    return own | {twin for key in own & grafted if (twin := result.tree.edge(key).twin)}


def _report(result: RaceResult, runner: Runner, executions: Mapping[str, Execution], advice: Advice) -> CandidateReport:
    tree, name, candidate = result.tree, runner.id, runner.candidate
    path = tree.path(name)
    failed = next((executions[key] for key in path if tree.edge(key).state is EdgeState.FAILED), None)
    checked = executions.get(path[-1])
    return CandidateReport(
        id=name,
        strategy=candidate.strategy,
        base=candidate.recipe.base.name,
        prior=candidate.prior,
        reason=candidate.reason,
        end=_end(tree.state(name)),
        why=result.ends[name],
        steps_done=sum(tree.edge(key).state is EdgeState.DONE for key in path),
        steps_total=len(path),
        failed_step=title(failed.work) if failed else None,
        tail=_tail(failed) if failed else "",
        hint=_hint(failed) if failed else "",
        log=str(failed.log) if failed and failed.log else None,
        verdict=checked.verdict if checked else None,
        of=runner.of,
        repairs=runner.repairs,
        diagnoses=_diagnoses(name, failed, advice) if failed else (),
    )


def _diagnoses(name: str, failed: Execution, advice: Advice) -> tuple[Diagnosis, ...]:
    telling = [failure for failure in failed.failures if failure.weight is not Weight.WARNING] or failed.failures
    return tuple(
        Diagnosis(failure=failure, words=str(failure), evidence=failure.evidence, repairs=advice(name, failure))
        for failure in telling[:MOST_DIAGNOSES]
    )


def _end(state: RecipeState) -> Literal["committed", "failed", "cancelled"]:
    match state:
        case RecipeState.VERIFIED:
            return "committed"
        case RecipeState.FAILED:
            return "failed"
        case RecipeState.LIVE | RecipeState.CANCELLED:
            return "cancelled"
        case _:
            assert_never(state)


def _tail(failed: Execution) -> str:
    if failed.completed is not None:
        return "\n".join(last_lines(failed.completed.tail, TAIL_LINES))
    if failed.log is not None:
        return "\n".join(last_lines(end_of(failed.log), TAIL_LINES))
    return failed.error


def _hint(failed: Execution) -> str:
    if failed.error:
        return "run `specbuild doctor`: this machine's set-up failed, not the repository"
    if failed.verdict is not None:
        return (
            f"look at the failing tests in {failed.log}; `--min-pass-ratio` sets how many must pass, "
            "`--test-command` how they are run"
        )
    return f"the whole output is in {failed.log}" if failed.log else ""
