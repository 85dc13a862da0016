"""The store's tables: who needs what, whose content counts, what is never removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from specbuild.errors import StoreError
from specbuild.sandbox.claims import file_name
from specbuild.sandbox.overlay.reap import reap
from specbuild.sandbox.overlay.store import Layer, Realm, Store, mounts_below


def opened(root: Path) -> Store:
    store = Store(root)
    store.open({"pid": 1})
    return store


def add(store: Store, key: str, parent: str | None, text: str = "") -> Layer:
    above = None if parent is None else store.claims.require(parent)
    below = () if above is None else store.stack_on(above)
    name = store.new_live(Realm.MAPPED)
    (store.realm(Realm.MAPPED) / "live" / name / "diff" / "which").write_text(text or key)
    layer = Layer(key, parent, 1 if above is None else above.depth + 1, 10, Realm.MAPPED, below)
    return store.freeze(name, layer)[0]


def keys(store: Store) -> set[str]:
    return {layer.key for layer in store.layers()}


def test_a_layer_is_found_with_what_was_said_of_it(tmp_path: Path) -> None:
    store = opened(tmp_path)
    add(store, "base", None)
    child = add(store, "child", "base")
    assert Store(tmp_path).look_up("child") == child
    assert child.below == ("layers/base/diff",)
    assert child.checkpoint.depth == 2


def test_the_first_content_of_a_key_stays(tmp_path: Path) -> None:
    store = opened(tmp_path)
    first = add(store, "base", None, "first")
    assert add(opened(tmp_path), "base", None, "second") == first
    assert (tmp_path / "mapped/layers/base/diff/which").read_text() == "first"


def test_keys_that_are_no_file_names_are_kept_apart(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for key in ("../up", "a/b", "x" * 300, ".hidden", ""):
        add(store, key, None)
        assert "/" not in file_name(key)
    assert len(keys(store)) == 5


def test_a_session_that_ends_gives_up_what_nobody_keeps_or_leases(tmp_path: Path) -> None:
    store, other = opened(tmp_path), opened(tmp_path)
    add(store, "base", None)
    add(store, "kept-parent", "base")
    add(store, "kept", "kept-parent")
    add(store, "leased", "base")
    add(store, "neither", "base")
    store.keep("kept", "an environment")
    other.claims.lease("leased")
    store.collect(bases=False, ending=True)
    assert keys(store) == {"base", "kept-parent", "kept", "leased"}


def test_what_is_forgotten_goes_and_bases_go_last(tmp_path: Path) -> None:
    store = opened(tmp_path)
    add(store, "base", None)
    add(store, "kept", "base")
    store.keep("kept", "name")
    store.close()
    store.open({})
    store.collect(bases=True)
    assert keys(store) == {"base", "kept"}
    store.claims.forget("name")
    store.collect(bases=False)
    assert keys(store) == {"base"}
    store.collect(bases=True)
    assert keys(store) == set()


def test_keeping_what_is_not_there_fails(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        opened(tmp_path).keep("missing", "name")


def test_an_upper_is_never_taken_for_a_lower_layer(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.check_lowers(["/", "layers/base/diff", "layers/base/flat"])
    for lower in ("live/a.1/diff", "layers/../live/a.1/diff", "/tmp", "layers/base", ""):
        with pytest.raises(StoreError):
            store.check_lowers([lower])


@pytest.mark.parametrize("damage", ["", "{", "{}", "[]", '{"schema": 0}', "\0" * 300])
def test_a_layer_that_a_power_cut_has_damaged_is_as_good_as_none(tmp_path: Path, damage: str) -> None:
    store = opened(tmp_path)
    for key, parent in (("base", None), ("other", None), ("damaged", "base"), ("on it", "damaged"), ("sound", "base")):
        add(store, key, parent)
        store.keep(key, f"name of {key}")
    (tmp_path / "mapped/layers/damaged/meta.json").write_text(damage)
    later = opened(tmp_path)
    assert later.claims.lease("damaged") is None
    trash = later.collect(bases=False)[Realm.MAPPED]
    assert len(trash) == 2, "the damaged one, and the one that lies on it"
    assert keys(later) == {"base", "other", "sound"}
    assert add(later, "damaged", "base").key == "damaged"


def test_a_damaged_layer_is_made_again_in_its_place(tmp_path: Path) -> None:
    store = opened(tmp_path)
    add(store, "base", None, "first")
    (tmp_path / "mapped/layers/base/meta.json").unlink()
    add(opened(tmp_path), "base", None, "second")
    assert (tmp_path / "mapped/layers/base/diff/which").read_text() == "second"


def test_what_a_dead_session_did_not_keep_is_given_up_for_it_may_not_have_reached_the_disk(tmp_path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from specbuild.sandbox.overlay.reap import reap
from specbuild.sandbox.overlay.store import Layer, Realm, Store
store = Store(Path(sys.argv[1]))
store.open({"pid": os.getpid()})
for key, parent in (("base", None), ("kept", "base"), ("lost", "kept")):
    above = parent and store.claims.require(parent)
    below = store.stack_on(above) if above else ()
    layer = Layer(key, parent, len(below) + 1, 10, Realm.MAPPED, below)
    store.freeze(store.new_live(Realm.MAPPED), layer)
store.keep("kept", "environment")
os._exit(9)
"""
    done = subprocess.run([sys.executable, "-c", program, tmp_path], check=False, env=with_this_package())
    assert done.returncode == 9
    store = opened(tmp_path)
    trash = reap(store)
    assert len(trash[Realm.MAPPED]) == 1
    assert keys(store) == {"base", "kept"}


def with_this_package() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}


def test_a_store_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        opened(tmp_path / "file" / "store")


@pytest.mark.root
def test_nothing_with_a_mount_below_it_is_removed(tmp_path: Path) -> None:
    store = opened(tmp_path)
    add(store, "base", None)
    point = tmp_path / "mapped/layers/base/diff/mount point"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", point], check=True)
    try:
        assert mounts_below(tmp_path) == [str(point)]
        with pytest.raises(StoreError, match="mounted below"):
            store.to_trash(Realm.MAPPED, "layers/base")
        assert point.is_mount()
    finally:
        subprocess.run(["umount", point], check=True)
    assert store.to_trash(Realm.MAPPED, "layers/base").startswith("trash/")
