"""Attempts to read or change the host's files."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

import pytest

from specbuild.recipe import BaseRef
from specbuild.sandbox.caches import cache_binds
from specbuild.sandbox.contract import End
from specbuild.testing.escapes import REFUSALS, perl, system_call
from specbuild.testing.remote import Remote

pytestmark = [pytest.mark.root, pytest.mark.sandbox, pytest.mark.slow]

SECRET = "the-secret-of-the-host"


def test_reading_secrets_by_their_host_path(engine: Remote, secrets_of_host: list[Path]) -> None:
    done = engine.run('for path; do cat "$path"; done 2>&1', *map(str, secrets_of_host))
    assert SECRET not in done.tail


def test_finding_secrets_by_searching_everything(engine: Remote, secrets_of_host: list[Path]) -> None:
    done = engine.run("find / -xdev -name 'specbuild-test-*' 2>/dev/null; echo searched")
    assert done.tail.strip() == "searched"
    assert secrets_of_host


def test_reading_secrets_through_the_roots_of_processes(engine: Remote, secrets_of_host: list[Path]) -> None:
    script = 'for p in /proc/[0-9]* /proc/self/task/*; do for f; do cat "$p/root$f" "$p/cwd$f"; done; done 2>&1'
    assert SECRET not in engine.run(script, *map(str, secrets_of_host)).tail


def test_reading_secrets_through_open_files_of_processes(secrets_of_host: list[Path], engine: Remote) -> None:
    script = 'for fd in /proc/[0-9]*/fd/*; do [ -f "$fd" ] && head -c 100 "$fd"; for f; do cat "$fd$f"; done; done 2>&1'
    assert SECRET not in engine.run(script, *map(str, secrets_of_host)).tail


def test_climbing_above_the_root(engine: Remote, secrets_of_host: list[Path]) -> None:
    script = 'cd /usr; for f; do cat "../../../../../../../..$f"; done 2>&1'
    assert SECRET not in engine.run(script, *map(str, secrets_of_host)).tail


def test_breaking_out_of_the_root_by_a_second_chroot(engine: Remote, secrets_of_host: list[Path]) -> None:
    code = (
        'mkdir "/jail"; opendir(my $d, "/"); chroot("/jail") or print "refused"; chdir($d);'
        'chdir("..") for 1 .. 99; chroot(".");'
        "for (@ARGV) { if (open(my $f, $_)) { print <$f> } } print -e "
        '"/jail" ? "inside" : "outside";'
    )
    done = engine.run(perl(code) + ' "$@"', *map(str, secrets_of_host))
    assert SECRET not in done.tail
    assert "outside" not in done.tail


def test_opening_host_files_by_their_handle(engine: Remote) -> None:
    handle = 'pack("IiQ", 8, 1, 2) . ("\\0" x 120)'
    done = engine.run(system_call("open_by_handle_at", "-100", handle, "0"))
    assert done.tail.strip() in REFUSALS


def test_changing_host_files_by_their_path(engine: Remote, secrets_of_host: list[Path]) -> None:
    script = (
        'for f; do mkdir -p "$(dirname "$f")"; echo stolen > "$f"; rm -f "$f"; done 2>/dev/null; rm -rf /etc/hostname'
    )
    before = Path("/etc/hostname").read_text()
    engine.run(script, *map(str, secrets_of_host))
    assert [file.read_text() for file in secrets_of_host] == [SECRET] * len(secrets_of_host)
    assert Path("/etc/hostname").read_text() == before


def test_removing_everything(engine: Remote) -> None:
    before = sorted(Path("/usr/bin").iterdir())
    done = engine.run("rm -rf --no-preserve-root /etc /home /root /opt /usr/bin /usr/sbin 2>/dev/null; echo removed")
    assert done.end is End.EXITED
    assert sorted(Path("/usr/bin").iterdir()) == before
    assert engine.run("echo fine").tail.strip() == "fine"


def test_reading_the_hosts_password_hashes(engine: Remote) -> None:
    host = {
        line for line in Path("/etc/shadow").read_text().splitlines() if not line.split(":")[1].startswith(("*", "!"))
    }
    done = engine.run("cat /etc/shadow /etc/shadow- /etc/gshadow 2>/dev/null")
    assert not host & set(done.tail.splitlines())
    assert "sbtest" not in engine.run("cat /etc/shadow 2>/dev/null").tail


def test_learning_where_on_the_host_things_lie(portable: Remote, tmp_path: Path) -> None:
    done = portable.run("cat /proc/self/mountinfo /proc/self/mounts /proc/1/mountinfo 2>/dev/null")
    for word in (str(tmp_path.parent.parent), "/store", "/home/", "pytest-of"):
        assert word not in done.tail


def test_opening_disks_by_device_files_of_its_own(engine: Remote) -> None:
    device = Path("/").stat().st_dev
    script = 'mknod /disk b "$1" "$2" 2>&1; head -c 512 /disk | wc -c; echo x > /disk'
    done = engine.run(script, str(os.major(device)), str(os.minor(device)))
    assert "512" not in done.tail.split()


def test_opening_memory_and_ports_by_device_files_of_its_own(engine: Remote) -> None:
    script = (
        "for n in 1 2 4 11; do mknod /d$n c 1 $n 2>/dev/null; head -c 16 /d$n 2>/dev/null && echo opened; done; true"
    )
    assert "opened" not in engine.run(script).tail


def test_finding_devices_in_dev(engine: Remote) -> None:
    done = engine.run("find /dev ! -type d ! -type l")
    harmless = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"}
    assert {Path(line).name for line in done.tail.split()} <= harmless


def test_reading_kernel_memory(engine: Remote) -> None:
    script = (
        "for f in /proc/kcore /dev/mem /dev/kmem /dev/port /proc/kallsyms /dev/kmsg; do head -c 64 $f; done 2>/dev/null"
    )
    done = engine.run(f"({script}) | wc -c")
    assert int(done.tail) == 0


def test_setuid_programs_give_no_rights(engine: Remote) -> None:
    script = "cp /usr/bin/id /tmp/id; chmod 4755 /tmp/id; chmod 755 /tmp;" + perl(
        '$) = $( = 1000; $< = $> = 1000; exec "/tmp/id", "-u"'
    )
    assert engine.run(script).tail.strip() in {"1000", ""}
    assert "NoNewPrivs:\t1" in engine.run("grep NoNewPrivs /proc/self/status").tail


def test_root_inside_is_nobody_else_outside(portable: Remote) -> None:
    portable.begin("echo x > /made; exec sleep 30.0625", timeout=1.5)
    while not (seen := _users_of("30.0625")):
        pass
    assert portable.result().end is End.TIMEOUT
    accounts = {account.pw_uid for account in pwd.getpwall()}
    own = Path(f"/proc/{portable.process.pid}").stat().st_uid
    assert 0 not in seen
    assert not seen & (accounts - {own})


def _users_of(word: str) -> set[int]:
    found: set[int] = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if word.encode() in (folder / "cmdline").read_bytes().split(b"\0") and _is(folder, "sleep"):
                    found.add(folder.stat().st_uid)
            except OSError:
                continue
    return found


def _is(folder: Path, name: str) -> bool:
    return (folder / "comm").read_text().strip() == name


def test_leaving_a_setuid_shell_in_a_cache_for_others(portable: Remote, shared: Path) -> None:
    engine = Path(f"/proc/{portable.process.pid}").stat()
    binds, _ = cache_binds(["uv"], shared / "caches", base=BaseRef(name="debian:bookworm", digest="sha256:0"))
    for folder in (shared, *shared.rglob("*")):
        os.chown(folder, engine.st_uid, engine.st_gid, follow_symlinks=False)
    target = binds[0].target
    done = portable.run(f"cp /bin/sh {target}/sh; chmod 6755 {target}/sh", binds=binds)
    assert done.exit_code == 0
    as_nobody = subprocess.run(["test", "-e", binds[0].source / "sh"], user="nobody", check=False)
    assert as_nobody.returncode != 0


def test_reading_back_a_link_that_leads_outside(engine: Remote, secrets_of_host: list[Path]) -> None:
    for file in secrets_of_host:
        for link in (str(file), f"../../../../..{file}", f"/proc/self/root{file}", f"/proc/1/root{file}"):
            got = engine.read(f"ln -s '{link}' /link", "/link")
            assert SECRET.encode() not in (got if isinstance(got, bytes) else b"")


def test_reading_back_the_engines_environment(engine: Remote) -> None:
    for path in ("/proc/self/environ", "/proc/1/environ", "/proc/thread-self/environ", "/proc/self/maps"):
        got = engine.read(f"ln -s {path} /link", "/link")
        assert not isinstance(got, bytes) or got == b""


def test_writing_through_a_link_that_leads_outside(engine: Remote, secrets_of_host: list[Path]) -> None:
    for file in secrets_of_host:
        engine.write(f"mkdir -p '{file.parent}'; ln -s '{file}' /link", "/link", b"stolen")
        engine.write(f"ln -s '{file.parent}' /folder", f"/folder/{file.name}", b"stolen")
        assert file.read_text() == SECRET


def test_copying_an_archive_of_links_through_them(engine: Remote, secrets_of_host: list[Path], shared: Path) -> None:
    tree = shared / "tree"
    tree.mkdir()
    for number, file in enumerate(secrets_of_host):
        (tree / f"link{number}").symlink_to(file)
        (tree / f"folder{number}").symlink_to(file.parent)
    engine.copy("", tree, "/in")
    for number, file in enumerate(secrets_of_host):
        for path in (f"/in/link{number}", f"/in/folder{number}/{file.name}"):
            got = engine.read("", path)
            assert not isinstance(got, bytes)
    engine.copy(f"ln -s '{shared}' /in", tree, "/in")
    assert sorted(path.name for path in shared.iterdir()) == ["tree"]


def test_a_folder_too_deep_to_walk_is_discarded(engine: Remote) -> None:
    code = "for (1 .. 3000) { mkdir(q(dddddddddd)) or last; chdir(q(dddddddddd)) or last; }"
    done = engine.run("cd /srv; " + perl(code) + "; echo made")
    assert done.tail.strip().endswith("made")
    assert engine.run("ls /srv").tail.strip() == ""


def test_files_that_resist_removal_are_discarded(engine: Remote) -> None:
    script = (
        "mkdir -p /srv/a/b; echo x > /srv/a/b/c; chattr +i /srv/a/b/c 2>/dev/null; chmod 0 /srv/a/b /srv/a; echo made"
    )
    assert engine.run(script).tail.strip() == "made"
    assert engine.run("ls /srv").tail.strip() == ""
