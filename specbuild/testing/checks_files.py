"""Conformance: what becomes of files."""

from __future__ import annotations

from specbuild.sandbox.contract import Command
from specbuild.testing.trial import Check, Trial, frozen, new_key, out, seen, shell

DEEP = 130
"""Freezes on top of each other: past Docker's limit of 125 layers, so that its backend has to flatten."""


async def files_survive_between_commands(trial: Trial) -> None:
    async with trial.fork() as box:
        await out(box, "mkdir -p /srv/a; echo one > /srv/a/file; echo two > /tmp/file; echo three > /root/file")
        assert await out(box, "cat /srv/a/file /tmp/file /root/file") == "one\ntwo\nthree"


async def nothing_but_files_survives(trial: Trial) -> None:
    async with trial.fork() as box:
        await out(box, "cd /tmp; export LEFT=over; umask 077; ulimit -n 20; echo x > /dev/shm/left; hostname=left")
        await out(box, "mkdir -p /dev/specbuild && echo x > /dev/specbuild/left || true")
        assert await out(
            box, 'pwd; echo "${LEFT-none}"; umask; ls -A /dev/shm; ls -A /dev/specbuild 2>/dev/null || true'
        ) == ("/\nnone\n0022")


async def a_fork_sees_its_parents_files(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        first = await frozen(backend, base, "echo one > /one")
        second = await frozen(backend, first, "echo two > /two")
        assert await seen(backend, second, "cat /one /two /etc/hostname") == "one\ntwo\ntiny"


async def a_checkpoint_never_changes(trial: Trial) -> None:
    make = "mkdir /d /d/sub; for f in a b c e; do echo $f > /d/$f; done; ln -s a /d/link; chmod 600 /d/b"
    look = "cd /d; ls -lA --time-style=full-iso; cat a b c e link; find . | sort"
    change = (
        "cd /d; echo more >> a; : > b; rm c; mv e f; chmod 777 b; rm link; ln -s b link; rmdir sub; echo x > new;"
        "touch a; cd /; mv /d /moved; mkdir /d; echo y > /d/a; rm -r /usr/bin/yes"
    )
    async with trial.session() as (backend, base):
        parent = await frozen(backend, base, make)
        before = await seen(backend, parent, look)
        child = await frozen(backend, parent, change)
        await frozen(backend, child, "rm -r /d /moved")
        assert await seen(backend, parent, look) == before
        assert await seen(backend, child, "cat /d/a /moved/f; ls /usr/bin/yes 2>/dev/null || true") == "y\ne"


async def siblings_do_not_see_each_other(trial: Trial) -> None:
    async with trial.session() as (backend, base), backend.fork(base) as left, backend.fork(base) as right:
        await out(left, "echo left > /side; rm /etc/hostname")
        await out(right, "echo right > /side")
        assert await out(left, "cat /side; ls /etc/hostname 2>/dev/null || echo gone") == "left\ngone"
        assert await out(right, "cat /side /etc/hostname") == "right\ntiny"


async def a_discarded_sandbox_leaves_its_parent_as_it_was(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        async with backend.fork(base) as box:
            await out(box, "echo changed > /etc/hostname; echo new > /new")
        assert await seen(backend, base, "cat /etc/hostname; ls /new 2>/dev/null || true") == "tiny"


async def deleted_files_stay_deleted(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        made = await frozen(backend, base, "mkdir /d; echo 1 > /d/one; echo 2 > /d/two")
        less = await frozen(backend, made, "rm /d/one; rm /etc/hostname")
        again = await frozen(backend, less, "echo 3 > /d/three")
        assert await seen(backend, again, "ls /d; ls /etc/hostname 2>/dev/null || true") == "three\ntwo"
        back = await frozen(backend, again, "echo new > /d/one")
        assert await seen(backend, back, "cat /d/one; ls /d") == "new\none\nthree\ntwo"


async def a_folder_deleted_and_made_again_is_empty(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        made = await frozen(backend, base, "mkdir -p /d/sub; echo 1 > /d/one; echo 2 > /d/sub/two")
        emptied = await frozen(backend, made, "rm -r /d; mkdir -p /d/sub; echo 3 > /d/three")
        assert await seen(backend, emptied, "find /d | sort") == "/d\n/d/sub\n/d/three"
        within = await frozen(backend, emptied, "echo 4 > /d/sub/four")
        assert await seen(backend, within, "find /d | sort") == "/d\n/d/sub\n/d/sub/four\n/d/three"


async def a_file_can_take_the_place_of_a_folder_and_back(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        made = await frozen(backend, base, "mkdir /x; echo 1 > /x/one; echo file > /y")
        swapped = await frozen(backend, made, "rm -r /x; echo file > /x; rm /y; mkdir /y; echo 2 > /y/two")
        assert await seen(backend, swapped, "cat /x; find /y") == "file\n/y\n/y/two"
        linked = await frozen(backend, swapped, "rm -r /x /y; ln -s /etc /x; mkdir /y")
        assert await seen(backend, linked, "cat /x/hostname; find /y") == "tiny\n/y"


async def renamed_folders_keep_what_is_in_them(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        made = await frozen(backend, base, "mkdir -p /a/b/c; echo deep > /a/b/c/file")
        moved = await frozen(backend, made, "mv /a /z; mv /z/b /z/y; mkdir /a")
        assert await seen(backend, moved, "cat /z/y/c/file; find /a /z | sort") == (
            "deep\n/a\n/z\n/z/y\n/z/y/c\n/z/y/c/file"
        )


async def hard_links_are_kept(trial: Trial) -> None:
    async with trial.session() as (backend, base), backend.fork(base) as box:
        await out(box, "echo one > /a; ln /a /b; mkdir /d; ln /a /d/c")
        assert await out(box, "echo two >> /b; cat /a; stat -c %h /d/c") == "one\ntwo\n3"
        kept = await box.freeze(new_key())
        same = '[ "$(stat -c %i /a)" = "$(stat -c %i /d/c)" ] && echo same; stat -c %h /a; cat /b'
        assert await seen(backend, kept, same) == "same\n3\none\ntwo"


async def symbolic_links_are_kept_as_they_are(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        made = await frozen(backend, base, "ln -s /nowhere /dangling; ln -s ../etc/hostname /tmp/up; ln -s loop /loop")
        links = await seen(backend, made, "readlink /dangling /tmp/up /loop; cat /tmp/up")
        assert links == "/nowhere\n../etc/hostname\nloop\ntiny"


async def modes_are_kept(trial: Trial) -> None:
    modes = ("0", "400", "644", "755", "1777", "2755", "4755", "4711")
    async with trial.session() as (backend, base):
        script = "".join(
            f"echo x > /m{mode}; chmod {mode} /m{mode}; mkdir /d{mode}; chmod {mode} /d{mode};" for mode in modes
        )
        made = await frozen(backend, base, script)
        look = "".join(f"stat -c %a /m{mode} /d{mode};" for mode in modes)
        assert (await seen(backend, made, look)).split() == [mode for mode in modes for _ in range(2)]
        changed = await frozen(backend, made, "chmod 640 /m4755")
        assert await seen(backend, changed, "stat -c %a /m4755; cat /m0") == "640\nx"


async def the_root_folder_keeps_its_mode_and_time(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        made = await frozen(backend, base, "chmod 711 /; touch -d '2001-02-03 04:05:06Z' /")
        again = await frozen(backend, made, "echo x >> /etc/hostname")
        assert await seen(backend, again, "stat -c '%a %Y' /") == "711 981173106"


async def owners_are_kept(trial: Trial) -> None:
    if not trial.owners:
        return
    async with trial.session() as (backend, base):
        made = await frozen(
            backend,
            base,
            "echo x > /f; chown 1000:1001 /f; mkdir /d; chown 65534:65534 /d; ln -s x /l; chown -h 7:8 /l",
        )
        child = await frozen(backend, made, "echo more >> /f")
        assert await seen(backend, child, "stat -c %u:%g /f /d /l /etc/passwd") == "1000:1001\n65534:65534\n7:8\n0:0"


async def extended_attributes_are_kept(trial: Trial) -> None:
    numbers = (
        "my ($set, $get) = (`uname -m` =~ /aarch64/) ? (5, 8) : (188, 191);"
        "my ($name, $v, $b) = ('user.test', qq(a\\0b), ' ' x 64);"
    )
    async with trial.session() as (backend, base), backend.fork(base) as box:
        await out(box, "echo x > /f; mkdir /d")
        write = "for my $p (my @a = ('/f', '/d')) { syscall($set, $p, $name, $v, 3, 0) == 0 or die $! }"
        await out(box, 'perl -e "$1"', numbers + write)
        kept = await box.freeze(new_key())
        async with backend.fork(kept) as fork:
            each = "my $n = syscall($get, $p, $name, $b, 64); print unpack('H*', substr($b, 0, $n)), ' '"
            read = f"for my $p (my @a = ('/f', '/d')) {{ {each} }}"
            assert await out(fork, 'echo y >> /f; perl -e "$1"', numbers + read) == "610062 610062"


async def any_name_is_a_name(trial: Trial) -> None:
    names = (
        "a b",
        "-dash",
        "new\nline",
        "tab\t",
        "*",
        "'quote\"",
        "\\back",
        "ünï",
        ".wh.x",
        ".wh..wh..opq",
        "#work",
        "n" * 255,
    )
    async with trial.session() as (backend, base), backend.fork(base) as box:
        await out(box, 'mkdir /n; cd /n; for name; do printf %s "$name" > "./$name"; done', *names)
        await out(box, r"cd /n; printf x > ./$(printf '\377\376')")
        kept = await box.freeze(new_key())
        async with backend.fork(kept) as fork:
            read = (
                'cd /n; for name; do [ "$(cat "./$name"; echo .)" = "$name." ] || echo "lost $name"; done;'
                'find . -type f -print0 | tr -cd "\\0" | wc -c'
            )
            assert (await out(fork, read, *names)).split() == [str(len(names) + 1)]


async def times_are_kept(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        made = await frozen(backend, base, "echo x > /f; mkdir /d; touch -d '2001-02-03 04:05:06.123456789Z' /f /d")
        changed = await frozen(backend, made, "chmod 600 /f")
        assert await seen(backend, changed, "stat -c %.Y /f /d") == "981173106.123456789\n981173106.123456789"


async def sparse_files_stay_sparse(trial: Trial) -> None:
    size, at = trial.sparse_bytes, trial.sparse_bytes // 3 * 2
    async with trial.session() as (backend, base), backend.fork(base) as box:
        make = 'truncate -s "$1" /big; printf end | dd of=/big bs=1 seek="$2" conv=notrunc 2>/dev/null; stat -c %s /big'
        assert await out(box, make, str(size), str(at)) == str(size)
        kept = await box.freeze(new_key())
        assert kept.size_bytes < 64 << 20
        told, blocks = (await seen(backend, kept, "stat -c '%s %b' /big")).split()
        assert (int(told), int(blocks) < 2048) == (size, True)


async def large_files_are_whole(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        made = await frozen(backend, base, "yes line | head -c 50000000 > /big; cksum < /big > /sum")
        grown = await frozen(backend, made, "echo more >> /big")
        assert await seen(backend, grown, "head -c 50000000 /big | cksum | cmp - /sum && tail -c 5 /big") == "more"
        assert await seen(backend, made, "cksum < /big | cmp - /sum && echo same") == "same"


async def many_files_and_deep_folders_are_kept(trial: Trial) -> None:
    deep = "/".join(["d"] * 200)
    async with trial.session() as (backend, base):
        made = await frozen(
            backend,
            base,
            f"mkdir -p /many /{deep}; echo x > /{deep}/f; cd /many; seq 3000 | while read n; do : > $n; done",
        )
        less = await frozen(backend, made, "cd /many; seq 1 2 3000 | while read n; do rm $n; done")
        assert await seen(backend, less, f"ls /many | wc -l; cat /{deep}/f") == "1500\nx"


async def pipes_survive_as_files(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        made = await frozen(backend, base, "mkfifo /pipe; mkdir /empty")
        look = "[ -p /pipe ] && echo pipe; [ -d /empty ] && echo folder; (echo through > /pipe &) ; cat /pipe"
        assert await seen(backend, made, look) == "pipe\nfolder\nthrough"


async def device_files_open_no_device(trial: Trial) -> None:
    async with trial.fork() as box:
        script = "mknod /zero c 1 5 2>/dev/null || exit 0; if head -c 1 /zero >/dev/null 2>&1; then echo opened; fi"
        assert await out(box, script) == ""


async def chains_can_be_deep(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        state = base
        for number in range(DEEP):
            async with backend.fork(state) as box:
                await box.write_file(f"/deep/{number}", b"x" * number)
                if number % 10 == 5:
                    await out(
                        box,
                        f"rm /deep/{number - 1}; echo changed > /deep/{number - 2};"
                        f"rm -rf /re; mkdir /re; : > /re/{number}",
                    )
                state = await box.freeze(new_key())
        last, changed = DEEP - 1, DEEP - 5
        look = f"ls /deep | wc -l; stat -c %s /deep/{last}; cat /deep/{changed - 2}; ls /re; cat /etc/hostname"
        told = (await seen(backend, state, look)).split()
        assert told == [str(DEEP - DEEP // 10), str(last), "changed", str(changed), "tiny"]


async def written_bytes_are_counted(trial: Trial) -> None:
    async with trial.fork() as box:
        done = await box.run(_writes(5))
        assert 5 << 20 <= done.written_bytes < 7 << 20
        none = await box.run(_writes(0))
        assert none.written_bytes < 1 << 20


def _writes(mebibytes: int) -> Command:
    return shell(f"head -c {mebibytes << 20} /dev/urandom > /written{mebibytes}")


async def the_sandbox_looks_like_a_machine_of_its_own(trial: Trial) -> None:
    async with trial.fork() as box:
        assert await out(box, "id -u; id -g; umask") == "0\n0\n0022"
        assert await out(
            box,
            "head -c 3 /dev/zero | wc -c; head -c 4 /dev/urandom | wc -c;"
            "echo x > /dev/null; echo y 2>/dev/null > /dev/full || echo full",
        ) == ("3\n4\nfull")
        assert await out(
            box,
            "echo to-out > /dev/stdout; echo to-err > /dev/stderr;"
            "echo x > /dev/shm/x; cat /dev/shm/x; [ -e /dev/ptmx ] && echo pty",
        ) == ("to-out\nto-err\nx\npty")
        assert await out(box, "[ -r /proc/self/status ] && [ -d /sys ] && echo mounted") == "mounted"


CHECKS: tuple[Check, ...] = (
    files_survive_between_commands,
    nothing_but_files_survives,
    a_fork_sees_its_parents_files,
    a_checkpoint_never_changes,
    siblings_do_not_see_each_other,
    a_discarded_sandbox_leaves_its_parent_as_it_was,
    deleted_files_stay_deleted,
    a_folder_deleted_and_made_again_is_empty,
    a_file_can_take_the_place_of_a_folder_and_back,
    renamed_folders_keep_what_is_in_them,
    hard_links_are_kept,
    symbolic_links_are_kept_as_they_are,
    modes_are_kept,
    the_root_folder_keeps_its_mode_and_time,
    owners_are_kept,
    extended_attributes_are_kept,
    any_name_is_a_name,
    times_are_kept,
    sparse_files_stay_sparse,
    large_files_are_whole,
    many_files_and_deep_folders_are_kept,
    pipes_survive_as_files,
    device_files_open_no_device,
    chains_can_be_deep,
    written_bytes_are_counted,
    the_sandbox_looks_like_a_machine_of_its_own,
)
