"""Build backends of Python: options that went, trees that they cannot build, versions they cannot tell."""

from __future__ import annotations

from specbuild.failures import (
    DriftedBackend,
    Failure,
    HollowPass,
    MissingBuildDependency,
    NotInstallable,
    StageFailed,
    VersionControlNeeded,
    Weight,
)
from specbuild.predictors.signature import always, signature


def _attribute_gone(name: str, evidence: str) -> Failure:
    """PyYAML's way with Cython 3 removed, and Debian's layout that newer setuptools do not know."""
    if name == "cython_sources":
        return DriftedBackend(backend="cython", name=name, below="3", evidence=evidence)
    return DriftedBackend(backend="setuptools", name=name, evidence=evidence)


SIGNATURES = (
    signature(
        "error in ",
        r"error in (?:\S{1,80} )?setup command: (?P<name>use_2to3) is invalid",
        always(DriftedBackend, backend="setuptools", below="58"),
        (
            "error in pyfoo setup command: use_2to3 is invalid.",
            DriftedBackend(backend="setuptools", name="use_2to3", below="58"),
        ),
    ),
    signature(
        "error in ",
        r"error in (?:\S{1,80} )?setup command: (?P<name>'?\w{1,40}'?) (?:must be|is invalid)",
        always(DriftedBackend, backend="setuptools"),
        (
            "error in pyfoo setup command: 'extras_require' must be a dictionary whose values are strings",
            DriftedBackend(backend="setuptools", name="'extras_require'"),
        ),
    ),
    signature(
        "ERROR: Use ",
        r"ERROR: Use \S{1,60} instead of (?P<name>\S{1,60}) for scikit-build-core >= (?P<below>[\d.]{1,8}\d)",
        always(DriftedBackend, backend="scikit-build-core"),
        (
            "ERROR: Use build.targets instead of cmake.targets for scikit-build-core >= 0.10",
            DriftedBackend(backend="scikit-build-core", name="cmake.targets", below="0.10"),
        ),
    ),
    signature(
        "annot update time stamp",
        r"error: Cannot update time stamp of directory '\S{1,300}\.egg-info'",
        always(DriftedBackend, backend="setuptools", name="egg-info folder", below="60"),
        (
            "error: Cannot update time stamp of directory '/tmp/b/Foo.egg-info'",
            DriftedBackend(backend="setuptools", name="egg-info folder", below="60"),
        ),
    ),
    signature(
        "has no attribute 'build_editable'",
        r"(?:AttributeError: )?module '(?P<backend>[\w.]{1,60})' has no attribute '(?P<name>build_editable)'",
        DriftedBackend,
        (
            "module 'flit_core.buildapi' has no attribute 'build_editable'",
            DriftedBackend(backend="flit_core.buildapi", name="build_editable"),
        ),
    ),
    signature(
        "error: Multiple top-level",
        r"error: Multiple top-level (?:packages|modules) discovered in a flat-layout",
        always(NotInstallable, tool="setuptools", problem="several-packages"),
        (
            "error: Multiple top-level modules discovered in a flat-layout: ['a', 'b'].",
            NotInstallable(tool="setuptools", problem="several-packages"),
        ),
    ),
    signature(
        "nable to detect version for",
        r"LookupError: (?:setuptools[-_]scm|vcs[-_]versioning) was unable to detect version for",
        always(VersionControlNeeded, need="tags", by="setuptools-scm"),
        (
            "LookupError: setuptools-scm was unable to detect version for /w.",
            VersionControlNeeded(need="tags", by="setuptools-scm"),
        ),
    ),
    signature(
        "rror getting the version from source",
        r"(?:LookupError: )?Error getting the version from source `(?:vcs|versioningit)`",
        always(VersionControlNeeded, need="tags", by="hatch-vcs"),
        (
            "LookupError: Error getting the version from source `vcs`: setuptools-scm was unable to",
            VersionControlNeeded(need="tags", by="hatch-vcs"),
        ),
    ),
    signature(
        "requires either an sdist",
        r"(?:Exception: )?Versioning for this project requires either an sdist tarball",
        always(VersionControlNeeded, need="tags", by="pbr"),
        (
            "Exception: Versioning for this project requires either an sdist tarball, or access to an upstream git",
            VersionControlNeeded(need="tags", by="pbr"),
        ),
    ),
    signature(
        "subprocess-exited-with-error",
        r"error: subprocess-exited-with-error$",
        always(StageFailed, stage="a build of pip", weight=Weight.SYMPTOM),
        (
            "  error: subprocess-exited-with-error",
            StageFailed(stage="a build of pip", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "The build backend returned an error",
        r"(?:cause: )?The build backend returned an error",
        always(StageFailed, stage="a build of uv", weight=Weight.SYMPTOM),
        (
            "  cause: The build backend returned an error",
            StageFailed(stage="a build of uv", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        " failed: ",
        r"(?:WARNING: |warning: build_ext: )?building extension [\"'](?P<what>[\w.]{1,80})[\"'] failed: ",
        always(HollowPass, weight=Weight.WARNING),
        (
            "warning: build_ext: building extension \"fast._speed\" failed: command 'gcc' failed",
            HollowPass(what="fast._speed", weight=Weight.WARNING),
        ),
    ),
    signature(
        "AttributeError: ",
        r"AttributeError: (?P<name>cython_sources|install_layout)\b",
        _attribute_gone,
        (
            "AttributeError: install_layout. Did you mean: 'install_platlib'?",
            DriftedBackend(backend="setuptools", name="install_layout"),
        ),
        ("AttributeError: cython_sources", DriftedBackend(backend="cython", name="cython_sources", below="3")),
    ),
    signature(
        "since setuptools is not available",
        r"(?:ERROR: )?Can not execute `setup\.py` since setuptools is not available",
        always(MissingBuildDependency, module="setuptools"),
        (
            "ERROR: Can not execute `setup.py` since setuptools is not available in the build environment.",
            MissingBuildDependency(module="setuptools"),
        ),
    ),
)
"""What backends and their callers say."""
