"""What a race may use of a machine."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from specbuild.pressure import LEAST_DISK, Reading, admitted, others, read

IDLE = Reading(cores=4, at=10.0, busy=100.0, own=5.0, memory_available=0.6, memory_stall=0.0, disk_free=LEAST_DISK * 9)


def test_an_idle_machine_gives_every_slot() -> None:
    assert admitted(5, 0.1, IDLE) == 5


@pytest.mark.parametrize(("load", "slots"), [(0.1, 5), (1.0, 4), (2.0, 3), (4.0, 1), (3.0, 2)])
def test_cores_that_others_keep_busy_take_slots_of_speculation_but_never_the_first(load: float, slots: int) -> None:
    assert admitted(5, load, IDLE) == slots


@pytest.mark.parametrize(
    "now",
    [
        replace(IDLE, memory_available=0.02),
        replace(IDLE, memory_stall=45.0),
        replace(IDLE, disk_free=LEAST_DISK - 1),
    ],
)
def test_without_memory_or_disk_only_the_best_work_goes_on(now: Reading) -> None:
    assert admitted(5, 0.0, now) == 1


def test_what_others_did_is_what_the_machine_did_without_this_process() -> None:
    later = replace(IDLE, at=12.0, busy=105.0, own=6.0)
    assert others(IDLE, later) == pytest.approx(2.0)
    assert others(IDLE, IDLE) == 0.0
    assert others(IDLE, replace(later, busy=900.0)) == 4.0, "no more cores than there are"


def test_readings_come_from_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "pressure").mkdir()
    (tmp_path / "stat").write_text("cpu  100 0 100 5000 700 10 10 0 0 0\ncpu0 1 1 1 1\n")
    (tmp_path / "meminfo").write_text("MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable: 250 kB\n")
    (tmp_path / "pressure" / "memory").write_text("some avg10=12.50 avg60=1.00 avg300=0.00 total=9\nfull avg10=1.00\n")
    reading = read(tmp_path, tmp_path)
    assert reading.busy == pytest.approx(220 / os.sysconf("SC_CLK_TCK"))
    assert (reading.memory_available, reading.memory_stall) == (0.25, 12.5)
    assert reading.disk_free > 0


def test_what_the_kernel_does_not_tell_holds_nothing_up(tmp_path: Path) -> None:
    reading = read(tmp_path / "nothing", tmp_path / "nothing")
    assert admitted(3, others(reading, reading), reading) == 3
