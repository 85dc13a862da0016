"""Conformance: Checkpoints in their store: names, leases, what is kept and what goes."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import anyio
import pytest

from specbuild.errors import SandboxError
from specbuild.sandbox.contract import Backend, Checkpoint, RootfsTar
from specbuild.testing.trial import Check, Trial, frozen, new_key, out, seen, shell

FORKS = 40


async def the_probe_makes_a_real_fork(trial: Trial) -> None:
    async with trial.session() as (backend, _):
        probe = await backend.probe()
        assert probe.backend == backend.name
        assert probe.ok, [finding for finding in probe.findings if not finding.ok]
        assert probe.findings
    assert trial.leftovers() == []


async def a_checkpoint_tells_where_it_comes_from(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        assert (base.key, base.parent) == (trial.base_key, None)
        async with backend.fork(base) as box:
            assert box.parent == base
            await out(box, "head -c 3000000 /dev/urandom > /data")
            key = new_key()
            made = await box.freeze(key)
        assert (made.key, made.parent) == (key, base.key)
        assert made.depth > base.depth
        assert 3_000_000 <= made.size_bytes < 5_000_000


async def a_checkpoint_is_found_by_its_key(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        made = await frozen(backend, base, "echo x > /x")
        assert await backend.find(made.key) == made
        assert await backend.find(base.key) == base
        assert await backend.find(new_key()) is None


async def a_key_keeps_its_first_content(trial: Trial) -> None:
    key = new_key()
    async with trial.session() as (backend, base):
        async with backend.fork(base) as box:
            await out(box, "echo first > /which")
            first = await box.freeze(key)
        async with backend.fork(base) as box:
            await out(box, "echo second > /which")
            assert await box.freeze(key) == first
        assert await seen(backend, first, "cat /which") == "first"
    assert trial.leftovers() == []


async def two_freezes_of_a_key_at_once_agree(trial: Trial) -> None:
    key = new_key()
    states: list[Checkpoint] = []
    async with trial.session() as (backend, base):

        async def branch(number: int) -> None:
            async with backend.fork(base) as box:
                await out(box, f"echo {number} > /which; echo {number} > /again")
                states.append(await box.freeze(key))

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(branch, number)
        assert len(states) == 8
        assert all(state == states[0] for state in states)
        one, two = (await seen(backend, states[0], "cat /which /again")).split()
        assert one == two


async def a_frozen_sandbox_is_used_up(trial: Trial) -> None:
    async with trial.session() as (backend, base), backend.fork(base) as box:
        await box.freeze(new_key())
        with pytest.raises(SandboxError):
            await box.run(shell("true"))
        with pytest.raises(SandboxError):
            await box.write_file("/x", b"x")
        with pytest.raises(SandboxError):
            await box.freeze(new_key())


async def a_sandbox_can_be_frozen_untouched(trial: Trial) -> None:
    async with trial.session() as (backend, base), backend.fork(base) as box:
        state = await box.freeze(new_key())
        assert await seen(backend, state, "cat /etc/hostname") == "tiny"


async def a_base_is_imported_once(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        again = await backend.import_base(base.key, RootfsTar(trial.folder / "not-even-there.tar"))
        assert again == base


async def a_base_that_is_no_archive_is_refused(trial: Trial) -> None:
    bad = trial.folder / "bad.tar"
    bad.write_bytes(b"this is no archive" * 1000)
    cut = trial.folder / "cut.tar"
    cut.write_bytes(trial.rootfs.read_bytes()[:1_000_000])
    async with trial.session() as (backend, _):
        for tar in (bad, cut, trial.folder / "missing.tar"):
            key = new_key()
            with pytest.raises(SandboxError):
                await backend.import_base(key, RootfsTar(tar))
            assert await backend.find(key) is None
    assert trial.leftovers() == []


def _archive(path: Path, *entries: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for entry, data in entries:
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


def _entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mode = kind, link, 0o755
    return entry


async def a_hostile_base_does_not_write_outside(trial: Trial) -> None:
    outside = trial.folder / "outside"
    outside.mkdir()
    up = "../" * 30 + str(outside).lstrip("/")
    archives = (
        _archive(trial.folder / "up.tar", (_entry(f"{up}/a"), b"x")),
        _archive(trial.folder / "absolute.tar", (_entry(f"{outside}/b"), b"x")),
        _archive(trial.folder / "link.tar", (_entry("l", tarfile.SYMTYPE, str(outside)), b""), (_entry("l/c"), b"x")),
        _archive(trial.folder / "hard.tar", (_entry("h", tarfile.LNKTYPE, f"{up}/secret"), b"")),
    )
    async with trial.session() as (backend, _):
        for archive in archives:
            await _import_or_refuse(backend, archive)
    assert list(outside.iterdir()) == []


async def _import_or_refuse(backend: Backend, archive: Path) -> None:
    try:
        await backend.import_base(new_key(), RootfsTar(archive))
    except SandboxError:
        return


async def a_kept_checkpoint_outlives_its_session(trial: Trial) -> None:
    name = new_key()
    async with trial.session() as (backend, base):
        below = await frozen(backend, base, "echo below > /below")
        kept = await frozen(backend, below, "echo kept > /kept")
        await backend.keep(kept.key, name)
    async with trial.session() as (backend, _):
        await backend.prune()
        state = await backend.find(kept.key)
        assert state is not None
        assert await seen(backend, state, "cat /below /kept /etc/hostname") == "below\nkept\ntiny"
        await backend.forget(name)


async def a_forgotten_checkpoint_can_be_pruned(trial: Trial) -> None:
    name, other = new_key(), new_key()
    async with trial.session() as (backend, base):
        kept = await frozen(backend, base, "head -c 4000000 /dev/urandom > /data")
        await backend.keep(kept.key, name)
        await backend.keep(kept.key, other)
    async with trial.session() as (backend, _):
        await backend.forget(name)
        await backend.prune()
    async with trial.session() as (backend, _):
        assert await backend.find(kept.key) is not None
        await backend.forget(other)
    async with trial.session() as (backend, _):
        await backend.prune()
        assert await backend.find(kept.key) is None


async def what_nobody_keeps_is_gone_once_it_is_released(trial: Trial) -> None:
    name = new_key()
    async with trial.session() as (backend, base):
        kept = await frozen(backend, base, "echo kept > /kept")
        lost = await frozen(backend, kept, "echo lost > /lost")
        await backend.keep(kept.key, name)
        await backend.release()
        assert await backend.find(lost.key) is None
        assert await seen(backend, kept, "cat /kept") == "kept"
        again = await frozen(backend, base, "echo again > /again")
        assert await seen(backend, again, "cat /again") == "again"
        await backend.forget(name)


async def what_nobody_keeps_can_be_pruned_after_its_session(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        made = await frozen(
            backend, base, "head -c 4000000 /dev/urandom > /data; mkdir -m 0 /locked; touch /a; chmod 0 /a"
        )
    async with trial.session() as (backend, _):
        await backend.prune()
        assert await backend.find(made.key) is None


async def what_a_session_uses_is_not_pruned_by_another(trial: Trial) -> None:
    async with trial.session() as (mine, base), trial.session() as (other, _):
        made = await frozen(mine, base, "echo mine > /mine")
        async with mine.fork(made) as box:
            await other.prune(everything=True)
            assert await out(box, "cat /mine /etc/hostname") == "mine\ntiny"
        assert await seen(mine, made, "cat /mine") == "mine"
        leased = await other.find(made.key)
        assert leased is not None


async def a_checkpoint_of_another_session_can_be_forked(trial: Trial) -> None:
    async with trial.session() as (mine, base), trial.session() as (other, _):
        made = await frozen(mine, base, "echo shared > /shared")
        theirs = await other.find(made.key)
        assert theirs is not None
        assert await seen(other, theirs, "cat /shared") == "shared"


async def everything_can_be_pruned(trial: Trial) -> None:
    async with trial.session() as (backend, base):
        await frozen(backend, base, "echo x > /x")
    async with trial.make() as backend:
        assert await backend.prune(everything=True) > 1_000_000
        assert await backend.find(trial.base_key) is None
        again = await backend.import_base(trial.base_key, RootfsTar(trial.rootfs))
        assert await seen(backend, again, "cat /etc/hostname") == "tiny"


async def sandboxes_have_names_of_their_own(trial: Trial) -> None:
    async with trial.session() as (backend, base), backend.fork(base) as one, backend.fork(base) as two:
        assert one.id
        assert one.id != two.id


async def many_forks_run_at_once(trial: Trial) -> None:
    said: list[str] = []
    async with trial.session() as (backend, base):
        state = await frozen(backend, base, "echo shared > /shared")

        async def branch(number: int) -> None:
            async with backend.fork(state) as box:
                said.append(await out(box, "cat /shared; echo $1 > /own; cat /own", str(number)))
                await box.freeze(new_key())

        async with anyio.create_task_group() as group:
            for number in range(FORKS):
                group.start_soon(branch, number)
    assert sorted(said) == sorted(f"shared\n{number}" for number in range(FORKS))
    assert trial.leftovers() == []


CHECKS: tuple[Check, ...] = (
    the_probe_makes_a_real_fork,
    a_checkpoint_tells_where_it_comes_from,
    a_checkpoint_is_found_by_its_key,
    a_key_keeps_its_first_content,
    two_freezes_of_a_key_at_once_agree,
    a_frozen_sandbox_is_used_up,
    a_sandbox_can_be_frozen_untouched,
    a_base_is_imported_once,
    a_base_that_is_no_archive_is_refused,
    a_hostile_base_does_not_write_outside,
    a_kept_checkpoint_outlives_its_session,
    a_forgotten_checkpoint_can_be_pruned,
    what_nobody_keeps_is_gone_once_it_is_released,
    what_nobody_keeps_can_be_pruned_after_its_session,
    what_a_session_uses_is_not_pruned_by_another,
    a_checkpoint_of_another_session_can_be_forked,
    everything_can_be_pruned,
    sandboxes_have_names_of_their_own,
    many_forks_run_at_once,
)
