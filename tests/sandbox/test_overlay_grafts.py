"""Grafts: what was changed on one way, on top of what was changed on another."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from specbuild.sandbox.contract import Backend, Checkpoint, RootfsTar
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.testing.leftovers import leftovers
from specbuild.testing.trial import frozen, new_key, seen

pytestmark = [pytest.mark.sandbox, pytest.mark.root]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
async def backend(store: Path, tiny: Path) -> AsyncGenerator[OverlayBackend]:
    async with OverlayBackend(store) as opened:
        await opened.import_base("base", RootfsTar(tiny))
        yield opened
    assert leftovers(store) == []


async def base_of(backend: Backend, prepare: str = "mkdir -p /both; echo old > /both/old; echo x > /x") -> Checkpoint:
    found = await backend.find("base")
    assert found is not None
    return await frozen(backend, found, prepare)


async def grafted(backend: Backend, main: str, side: str) -> Checkpoint | None:
    base = await base_of(backend)
    onto, aside = await frozen(backend, base, main), await frozen(backend, base, side)
    return await backend.graft(onto, aside, new_key())


async def test_a_graft_holds_what_was_changed_on_both_ways(backend: OverlayBackend) -> None:
    made = await grafted(
        backend, "echo m > /both/main; mkdir -p /opt/m; rm /x", "echo s > /both/side; ln -s /both /side; rm /both/old"
    )
    assert made is not None
    assert await seen(backend, made, "cd /both; echo *; cat main side; readlink /side; ls -d /opt/m") == (
        "main side\nm\ns\n/both\n/opt/m"
    )
    assert await seen(backend, made, "test -e /x || echo gone") == "gone"


async def test_a_graft_can_be_worked_on_and_grafted_again(backend: OverlayBackend) -> None:
    base = await base_of(backend)
    main = await frozen(backend, base, "echo 1 > /both/main")
    aside = await frozen(backend, base, "echo 1 > /both/side")
    further = await frozen(backend, aside, "echo 2 > /both/side; rm /both/old")
    first = await backend.graft(main, aside, new_key())
    assert first is not None
    on = await frozen(backend, first, "echo 2 > /both/main")
    second = await backend.graft(on, further, new_key())
    assert second is not None
    assert await seen(backend, second, "cat /both/main /both/side; echo /both/*") == "2\n2\n/both/main /both/side"
    assert await seen(backend, first, "cat /both/main /both/side /both/old") == "1\n1\nold"


@pytest.mark.parametrize(
    ("main", "side"),
    [
        pytest.param("echo m > /both/new", "echo s > /both/new", id="both write a file"),
        pytest.param("echo m > /both/old", "rm /both/old", id="one changes what the other removes"),
        pytest.param("rm -r /both", "echo s > /both/new", id="one removes the folder that the other writes to"),
        pytest.param("rm -r /both; mkdir /both", "echo s > /both/new", id="one makes that folder anew"),
        pytest.param("echo m > /both/new", "rm -r /both; mkdir /both", id="the other makes it anew"),
        pytest.param("mkdir /new", "echo s > /new", id="a folder here, a file there"),
        pytest.param("mkdir -m 700 /new; echo > /new/m", "mkdir /new; echo > /new/s", id="modes of a folder differ"),
        pytest.param("chmod 700 /both; echo > /both/m", "echo > /both/s", id="one changes the mode of a common folder"),
        pytest.param("ln -s /both /new", "mkdir /new", id="a link here, a folder there"),
    ],
)
async def test_what_both_ways_change_is_not_grafted(backend: OverlayBackend, main: str, side: str) -> None:
    before = await backend.keys()
    assert await grafted(backend, main, side) is None
    assert len(await backend.keys()) == len(before) + 3, "nothing but the three that were frozen"


async def test_nothing_can_be_grafted_from_what_lies_below(backend: OverlayBackend) -> None:
    base = await base_of(backend)
    main = await frozen(backend, base, "echo m > /both/main")
    assert await backend.graft(main, base, new_key()) is None
    assert await backend.graft(main, main, new_key()) is None


async def test_a_key_that_exists_is_returned_as_it_is(backend: OverlayBackend) -> None:
    base = await base_of(backend)
    main, aside = await frozen(backend, base, "echo m > /m"), await frozen(backend, base, "echo s > /s")
    known = await frozen(backend, main, "echo run > /s")
    assert await backend.graft(main, aside, known.key) == known
    assert await seen(backend, known, "cat /s") == "run"


async def test_a_graft_that_is_kept_outlives_its_session_with_all_that_it_is_made_of(store: Path, tiny: Path) -> None:
    async with OverlayBackend(store) as backend:
        await backend.import_base("base", RootfsTar(tiny))
        made = await grafted(backend, "echo m > /m", "echo s > /s")
        assert made is not None
        await backend.keep(made.key, "environment")
    async with OverlayBackend(store) as backend:
        again = await backend.find(made.key)
        assert again is not None
        assert await seen(backend, again, "cat /m /s") == "m\ns"
        await backend.forget("environment")
    assert list((store / "mapped" / "live").iterdir()) == []


@pytest.mark.parametrize("owner", ["7:8", "0:0"])
async def test_owners_and_modes_come_along(backend: OverlayBackend, owner: str) -> None:
    made = await grafted(backend, "mkdir /m", f"echo s > /s; chown {owner} /s; chmod 4750 /s; mkdir -m 1777 /sticky")
    assert made is not None
    assert await seen(backend, made, "stat -c '%a %u:%g' /s /sticky") == f"4750 {owner}\n1777 0:0"
