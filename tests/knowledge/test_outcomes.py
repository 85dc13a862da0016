"""The store of outcomes, with other processes and their sudden ends."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from specbuild.errors import StoreError
from specbuild.knowledge.outcomes import NAME, Outcomes
from specbuild.knowledge.posteriors import Beta, LogNormal

WRITER = """
import sys
from pathlib import Path
from specbuild.knowledge.outcomes import Outcomes
with Outcomes(Path(sys.argv[1])) as outcomes:
    for _ in range(int(sys.argv[3])):
        outcomes.record_repair("missing lber.h", sys.argv[2], worked=True)
        print(flush=True)  # one line for every record that is committed
"""
KILLS = 100
WRITERS = 4


def writer(folder: Path, name: str, times: int) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-c", WRITER, str(folder), name, str(times)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, bufsize=0)  # `communicate` would not see a buffer


def test_a_repair_s_outcomes_add_up(tmp_path: Path) -> None:
    with Outcomes(tmp_path) as outcomes:
        for worked in (True, True, False):
            outcomes.record_repair("missing lber.h", "apt libldap-dev", worked=worked)
        outcomes.record_repair("missing lber.h", "apt other", worked=False)
        assert outcomes.tried("missing lber.h") == {"apt libldap-dev": (2, 1), "apt other": (0, 1)}
        assert outcomes.success("missing lber.h", "apt libldap-dev", Beta(1, 1)) == Beta(3, 2)
        assert outcomes.success("missing lber.h", "never tried") == Beta()


def test_outcomes_outlive_the_process_s_store(tmp_path: Path) -> None:
    with Outcomes(tmp_path) as outcomes:
        outcomes.record_step("apt", 12.0)
    with Outcomes(tmp_path) as outcomes:
        assert outcomes.seconds("apt", LogNormal.prior(60)).median < 60
        assert outcomes.seconds("pip", LogNormal.prior(60)) == LogNormal.prior(60)


def test_a_step_of_no_time_counts_as_a_short_one(tmp_path: Path) -> None:
    with Outcomes(tmp_path) as outcomes:
        outcomes.record_step("noop", 0.0)
        assert 0 < outcomes.seconds("noop", LogNormal.prior(1)).median < 1


async def test_worker_threads_may_use_the_store(tmp_path: Path) -> None:
    with Outcomes(tmp_path) as outcomes:
        await outcomes.arecord_repair("f", "r", worked=True)
        await outcomes.arecord_step("apt", 3.0)
        assert await outcomes.asuccess("f", "r", Beta(1, 1)) == Beta(2, 1)
        assert (await outcomes.aseconds("apt", LogNormal.prior(3))).median == pytest.approx(3)


def test_a_file_that_is_no_store_is_told(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError, match="earlier builds"):
        Outcomes(tmp_path)


@pytest.mark.parametrize("steps", ["log_sum = 'long'", "count = 0", "log_sum = 1e300"])
@pytest.mark.parametrize("worked", ["'many'", "x'00ff'"])
def test_values_that_nobody_of_us_wrote_are_told(worked: str, steps: str, tmp_path: Path) -> None:
    with Outcomes(tmp_path) as outcomes:
        outcomes.record_all([("f", "r", True)], [("k", 2.0)])
    with closing(sqlite3.connect(tmp_path / NAME)) as db:
        db.executescript(f"UPDATE repairs SET worked = {worked}; UPDATE steps SET {steps}")  # noqa: S608 - of this test
    with Outcomes(tmp_path) as outcomes:
        with pytest.raises(StoreError, match="earlier builds"):
            outcomes.success("f", "r")
        with pytest.raises(StoreError, match="earlier builds"):
            outcomes.usual_seconds("k")


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    writers = [writer(tmp_path, name, 50) for name in ("repair 0", "repair 1", "repair 2", "shared", "shared")]
    for process in writers:
        process.communicate(timeout=120)
        assert process.returncode == 0
    with Outcomes(tmp_path) as outcomes:
        expected = {f"repair {n}": (50, 0) for n in range(3)} | {"shared": (100, 0)}
        assert outcomes.tried("missing lber.h") == expected


@pytest.mark.slow
def test_a_hundred_kills_in_the_midst_of_writing_lose_no_outcome_that_was_committed(tmp_path: Path) -> None:
    seed = random.Random(1)  # noqa: S311 - no secret
    acknowledged: dict[str, int] = {}
    for turn in range(KILLS // WRITERS):
        with ExitStack() as stack:
            names = [f"turn {turn} writer {n}" for n in range(WRITERS)]
            processes = {name: stack.enter_context(writer(tmp_path, name, 1_000_000)) for name in names}
            for process in processes.values():
                assert process.stdout is not None
                process.stdout.readline()  # it is in its loop: from here on a kill finds it writing
            time.sleep(seed.uniform(0, 0.03))
            for name, process in processes.items():
                process.kill()
                rest, _ = process.communicate(timeout=60)
                assert process.returncode == -9
                acknowledged[name] = 1 + rest.count(b"\n")
    with closing(sqlite3.connect(tmp_path / NAME)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with Outcomes(tmp_path) as outcomes:
        found = {name: worked for name, (worked, _) in outcomes.tried("missing lber.h").items()}
    assert len(acknowledged) == KILLS
    assert {name: count for name, count in acknowledged.items() if not count <= found[name] <= count + 1} == {}


def test_many_are_kept_in_one_step_or_not_at_all(tmp_path: Path) -> None:
    with Outcomes(tmp_path) as outcomes:
        outcomes.record_all([("f", "r", True), ("f", "r", False), ("f", "s", True)], [("k", 2.0), ("k", 8.0)])
        assert outcomes.tried("f") == {"r": (1, 1), "s": (1, 0)}
        assert outcomes.usual_seconds("k") == pytest.approx(4.0)
        with pytest.raises(StoreError):
            outcomes.record_all([("g", "r", True), ("g", None, True)], [])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
        assert outcomes.tried("g") == {}
        outcomes.record_repair("g", "r", worked=True)
        assert outcomes.tried("g") == {"r": (1, 0)}, "the store goes on"
