"""What every race promises, whatever happens in it: checks of a result, for tests on fakes and on real sandboxes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

from specbuild.account import waste
from specbuild.events import CandidateEnded, Event, StepEnded, StepStarted
from specbuild.execution import Execution
from specbuild.outcome import Outcome
from specbuild.speculate import RaceResult
from specbuild.tree import EdgeState, Entry, RecipeState


def check_promises(result: RaceResult) -> None:
    """Assert what holds at the end of every race that has not raised."""
    check_no_work_is_done_twice(result.executions)
    check_accounts(result)
    verified = [done for done in result.executions if done.verdict is not None and done.verdict.ok]
    tree = result.tree
    if result.winner is not None:
        assert all(tree.edge(key).state is EdgeState.DONE for key in tree.path(result.winner.id))
        first = min(verified, key=lambda done: done.end)
        assert result.winner.id in first.candidates, "the first leaf that verifies ends the race"
    else:
        assert not verified, "no verified leaf is passed over"
        assert result.timed_out or all(ended_for_a_reason(result, entry) for entry in tree.entries())
    assert not tree.has_hope
    assert not tree.running()
    assert set(result.ends) == {entry.id for entry in tree.entries()}


def check_no_work_is_done_twice(executions: Iterable[Execution]) -> None:
    """Assert that every edge ran for somebody, once at a time, and came to an end of its own once at most."""
    by_key: dict[str, list[Execution]] = {}
    for done in executions:
        assert done.candidates, "nothing runs without a live recipe"
        by_key.setdefault(done.key, []).append(done)
    for runs in by_key.values():
        whole = [one for one in runs if one.outcome is not Outcome.CANCELLED and not one.error]
        assert len(whole) <= 1, whole
        assert all(first.end <= second.start for first, second in pairwise(runs)), "not twice at once"


def check_accounts(result: RaceResult) -> None:
    """Assert that each execution is on one account: the winner's, with what was taken over for it, or the losers'."""
    told, done = waste(result), result.executions
    seconds, cpu = sum(e.end - e.start for e in done), sum(e.cpu_seconds for e in done)
    assert math.isclose(told.winner_seconds + told.loser_seconds, seconds, abs_tol=0.01)
    assert math.isclose(told.winner_cpu_seconds + told.loser_cpu_seconds, cpu, abs_tol=0.01)
    assert told.winner_bytes + told.loser_bytes == sum(e.written_bytes for e in done)
    if result.winner is not None:
        path = [result.tree.edge(key) for key in result.tree.path(result.winner.id)]
        grafted = {e.key for e in done if e.outcome is Outcome.GRAFTED}
        won = {edge.key for edge in path} | {edge.twin for edge in path if edge.key in grafted}
        assert math.isclose(told.winner_seconds, sum(e.end - e.start for e in done if e.key in won), abs_tol=0.01)


def ended_for_a_reason(result: RaceResult, entry: Entry) -> bool:
    """Whether a Recipe failed at a step of its own, or repairs what did not fail, or what was given up itself."""
    tree = result.tree
    if tree.state(entry.id) is RecipeState.FAILED:
        return any(tree.edge(key).state is EdgeState.FAILED for key in tree.path(entry.id))
    if entry.against is None:
        return False
    repaired = [other for other in tree.entries() if entry.against in tree.path(other.id)]
    given_up = all(tree.state(other.id) is RecipeState.CANCELLED for other in repaired)
    return given_up or tree.edge(entry.against).state is EdgeState.DONE


def check_story(events: Iterable[Event], result: RaceResult) -> None:
    """Assert that the events tell of every execution's start and end, and of each Recipe's end once."""
    running: set[str] = set()
    ends: list[str] = []
    for event in events:
        match event:
            case StepStarted(node=node):
                assert node not in running
                running.add(node)
            case StepEnded(node=node):
                running.remove(node)
            case CandidateEnded(candidate=candidate):
                ends.append(candidate)
            case _:
                pass
    assert not running
    assert sorted(ends) == sorted(result.ends)
