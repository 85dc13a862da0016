"""What a build that has ended tells the user."""

from __future__ import annotations

import io

from specbuild.cli.result import explain_failure, summarise
from specbuild.cli.terminal import Terminal
from specbuild.cli.words import counts
from specbuild.environment import Artifacts, CandidateReport, Environment, Predictions, RepoInfo, Seconds, Waste
from specbuild.recipe import BaseRef, Level
from specbuild.verify.verdict import Verdict

REPO = RepoInfo(origin="pypi:thing==1.0", kind="pypi", revision="1.0", digest="d" * 64, date=None)
VERDICT = Verdict(level=Level.TESTS, ok=True, reason="", passed=312, skipped=5, collected=317, ratio=1.0)


def candidate(number: int, **changed: object) -> CandidateReport:
    fields: dict[str, object] = {
        "id": f"c{number}",
        "strategy": "declared",
        "base": "debian:bookworm",
        "prior": 0.5,
        "reason": "declared dependencies",
        "end": "failed",
        "why": "the step ended with exit code 1",
        "steps_done": 2,
        "steps_total": 4,
    }
    return CandidateReport.model_validate(fields | changed)


def environment(**changed: object) -> Environment:
    fields: dict[str, object] = {
        "id": "b12",
        "outcome": "failed",
        "specbuild_version": "0.1.0",
        "created": "2026-11-30T00:00:00Z",
        "repo": REPO,
        "seconds": Seconds(total=41.0, to_commit=None),
    }
    return Environment.model_validate(fields | changed)


def committed(**changed: object) -> Environment:
    fields: dict[str, object] = {
        "outcome": "committed",
        "base": BaseRef(name="debian:bookworm", digest="sha256:1"),
        "strategy": "locked",
        "reason": "uv.lock pins every package",
        "verdict": VERDICT,
        "reproducible": True,
        "seconds": Seconds(total=90.0, to_commit=30.0, replay=58.0),
        "artifacts": Artifacts(
            dockerfile="out/Dockerfile",
            setup_sh="out/setup.sh",
            environment="out/environment.json",
            journal="out/journal.jsonl",
        ),
    }
    return environment(**(fields | changed))


def terminal() -> Terminal:
    return Terminal(io.StringIO())


def explained(found: Environment) -> str:
    return "\n".join(explain_failure(found, terminal()))


def test_a_committed_environment_says_how_why_and_what_next() -> None:
    assert "\n".join(summarise(committed(), terminal())) == (
        """\
✓ pypi:thing==1.0 has a verified environment
  how       locked on debian:bookworm
  why       uv.lock pins every package
  verified  tests: 312 passed, 5 skipped
  replay    built again from its base with the same verdict and packages: reproducible
  time      1m30s in all, 30.0s until it was verified, 58.0s for the replay
  files     out: Dockerfile, setup.sh, environment.json, journal.jsonl
  next      specbuild run out -- COMMAND, or specbuild shell out"""
    )


def test_what_was_spent_and_foreseen_is_told() -> None:
    cost = Waste(winner_seconds=30, winner_cpu_seconds=24, winner_bytes=3 << 20, loser_cpu_seconds=6.5)
    told = Predictions(told=4, hit=2, missed=1, open=1, lead_seconds=9.5)
    text = "\n".join(summarise(committed(waste=cost, predictions=told), terminal()))
    assert "  spent     24.0s of CPU and 3.0 MiB for the winner, 6.5s and 0 B beside it\n" in text
    assert "  foreseen  4 failures told ahead: 2 came, 1 did not, 1 prevented or cut short; 9.5s of lead\n" in text


def test_a_replay_that_differs_is_not_passed_over() -> None:
    assert "do not rely on it" in "\n".join(summarise(committed(reproducible=False), terminal()))


def test_a_replay_that_failed_says_why() -> None:
    failed = Verdict(level=Level.TESTS, ok=False, reason="a step exited with status 7; its last lines:\nno such thing")
    made = committed(reproducible=False, replayed=failed)
    assert "ended differently (a step exited with status 7):" in "\n".join(summarise(made, terminal()))


def test_a_failure_says_for_each_candidate_how_far_it_came_and_what_to_try() -> None:
    failed = candidate(
        1,
        failed_step="install dependencies",
        tail="gcc -c x.c\nx.c:1: fatal error: Python.h: No such file\n",
        hint="python3-dev has that header",
        log="/logs/c1.log",
    )
    stopped = candidate(2, end="cancelled", why="the time was up", steps_done=0)
    assert explained(environment(candidates=(failed, stopped))) == (
        """
error: pypi:thing==1.0: no candidate verified (2 candidates, 41.0s)

  ✗ c1 declared on debian:bookworm: failed after 2 of 4 steps
      why     the step ended with exit code 1
      at      install dependencies
      │ gcc -c x.c
      │ x.c:1: fatal error: Python.h: No such file
      log     /logs/c1.log
      hint    python3-dev has that header

  ◌ c2 declared on debian:bookworm: cancelled after 0 of 4 steps
      why     the time was up

hint: none came as far as its tests: is a requirement gone, or a system library missing? Try another --base"""
    )


def test_candidates_that_failed_alike_share_one_explanation() -> None:
    failures = tuple(candidate(n, log=f"/logs/{n}", tail=f"no such package, after 0.{n} s") for n in range(1, 11))
    text = explained(environment(candidates=failures))
    assert text.count("no such package") == 1
    assert all(f"c{n} declared" in text for n in range(1, 11))


def test_many_ways_to_fail_are_explained_in_part_and_all_named() -> None:
    failures = tuple(candidate(n, failed_step=f"step {n}", tail="oh no") for n in range(1, 11))
    text = explained(environment(candidates=failures))
    assert text.count("oh no") == 6
    assert all(f"c{n} declared" in text for n in range(1, 11))


def test_a_log_is_named_once() -> None:
    failed = candidate(1, log="/logs/1", hint="the whole output is in /logs/1")
    assert explained(environment(candidates=(failed,))).count("/logs/1") == 1


def test_a_near_miss_is_told_of_the_threshold() -> None:
    near = Verdict(level=Level.TESTS, ok=False, reason="", passed=85, failed=15, collected=100, ratio=0.85)
    assert "passed 85% of its tests" in explained(environment(candidates=(candidate(1, verdict=near),)))


def test_a_timeout_asks_for_time() -> None:
    assert "--time-limit" in explained(environment(outcome="timeout", candidates=(candidate(1),)))


def test_no_candidate_at_all_points_to_the_plan() -> None:
    assert "specbuild plan" in explained(environment())


def test_foreign_text_cannot_drive_the_terminal() -> None:
    evil = candidate(1, why="\x1b[2Jgone", tail="\x1b]0;title\x07x", failed_step="\x1b[1mstep")
    assert "\x1b" not in explained(environment(candidates=(evil,)))


def test_tests_that_were_collected_alone_are_not_called_passed() -> None:
    found = Verdict(level=Level.COLLECT, ok=True, reason="7 tests collected", collected=7)
    assert counts(found) == "7 tests collected"
    assert counts(found.model_copy(update={"ok": False, "errors": 2})) == "2 errors"
    assert counts(found.model_copy(update={"level": Level.TESTS, "failed": 7})) == "0 passed, 7 failed"
