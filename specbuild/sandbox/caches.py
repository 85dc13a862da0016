"""Caches that sandboxes share, so that a file is downloaded once for all branches.

Only what was downloaded is shared, never what was built. A wheel that one branch built without a compiler, or with a
build backend of another date, must not turn up in a branch that would have built it differently, or not at all:
such a result could not be replayed from its base.

- `uv`: one folder, in which the buckets for built wheels (`sdists`), for temporary builds (`builds`) and for what was
  learned of interpreters (`interpreter`, `environments`: they hold the base's libc) are links to `PRIVATE_DIR`, which
  lies in each branch's own layer. That also keeps the locks on a source tree (which has the same path in every
  sandbox) from being held across branches. Downloads and unpacked wheels stay on one filesystem, where uv renames.
- `pip`: its HTTP responses only; wheels that it builds go to the tmpfs of the Command and end with it.
- `apt`: no folder. apt holds a lock on its archive folder for the whole installation, and without that lock two
  downloads of one file meet in `partial/`. Its downloads are shared by a proxy that the engine runs: `sandbox.relay`.

uv and pip write to a temporary name and rename, so any number of sandboxes may use a cache at once. Root inside a
sandbox is some other user outside: the folders are open to all within a parent that only their owner may enter.
What unites all sandboxes is trust in what the others downloaded; SECURITY.md says so.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from specbuild.errors import ConfigError
from specbuild.recipe import BaseRef
from specbuild.sandbox.contract import Bind

CACHE_DIR = "/dev/specbuild/cache"
"""Where the caches appear in a sandbox."""

PRIVATE_DIR = "/var/tmp"  # noqa: S108 - a path in the sandbox that exists in every base and lies on its layer
"""Where uv keeps what a branch has built itself."""

_UV_PRIVATE = ("sdists", "builds", "interpreter", "environments")
_UV_VERSIONS = 64
"""uv numbers its buckets: sdists is at 11, interpreter at 5 as of uv 0.13. Links for versions to come cost nothing."""

_Prepared = tuple[tuple[Bind, ...], dict[str, str]]


def cache_binds(names: Sequence[str], root: Path, *, base: BaseRef) -> _Prepared:
    """The binds and variables that give a Command on `base` the caches `names`, kept under the folder `root`.

    Raises ConfigError for a name that is not known.
    """
    binds: list[Bind] = []
    env: dict[str, str] = {}
    for name in dict.fromkeys(names):
        if name not in _CACHES:
            raise ConfigError(f"there is no shared cache {name!r}", hint=f"known: {', '.join(_CACHES)}")
        more_binds, more_env = _CACHES[name](_home(root, base))
        binds += more_binds
        env |= more_env
    return tuple(binds), env


def _home(root: Path, base: BaseRef) -> Path:
    """The folder for sandboxes whose root is the same user outside: files of another one could not be replaced."""
    root.mkdir(parents=True, exist_ok=True)
    root.chmod(0o700)
    home = root / f"{'mapped' if base.portable else 'host'}-{os.geteuid()}"
    home.mkdir(exist_ok=True)
    return home


def _open_folder(path: Path) -> Path:
    """A folder that root inside a sandbox may write to, whoever that is outside."""
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o777)
    return path


def _uv(home: Path) -> _Prepared:
    folder = home / "uv"
    if not folder.is_dir():
        _make_uv(folder)
    inside = f"{CACHE_DIR}/uv"
    env = {
        "UV_CACHE_DIR": inside,
        "UV_PYTHON_CACHE_DIR": f"{inside}/python",
        # The cache is another mount than the target: uv would try to link, fail and warn.
        "UV_LINK_MODE": "copy",
    }
    return (Bind(folder, inside, writable=True),), env


def _make_uv(folder: Path) -> None:
    """Make the folder under another name first, so that nobody sees it without its links."""
    draft = Path(tempfile.mkdtemp(prefix=".uv.", dir=folder.parent))
    for bucket in _UV_PRIVATE:
        for version in range(_UV_VERSIONS):
            (draft / f"{bucket}-v{version}").symlink_to(PRIVATE_DIR)
    draft.chmod(0o777)
    try:
        draft.rename(folder)
    except OSError:
        # Another build was faster; a folder that is not empty is never replaced by a rename.
        for link in draft.iterdir():
            link.unlink()
        draft.rmdir()
        if not folder.is_dir():
            raise


def _pip(home: Path) -> _Prepared:
    # pip refuses a cache folder that does not belong to the calling user; only the folders below may be another's.
    names = ("http", "http-v2")  # before and since pip 23.3
    binds = tuple(Bind(_open_folder(home / "pip" / name), f"{CACHE_DIR}/pip/{name}", writable=True) for name in names)
    return binds, {"PIP_CACHE_DIR": f"{CACHE_DIR}/pip"}


def _apt(home: Path) -> _Prepared:
    del home
    return (), {}


_CACHES: dict[str, Callable[[Path], _Prepared]] = {"apt": _apt, "pip": _pip, "uv": _uv}
