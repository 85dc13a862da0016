"""Whatever layers hold, their stack shows what the image specification says, by a model of a few lines."""

from __future__ import annotations

import hashlib
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specbuild.sandbox.contract import ImageLayer, ImageLayers
from specbuild.sandbox.overlay import OverlayBackend
from specbuild.testing.images import Item, file, folder, layer, symlink
from specbuild.testing.leftovers import leftovers
from specbuild.testing.trial import new_key, seen

pytestmark = [pytest.mark.sandbox, pytest.mark.root, pytest.mark.slow]

TOP = "x"
"""Where everything lies, so that the rest of the root is of no interest."""

Tree = dict[str, str]
"""Path → `d`, `f` and content, or `l` and target."""
Entry = tuple[str, str]
"""Path, and as above, or `w` (hidden) or `o` (opaque)."""

_PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(lambda parts: "/".join([TOP, *parts]))
_KINDS = st.sampled_from(["d", "f1", "f2", "lnowhere", "w", "o"])


def sane(entries: list[Entry]) -> list[Entry]:
    """As archives are: each path once, nothing below what is no folder in the same layer."""
    kept: list[Entry] = []
    kinds: dict[str, str] = {}
    for path, kind in entries:
        if kind in "wo":
            kept += [] if _below_no_folder(path, kinds) else [(path, kind)]
        elif path not in kinds and not _below_no_folder(path, kinds):
            leaf = kind != "d"
            if not (leaf and any(other.startswith(f"{path}/") for other, _ in kept)):
                kinds[path] = kind
                kept.append((path, kind))
    return [(path, kind) for path, kind in kept if not (kind == "o" and kinds.get(path, "d") != "d")]


def _below_no_folder(path: str, kinds: dict[str, str]) -> bool:
    return any(kinds.get(parent, "d") != "d" for parent in _parents(path))


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def items(entries: list[Entry]) -> list[Item]:
    found: list[Item] = []
    for path, kind in entries:
        parent, _, name = path.rpartition("/")
        match kind[0]:
            case "d":
                found.append(folder(path))
            case "f":
                found.append(file(path, kind[1:]))
            case "l":
                found.append(symlink(path, kind[1:]))
            case "w":
                found.append(file(f"{parent}/.wh.{name}"))
            case _:
                found.append(file(f"{path}/.wh..wh..opq"))
    return found


def stacked(lower: Tree, entries: list[Entry]) -> Tree:
    """Hide of what is below, then add."""
    tree = dict(lower)
    for path, kind in entries:
        if kind == "w":
            _remove(tree, path, itself=True)
        elif kind == "o":
            _remove(tree, path, itself=False)
    for path, kind in entries:
        for parent in [*_parents(path), *([path] if kind == "o" else [])]:
            if tree.get(parent, "") != "d":
                _remove(tree, parent, itself=True)
                tree[parent] = "d"
        if kind not in "wo" and not (kind == "d" and tree.get(path) == "d"):
            _remove(tree, path, itself=True)
            tree[path] = kind
    return tree


def _remove(tree: Tree, path: str, *, itself: bool) -> None:
    for known in [known for known in tree if known.startswith(f"{path}/") or (itself and known == path)]:
        del tree[known]


SHOW = f"""
cd / && find {TOP} | sort | while read -r path; do
  if [ -L "$path" ]; then echo "$path l$(readlink "$path")"
  elif [ -d "$path" ]; then echo "$path d"
  else echo "$path f$(cat "$path")"; fi
done
"""


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stack=st.lists(st.lists(st.tuples(_PATHS, _KINDS), max_size=8).map(sane), min_size=2, max_size=4))
def test_a_stack_of_layers_shows_what_the_specification_says(
    tiny: Path, tmp_path: Path, stack: list[list[Entry]]
) -> None:
    expected: Tree = {TOP: "d"}
    for entries in stack:
        expected = stacked(expected, entries)
    archives = [tiny.read_bytes(), layer(folder(TOP)), *(layer(*items(entries)) for entries in stack)]
    shown = anyio.run(_shown, archives, tmp_path)
    assert shown == [f"{path} {kind}" for path, kind in sorted(expected.items(), key=lambda pair: pair[0].encode())]
    assert leftovers(tmp_path / "store") == []


async def _shown(archives: list[bytes], tmp_path: Path) -> list[str]:
    async def fetch(path: Path) -> Path:
        return path

    layers: list[ImageLayer] = []
    for data in archives:
        digest = hashlib.sha256(data).hexdigest()
        path = tmp_path / digest
        await anyio.Path(path).write_bytes(data)
        layers.append(ImageLayer(f"sha256:{digest}", lambda path=path: fetch(path)))  # type: ignore[misc]
    async with OverlayBackend(tmp_path / "store") as backend:
        base = await backend.import_base(new_key(), ImageLayers(tuple(layers)))
        return (await seen(backend, base, SHOW)).splitlines()
