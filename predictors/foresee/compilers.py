"""Compilers: which languages need which, and which of them a Recipe installs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from specbuild.knowledge.kinds import BuildNeeds
from specbuild.predictors.foresee.view import View
from specbuild.repo.facts import Extension

Language = Literal["c", "c++", "fortran", "rust", "go"]

PACKAGES: dict[Language, tuple[str, ...]] = {
    "c": ("gcc", "clang", "tcc"),
    "c++": ("g++", "clang"),
    "fortran": ("gfortran", "flang"),
    "rust": ("rustc", "rustup", "cargo"),
    "go": ("golang-go", "golang"),
}
"""Debian packages of which one is enough."""

OF_EXTENSIONS: dict[str, tuple[Language, ...]] = {
    "c": ("c",),
    "cffi": ("c",),
    "cython": ("c",),
    "c++": ("c++",),
    "fortran": ("fortran",),
    "rust": ("rust", "c"),
    "go": ("go", "c"),
}
"""Language of an extension, as facts name it → compilers; rust and go link with C's."""

OF_BACKENDS: dict[str, tuple[Language, ...]] = {
    "maturin": ("rust", "c"),
    "setuptools_rust": ("rust", "c"),
    "setuptools-rust": ("rust", "c"),
    "mesonpy": ("c",),
    "scikit_build_core": ("c++",),
    "skbuild": ("c++",),
    "scikit-build": ("c++",),
}
"""Build backends, and distributions that builds require, → compilers of what they are for. Where a project with one of
these says more, its extensions count."""

_PROGRAMS: tuple[tuple[Language, str], ...] = (
    ("rust", "cargo"),
    ("rust", "rustc"),
    ("fortran", "gfortran"),
    ("go", "golang-go"),
)


SPEEDUPS = frozenset(
    ("coverage", "markupsafe", "msgpack", "pyyaml", "setproctitle", "simplejson", "sqlalchemy", "tornado", "websockets")
) | {"wrapt", "zope-interface", "zope-proxy"}
"""Distributions whose set-up scripts go on without a compiler: each has a pure fallback and catches build errors, or
marks its extensions as optional."""


def of_extensions(extensions: Iterable[Extension]) -> list[Language]:
    """The compilers that a project's own code needs."""
    found: list[Language] = []
    for one in extensions:
        found += OF_EXTENSIONS.get(one.language, OF_EXTENSIONS["c"])
    return found


def absent(view: View, languages: Iterable[Language]) -> tuple[Language, ...]:
    """Those of which the Recipe has no compiler; g++ brings gcc."""
    missing: list[Language] = []
    for language in languages:
        if language not in missing and not _there(view, language):
            missing.append(language)
    return tuple(missing)


def _there(view: View, language: Language) -> bool:
    return view.has(*PACKAGES[language]) or (language == "c" and view.has("g++", "gfortran"))


def by_debian(needs: BuildNeeds) -> tuple[Language, ...]:
    """The compilers that Debian builds a Python project with; none for one without compiled code."""
    native = any(package.startswith(("python3-all-dev", "python3-dev", "libpython3")) for package in needs.packages)
    crates = any(package.startswith(("librust-", "dh-cargo")) for package in needs.packages)
    found: list[Language] = ["rust"] if crates else []
    for language, program in _PROGRAMS:
        if program in needs.packages and language not in found:
            found.append(language)
    return (*found, "c") if native or found else ()
