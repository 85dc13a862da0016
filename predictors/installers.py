"""pip, uv, poetry, pipenv and conda: resolution, locks, interpreters, archives."""

from __future__ import annotations

from specbuild.failures import (
    ArchiveRefused,
    Failure,
    IntegrityMismatch,
    ManagedInterpreter,
    MissingBuildDependency,
    MissingHeader,
    MissingProjectFile,
    NoPrebuiltBinary,
    NotInstallable,
    StageFailed,
    UnfitLock,
    UnsatisfiableResolution,
    VersionOutOfRange,
    Weight,
)
from specbuild.predictors.phrases import LED
from specbuild.predictors.signature import always, signature


def _interpreter(found: str, required: str, evidence: str, because: str = "") -> Failure:
    return VersionOutOfRange(tool="python", required=required, found=found, because=because, evidence=evidence)


SIGNATURES = (
    signature(
        "matching distribution found for",
        r"ERROR: No matching distribution found for (?P<requirement>\S[^\n]{0,120})",
        always(UnsatisfiableResolution, tool="pip"),
        (
            "ERROR: No matching distribution found for scipy==0.1",
            UnsatisfiableResolution(tool="pip", requirement="scipy==0.1"),
        ),
    ),
    signature(
        "ERROR: ResolutionImpossible",
        r"ERROR: ResolutionImpossible",
        always(UnsatisfiableResolution, tool="pip"),
        ("ERROR: ResolutionImpossible: for help visit", UnsatisfiableResolution(tool="pip")),
    ),
    signature(
        "solution found when resolving",
        r"(?:error: )?No solution found when resolving",
        always(UnsatisfiableResolution, tool="uv"),
        (
            "  × No solution found when resolving dependencies:\n  ╰─▶ Because a==1 needs b and b is gone, we conclude",
            UnsatisfiableResolution(tool="uv", requirement="a==1 needs b and b is gone, we conclude"),
        ),
        follow=r"Because (?P<requirement>.{1,200})",
        within=2,
    ),
    signature(
        "ResolvePackageNotFound",
        r"ResolvePackageNotFound:",
        always(UnsatisfiableResolution, tool="conda"),
        (
            "ResolvePackageNotFound:\n  - libgcc=7.2.0=h69d50b8_2",
            UnsatisfiableResolution(tool="conda", requirement="libgcc=7.2.0=h69d50b8_2"),
        ),
        follow=r"- (?P<requirement>\S{1,120})$",
        within=3,
    ),
    signature(
        "version solving failed",
        r"(?:So, )?[Bb]ecause [^\"'`#]{1,200}, version solving failed",
        always(UnsatisfiableResolution, tool="poetry"),
        (
            "So, because demo depends on a (^2), version solving failed.",
            UnsatisfiableResolution(tool="poetry"),
        ),
    ),
    signature(
        "requires a different Python",
        r"ERROR: Package '(?P<because>[^']{1,80})' requires a different Python: (?P<found>[\d.]{1,12}) "
        r"not in '(?P<required>[^']{1,80})'",
        _interpreter,
        (
            "ERROR: Package 'foo' requires a different Python: 3.6.9 not in '>=3.8'",
            VersionOutOfRange(tool="python", required=">=3.8", found="3.6.9", because="foo"),
        ),
    ),
    signature(
        "is not allowed by the project",
        r"(?:The )?[Cc]urrent(?:ly activated)? Python version \(?(?P<found>[\d.]{1,12})\)? is not "
        r"(?:allowed|supported) by the project \((?P<required>[^)]{1,80})\)",
        _interpreter,
        (
            "Current Python version (3.7.1) is not allowed by the project (^3.9).",
            VersionOutOfRange(tool="python", required="^3.9", found="3.7.1"),
        ),
    ),
    signature(
        "interpreter found for Python",
        r"(?:error: )?No interpreter found for Python (?P<required>\S{1,40})",
        always(VersionOutOfRange, tool="python"),
        (
            "error: No interpreter found for Python >=3.40 in virtual environments or managed installations",
            VersionOutOfRange(tool="python", required=">=3.40"),
        ),
    ),
    signature(
        "was not found on your system",
        r"(?:Warning: )?Python (?P<required>\d[\d.]{0,8}) was not found on your system",
        always(VersionOutOfRange, tool="python"),
        (
            "Warning: Python 3.5 was not found on your system...",
            VersionOutOfRange(tool="python", required="3.5"),
        ),
    ),
    signature(
        "ailed to inspect Python interpreter",
        r"(?:error: )?Failed to inspect Python interpreter from",
        always(VersionOutOfRange, tool="python", because="uv"),
        (
            "error: Failed to inspect Python interpreter from active virtual environment at `/v/bin/python`",
            VersionOutOfRange(tool="python", because="uv"),
        ),
    ),
    signature(
        "does not satisfy Python",
        LED + r"the requested Python version \((?P<found>[^)]{1,40})\) "
        r"does not satisfy Python(?P<required>[<>=~!][^\s]{1,40})",
        _interpreter,
        (
            "Because the requested Python version (>=3.6) does not satisfy Python>=3.8 and x depends on it",
            VersionOutOfRange(tool="python", required=">=3.8", found=">=3.6"),
        ),
    ),
    signature(
        "ERROR: THESE PACKAGES",
        r"ERROR: THESE PACKAGES DO NOT MATCH THE HASHES",
        always(IntegrityMismatch, tool="pip"),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
            IntegrityMismatch(tool="pip"),
        ),
    ),
    signature(
        "Hash mismatch for",
        r"(?:cause: |error: )?Hash mismatch for `(?P<subject>[^`]{1,100})`",
        always(IntegrityMismatch, tool="uv"),
        ("error: Hash mismatch for `idna==3.4`", IntegrityMismatch(tool="uv", subject="idna==3.4")),
    ),
    signature(
        "not open requirements file",
        r"ERROR: Could not open requirements file: \[Errno 2\] No such file or directory: '(?P<path>[^']{1,200})'",
        always(MissingProjectFile, tool="pip"),
        (
            "ERROR: Could not open requirements file: [Errno 2] No such file or directory: 'dev/r.txt'",
            MissingProjectFile(path="dev/r.txt", tool="pip"),
        ),
    ),
    signature(
        "is not installable",
        r"ERROR: (?:Directory|File) '[^']{1,200}' is not installable",
        always(NotInstallable, tool="pip", problem="no-manifest"),
        (
            "ERROR: Directory '/w' is not installable. Neither 'setup.py' nor 'pyproject.toml' found.",
            NotInstallable(tool="pip", problem="no-manifest"),
        ),
    ),
    signature(
        "does not appear to be a Python project",
        r"(?:error: )?[^\s\"'`#]{1,200} does not appear to be a Python project",
        always(NotInstallable, tool="uv", problem="no-manifest"),
        (
            "error: /w does not appear to be a Python project, as neither `pyproject.toml` nor `setup.py` are present",
            NotInstallable(tool="uv", problem="no-manifest"),
        ),
    ),
    signature(
        "rror: externally-managed-environment",
        r"error: externally-managed-environment$",
        ManagedInterpreter,
        ("error: externally-managed-environment", ManagedInterpreter()),
    ),
    signature(
        "poetry.lock was last generated",
        r"(?:Error: )?pyproject\.toml changed significantly since poetry\.lock was last generated",
        always(UnfitLock, tool="poetry", problem="stale"),
        (
            "pyproject.toml changed significantly since poetry.lock was last generated. Run `poetry lock`.",
            UnfitLock(tool="poetry", problem="stale"),
        ),
    ),
    signature(
        "poetry.lock is not up to date",
        r"(?:Error: )?poetry\.lock is not up to date with pyproject\.toml",
        always(UnfitLock, tool="poetry", problem="stale"),
        (
            "Error: poetry.lock is not up to date with pyproject.toml",
            UnfitLock(tool="poetry", problem="stale"),
        ),
    ),
    signature(
        "nable to find lockfile",
        r"error: Unable to find lockfile at `uv\.lock`",
        always(UnfitLock, tool="uv", problem="missing"),
        (
            "error: Unable to find lockfile at `uv.lock`. To create a lockfile, run `uv lock`",
            UnfitLock(tool="uv", problem="missing"),
        ),
    ),
    signature(
        "The lockfile at `uv.lock`",
        r"(?:error: )?The lockfile at `uv\.lock` needs to be updated, but `--",
        always(UnfitLock, tool="uv", problem="stale"),
        (
            "error: The lockfile at `uv.lock` needs to be updated, but `--check` was provided.",
            UnfitLock(tool="uv", problem="stale"),
        ),
    ),
    signature(
        "Pipfile.lock",
        r"(?:Your )?Pipfile\.lock \(\w{1,64}\) (?:is )?out of date",
        always(UnfitLock, tool="pipenv", problem="stale"),
        (
            "Your Pipfile.lock (abc123) is out of date. Run `pipenv lock` to update",
            UnfitLock(tool="pipenv", problem="stale"),
        ),
    ),
    signature(
        "error: Source distribution",
        r"(?:error: )?Source distribution `(?P<archive>[^`]{1,120})` has a non-PEP 625-compliant filename",
        always(ArchiveRefused, tool="uv"),
        (
            "error: Source distribution `a-1.tar.xz` has a non-PEP 625-compliant filename; only",
            ArchiveRefused(tool="uv", archive="a-1.tar.xz"),
        ),
    ),
    signature(
        "is not a supported wheel on this platform",
        r"ERROR: (?P<archive>\S{1,160}\.whl) is not a supported wheel on this platform",
        always(ArchiveRefused, tool="pip"),
        (
            "ERROR: a-1-cp36-cp36m-linux_x86_64.whl is not a supported wheel on this platform.",
            ArchiveRefused(tool="pip", archive="a-1-cp36-cp36m-linux_x86_64.whl"),
        ),
    ),
    signature(
        "indicates that you need to install",
        r"hint: This error likely indicates that you need to install a library that provides "
        r"`(?P<header>[^`\s]{1,120})`",
        MissingHeader,
        (
            "hint: This error likely indicates that you need to install a library that provides `ffi.h` for `cffi`",
            MissingHeader(header="ffi.h"),
        ),
    ),
    signature(
        "not find suitable distribution",
        r"(?:[\w.]{1,60}: )?(?:error: )?Could not find suitable distribution for "
        r"Requirement\.parse\('(?P<requirement>[^']{1,100})'",
        always(UnsatisfiableResolution, tool="setuptools"),
        (
            "error: Could not find suitable distribution for Requirement.parse('pytest-runner')",
            UnsatisfiableResolution(tool="setuptools", requirement="pytest-runner"),
        ),
    ),
    signature(
        "nvalid requirement: ",
        r"(?:ERROR: )?Invalid requirement: '(?P<requirement>[^']{1,100})'",
        always(UnsatisfiableResolution, tool="pip"),
        (
            "ERROR: Invalid requirement: 'foo>=1.0.*' (from line 3 of requirements.txt)",
            UnsatisfiableResolution(tool="pip", requirement="foo>=1.0.*"),
        ),
    ),
    signature(
        "Could not find a version",
        r"ERROR: Could not find a version that satisfies the requirement (?P<requirement>\S{1,100})",
        always(UnsatisfiableResolution, tool="pip"),
        (
            "ERROR: Could not find a version that satisfies the requirement tf==1.0 (from versions: 2.0)",
            UnsatisfiableResolution(tool="pip", requirement="tf==1.0"),
        ),
    ),
    signature(
        "nable to locate package",
        r"E: Unable to locate package (?P<requirement>\S{1,100})",
        always(UnsatisfiableResolution, tool="apt"),
        (
            "E: Unable to locate package libfoo-dev",
            UnsatisfiableResolution(tool="apt", requirement="libfoo-dev"),
        ),
    ),
    signature(
        "has no installation candidate",
        r"E: Package '(?P<requirement>[^'\s]{1,100})' has no installation candidate",
        always(UnsatisfiableResolution, tool="apt"),
        (
            "E: Package 'python2' has no installation candidate",
            UnsatisfiableResolution(tool="apt", requirement="python2"),
        ),
    ),
    signature(
        "error: invalid command 'bdist_wheel'",
        r"error: invalid command 'bdist_wheel'",
        always(MissingBuildDependency, module="wheel"),
        ("error: invalid command 'bdist_wheel'", MissingBuildDependency(module="wheel")),
    ),
    signature(
        "ailed building wheel for",
        r"(?:ERROR: )?Failed building wheel for (?P<stage>\S{1,80})",
        always(StageFailed, weight=Weight.SYMPTOM),
        (
            "  ERROR: Failed building wheel for regex",
            StageFailed(stage="regex", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "E: Unable to correct",
        r"E: Unable to correct problems, you have held broken packages",
        always(UnsatisfiableResolution, tool="apt"),
        (
            "E: Unable to correct problems, you have held broken packages.",
            UnsatisfiableResolution(tool="apt"),
        ),
    ),
    signature(
        ("but it is not installable", "but it is not going to be installed"),
        r"(?:[\w.+:-]{1,80} : )?(?:Pre)?Depends: (?P<requirement>[\w.+:-]{1,80}(?: \([^)]{1,60}\))?) but it is not ",
        always(UnsatisfiableResolution, tool="apt"),
        (
            " a : Depends: libb (>= 2) but it is not going to be installed",
            UnsatisfiableResolution(tool="apt", requirement="libb (>= 2)"),
        ),
    ),
    signature(
        "rror: metadata-generation-failed",
        r"error: metadata-generation-failed$",
        always(StageFailed, stage="metadata", weight=Weight.SYMPTOM),
        ("error: metadata-generation-failed", StageFailed(stage="metadata", weight=Weight.SYMPTOM)),
    ),
    signature(
        "No file/folder found",
        r"(?:[\w.]{1,100}: )?No file/folder found for package ",
        always(NotInstallable, tool="poetry", problem="no-manifest"),
        (
            "poetry.core.masonry.utils.module.ModuleOrPackageNotFound: No file/folder found for package foo",
            NotInstallable(tool="poetry", problem="no-manifest"),
        ),
    ),
    signature(
        "CompileError: ",
        r"(?:Cython\.Compiler\.Errors\.)?CompileError: (?P<stage>[\w./-]{1,120}\.pyx)$",
        always(StageFailed, weight=Weight.SYMPTOM),
        ("Cython.Compiler.Errors.CompileError: pkg/_x.pyx", StageFailed(stage="pkg/_x.pyx", weight=Weight.SYMPTOM)),
    ),
    signature(
        "ailed to build installable wheels",
        r"(?:ERROR: |error: )?(?:ERROR: )?Failed to build installable wheels for some pyproject\.toml based "
        r"projects \((?P<stage>[\w., -]{1,160})\)",
        always(StageFailed, weight=Weight.SYMPTOM),
        (
            "ERROR: Failed to build installable wheels for some pyproject.toml based projects (lxml)",
            StageFailed(stage="lxml", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "an't be installed because it doesn't have a source",
        r"(?:error: )?Distribution `(?P<package>[^`\s@]{1,100}) ?@? ?[^`]{0,200}` can't be installed because it "
        r"doesn't have a source distribution or wheel",
        NoPrebuiltBinary,
        (
            (
                "error: Distribution `torch==2.3.0 @ registry+x` can't be installed because it doesn't have a "
                "source distribution "
                "or wheel for the current platform"
            ),
            NoPrebuiltBinary(package="torch==2.3.0"),
        ),
    ),
    signature(
        "not build wheels for ",
        r"(?:ERROR: )?Could not build wheels for (?P<stage>[\w., -]{1,160}?),? (?:which|since) ",
        always(StageFailed, weight=Weight.SYMPTOM),
        (
            "ERROR: Could not build wheels for regex, which is required to install pyproject.toml-based projects",
            StageFailed(stage="regex", weight=Weight.SYMPTOM),
        ),
    ),
)
"""What installers of Python distributions say."""
