"""Which of a release's Rust toolchains to ask for."""

from __future__ import annotations

from packaging.version import Version

from specbuild.repairs.contract import Case

NEWER = ("rustc-mozilla", "rustc-web")
"""Newer compilers that stable releases get for browsers, each with a cargo of the same suffix."""

_BY_HTTP = Version("1.70")
"""The first that reads the list of all crates by HTTP rather than by git, by its release notes."""


def packages(case: Case) -> tuple[str, ...]:
    """The release's compiler and cargo; its newest ones where its own are too old to read today's list of crates."""
    own = case.knowledge.version("rustc", release=case.release)
    if own and Version(own) < _BY_HTTP and (found := pair(case, NEWER[-1])):
        return found
    return "cargo", "rustc"


def pair(case: Case, compiler: str) -> tuple[str, ...]:
    """A compiler and the cargo of its suffix; nothing where the release lacks one of them."""
    names = (compiler.replace("rustc", "cargo"), compiler)
    return names if len(case.knowledge.packages(names, release=case.release)) == len(names) else ()
