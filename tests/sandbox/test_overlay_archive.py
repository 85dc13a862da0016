"""Layers that leave the store hold what a sandbox sees: unpacked by an independent reader and compared."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from specbuild.testing.remote import interpreter
from specbuild.testing.tar_layers import Entry, apply_layers, links, without_inodes

pytestmark = [pytest.mark.sandbox, pytest.mark.root]

STEPS = [
    # Everything that a file can be.
    r"""
    mkdir -p /w/old/deep /w/turns/into /w/kept /w/empty /w/lost
    printf old >/w/old/deep/file; printf x >/w/old/other; printf y >/w/turns/into/file; printf z >/w/kept/a
    printf z >/w/kept/b; printf was >/w/becomes; printf gone >/w/gone; printf one >/w/one; ln /w/one /w/two
    ln /w/one /w/kept/three; ln -s ../one /w/link; ln -s /nowhere /w/dangling; ln -s x /w/lost/link
    mkfifo /w/pipe; head -c 3000000 /dev/zero | tr '\0' a >/w/large; : >/w/none
    chmod 4755 /w/large; chmod 0 /w/none; chmod 1777 /w/empty; chmod 2750 /w/kept
    chown 1000:1001 /w/kept/a /w/empty; chown -h 33:65534 /w/link; chown 65534:0 /w/pipe
    touch -d '2001-02-03 04:05:06.123456789' /w/large; touch -h -d '1999-01-01 00:00:00.5' /w/link
    touch -d '1969-12-31 23:59:58.75' /w/none
    name=$(printf '\377\376'); printf b >"/w/bytes-$name"; printf u >"/w/snö 名"; printf n >"/w/with
line"
    long=$(printf %0150d 1); mkdir -p "/w/$long/$long"; printf l >"/w/$long/$long/$long"; ln -s "/$long/$long" /w/far
    """,
    # Everything that can be done to what is there already.
    r"""
    rm /w/gone; rm -r /w/lost; rm -r /w/old; mkdir /w/old; printf new >/w/old/new
    rm -r /w/turns; printf file >/w/turns; rm /w/becomes; mkdir /w/becomes; printf in >/w/becomes/in
    printf more >>/w/two; ln /w/kept/a /w/kept/again; chmod 600 /w/kept/b; rm /w/link; ln -s elsewhere /w/link
    mv /w/empty /w/renamed; chown 7:8 /w/kept
    """,
    "true",
    "rm -r /w/old; mkdir -p /w/old/deep; printf again >/w/old/deep/file; printf back >/w/gone",
]
ATTRIBUTES = r"""
use strict;
# setxattr, by its number on this machine
my ($set) = @ARGV;
sub give {
    my ($path, $name, $value) = @_;
    syscall($set + 0, $path, $name, $value, length $value, 0) and die "$name: $!";
}
give("/w/one", "user.note", "plain"); give("/w/kept", "user.bytes", "a\0b\xff\n=");
give("/w/large", "security.capability", pack("V5", 0x02000001, 1 << 10, 0, 0, 0));
"""
SETXATTR = {"x86_64": 188, "aarch64": 5}

PROGRAM = """
import json, sys
from pathlib import Path
import anyio
from specbuild.export.layers import Compression, write_layers, write_root
from specbuild.sandbox.contract import Command, RootfsTar
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.testing.trial import ENVIRONMENT

store, tiny, out, scripts = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), json.loads(sys.argv[4])

LIST = r'''find / -xdev ! -path '/proc/*' ! -path '/sys/*' ! -path '/dev/*' ! -path '/tmp/*' ! -path '/run/*' \\
  -printf '%y %m %U %G %T@ %i %l\\n%P\\0' '''

async def main():
    async with OverlayBackend(store) as backend:
        kept = await backend.find(f"{len(scripts) - 1:064}")
        parent = kept or await backend.import_base("b" * 64, RootfsTar(tiny))
        for number, script in enumerate([] if kept else scripts):
            async with backend.fork(parent) as box:
                done = await box.run(Command(["/bin/sh", "-euc", script], env=ENVIRONMENT, network=False))
                assert done.ok, done.tail
                parent = await box.freeze(f"{number:064}")
        await backend.keep(parent.key, "demo")
        made = await write_layers(backend, parent.key, out, compression=Compression(sys.argv[5]))
        async with backend.fork(parent) as box:
            await box.run(Command(["/bin/sh", "-c", LIST + ">/listing"], env=ENVIRONMENT, network=False))
            (out / "listing").write_bytes(await box.read_file("/listing"))
        await write_root(backend, parent.key, out / "root.tar")
    layers = [layer for state in made for layer in state]
    print(json.dumps([[str(each.path), each.digest, each.diff_id, each.entries] for each in layers]))

anyio.run(main)
"""


def exported(folder: Path, tiny: Path, *, user: str | None = None, kind: str = "tar+gzip") -> list[Any]:
    """What PROGRAM tells; it makes the layers of STEPS in a store in the folder, and writes them to `folder/out`."""
    attributes = f"perl -e '{ATTRIBUTES}' {SETXATTR[os.uname().machine]}"
    scripts = [STEPS[0] + attributes, *STEPS[1:]]
    out = folder / "out"
    out.mkdir()
    account = pwd.getpwnam(user) if user else None
    if account:
        for path in (folder, out):
            os.chown(path, account.pw_uid, account.pw_gid)
    python, packages = interpreter(user)
    words = [str(folder / "store"), str(tiny), str(out), json.dumps(scripts)]
    done = subprocess.run(
        [python, "-c", PROGRAM, *words, f"application/vnd.oci.image.layer.v1.{kind}"],
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
        env={"PATH": os.environ["PATH"], "HOME": account.pw_dir if account else "/root", "PYTHONPATH": packages},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def listed(file: Path) -> dict[str, Entry]:
    """What `find` saw in the sandbox."""
    found: dict[str, Entry] = {}
    for record in file.read_bytes().split(b"\0")[:-1]:
        head, _, name = record.partition(b"\n")
        kind, mode, uid, gid, seconds, inode, *target = os.fsdecode(head).split(" ", 6)
        whole, _, fraction = seconds.partition(".")
        moment = int(whole) * 10**9 + int(fraction.ljust(9, "0")[:9])
        entry = Entry(kind, int(mode, 8), int(uid), int(gid), moment, "".join(target), "", (), int(inode))
        found[os.fsdecode(name) or "."] = entry
    return found


def comparable(entries: dict[str, Entry]) -> dict[str, tuple[str, int, int, int, int, str]]:
    """What `find` tells of each file, those left out over which a sandbox has something of its own."""
    return {
        name: (entry.kind, entry.mode, entry.uid, entry.gid, entry.mtime_ns, entry.target)
        for name, entry in entries.items()
        if name not in {".", "listing", "proc", "sys", "dev", "tmp", "run", "etc/hosts", "etc/resolv.conf"}
    }


@pytest.fixture(scope="module")
def by_root(tmp_path_factory: pytest.TempPathFactory, tiny: Path) -> tuple[Path, list[Any]]:
    folder = tmp_path_factory.mktemp("by-root")
    return folder, exported(folder, tiny)


def check_contents(folder: Path, made: list[Any]) -> None:
    image = apply_layers([Path(path) for path, *_ in made])
    truth = listed(folder / "out" / "listing")
    assert comparable(image) == comparable(truth)
    assert {group for group in links(image) if "w/one" in group} == {frozenset({"w/one", "w/kept/three"})}
    assert frozenset({"w/kept/a", "w/kept/again"}) in links(image)
    assert image["w/two"].sha256 == hashlib.sha256(b"onemore").hexdigest()
    assert image["w/large"].sha256 == hashlib.sha256(b"a" * 3_000_000).hexdigest()
    assert image["w/large"].mtime_ns == 981173106_123456789
    assert dict(image["w/one"].xattrs) == {"user.note": b"plain"}
    assert dict(image["w/kept"].xattrs) == {"user.bytes": b"a\0b\xff\n="}
    capability = dict(image["w/large"].xattrs)["security.capability"]
    assert capability.hex() == "0100000200040000" + "0" * 24
    assert without_inodes(apply_layers([folder / "out" / "root.tar"])) == without_inodes(image)


def test_layers_hold_what_a_sandbox_sees(by_root: tuple[Path, list[Any]]) -> None:
    check_contents(*by_root)


def test_the_same_of_a_store_of_an_ordinary_user(ordinary_user: str, public: Path, tiny: Path) -> None:
    folder = public / "users"
    folder.mkdir()
    try:
        check_contents(folder, exported(folder, tiny, user=ordinary_user))
    finally:
        shutil.rmtree(folder)


def test_a_step_is_a_layer_and_one_that_left_nothing_has_no_entries(by_root: tuple[Path, list[Any]]) -> None:
    _, made = by_root
    assert len(made) == 1 + len(STEPS)
    assert [entries == 0 for *_, entries in made] == [False, False, False, True, False]


def test_what_was_removed_is_said_as_the_specification_has_it(by_root: tuple[Path, list[Any]]) -> None:
    _, made = by_root
    with tarfile.open(made[2][0]) as tar:
        names = tar.getnames()
    assert {"w/.wh.gone", "w/.wh.lost", "w/old/.wh..wh..opq"} <= set(names)
    assert names.index("w/old/.wh..wh..opq") < names.index("w/old/new")
    assert not [member for member in names if "overlay" in member]


def test_digests_are_those_of_the_files(by_root: tuple[Path, list[Any]]) -> None:
    _, made = by_root
    for path, digest, diff_id, _ in made:
        data = Path(path).read_bytes()
        assert digest == f"sha256:{hashlib.sha256(data).hexdigest()}"
        plain = subprocess.run(["gzip", "-dc", path], capture_output=True, check=True).stdout
        assert diff_id == f"sha256:{hashlib.sha256(plain).hexdigest()}"


def test_the_same_checkpoint_gives_the_same_bytes(by_root: tuple[Path, list[Any]], tiny: Path) -> None:
    folder, made = by_root
    again = folder / "out"
    shutil.move(again, folder / "first")
    repeated = exported(folder, tiny)  # the store has all of it: nothing is run anew
    assert [each[1:] for each in repeated] == [each[1:] for each in made]
    shutil.rmtree(again)
    shutil.move(folder / "first", again)
