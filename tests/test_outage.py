"""An outage is told from a repository that cannot be set up."""

from __future__ import annotations

import pytest

from specbuild.environment import CandidateReport
from specbuild.errors import TransientError
from specbuild.outage import refuse_outage
from specbuild.recipe import Level
from specbuild.verify.verdict import Verdict

APT = "W: Failed to fetch http://mirror.test/InRelease  Temporary failure resolving 'mirror.test'\nE: no python3"
REFUSED = "W: Failed to fetch http://mirror.test/InRelease  Could not connect to 127.0.0.1:1 (127.0.0.1). - connect"
PIP = "WARNING: Retrying: NewConnectionError('Failed to establish a new connection: [Errno 101]')\nERROR: No match"
UV = "error: Failed to fetch: `https://index.test/simple/`\n  Caused by: error sending request for url (https://x)"


def report(tail: str, *, end: str = "failed", verdict: Verdict | None = None) -> CandidateReport:
    return CandidateReport.model_validate(
        {
            "id": "c1",
            "strategy": "declared",
            "base": "debian:bookworm",
            "prior": 0.5,
            "reason": "",
            "end": end,
            "why": "ended",
            "steps_done": 1,
            "steps_total": 8,
            "failed_step": "install Python",
            "tail": tail,
            "verdict": verdict,
        }
    )


@pytest.mark.parametrize("tail", [APT, REFUSED, PIP, UV])
def test_a_race_in_which_nobody_was_reached_says_nothing_of_the_repository(tail: str) -> None:
    with pytest.raises(TransientError, match="'install Python'"):
        refuse_outage([report(tail), report("", end="cancelled"), report(APT)])


@pytest.mark.parametrize(
    "tail",
    [
        "ERROR: No matching distribution found for nonsense==1",
        "error: HTTP status client error (404 Not Found) for url (https://index.test/simple/nonsense/)",
        "E: Unable to locate package nonsense",
        "",
    ],
)
def test_an_answer_that_says_no_is_the_repository_s_failure(tail: str) -> None:
    refuse_outage([report(tail)])
    refuse_outage([report(APT), report(tail)])


def test_tests_that_reach_nobody_have_failed() -> None:
    refuse_outage([report(APT, verdict=Verdict(ok=False, level=Level.TESTS, reason="1 failed"))])


def test_no_failure_is_no_outage() -> None:
    refuse_outage([])
    refuse_outage([report("", end="cancelled")])


def test_on_an_engine_its_containers_network_is_looked_at_first() -> None:
    with pytest.raises(TransientError) as told:
        refuse_outage([report(APT)], engine="unix:///mine.sock")
    assert "whether containers of the engine at unix:///mine.sock reach networks" in told.value.hint
