"""How the project itself is built: its system packages, its version without tags, editable or not."""

from __future__ import annotations

from specbuild.repo.facts import Extension, Facts
from specbuild.strategies import requirements

COMPILER_PACKAGES = {
    "c": ("gcc", "libc6-dev", "python3-dev"),
    "cffi": ("gcc", "libc6-dev", "libffi-dev", "python3-dev"),
    "c++": ("g++", "python3-dev"),
    "cython": ("gcc", "g++", "libc6-dev", "python3-dev"),
    "fortran": ("gcc", "gfortran", "python3-dev"),
    "rust": ("cargo", "gcc", "libc6-dev", "python3-dev", "rustc"),
    "go": ("gcc", "golang-go", "libc6-dev", "python3-dev"),
}
"""Debian's packages of the compilers of each language that `Extension.language` knows."""

PLAIN_COMPILER = ("gcc", "libc6-dev", "pkg-config", "python3-dev")
"""Enough for most dependencies that have no wheel."""

_NO_EDITABLE = ("mesonpy", "scikit_build_core", "enscons")
"""Backends whose editable installs compile at import, with build tools that are gone by then."""

_PRETEND = {
    "setuptools-scm": "SETUPTOOLS_SCM_PRETEND_VERSION",
    "setuptools_scm": "SETUPTOOLS_SCM_PRETEND_VERSION",
    "hatch-vcs": "SETUPTOOLS_SCM_PRETEND_VERSION",
    "flit-scm": "SETUPTOOLS_SCM_PRETEND_VERSION",
    "vcs-versioning": "SETUPTOOLS_SCM_PRETEND_VERSION",
    "pbr": "PBR_VERSION",
    "pdm-backend": "PDM_BUILD_SCM_VERSION",
    "pdm": "PDM_BUILD_SCM_VERSION",
    "poetry-dynamic-versioning": "POETRY_DYNAMIC_VERSIONING_BYPASS",
    "uv-dynamic-versioning": "UV_DYNAMIC_VERSIONING_BYPASS",
}
"""The variable by which each tool is told the version that it cannot read from git, by its documentation."""

UNKNOWN_VERSION = "0.0.0"
"""What is told when nobody knows the version."""


def required(facts: Facts) -> tuple[Extension, ...]:
    """The compiled code that the project cannot do without."""
    return tuple(extension for extension in facts.extensions if not extension.optional)


def compilers(facts: Facts) -> tuple[str, ...]:
    """System packages that build the project's compiled code, optional code included; empty when there is none."""
    names = {name for one in facts.extensions for name in COMPILER_PACKAGES.get(one.language, PLAIN_COMPILER)}
    return tuple(sorted({*names, "pkg-config"})) if names else ()


def tools(facts: Facts) -> tuple[str, ...]:
    """System packages that installing needs whatever the language: git, where it is asked."""
    return ("git",) if requirements.by_git(facts) or (facts.scm_version and facts.has_tags) else ()


def version_env(facts: Facts) -> tuple[tuple[str, str], ...]:
    """Variables that tell the version where it would be read from tags that are not there."""
    if facts.scm_version is None or facts.has_tags:
        return ()
    variable = _PRETEND.get(facts.scm_version.value)
    if variable is None:
        return ()
    return ((variable, facts.version.value if facts.version else UNKNOWN_VERSION),)


def installable(facts: Facts) -> bool:
    """Whether the project is something that gets installed, not an application that is run from its tree."""
    return facts.build_backend is not None


def editable(facts: Facts) -> bool:
    """Whether the project can be installed in editable form with today's build backends."""
    backend = facts.build_backend.value if facts.build_backend else ""
    return not backend.startswith(_NO_EDITABLE)


def uses_setuptools(facts: Facts) -> bool:
    """Whether setuptools builds the project."""
    return facts.build_backend is not None and facts.build_backend.value.startswith("setuptools")


def target(extras: tuple[str, ...], *, in_place: bool) -> str:
    """The argument that names the project for an installer, `-e` included when `in_place`."""
    suffix = f"[{','.join(sorted(extras))}]" if extras else ""
    return f"-e '.{suffix}'" if in_place else f"'.{suffix}'"
