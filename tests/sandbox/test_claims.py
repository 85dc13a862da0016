"""Who needs which Checkpoints: what sessions and names claim stays, whoever comes, goes or dies; all else may go.

`SPECBUILD_EXAMPLES` sets how many random histories are tried.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from specbuild.errors import StoreError
from specbuild.sandbox.claims import Claims, file_name, with_ancestors

EXAMPLES = int(os.environ.get("SPECBUILD_EXAMPLES", "100"))


@dataclass(frozen=True)
class Thing:
    key: str
    parent: str | None = None
    beside: tuple[str, ...] = ()
    """What it needs besides its parent."""

    @property
    def needs(self) -> set[str]:
        return {*self.beside, *([self.parent] if self.parent else [])}


@dataclass
class Shelf:
    """A store whose Checkpoints are known to all its sessions."""

    root: Path
    things: dict[str, Thing] = field(default_factory=dict[str, Thing])

    def session(self, about: str = "") -> Claims[Thing]:
        claims = Claims(self.root, self.things.get)
        claims.open(about)
        return claims

    def add(self, claims: Claims[Thing], thing: Thing) -> None:
        with claims.locked():
            claims.hold(self.things.setdefault(thing.key, thing))

    def collect(self, claims: Claims[Thing], *, bases: bool = False, ending: bool = False) -> set[str]:
        with claims.locked():
            gone = claims.give_up(self.things, bases=bases, ending=ending, also=lambda thing: thing.beside)
            for thing in gone:
                del self.things[thing.key]
        return {thing.key for thing in gone}


def die(claims: Claims[Thing]) -> None:
    """What the kernel does with a session whose process ends."""
    file = (claims.root / "sessions" / claims.session).resolve()
    for link in Path("/proc/self/fd").iterdir():
        if link.resolve() == file:
            os.close(int(link.name))


def dead(claims: Claims[Thing]) -> dict[str, str]:
    with claims.locked():
        return claims.dead()


def alive(claims: Claims[Thing]) -> set[str]:
    with claims.locked():
        return claims.alive()


def test_what_a_session_leases_stays_until_it_ends(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    mine, other = shelf.session(), shelf.session()
    shelf.add(mine, Thing("base"))
    shelf.add(mine, Thing("parent", "base"))
    shelf.add(mine, Thing("child", "parent"))
    assert other.lease("parent") == Thing("parent", "base")
    mine.close()
    assert shelf.collect(other) == {"child"}
    assert shelf.collect(other, bases=True, ending=True) == {"base", "parent"}


def test_what_is_kept_outlives_its_session_with_all_that_it_needs(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    mine = shelf.session()
    for thing in (Thing("base"), Thing("aside", "base"), Thing("kept", "base", ("aside",)), Thing("neither", "base")):
        shelf.add(mine, thing)
    mine.keep("kept", "environment")
    mine.close()
    later = shelf.session()
    assert shelf.collect(later, bases=True) == {"neither"}
    later.forget("environment")
    later.forget("no such name")
    assert shelf.collect(later) == {"aside", "kept"}


def test_one_checkpoint_may_have_several_names(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    mine = shelf.session()
    shelf.add(mine, Thing("state", "base"))
    mine.keep("state", "one")
    mine.keep("state", "two/../with what no file can be named by")
    mine.forget("one")
    assert shelf.collect(mine, ending=True) == set()
    mine.forget("two/../with what no file can be named by")
    assert shelf.collect(mine, ending=True) == {"state"}


def test_what_is_not_there_can_neither_be_leased_nor_kept(tmp_path: Path) -> None:
    mine = Shelf(tmp_path).session()
    assert mine.lease("missing") is None
    with pytest.raises(StoreError, match="missing"):
        mine.require("missing")
    with pytest.raises(StoreError, match="missing"):
        mine.keep("missing", "name")
    assert list((tmp_path / "kept").iterdir()) == []


def test_what_was_given_up_is_looked_up_again(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    mine = shelf.session()
    shelf.add(mine, Thing("state", "base"))
    shelf.collect(mine, ending=True)
    assert mine.lease("state") is None
    shelf.add(mine, Thing("state", "base", ("now", "others")))
    assert mine.lease("state") == Thing("state", "base", ("now", "others"))
    del shelf.things["state"]
    mine.drop("state")
    assert mine.lease("state") is None


def test_a_session_whose_process_was_killed_is_dead_and_its_last_words_are_told(tmp_path: Path) -> None:
    program = """
import os, signal, sys
from pathlib import Path
from specbuild.sandbox.claims import Claims
claims = Claims(Path(sys.argv[1]), {}.get)
claims.open("first")
claims.describe("a longer text")
claims.describe("last")
print(claims.session, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    killed = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, env=env)
    mine = Shelf(tmp_path).session()
    assert dead(mine) == {killed.stdout.strip(): "last"}
    assert alive(mine) == {mine.session}
    with mine.locked():
        mine.end(killed.stdout.strip())
    assert dead(mine) == {}
    assert [path.name for path in (tmp_path / "leases").iterdir()] == [mine.session]


def test_a_session_that_has_ended_leaves_nothing(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    with pytest.raises(StoreError, match="no session"):
        Claims(tmp_path, shelf.things.get).describe("nobody")
    mine = shelf.session()
    assert mine.is_open
    shelf.add(mine, Thing("state", "base"))
    mine.close()
    mine.close()
    assert not mine.is_open
    assert list((tmp_path / "leases").iterdir()) == list((tmp_path / "sessions").iterdir()) == []


def test_a_folder_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be used"):
        Shelf(tmp_path / "file" / "store").session()


def test_changes_are_made_one_after_the_other_and_names_given_once(tmp_path: Path) -> None:
    mine, counter = Shelf(tmp_path).session(), tmp_path / "counter"
    counter.write_text("0")
    names: list[str] = []

    def count() -> None:
        for _ in range(50):
            names.append(mine.new_name())
            with mine.locked():
                counter.write_text(str(int(counter.read_text()) + 1))

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.read_text() == "400"
    assert len(set(names)) == 400
    assert {name.partition(".")[0] for name in names} == {mine.session}


@given(st.lists(st.text(), unique=True))
def test_names_of_files_are_safe_and_tell_keys_apart(keys: list[str]) -> None:
    names = [file_name(key) for key in keys]
    assert len(set(names)) == len(keys)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name) for name in names)


@given(st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.none() | st.sampled_from("abcdefg"), st.text("abcg"))))
def test_what_is_needed_is_what_can_be_reached(graph: Mapping[str, tuple[str | None, str]]) -> None:
    known = {key: Thing(key, parent, tuple(beside)) for key, (parent, beside) in graph.items()}
    needed = with_ancestors("ag", known, lambda thing: thing.beside)
    assert needed <= known.keys()
    assert needed >= {"a"} & known.keys()
    assert {other for key in needed for other in known[key].needs} & known.keys() <= needed
    for one in needed - {"a"}:
        assert any(one in (known[key].parent, *known[key].beside) for key in needed - {one}), (
            "nothing is there for none"
        )


KEYS = st.sampled_from("abcdefgh")
NAMES = st.sampled_from(["one", "two", "../three"])


class ClaimsMachine(RuleBasedStateMachine):
    """Sessions that come, go and die on one store, beside a model of what they claim."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.shelf = Shelf(Path(self.folder.name))
        self.sessions: list[Claims[Thing]] = []
        self.leases: dict[str, set[str]] = {}
        """Session → keys; of dead ones, too, until they are ended."""
        self.kept: dict[str, str] = {}

    def teardown(self) -> None:
        for claims in self.sessions:
            claims.close()
        self.folder.cleanup()

    def one(self, data: st.DataObject) -> Claims[Thing]:
        return data.draw(st.sampled_from(self.sessions))

    @precondition(lambda self: len(self.sessions) < 4)
    @rule()
    def open(self) -> None:
        self.sessions.append(claims := self.shelf.session())
        self.leases[claims.session] = set()

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), key=KEYS, parent=st.none() | KEYS, beside=st.lists(KEYS, max_size=2))
    def add(self, data: st.DataObject, key: str, parent: str | None, beside: list[str]) -> None:
        claims = self.one(data)
        self.shelf.add(claims, Thing(key, parent, tuple(beside)))
        self.leases[claims.session].add(key)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), key=KEYS)
    def lease(self, data: st.DataObject, key: str) -> None:
        claims, there = self.one(data), self.shelf.things.get(key)
        assert claims.lease(key) == there
        if there is not None:
            self.leases[claims.session].add(key)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), key=KEYS, name=NAMES)
    def keep(self, data: st.DataObject, key: str, name: str) -> None:
        if key in self.shelf.things:
            self.one(data).keep(key, name)
            self.kept[name] = key

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), name=NAMES)
    def forget(self, data: st.DataObject, name: str) -> None:
        self.one(data).forget(name)
        self.kept.pop(name, None)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), killed=st.booleans())
    def leave(self, data: st.DataObject, killed: bool) -> None:
        claims = self.one(data)
        self.sessions.remove(claims)
        if killed:
            die(claims)
        else:
            claims.close()
            del self.leases[claims.session]

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def end_the_dead(self, data: st.DataObject) -> None:
        claims = self.one(data)
        with claims.locked():
            for session in claims.dead():
                claims.end(session)
                del self.leases[session]
        assert self.leases.keys() == {one.session for one in self.sessions}

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), bases=st.booleans(), ending=st.booleans())
    def collect(self, data: st.DataObject, bases: bool, ending: bool) -> None:
        claims, before = self.one(data), dict(self.shelf.things)
        claimed = {*self.kept.values()}.union(
            *(keys for session, keys in self.leases.items() if not (ending and session == claims.session))
        )
        gone = self.shelf.collect(claims, bases=bases, ending=ending)
        stays = {key for key, thing in before.items() if thing.parent is None and not bases}
        assert gone == before.keys() - self.needed(claimed, before) - stays

    @staticmethod
    def needed(claimed: set[str], things: Mapping[str, Thing]) -> set[str]:
        found = claimed & things.keys()
        while True:
            onward = {other for key in found for other in things[key].needs if other in things}
            if onward <= found:
                return found
            found |= onward

    @invariant()
    def who_lives_is_known(self) -> None:
        for claims in self.sessions[:1]:
            living = {one.session for one in self.sessions}
            assert alive(claims) == living
            assert dead(claims).keys() == self.leases.keys() - living


TestClaims = ClaimsMachine.TestCase
TestClaims.settings = settings(max_examples=EXAMPLES, stateful_step_count=30, deadline=None)
