"""Random layers of images, and what a stack of them has to show by the OCI image specification, by a small model."""

from __future__ import annotations

from specbuild.testing.images import Item, file, folder, symlink

TOP = "x"
"""Where everything lies, so that the rest of the root is of no interest."""

Tree = dict[str, str]
"""Path → `d`, `f` and content, or `l` and target."""
Entry = tuple[str, str]
"""Path, and as above, or `w` (hidden) or `o` (opaque)."""

KINDS: tuple[str, ...] = ("d", "f1", "f2", "lnowhere", "w", "o")
"""What an Entry can be."""


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
    """The entries of the layer's archive."""
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
"""Prints what there is below TOP, as `shown` has it."""


def shown(stack: list[list[Entry]]) -> list[str]:
    """What SHOW prints of those layers, lowest first, on one that has the folder TOP alone."""
    tree: Tree = {TOP: "d"}
    for entries in stack:
        tree = stacked(tree, entries)
    return [f"{path} {kind}" for path, kind in sorted(tree.items(), key=lambda pair: pair[0].encode())]
