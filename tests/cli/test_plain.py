"""Log lines: the golden text of recorded builds."""

from __future__ import annotations

import io
from pathlib import Path

from specbuild.cli.plain import Fold, Plain
from specbuild.cli.terminal import Terminal
from specbuild.events import (
    BuildEnded,
    BuildStarted,
    CandidateEnded,
    CandidateProposed,
    Event,
    Notice,
    Phase,
    Replayed,
    StepEnded,
    StepOutput,
    StepStarted,
    Verified,
)
from specbuild.recipe import Level
from specbuild.verify.verdict import Verdict

PASSED = Verdict(level=Level.TESTS, ok=True, reason="enough passed", passed=312, skipped=5, collected=317, ratio=1.0)
FAILED = Verdict(level=Level.TESTS, ok=False, reason="3 of 10 passed, 90% are wanted", passed=3, failed=7, collected=10)


def race(log: Path | None = None) -> list[Event]:
    """Two candidates share a step; one fails, the other wins."""
    shared, one, two = "a" * 64, "b" * 64, "c" * 64
    return [
        BuildStarted(at=0.0, build="b12", repo="pypi:thing==1.0", wall_time="2026-11-30T00:00:00Z", version="0.1.0"),
        Phase(at=0.0, name="repo", detail="pypi:thing==1.0"),
        Notice(at=0.4, message="no portable base can be had", warning=True),
        Notice(at=0.5, message="host was chosen"),
        CandidateProposed(
            at=1.0, candidate="c1", strategy="locked", base="host", prior=0.8, reason="uv.lock", steps=("uv", "sync")
        ),
        CandidateProposed(
            at=1.0, candidate="c2", strategy="newest", base="host", prior=0.5, reason="declared", steps=("uv", "pip")
        ),
        StepStarted(at=1.1, node=shared, title="install uv", step_kind="toolchain", candidates=("c1", "c2")),
        StepEnded(at=2.1, node=shared, title="install uv", ok=True, exit_code=0, end="exited", seconds=1.0),
        StepStarted(at=2.2, node=one, title="sync", step_kind="dependencies", candidates=("c1",)),
        StepStarted(at=2.2, node=two, title="install", step_kind="dependencies", candidates=("c2",)),
        StepOutput(at=2.3, node=two, line="Collecting thing"),
        StepEnded(
            at=3.2,
            node=two,
            title="install",
            ok=False,
            exit_code=1,
            end="exited",
            seconds=1.0,
            log=str(log) if log else None,
        ),
        CandidateEnded(at=3.2, candidate="c2", end="failed", why="install ended with exit code 1"),
        StepEnded(at=65.0, node=one, title="sync", ok=True, exit_code=0, end="exited", seconds=62.8),
        Verified(at=70.0, candidates=("c1",), verdict=PASSED),
        CandidateEnded(at=70.0, candidate="c1", end="committed", why=""),
        Replayed(at=140.0, same=True, verdict=PASSED),
        BuildEnded(at=141.0, outcome="committed", seconds=141.0),
    ]


def shown(
    events: list[Event], *, unicode: bool = True, verbose: int = 0, quiet: bool = False, fold: Fold | None = None
) -> str:
    stream = io.StringIO()
    reporter = Plain(Terminal(stream, unicode=unicode), verbose=verbose, quiet=quiet, fold=fold)
    for event in events:
        reporter.emit(event)
    return stream.getvalue()


def test_a_race_reads_as_one_line_a_happening(tmp_path: Path) -> None:
    log = tmp_path / "c2.log"
    log.write_text("Collecting thing\nerror: Python.h: No such file or directory\n")
    assert shown(race(log)) == (
        f"""\
[   0.0s] build b12 of pypi:thing==1.0 (specbuild 0.1.0)
[   0.0s] repo: pypi:thing==1.0
[   0.4s] warning: no portable base can be had
[   0.5s] note: host was chosen
[   1.0s] c1 locked on host, 80% likely: uv.lock
[   1.0s] c2 newest on host, 50% likely: declared
[   1.1s] c1 c2 ▶ install uv
[   2.1s] c1 c2 ✓ install uv (1.0s)
[   2.2s] c1 ▶ sync
[   2.2s] c2 ▶ install
[   3.2s] c2 ✗ install: exit code 1 (1.0s)
          │ Collecting thing
          │ error: Python.h: No such file or directory
          log: {log}
[  1m05s] c1 ✓ sync (1m03s)
[  1m10s] c1 ✓ verified: 312 passed, 5 skipped
[  1m10s] c1 committed
[  2m20s] replayed from the base with the same verdict: 312 passed, 5 skipped
[  2m21s] committed c1 (locked on host) after 2m21s, 2 candidates
"""
    )


def test_quiet_shows_warnings_and_the_outcome() -> None:
    assert shown(race(), quiet=True).splitlines() == [
        "[   0.4s] warning: no portable base can be had",
        "[  2m21s] committed c1 (locked on host) after 2m21s, 2 candidates",
    ]


def test_verbose_shows_the_output_of_steps_with_who_it_is_from() -> None:
    assert "[   2.3s] c2 │ Collecting thing" in shown(race(), verbose=1)
    assert "Collecting thing" not in shown(race())


def test_a_terminal_without_unicode_gets_ascii() -> None:
    shown(race(), unicode=False).encode("ascii")


def test_output_cannot_drive_the_terminal_or_forge_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"\x1b[2J\x1b]0;title\x07evil \x1b[31mred\x1b[0m\n50%\r100%\n\xff\xfe\x00\n")
    text = shown(race(log))
    assert "\x1b" not in text
    assert "          │ evil red\n          │ 100%\n" in text


def test_github_folds_the_last_lines_and_obeys_none_of_them(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("::error::forged\n")
    fold = Fold.for_service({"GITHUB_ACTIONS": "true"})
    lines = shown(race(log), fold=fold).splitlines()
    first = lines.index("::group::last lines of 'install'")
    opening, content, closing, end = lines[first + 1 : first + 5]
    assert opening.startswith("::stop-commands::")
    assert content.endswith("::error::forged")
    assert closing == f"::{opening.removeprefix('::stop-commands::')}::"
    assert end == "::endgroup::"


def test_gitlab_folds_the_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("oh no\n")
    text = shown(race(log), fold=Fold.for_service({"GITLAB_CI": "true"}))
    assert text.count("section_start:") == text.count("section_end:") == 1


def test_elsewhere_nothing_is_folded() -> None:
    assert Fold.for_service({}) is None


def test_a_candidate_that_does_not_verify_says_why() -> None:
    text = shown([Verified(at=5.0, candidates=("c1", "c2", "c3", "c4", "c5"), verdict=FAILED)])
    assert text == "[   5.0s] c1 c2 c3 +2 ✗ not verified: 3 of 10 passed, 90% are wanted\n"


def test_a_replay_that_differs_is_a_warning() -> None:
    text = shown([Replayed(at=5.0, same=False, verdict=FAILED)])
    how = "3 passed, 7 failed: 3 of 10 passed, 90% are wanted"
    assert text == f"[   5.0s] warning: the replay from the base ended differently: {how}\n"


def test_a_limit_is_named() -> None:
    ended = StepEnded(
        at=9.0, node="n", title="build", ok=False, end="out of memory", exit_code=137, note="4 GiB", seconds=2
    )
    assert "✗ build: out of memory, 4 GiB (2.0s)" in shown([ended])


def test_the_ends_of_losers_are_repeated_only_when_asked() -> None:
    lost = CandidateEnded(at=9.0, candidate="c7", end="cancelled", why="another candidate verified first")
    assert shown([lost]) == ""
    assert shown([lost], verbose=1) == "[   9.0s] c7 cancelled: another candidate verified first\n"
