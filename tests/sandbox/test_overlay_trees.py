"""Work on trees of files: merging layers, removing, measuring."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from specbuild.sandbox.overlay import trees


def whiteout(path: Path) -> None:
    os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))


def opaque(path: Path) -> None:
    path.mkdir()
    os.setxattr(path, trees.OPAQUE, b"y")


@pytest.fixture
def layers(tmp_path: Path) -> list[Path]:
    """Three layers, lowest first."""
    found = [tmp_path / name for name in ("low", "middle", "top")]
    for layer in found:
        layer.mkdir()
    return found


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def flat(layers: list[Path], tmp_path: Path) -> Path:
    target = tmp_path / "flat"
    target.mkdir()
    trees.flatten([str(layer) for layer in layers], str(target))
    return target


def test_the_topmost_file_wins_and_shares_its_blocks(layers: list[Path], tmp_path: Path) -> None:
    for layer in layers[:2]:
        (layer / "file").write_text(layer.name)
    merged = flat(layers, tmp_path)
    assert (merged / "file").read_text() == "middle"
    assert (merged / "file").samefile(layers[1] / "file")


def test_folders_merge_with_the_attributes_of_the_topmost(layers: list[Path], tmp_path: Path) -> None:
    for layer, mode in zip(layers, (0o700, 0o711, 0o2755), strict=True):
        (layer / "d").mkdir()
        (layer / "d" / layer.name).touch()
        (layer / "d").chmod(mode)
        os.utime(layer / "d", ns=(mode, mode))
    merged = flat(layers, tmp_path) / "d"
    assert names(merged) == ["low", "middle", "top"]
    assert stat.S_IMODE(merged.stat().st_mode) == 0o2755
    assert merged.stat().st_mtime_ns == 0o2755
    assert not trees.is_opaque(str(merged))


@pytest.mark.root
def test_whiteouts_hide_and_stay(layers: list[Path], tmp_path: Path) -> None:
    (layers[0] / "gone").write_text("x")
    whiteout(layers[1] / "gone")
    whiteout(layers[0] / "below")
    merged = flat(layers, tmp_path)
    for name in ("gone", "below"):
        info = (merged / name).lstat()
        assert stat.S_ISCHR(info.st_mode)
        assert info.st_rdev == 0


def test_an_opaque_folder_hides_what_is_below(layers: list[Path], tmp_path: Path) -> None:
    (layers[0] / "d").mkdir()
    (layers[0] / "d" / "old").touch()
    opaque(layers[1] / "d")
    (layers[1] / "d" / "new").touch()
    (layers[2] / "d").mkdir()
    (layers[2] / "d" / "newer").touch()
    merged = flat(layers, tmp_path) / "d"
    assert names(merged) == ["new", "newer"]
    assert trees.is_opaque(str(merged))


@pytest.mark.root
def test_a_folder_over_a_deleted_one_or_a_file_hides_what_is_below(layers: list[Path], tmp_path: Path) -> None:
    (layers[0] / "d").mkdir()
    (layers[0] / "d" / "old").touch()
    whiteout(layers[1] / "d")
    (layers[1] / "f").write_text("a file")
    for name in ("d", "f"):
        (layers[2] / name).mkdir()
        (layers[2] / name / "new").touch()
    merged = flat(layers, tmp_path)
    for name in ("d", "f"):
        assert names(merged / name) == ["new"]
        assert trees.is_opaque(str(merged / name))


def test_links_are_kept_as_they_are(layers: list[Path], tmp_path: Path) -> None:
    (layers[0] / "link").symlink_to("/nowhere")
    assert (flat(layers, tmp_path) / "link").readlink() == Path("/nowhere")


def test_a_tree_of_any_depth_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    trees.remove(str(top))
    assert list(tmp_path.iterdir()) == []


def test_whiteouts_stay_only_where_they_hide_something_of_what_lies_below(layers: list[Path], tmp_path: Path) -> None:
    """overlayfs lists a whiteout, as a file that cannot be opened, in a folder that it merges with none."""
    low, middle, top = layers
    (low / "there").mkdir()
    (low / "there" / "gone").touch()
    (low / "link").symlink_to("there")
    for layer, names_in in ((middle, ("there", "new", "link", "closed")), (top, ("there", "new", "link"))):
        for name in names_in:
            (layer / name).mkdir()
    for place in ("there/gone", "there/never", "new/never", "link/gone", "closed/gone"):
        whiteout((top if (top / place).parent.exists() else middle) / place)
    os.setxattr(middle / "closed", trees.OPAQUE, b"y")
    target = tmp_path / "flat"
    target.mkdir()
    trees.flatten([str(middle), str(top)], str(target), str(low))
    assert {str(path.relative_to(target)) for path in target.rglob("*") if not path.is_dir()} == {"there/gone"}


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").touch()
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "link").symlink_to(tmp_path / "outside")
    trees.remove(str(tmp_path / "top"))
    assert (tmp_path / "outside" / "file").exists()
    assert not (tmp_path / "top").exists()
    assert trees.remove(str(tmp_path / "top")) == 0


def test_a_file_with_several_names_counts_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(os.urandom(1 << 20))
    before = trees.measure(str(tmp_path))
    os.link(tmp_path / "a", tmp_path / "b")
    assert trees.measure(str(tmp_path)) == before
    assert before >= 1 << 20


def test_only_what_holds_nothing_is_removed_without_a_worker(tmp_path: Path) -> None:
    hollow, full, wide = (tmp_path / name for name in ("hollow", "full", "wide"))
    (hollow / "work/incompat").mkdir(parents=True)
    (hollow / "work/incompat/mark").touch()
    full.mkdir()
    (full / "file").write_text("content")
    for number in range(100):
        (wide / str(number)).mkdir(parents=True)
    assert [trees.remove_hollow(str(folder)) for folder in (hollow, full, wide)] == [True, False, False]
    assert not hollow.exists()
    assert (full / "file").read_text() == "content"
    assert len(list(wide.iterdir())) == 100
    assert not trees.remove_hollow(str(tmp_path / "missing"))
