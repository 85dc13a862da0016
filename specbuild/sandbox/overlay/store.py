"""The store on disk: immutable layers and live uppers. Who needs what is told beside them, by `claims`.

    ROOT/logs/                 what helpers complain about, while their session lasts
    ROOT/REALM/layers/KEY/     meta.json and diff/, never changed; flat/ is made beside them for deep chains
    ROOT/REALM/live/SANDBOX/   diff/ (the upper) and one work folder a Command
    ROOT/REALM/trash/          what is being removed

A realm is a way to own files: `mapped` for the ids of a user namespace, `host` for the host's own. A layer comes into
being by one rename of a live folder, when nothing is mounted on it any more. What is mounted as a lower layer lies in
`layers/`, always: the kernel would let a live upper be used too, and what its Sandbox writes would then show through.

Everything here is synchronous and may be called from any thread.
"""

from __future__ import annotations

import contextlib
import json
import os
import posixpath
import re
import secrets
import stat
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypedDict

from specbuild.errors import StoreError
from specbuild.sandbox.claims import Claims, file_name, usable
from specbuild.sandbox.contract import Checkpoint
from specbuild.sandbox.overlay import kernel

SCHEMA = 1


class About(TypedDict, total=False):
    """What a session writes down of itself, for whoever finds it dead."""

    pid: int
    helpers: list[tuple[int, int | None]]
    """Process ids and start times."""


class Realm(StrEnum):
    """Whose ids the files of a layer have."""

    MAPPED = "mapped"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class Layer:
    """What `meta.json` says of a Checkpoint."""

    key: str
    parent: str | None
    depth: int
    size_bytes: int
    realm: Realm
    below: tuple[str, ...]
    """What lies under its own `diff`, lowest first: `/` or paths relative to the realm."""

    @property
    def folder(self) -> str:
        """Relative to the realm."""
        return f"layers/{file_name(self.key)}"

    @property
    def checkpoint(self) -> Checkpoint:
        """As the contract has it."""
        return Checkpoint(self.key, self.parent, self.depth, self.size_bytes)


def mounts_below(path: Path) -> list[str]:
    """Mount points at or below `path`, as this process sees them."""
    prefix = os.path.realpath(path)
    found: list[str] = []
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines():
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), line.split(" ", 5)[4])
        if point == prefix or point.startswith(f"{prefix}/"):
            found.append(point)
    return found


class Store:
    """The store under `root`, with one session's claims."""

    def __init__(self, root: Path, *, owner: int | None = None) -> None:
        self.root = root
        self.owner = owner
        """The host id that owns mapped files, where that is not the one we run as."""
        self.claims = Claims(root, self.look_up)

    def realm(self, realm: Realm) -> Path:
        """The folder of a realm, which is the current folder of its helper."""
        return self.root / realm

    def open(self, about: About) -> None:
        """Begin a session: `about` is written down for whoever finds the session dead. Raises StoreError."""
        with usable(self.root):
            self._make_folders()
            self._check_owner()
            self.claims.open(json.dumps(about))

    def describe(self, about: About) -> None:
        """Write down what a reaper should know of this session."""
        self.claims.describe(json.dumps(about))

    def close(self) -> None:
        """End the session, if there is one."""
        if self.claims.is_open:
            self._remove_logs(self.claims.session)
            self.claims.close()

    def dead_sessions(self) -> dict[str, About]:
        """Sessions whose engine is gone, with what they wrote down. The lock is held."""
        return {session: _about(text) for session, text in self.claims.dead().items()}

    def end_session(self, session: str) -> None:
        """Drop what a dead session has in the tables. The lock is held."""
        self._remove_logs(session)
        self.claims.end(session)

    def _remove_logs(self, session: str) -> None:
        for log in (self.root / "logs").glob(f"{session}.*"):
            log.unlink(missing_ok=True)

    def _make_folders(self) -> None:
        (self.root / "logs").mkdir(parents=True, exist_ok=True)
        for realm in Realm:
            for folder in (self.realm(realm), *(self.realm(realm) / name for name in ("layers", "live", "trash"))):
                with contextlib.suppress(FileExistsError):
                    folder.mkdir(0o700)
                    if realm is Realm.MAPPED and self.owner is not None:
                        os.chown(folder, self.owner, self.owner)

    def _check_owner(self) -> None:
        found = self.realm(Realm.MAPPED).stat().st_uid
        expected = os.geteuid() if self.owner is None else self.owner
        if found != expected:
            raise StoreError(
                f"the store {self.root} was made for sandboxes of the host's user id {found}, not {expected}",
                hint="use another `cache_dir`, or remove this one as the user who made it",
            )

    # Layers

    def flat(self, layer: Layer) -> Path:
        """Where the merge of a layer with those below it is put."""
        return self.realm(layer.realm) / layer.folder / "flat"

    def add_flat(self, layer: Layer, made: str) -> list[str]:
        """Put a merge in its place, from `made`, a live folder's path in the realm; what is trash then."""
        with self.claims.locked():
            if not self.flat(layer).exists():
                (self.realm(layer.realm) / made).rename(self.flat(layer))
        return [self.to_trash(layer.realm, posixpath.dirname(made))]

    def size_bytes(self) -> int:
        """Bytes of all layers."""
        return sum(layer.size_bytes for layer in self.layers())

    def look_up(self, key: str) -> Layer | None:
        """The layer of that key, without a lease."""
        for realm in Realm:
            if layer := _load(self.realm(realm) / "layers" / file_name(key) / "meta.json"):
                return layer
        return None

    def stack_on(self, parent: Layer) -> tuple[str, ...]:
        """The lower layers of a Sandbox on `parent`, lowest first."""
        if self.flat(parent).exists():
            return (parent.below[0], f"{parent.folder}/flat")
        return (*parent.below, f"{parent.folder}/diff")

    def check_lowers(self, lowers: Iterable[str]) -> None:
        """Raises StoreError when something that can still be written to would become a lower layer."""
        for lower in lowers:
            if lower != "/" and not re.fullmatch(r"layers/[^/]+/(diff|flat)", lower):
                raise StoreError(f"{lower} is not an immutable layer: refusing to mount it below another")

    # Live folders

    def new_live(self, realm: Realm, below: str | None = None) -> str:
        """Make the live folder of a new Sandbox on the layer `below`; its id, unique on this machine."""
        name = self.claims.new_name()
        folder = self.realm(realm) / "live" / name
        for path in (folder, folder / "diff"):
            path.mkdir()
            path.chmod(0o755)
            self._own(realm, path)
        if below is not None:
            self._look_like(folder / "diff", self.realm(realm) / below)
        return name

    def _look_like(self, upper: Path, below: Path) -> None:
        """Give an upper the attributes of the root folder below it, which the kernel does for all other folders."""
        info = below.stat()
        with contextlib.suppress(PermissionError):  # given to somebody else by a Sandbox of an ordinary user
            os.chown(upper, info.st_uid, info.st_gid)
            upper.chmod(stat.S_IMODE(info.st_mode))
            os.utime(upper, ns=(info.st_atime_ns, info.st_mtime_ns))

    def new_work(self, realm: Realm, sandbox: str, number: int) -> str:
        """A work folder, which `volatile` lets nobody mount twice; relative to the realm."""
        name = f"live/{sandbox}/work{number}"
        path = self.realm(realm) / name
        path.mkdir()
        self._own(realm, path)
        return name

    def _own(self, realm: Realm, path: Path) -> None:
        if realm is Realm.MAPPED and self.owner is not None:
            os.chown(path, self.owner, self.owner)

    def freeze(self, sandbox: str, layer: Layer) -> tuple[Layer, list[str]]:
        """Turn a live folder, on which nothing is mounted, into `layer`; what is in the store, and what is trash now.

        If the key exists already, its first content stays.
        """
        realm = self.realm(layer.realm)
        live = realm / "live" / sandbox
        work = [path.name for path in live.iterdir() if path.name != "diff"]
        trash = [self.to_trash(layer.realm, f"live/{sandbox}/{entry}") for entry in work]
        (live / "meta.json").write_text(json.dumps({"schema": SCHEMA, **asdict(layer)}))
        with self.claims.locked():
            existing = self.look_up(layer.key)
            if existing is None:
                if (realm / layer.folder).exists():  # damaged
                    trash.append(self.to_trash(layer.realm, layer.folder))
                live.rename(realm / layer.folder)
            else:
                trash.append(self.to_trash(layer.realm, f"live/{sandbox}"))
            self.claims.hold(existing or layer)
        return existing or layer, trash

    def graft(self, onto: Layer, own: tuple[str, ...], key: str) -> tuple[Layer, list[str]]:
        """Make the layer `key`: nothing but the layers `own`, lowest first, on those of `onto`; it, and what is trash.

        They stay where they are, below a folder without content: what they are needed by keeps them.
        """
        name = self.new_live(onto.realm, own[-1])
        layer = Layer(key, onto.key, onto.depth + 1, 0, onto.realm, (*self.stack_on(onto), *own))
        return self.freeze(name, layer)

    def to_trash(self, realm: Realm, path: str) -> str:
        """Take a folder of the realm out of use; its new path, relative to the realm, for the helper to remove.

        Raises StoreError when something is mounted below it.
        """
        folder = self.realm(realm) / path
        if mounts := mounts_below(folder):
            raise StoreError(
                f"{folder} is not removed: {mounts[0]} is mounted below it", hint=f"umount {mounts[0]}, then try again"
            )
        name = f"trash/{self.claims.session}.{secrets.token_hex(8)}"
        folder.rename(self.realm(realm) / name)
        return name

    # Who needs what

    def make_durable(self) -> None:
        """Write all layers to the disk. What Sandboxes write is not synced by itself (`volatile`); what is neither
        kept nor a base does not outlive a crash of the machine, because the next session gives it up.
        """
        fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            kernel.syncfs(fd)
        finally:
            os.close(fd)

    def keep(self, key: str, name: str) -> None:
        """Keep a Checkpoint under a name, also if the machine goes down."""
        self.make_durable()
        self.claims.keep(key, name)

    def layers(self) -> list[Layer]:
        """Everything in the store that is whole."""
        metas = [meta for realm in Realm for meta in sorted(self.realm(realm).glob("layers/*/meta.json"))]
        return [layer for meta in metas if (layer := _load(meta))]

    def collect(self, *, bases: bool, ending: bool = False) -> dict[Realm, list[str]]:
        """Take out of use all layers that nobody needs, as `Claims.give_up` has it, and damaged ones.

        What is trash now, for the helpers to remove.
        """
        trash: dict[Realm, list[str]] = {realm: [] for realm in Realm}
        with self.claims.locked():
            layers = {layer.key: layer for layer in self.layers()}
            for realm, folder in self._damaged(layers.values()):
                trash[realm].append(self.to_trash(realm, folder))
            layers = {
                layer.key: layer for layer in layers.values() if (self.realm(layer.realm) / layer.folder).exists()
            }
            names = {file_name(key): key for key in layers}
            for layer in self.claims.give_up(layers, bases=bases, ending=ending, also=lambda one: _below(one, names)):
                trash[layer.realm].append(self.to_trash(layer.realm, layer.folder))
        return trash

    def _damaged(self, whole: Iterable[Layer]) -> list[tuple[Realm, str]]:
        """Folders of layers whose metadata cannot be read, as after a power cut, and of all that lie on such ones."""
        sound = {(layer.realm, layer.folder): layer for layer in whole}
        folders = [(realm, f"layers/{path.name}") for realm in Realm for path in self.realm(realm).glob("layers/*")]
        damaged = [known for known in folders if known not in sound]
        bad = set(damaged)
        for known, layer in sorted(sound.items(), key=lambda item: item[1].depth):
            if any((layer.realm, posixpath.dirname(below)) in bad for below in layer.below):
                bad.add(known)
                damaged.append(known)
        return damaged


def _about(text: str) -> About:
    """What was written down; nothing where the machine went down before it was."""
    try:
        about: About = json.loads(text)
    except ValueError:
        return {}
    return about


def _load(meta: Path) -> Layer | None:
    """What is written of a layer; None where nothing is, or nothing that makes sense to this version."""
    try:
        values: dict[str, Any] = json.loads(meta.read_text())
        if values.pop("schema") != SCHEMA:
            return None
        values["realm"], values["below"] = Realm(values["realm"]), tuple(values["below"])
        return Layer(**values)
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _below(layer: Layer, names: Mapping[str, str]) -> list[str]:
    """The keys of the layers under its own `diff`; `names`: the key of each folder."""
    folders = [path.split("/")[1] for path in layer.below if path != "/"]
    return [names[folder] for folder in folders if folder in names]
