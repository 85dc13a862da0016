"""What can be asked for: kinds of files that packages own, and what the answers look like."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class PathKind(Enum):
    """A kind of file, with the form of the names that it is asked for by. The values stand in indexes."""

    HEADER = 1
    """As after `#include`: `lber.h`, `openssl/ssl.h`."""
    PKG_CONFIG = 2
    """A module: `libxml-2.0`."""
    SHARED_LIBRARY = 3
    """What the loader asks for: `libpq.so.5`; or less exactly, as with ctypes' `find_library`: `libpq.so`, `pq`."""
    LINK_LIBRARY = 4
    """As after `-l`: `pq`."""
    PROGRAM = 5
    """`pg_config`."""
    CMAKE = 6
    """A package of `find_package` that brings its own configuration, in whatever case: `GTest`."""
    MESON = 7
    """A module of meson's `import`: `gnome`."""
    PYTHON_MODULE = 8
    """An import name of Debian's own interpreter: `yaml`, `google.protobuf`."""
    DISTRIBUTION = 9
    """A Python distribution, in whatever spelling: `PyYAML`."""
    TYPELIB = 10
    """A namespace of GObject introspection with its version: `Gtk-3.0`."""
    ACLOCAL = 11
    """A file of macros for autoconf, without `.m4`: `libtool`."""
    CMAKE_MODULE = 12
    """A module that finds something for cmake, in whatever case: `ECM` of `FindECM.cmake`."""
    PERL_MODULE = 13
    """`XML::Parser`, or `XML/Parser.pm`."""
    RUBY_LIBRARY = 14
    """As after `require`: `nokogiri`, `rspec/core`."""
    PHP_EXTENSION = 15
    """`mbstring`."""
    TIME_ZONE = 16
    """`Europe/Berlin`."""


class Ecosystem(Enum):
    """Where upstream projects have their names."""

    PYTHON = "python"
    RUST = "rust"
    NODE = "node"
    GO = "go"
    RUBY = "ruby"
    PERL = "perl"
    R = "r"
    PHP = "php"
    HASKELL = "haskell"
    NATIVE = "native"
    """Projects in C, C++ and whatever else goes by its own name."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A package that owns what was asked for."""

    package: str
    folder: str
    """From where the name is found (`usr/include/postgresql`), without the leading slash and architecture's folder."""
    section: str
    """`libdevel`, `contrib/libs`, …"""
    uses: int
    """How many source packages build with a package of the same source: how central it is."""
    own_uses: int
    """How many name this package itself."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package of the release."""

    name: str
    section: str
    source: str
    """Empty where the archive does not tell."""
    version: str
    """Of the source package, in Debian's form."""


@dataclass(frozen=True, slots=True)
class BuildNeeds:
    """What Debian builds a project with."""

    source: str
    """The source package."""
    version: str
    packages: tuple[str, ...]
    """Every build dependency by name: the first of alternatives, those for tests included."""
    libraries: tuple[str, ...]
    """Of these, headers of libraries that no ecosystem's own package manager brings."""
    tools: tuple[str, ...]
    """Of these, compilers, `pkg-config`, generators and the like; not what only packaging for Debian needs."""
    homepage: str
    """As upstream names it; empty if Debian does not tell."""
