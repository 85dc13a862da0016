"""Attempts to use the kernel against the host: mounts, namespaces, settings, keyrings, modules, clocks."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from specbuild.testing.escapes import REFUSALS, perl, system_call
from specbuild.testing.remote import Remote

pytestmark = [pytest.mark.root, pytest.mark.sandbox, pytest.mark.slow]

NEWUSER, NEWNS = 0x10000000, 0x00020000


def refused(engine: Remote, call: str, *arguments: str) -> None:
    outcome = engine.run(system_call(call, *arguments)).tail.strip()
    assert outcome in REFUSALS, f"{call} ended as {outcome!r}"


def test_mounting_a_filesystem(engine: Remote) -> None:
    refused(engine, "mount", '"none"', '"/mnt"', '"tmpfs"', "0", "0")
    assert "done" not in engine.run("mount -t proc proc /mnt && echo done; mount --bind / /mnt && echo done").tail


def test_mounting_by_the_new_calls(engine: Remote) -> None:
    refused(engine, "fsopen", '"tmpfs"', "0")
    refused(engine, "open_tree", "-100", '"/"', "1")
    refused(engine, "move_mount", "-100", '"/dev"', "-100", '"/mnt"', "0")
    refused(engine, "mount_setattr", "-100", '"/"', "0", '"\\0" x 32', "32")


def test_uncovering_what_is_masked(engine: Remote) -> None:
    script = "umount /proc/kcore && echo done; umount -l /proc && echo done; umount /sys && echo done"
    assert "done" not in engine.run(script).tail
    refused(engine, "umount2", '"/proc/sys"', "2")


def test_making_read_only_mounts_writable(engine: Remote) -> None:
    script = "for m in /sys /proc/sys /proc; do mount -o remount,rw $m && echo done; done"
    assert "done" not in engine.run(script).tail


def test_exchanging_the_root(engine: Remote) -> None:
    refused(engine, "pivot_root", '"/mnt"', '"/mnt"')


def test_making_a_user_namespace(engine: Remote) -> None:
    refused(engine, "unshare", str(NEWUSER))
    assert "done" not in engine.run("unshare -Ur sh -c 'echo done'; unshare -r id && echo done").tail


def test_making_a_user_namespace_with_a_new_process(engine: Remote) -> None:
    refused(engine, "clone", str(NEWUSER | 17), "0", "0", "0", "0")
    refused(engine, "clone", str(NEWNS | 17), "0", "0", "0", "0")
    refused(engine, "clone3", 'pack("Q8", 0x10000000, 0, 0, 0, 17, 0, 0, 0)', "64")


def test_entering_the_namespaces_of_another_process(engine: Remote) -> None:
    for kind in ("mnt", "user", "net", "pid"):
        code = f'open(my $f, "/proc/1/ns/{kind}") or print("ENOENT"), exit; my $r = syscall(308, fileno($f), 0);'
        if "aarch64" in engine.run("uname -m").tail:
            code = code.replace("308", "268")
        outcome = engine.run(perl(code + ' print $r == -1 ? (grep { $!{$_} } keys %!)[0] : "done"')).tail.strip()
        assert outcome in REFUSALS


def test_changing_kernel_settings(engine: Remote) -> None:
    paths = (
        *(
            "kernel/core_pattern",
            "kernel/modprobe",
            "kernel/hostname",
            "kernel/sysrq",
            "kernel/panic",
            "kernel/hotplug",
        ),
        *("vm/drop_caches", "vm/overcommit_memory", "net/ipv4/ip_forward", "fs/file-max", "kernel/poweroff_cmd"),
        *("fs/binfmt_misc/register", "user/max_user_namespaces", "kernel/randomize_va_space"),
    )
    write = 'f=/proc/sys/$p; v=$(cat $f 2>/dev/null); (echo "$v" > $f) 2>/dev/null && echo "written $p"'
    script = f"for p; do {write}; done; true"
    assert "written" not in engine.run(script, *paths, network=True).tail


def test_making_the_kernel_run_a_program_on_a_crash(engine: Remote) -> None:
    before = Path("/proc/sys/kernel/core_pattern").read_text()
    engine.run("echo '|/tmp/x' > /proc/sys/kernel/core_pattern; kill -SEGV $$")
    assert Path("/proc/sys/kernel/core_pattern").read_text() == before


def test_pressing_the_magic_key(engine: Remote) -> None:
    assert "done" not in engine.run("(echo h > /proc/sysrq-trigger) 2>/dev/null && echo done").tail


def test_writing_to_sys(engine: Remote) -> None:
    script = "find /sys -type f -writable 2>/dev/null | head -n 3; (echo 0 > /sys/power/state) 2>/dev/null && echo done"
    assert engine.run(script).tail.strip() == ""


def test_reaching_control_groups(engine: Remote) -> None:
    names = "-name release_agent -o -name cgroup.procs -o -name notify_on_release"
    script = f"find / /sys -xdev {names} 2>/dev/null; ls /sys/fs/cgroup"
    assert engine.run(script).tail.strip() == ""
    assert "done" not in engine.run("mkdir /c; mount -t cgroup -o memory c /c && echo done").tail
    assert "done" not in engine.run("mkdir /c; mount -t cgroup2 c /c && echo done").tail


def test_reading_keyrings_of_the_host(engine: Remote) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(ctypes.c_long(248), b"user", b"specbuild-test", b"key-secret", ctypes.c_size_t(10), ctypes.c_int(-4))
    assert "specbuild-test" not in engine.run("cat /proc/keys /proc/key-users 2>/dev/null").tail
    refused(engine, "request_key", '"user"', '"specbuild-test"', "0", "-3")
    refused(engine, "keyctl", "11", "-4", '" " x 64', "64", "0")
    refused(engine, "add_key", '"user"', '"left"', '"behind"', "6", "-4")


def test_loading_programs_into_the_kernel(engine: Remote) -> None:
    refused(engine, "bpf", "5", '"\\0" x 128', "128")


def test_watching_the_machine_by_performance_counters(engine: Remote) -> None:
    refused(engine, "perf_event_open", 'pack("IIQ", 1, 112, 0) . ("\\0" x 96)', "-1", "0", "-1", "0")


def test_handling_page_faults_of_the_kernel(engine: Remote) -> None:
    refused(engine, "userfaultfd", "0")


def test_using_asynchronous_rings(engine: Remote) -> None:
    refused(engine, "io_uring_setup", "8", '"\\0" x 120')


def test_loading_a_kernel_module(engine: Remote) -> None:
    refused(engine, "init_module", '"\\0" x 64', "64", '""')
    refused(engine, "finit_module", "0", '""', "0")
    refused(engine, "delete_module", '"nothing"', "0")
    assert "done" not in engine.run("modprobe dummy && echo done; insmod /x.ko && echo done").tail


def test_starting_another_kernel(engine: Remote) -> None:
    refused(engine, "kexec_load", "0", "0", "0", "0")
    refused(engine, "kexec_file_load", "-1", "-1", "0", '""', "0")


def test_restarting_the_machine(engine: Remote) -> None:
    refused(engine, "reboot", "0xfee1dead", "672274793", "0")  # CAD_OFF: harmless where it works


def test_setting_the_clock(engine: Remote) -> None:
    refused(engine, "settimeofday", 'pack("QQ", time, 0)', "0")
    refused(engine, "clock_settime", "0", 'pack("QQ", time, 0)')


def test_reading_the_kernels_messages(engine: Remote) -> None:
    refused(engine, "syslog", "3", '" " x 4096', "4096")
    assert engine.run("dmesg 2>/dev/null | head -n 1; cat /dev/kmsg 2>/dev/null | head -n 1").tail.strip() == ""


def test_swapping_quotas_and_accounting(engine: Remote) -> None:
    refused(engine, "swapon", '"/dev/zero"', "0")
    refused(engine, "quotactl", "0", '"/"', "0", "0")
    refused(engine, "acct", '"/etc/hostname"')


def test_typing_into_the_callers_terminal(engine: Remote) -> None:
    for request in ("0x5412", "0x100005412", "0x541c"):
        refused(engine, "ioctl", "0", request, '"x"')
    assert "opened" not in engine.run("(: < /dev/tty) 2>/dev/null && echo opened").tail


def test_sockets_that_leave_every_namespace(engine: Remote) -> None:
    for family in ("40", "38", "17", "31", "29"):
        refused(engine, "socket", family, "3", "0")


def test_ranking_above_the_host(engine: Remote) -> None:
    refused(engine, "sched_setscheduler", "0", "1", 'pack("I", 50)')
    refused(engine, "setpriority", "0", "0", "-20")
    assert "done" not in engine.run("(echo -1000 > /proc/self/oom_score_adj) 2>/dev/null && echo done").tail
