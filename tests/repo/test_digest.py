"""The digest of a tree: what changes it and what does not."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specbuild.repo.digest import Entry, Tree, hash_files, read_tree

parts = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda part: part not in {".", "..", ".git"}
)
entries = st.builds(
    Entry,
    path=st.lists(parts, min_size=1, max_size=3).map("/".join),
    kind=st.sampled_from(["file", "program", "link", "folder"]),
    content=st.text(max_size=10),
)


def make(root: Path) -> Path:
    (root / "sub" / "empty").mkdir(parents=True)
    (root / "a.txt").write_text("a")
    (root / "sub" / "run").write_text("r")
    (root / "sub" / "run").chmod(0o755)
    (root / "link").symlink_to("a.txt")
    return root


def digest(root: Path) -> str:
    return read_tree(root).digest


def test_a_tree_is_read_as_it_is(tmp_path: Path) -> None:
    tree = read_tree(make(tmp_path))
    assert sorted((entry.path, entry.kind) for entry in tree.entries) == [
        ("a.txt", "file"),
        ("link", "link"),
        ("sub/empty", "folder"),
        ("sub/run", "program"),
    ]
    assert tree.files["a.txt"] == hashlib.sha256(b"a").hexdigest()
    assert set(tree.files) == {"a.txt", "sub/run"}


def test_times_owners_other_modes_and_version_control_do_not_change_the_digest(tmp_path: Path) -> None:
    before = digest(make(tmp_path))
    os.utime(tmp_path / "a.txt", (1, 1))
    (tmp_path / "a.txt").chmod(0o600)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("x")
    (tmp_path / "sub" / ".git").write_text("gitdir: elsewhere")
    os.mkfifo(tmp_path / "pipe")
    assert digest(tmp_path) == before


def _replace_link(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("sub")


def _link_to_file(root: Path) -> None:
    (root / "link").unlink()
    shutil.copy(root / "a.txt", root / "link")


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": lambda root: (root / "a.txt").write_text("b"),
    "name": lambda root: (root / "a.txt").rename(root / "b.txt"),
    "executable": lambda root: (root / "a.txt").chmod(0o755),
    "empty folder": lambda root: (root / "sub" / "empty").rmdir(),
    "new file": lambda root: (root / "new").touch(),
    "target of a link": _replace_link,
    "link to file": _link_to_file,
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_content_changes_the_digest(tmp_path: Path, change: str) -> None:
    before = digest(make(tmp_path))
    CHANGES[change](tmp_path)
    assert digest(tmp_path) != before


def test_names_that_are_not_utf8_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff")).write_text("x")
    one = read_tree(tmp_path)
    (tmp_path / os.fsdecode(b"\xff")).rename(tmp_path / os.fsdecode(b"\xfe"))
    assert os.fsencode(next(iter(one.files))) == b"\xff"
    assert read_tree(tmp_path).digest != one.digest


def test_a_tree_may_be_deeper_than_the_interpreter_recurses(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=folder)
        deeper = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = deeper
    os.close(folder)
    assert len(read_tree(tmp_path).entries) == 1
    subprocess.run(["rm", "-r", tmp_path / "d"], check=True)  # rmtree does recurse


def test_only_regular_files_are_hashed(tmp_path: Path) -> None:
    make(tmp_path)
    assert set(hash_files(tmp_path, ["a.txt", "link", "sub", "none"])) == {"a.txt"}


@settings(deadline=None)
@given(st.lists(entries, unique_by=lambda entry: entry.path), st.randoms())
def test_the_order_of_reading_does_not_matter(found: list[Entry], chance: random.Random) -> None:
    shuffled = chance.sample(found, len(found))
    assert Tree(tuple(found)).digest == Tree(tuple(shuffled)).digest


@settings(deadline=None)
@given(st.lists(entries, unique_by=lambda e: e.path), st.lists(entries, unique_by=lambda e: e.path))
def test_different_trees_have_different_digests(one: list[Entry], other: list[Entry]) -> None:
    assert (Tree(tuple(one)).digest == Tree(tuple(other)).digest) == (set(one) == set(other))


@settings(deadline=None)
@given(st.dictionaries(parts, st.binary(max_size=50), max_size=5))
def test_a_copy_has_the_digest_of_its_original(files: dict[str, bytes]) -> None:
    with TemporaryDirectory() as name:
        root = Path(name, "root")
        root.mkdir()
        for path, content in files.items():
            (root / path).write_bytes(content)
        shutil.copytree(root, Path(name, "copy"))
        assert digest(root) == digest(Path(name, "copy"))
