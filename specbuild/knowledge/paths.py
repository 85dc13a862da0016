"""Which paths of Debian's Contents are worth keeping, and under which names they are asked for.

Kept are headers (`usr/include` and every `include` folder of `usr/lib`), pkg-config modules, libraries `lib*.so*` and
`lib*.a` at most two folders below a library folder, programs in `bin`, `sbin`, `games` and in `bin` folders of
`usr/lib`, cmake packages, meson's modules, aclocal files, typelibs, of Python's `dist-packages` and standard
library the modules of the first two levels and the metadata folders, modules of Perl, Ruby and PHP, and time zones.
Everything else, nine tenths of all, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from specbuild.knowledge.kinds import PathKind


@dataclass(frozen=True, slots=True)
class Kept:
    """A path that is kept: it is found by `name`, and tells the `folder` before it."""

    kind: PathKind
    name: str
    folder: str


CANDIDATE = re.compile(
    rb"^(?:(?:usr/)?s?bin/|usr/games/|usr/include/"
    rb"|(?:usr/)?lib(?:32|64|x32)?/(?=[^\n]*(?:\.pc|\.so|\.a|\.cmake|\.typelib|/include/|/bin/|python3))"
    rb"|(?:usr/)?lib/(?=php/\d|ruby/vendor_ruby/|(?:[^/\n]+/)?rubygems-int|[^\n]*/perl)|usr/share/(?:perl5?|zoneinfo|ruby/vendor_ruby|rubygems-integration)/"
    rb"|usr/share/(?=aclocal|pkgconfig/|cmake|[^/\n]+/cmake/|[^/\n]+/(?:[^/\n]+/)?include/))[^\n]*$",
    re.MULTILINE,
)
"""Lines of Contents that may be worth keeping: one pass at the speed of the pattern engine spares reading the rest."""

_TRIPLET = re.compile(r"/[a-z0-9_]+-linux-gnu(?:[a-z0-9]+)?(?=/)")
_HEADER = re.compile(r"(?:h|hh|hpp|hxx|h\+\+|H|inc|tcc|ipp|cuh|inl)")
_LIBRARY = re.compile(r"lib(?P<stem>[^/]+?)\.(?P<end>so|a|so\.[0-9][^/]*)")
_CMAKE = re.compile(r"(?:Find(?P<find>.+)|(?P<config>.+?)(?:Config|-config))\.cmake")
_MODULE = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:\.py|(?:\.cpython-[^/]*|\.abi3)?\.so)")
_METADATA = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._+]*?)(?:-[^-/]+)?(?:-py3[^/]*|-nspkg)?\.(?:dist|egg)-info")
_PYTHON = re.compile(r"usr/lib/python3(?:\.\d+)?(?:/(?:dist-packages|lib-dynload))?")
_RUNTIMES = (
    (
        PathKind.PERL_MODULE,
        re.compile(r"(?P<folder>usr/(?:share|lib)/perl(?:5|-base)?(?:/5\.[\d.]+)?)/(?P<name>.+)\.pm"),
    ),
    (
        PathKind.RUBY_LIBRARY,
        re.compile(r"(?P<folder>usr/(?:lib|share)/ruby/vendor_ruby)/(?P<name>[^/]+(?:/[^/]+)?)\.rb"),
    ),
    (
        PathKind.RUBY_LIBRARY,
        re.compile(
            r"(?P<folder>usr/(?:lib|share)/rubygems-integration/[^/]+/gems/[^/]+/lib)/(?P<name>[^/]+(?:/[^/]+)?)\.rb"
        ),
    ),
    (PathKind.PHP_EXTENSION, re.compile(r"(?P<folder>usr/lib/php/\d+)/(?P<name>[^/]+)\.so")),
    (PathKind.TIME_ZONE, re.compile(r"(?P<folder>usr/share/zoneinfo)/(?P<name>[A-Z].*)")),
)
"""Where Debian's interpreters and the C library look for what belongs to them."""
_DEPTH = 2


def classify(path: str) -> Iterator[Kept]:
    """What a path of Contents is kept as: nothing, once, or several times."""
    path = _TRIPLET.sub("", path, count=1)
    folder, _, name = path.rpartition("/")
    if not folder or not name:
        return
    top, _, rest = path.removeprefix("usr/").partition("/")
    if top in {"bin", "sbin", "games"}:
        if "/" not in rest:
            yield Kept(PathKind.PROGRAM, name, folder)
    elif top == "include":
        if _is_header(name):
            yield Kept(PathKind.HEADER, name, folder)
    else:
        yield from _below_lib(path, folder, name)


def _is_header(name: str) -> bool:
    """C++ has headers without an extension (`Eigen/Dense`)."""
    _, dot, extension = name.rpartition(".")
    return not dot or _HEADER.fullmatch(extension) is not None


def _below_lib(path: str, folder: str, name: str) -> Iterator[Kept]:
    for kind, form in _RUNTIMES:
        if match := form.fullmatch(path):
            yield Kept(kind, match["name"], match["folder"])
            return
    if python := _PYTHON.match(path):
        yield from _python(path, python[0])
    if name.endswith(".pc") and folder.endswith("/pkgconfig"):
        yield Kept(PathKind.PKG_CONFIG, name.removesuffix(".pc"), folder)
    elif name.endswith(".typelib"):
        yield Kept(PathKind.TYPELIB, name.removesuffix(".typelib"), folder)
    elif name.endswith(".m4") and "/aclocal" in folder:
        yield Kept(PathKind.ACLOCAL, name.removesuffix(".m4"), folder)
    elif name.endswith(".cmake"):
        yield from _cmake(folder, name)
    elif folder.endswith("/bin"):
        yield Kept(PathKind.PROGRAM, name, folder)
    elif "/include/" in path:
        if "." in name and _is_header(name):
            yield Kept(PathKind.HEADER, name, folder)
    elif folder.removeprefix("usr/").count("/") <= _DEPTH:
        yield from _library(folder, name)


def _cmake(folder: str, name: str) -> Iterator[Kept]:
    if match := _CMAKE.fullmatch(name):
        kind = PathKind.CMAKE_MODULE if match["find"] else PathKind.CMAKE
        yield Kept(kind, (match["find"] or match["config"]).lower(), folder)


def _library(folder: str, name: str) -> Iterator[Kept]:
    if match := _LIBRARY.fullmatch(name):
        if match["end"] != "a":
            yield Kept(PathKind.SHARED_LIBRARY, name, folder)
        if match["end"] in {"so", "a"}:
            yield Kept(PathKind.LINK_LIBRARY, match["stem"], folder)


def _python(path: str, root: str) -> Iterator[Kept]:
    parts = path.removeprefix(root).strip("/").split("/")
    if match := _METADATA.fullmatch(parts[0]):
        if len(parts) == 1 or parts[1] in {"PKG-INFO", "METADATA"}:
            yield Kept(PathKind.DISTRIBUTION, canonicalize_name(match["name"]), root)
    elif parts[0] == "mesonbuild" and parts[1:2] == ["modules"] and len(parts) == 3:
        if parts[2].endswith(".py") and parts[2] != "__init__.py":
            yield Kept(PathKind.MESON, parts[2].removesuffix(".py"), f"{root}/mesonbuild/modules")
    elif name := _module(parts):
        yield Kept(PathKind.PYTHON_MODULE, name, root)


def _module(parts: list[str]) -> str:
    """The import name of a module or package of the first two levels; empty for what lies deeper or is none."""
    *folders, last = parts
    match = _MODULE.fullmatch(last)
    if not match or len(folders) > _DEPTH or not all(folder.isidentifier() for folder in folders):
        return ""
    if match["name"] == "__init__":
        return ".".join(folders)
    return ".".join([*folders, match["name"]]) if len(folders) < _DEPTH else ""
