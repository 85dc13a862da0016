"""Control groups as this machine has them, and a v2 tree made of ordinary files where it has no controllers."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from specbuild.errors import SandboxError
from specbuild.sandbox.cgroups import Hierarchy, hierarchies, pass_on, v2_parent
from specbuild.sandbox.contract import End, Limits
from specbuild.sandbox.limits import CORE, Controller, Group, Place, cpu_shares, detect, leftovers, rlimits

pytestmark = pytest.mark.root

JOIN = 'for file; do echo 0 > "$file"; done; '
MIB = 1 << 20
SESSION = f"test{os.getpid()}"


def start(group: Group, script: str) -> subprocess.Popen[str]:
    files = map(str, group.join_files)
    return subprocess.Popen(["/bin/sh", "-c", JOIN + script, "sh", *files], stdout=subprocess.PIPE, text=True)


def run(group: Group, script: str) -> int:
    with start(group, script) as process:
        return process.wait()


@pytest.fixture
def controller() -> Controller:
    found = detect()
    assert not found.reasons, "these tests need the right to make control groups"
    return found


@pytest.fixture
def groups(controller: Controller) -> Iterator[list[Group]]:
    made: list[Group] = []
    yield made
    for group in made:
        group.kill()
        group.remove()


def make(controller: Controller, groups: list[Group], name: str, limits: Limits) -> Group:
    groups.append(controller.create(f"{SESSION}.{name}", limits))
    return groups[-1]


def test_a_process_that_joined_is_in_every_folder(controller: Controller, groups: list[Group]) -> None:
    group = make(controller, groups, "joined", Limits())
    with start(group, "echo in; exec sleep 60") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in\n"
        assert all(str(process.pid) in (folder / "cgroup.procs").read_text().split() for folder in group.folders)
        assert group.pids() == {process.pid}
        group.kill()


def test_memory_above_the_limit_kills_and_is_reported(controller: Controller, groups: list[Group]) -> None:
    group = make(controller, groups, "memory", Limits(memory_bytes=48 * MIB))
    assert run(group, f"exec {sys.executable} -c 'bytearray(200 << 20)'") == -9
    hit = group.hit()
    assert hit is not None
    assert hit.end is End.OUT_OF_MEMORY
    assert "48 MiB" in hit.note


def test_memory_below_the_limit_is_not_reported(controller: Controller, groups: list[Group]) -> None:
    group = make(controller, groups, "within", Limits(memory_bytes=512 * MIB))
    assert run(group, f"{sys.executable} -c 'bytearray(32 << 20)'") == 0
    assert group.hit() is None


def test_processes_above_the_limit_are_not_made_and_are_reported(controller: Controller, groups: list[Group]) -> None:
    group = make(controller, groups, "processes", Limits(processes=10))
    assert run(group, "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 60 & done") != 0
    hit = group.hit()
    assert hit is not None
    assert hit.end is End.OUT_OF_PROCESSES
    assert "10" in hit.note


def test_use_is_counted_after_the_processes_have_ended(controller: Controller, groups: list[Group]) -> None:
    group = make(controller, groups, "use", Limits())
    assert run(group, f"{sys.executable} -c 'x = bytearray(64 << 20); sum(range(3_000_000))'") == 0
    usage = group.usage()
    assert usage.cpu_seconds is not None
    assert usage.peak_memory_bytes is not None
    assert usage.cpu_seconds > 0.01
    assert usage.peak_memory_bytes > 64 * MIB


def test_killing_gets_everything_even_what_left_its_session(controller: Controller, groups: list[Group]) -> None:
    group = make(controller, groups, "killed", Limits())
    script = "trap '' TERM; (setsid sleep 60 &) ; (setsid sh -c 'trap \"\" TERM; sleep 60; sleep 60' &); echo up; wait"
    with start(group, script + "; sleep 60") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        group.kill()
        assert process.wait() == -9
    assert group.pids() == frozenset()


def test_a_frozen_group_stands_still_and_can_be_killed(controller: Controller, groups: list[Group]) -> None:
    group = make(controller, groups, "frozen", Limits())
    with start(group, "echo up; exec sleep 60") as process:
        assert process.stdout is not None
        process.stdout.readline()
        group.freeze()
        process.terminate()
        assert group.pids() == {process.pid}
        group.kill()
        assert process.wait() in {-9, -15}


def test_a_thawed_group_goes_on(controller: Controller, groups: list[Group]) -> None:
    group = make(controller, groups, "thawed", Limits())
    with start(group, "echo up; sleep 0.01; echo on") as process:
        assert process.stdout is not None
        process.stdout.readline()
        group.freeze()
        group.thaw()
        assert process.stdout.readline() == "on\n"
        assert process.wait() == 0


def test_removing_leaves_no_folder(controller: Controller) -> None:
    group = controller.create(f"{SESSION}.removed", Limits())
    assert all(folder.is_dir() for folder in group.folders)
    group.remove()
    assert not any(folder.exists() for folder in group.folders)


def test_removing_a_group_with_a_process_says_which(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specbuild.sandbox.limits._GONE_WITHIN", 0.05)
    group = controller.create(f"{SESSION}.busy", Limits())
    with start(group, "echo up; exec sleep 60") as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(SandboxError, match=str(process.pid)):
            group.remove()
        process.kill()
    group.remove()


def test_leftovers_are_those_of_dead_sessions(controller: Controller, groups: list[Group]) -> None:
    make(controller, groups, "one", Limits())
    make(controller, groups, "two", Limits())
    ours = {group.name for group in groups}
    assert ours <= {group.name for group in leftovers(lambda session: session != SESSION)}
    assert not ours & {group.name for group in leftovers(lambda session: session == SESSION)}


def test_groups_of_an_engine_that_is_gone_are_leftovers_whatever_their_session() -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from specbuild.sandbox.limits import Limits, detect; detect().create(sys.argv[2], Limits())"
    )
    name = f"{SESSION}.orphan"
    subprocess.run([sys.executable, "-c", script, str(Path(__file__).parents[2]), name], check=True)
    (group,) = (group for group in leftovers(lambda _session: True) if group.name == name)
    group.remove()
    assert not any(folder.exists() for folder in group.folders)


def test_a_leftover_can_be_killed_and_removed(controller: Controller) -> None:
    made = controller.create(f"{SESSION}.left", Limits())
    with start(made, "echo up; exec sleep 60") as process:
        assert process.stdout is not None
        process.stdout.readline()
        (group,) = (group for group in leftovers(lambda session: session != SESSION) if group.name == made.name)
        group.kill()
        group.remove()
        assert process.wait() == -9
    assert not any(folder.exists() for folder in made.folders)


def test_cpu_shares_keep_the_proportions_and_the_default() -> None:
    assert cpu_shares(100) == 1024
    assert cpu_shares(10_000) == 100 * 1024
    assert cpu_shares(1) == 10


def test_the_weight_of_a_group_can_be_changed(controller: Controller, groups: list[Group]) -> None:
    group = make(controller, groups, "weight", Limits(cpu_weight=50))
    files = [file for folder in group.folders for file in (folder / "cpu.shares", folder / "cpu.weight")]
    read = {file.read_text().strip() for file in files if file.exists()}
    group.set_cpu_weight(200)
    changed = {file.read_text().strip() for file in files if file.exists()}
    assert (read, changed) in [({"512"}, {"2048"}), ({"50"}, {"200"})]


def test_a_group_that_is_to_end_has_the_largest_weight_whatever_is_asked_for_later(
    controller: Controller, groups: list[Group]
) -> None:
    group = make(controller, groups, "dying", Limits(cpu_weight=1))
    group.hasten()
    group.set_cpu_weight(1)
    files = [file for folder in group.folders for file in (folder / "cpu.shares", folder / "cpu.weight")]
    assert {file.read_text().strip() for file in files if file.exists()} in [{"102400"}, {"10000"}]


def test_a_user_without_a_group_of_their_own_is_told_why() -> None:
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); from specbuild.sandbox.limits import Limits, detect\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "found = detect(); group = found.create('x.y', Limits(memory_bytes=1 << 30))\n"
        "print(group.join_files, group.hit(), group.usage(), *found.reasons.values(), sep='|'); group.remove()"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", script, str(root)], capture_output=True, text=True, check=True)
    files, hit, usage, *reasons = done.stdout.strip().split("|")
    assert (files, hit) == ("()", "None")
    assert "None" in usage
    assert len(reasons) == 3
    assert all("may not be written" in reason or "may be written" in reason for reason in reasons)


def v2_group(folder: Path, *, has: str, gives: str) -> None:
    """What the kernel shows of a v2 group, as plain files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"controllers": has, "subtree_control": gives, "procs": ""}.items():
        (folder / f"cgroup.{name}").write_text(text)


def test_a_place_in_version_two_is_the_nearest_group_that_passes_controllers_on(tmp_path: Path) -> None:
    own = tmp_path / "user.slice/run.scope"
    v2_group(tmp_path, has="cpu io memory pids", gives="memory pids")
    v2_group(own.parent, has="memory pids", gives="memory pids")
    v2_group(own, has="", gives="")
    base, given, why = v2_parent(Hierarchy(2, tmp_path, own), frozenset({"cpu", "memory", "pids"}))
    assert base == own.parent
    assert given == {"memory", "pids"}
    assert "cpu" in why


def test_controllers_not_yet_passed_on_are_asked_for(tmp_path: Path) -> None:
    v2_group(tmp_path, has="cpu memory pids", gives="cpu")
    assert pass_on(tmp_path, frozenset({"cpu", "memory", "pids"})) == {"cpu", "memory", "pids"}
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_limits_of_version_two_bound_memory_with_swap(tmp_path: Path) -> None:
    v2_group(tmp_path / "specbuild", has="cpu memory pids", gives="cpu memory pids")
    assert written(tmp_path, Limits(memory_bytes=64 * MIB, processes=7, cpu_weight=300)) == {
        "memory.max": str(64 * MIB),
        "memory.swap.max": "0",
        "pids.max": "7",
        "cpu.weight": "300",
    }


def written(root: Path, limits: Limits) -> dict[str, str]:
    place = Place(2, root / "specbuild", frozenset({"memory", "pids", "cpu"}))
    group = Controller(dict.fromkeys((CORE, "memory", "pids", "cpu"), place)).create("s.x", limits)
    return {file.name: file.read_text() for folder in group.folders for file in folder.iterdir()}


def test_rlimits_bound_each_process_and_never_exceed_the_hard_limit() -> None:
    bounds = rlimits(Limits(memory_bytes=64 * MIB, processes=10))
    assert bounds[resource.RLIMIT_DATA] == (64 * MIB, 64 * MIB)
    assert bounds[resource.RLIMIT_NPROC] == (10, 10)
    assert bounds[resource.RLIMIT_CORE] == (0, 0)
    assert resource.RLIMIT_DATA not in rlimits(Limits())
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    if hard != resource.RLIM_INFINITY:
        assert rlimits(Limits(processes=hard + 1))[resource.RLIMIT_NPROC] == (hard, hard)


def proc(folder: Path, groups: str, mounts: str) -> Path:
    (folder / "self").mkdir(parents=True)
    (folder / "self/cgroup").write_text(groups)
    (folder / "self/mountinfo").write_text(mounts)
    return folder


def test_hierarchies_are_read_where_controllers_share_a_mount(tmp_path: Path) -> None:
    mount = tmp_path / "cgroup/cpu,cpuacct"
    (mount / "job").mkdir(parents=True)
    found = hierarchies(
        proc(
            tmp_path / "proc",
            "5:cpu,cpuacct:/docker/abc/job\n1:name=systemd:/\n",
            f"40 31 0:30 /docker/abc {mount} rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
            "41 31 0:31 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=elsewhere\n",
        )
    )
    assert found == (Hierarchy(1, mount, mount / "job", frozenset({"cpu", "cpuacct"})),)


def test_a_group_outside_of_what_is_mounted_is_not_ours(tmp_path: Path) -> None:
    line = f"40 31 0:30 /docker/abc {tmp_path} rw - cgroup2 cgroup2 rw\n"
    assert hierarchies(proc(tmp_path / "proc", "0::/../elsewhere\n", line)) == ()
