"""Under which names an upstream project can stand among Debian's source packages.

These are the rules of Debian's teams for naming packages, not a list of projects: the policies of the Python, Perl,
JavaScript and Ruby teams, debcargo, Go-Import-Path of dh-golang, dh-r, pkg-php-tools, the Haskell group's haskell-*.
"""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name

from specbuild.knowledge.kinds import Ecosystem


def source_names(ecosystem: Ecosystem, project: str) -> tuple[str, ...]:
    """Names of source packages that would be made of `project`, likeliest first."""
    plain = re.sub(r"[^a-z0-9.+]+", "-", project.lower()).strip("-")
    match ecosystem:
        case Ecosystem.PYTHON:
            name = canonicalize_name(project)
            return tuple(dict.fromkeys((f"python-{name}", name, f"python3-{name}", f"py{name}", f"python{name}")))
        case Ecosystem.RUST:
            return (f"rust-{plain}",)
        case Ecosystem.NODE:
            return (f"node-{plain}", plain)
        case Ecosystem.GO:
            return (_go(project), plain.rpartition("/")[2])
        case Ecosystem.RUBY:
            return (f"ruby-{plain}", plain)
        case Ecosystem.PERL:
            return (f"lib{plain}-perl",)
        case Ecosystem.R:
            return (f"r-cran-{plain}", f"r-bioc-{plain}")
        case Ecosystem.PHP:
            return (f"php-{plain}", plain)
        case Ecosystem.HASKELL:
            return (f"haskell-{plain}", plain)
        case Ecosystem.NATIVE:
            return tuple(dict.fromkeys((plain, f"lib{plain}", plain.removeprefix("lib"))))


def _go(path: str) -> str:
    """`github.com/pkg/errors` → `golang-github-pkg-errors`: the host's last label is left out."""
    host, _, rest = path.lower().partition("/")
    return "golang-" + re.sub(r"[^a-z0-9.]+", "-", f"{host.rpartition('.')[0] or host}-{rest}").strip("-")


ECOSYSTEM_SECTIONS = frozenset(
    {"python", "rust", "javascript", "golang", "ruby", "perl", "gnu-r", "php", "haskell", "java", "ocaml", "lisp"}
)
"""Sections of the archive with what ecosystems' own package managers bring."""
