"""Compilers and toolchains: the one place where packages are named by rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from specbuild.failures import Failure, MissingToolchain, NoPrebuiltBinary, StageFailed
from specbuild.knowledge.kinds import Ecosystem
from specbuild.repairs import apt, needs, rust
from specbuild.repairs.contract import Case, Repair

PACKAGES: dict[str, tuple[str, ...]] = {
    "c": ("gcc", "libc6-dev", "make"),
    "c++": ("g++", "libc6-dev", "make"),
    "fortran": ("gfortran", "gcc", "libc6-dev"),
    "rust": ("rustc", "cargo", "gcc", "libc6-dev"),
    "go": ("golang-go", "gcc", "libc6-dev"),
    "java": ("default-jdk-headless",),
    "node": ("nodejs", "npm"),
}
"""Debian's packages of each toolchain that `MissingToolchain.language` knows, the compiler first."""

NODE_GYP = ("g++", "make", "python3")
"""What npm's packages with compiled code are built with."""

_PROGRAMS = {
    "c": ("cc", "gcc", "c99", "x86_64-linux-gnu-gcc"),
    "c++": ("c++", "g++", "x86_64-linux-gnu-g++"),
    "fortran": ("f77", "f90", "f95", "gfortran"),
    "rust": ("cargo", "rustc"),
    "go": ("go", "gofmt"),
    "java": ("java", "javac", "javadoc"),
    "node": ("node", "nodejs", "npm", "npx"),
}
INTERPRETER = {"python": "python-is-python3", "python3": "python3", "pip": "python3-pip", "pip3": "python3-pip"}
"""Programs of the interpreter, of which others own a file of that name too."""

_CMAKE = {
    "python": ("python3-dev",),
    "python3": ("python3-dev",),
    "pythonlibs": ("python3-dev",),
    "pythoninterp": ("python3",),
    "jni": PACKAGES["java"],
    "java": PACKAGES["java"],
    "threads": PACKAGES["c"],
    "openmp": PACKAGES["c"],
    "pkgconfig": ("pkg-config",),
    "git": ("git",),
}
"""What CMake's own modules look for that is no library, by their names in lower case."""

_ALONE = 0.8
"""Probability that a toolchain alone is enough for who misses it."""

_FEWER = 0.5
"""The same where the project is known to need more."""


def repair(failure: Failure, case: Case) -> Iterable[Repair]:
    """Repairs of what a toolchain brings."""
    match failure:
        case MissingToolchain():
            return language(failure.language, case)
        case NoPrebuiltBinary():
            return _source_build(failure, case)
        case StageFailed(stage="a build from source"):
            return compiler("gcc", case)
        case _:
            return ()


def of(command: str) -> str:
    """The language whose toolchain has a program; empty if it is of none."""
    return next((name for name, programs in _PROGRAMS.items() if command in programs), "")


def of_cmake(package: str) -> tuple[str, ...]:
    """The packages that CMake means by a name of its own; none for libraries."""
    return _CMAKE.get(package.lower(), ())


def language(name: str, case: Case) -> Iterator[Repair]:
    """The toolchain of a language; and first, with all else that the project is known to need, where that is more."""
    wanted = PACKAGES[name]
    if name == "rust":
        wanted = (*rust.packages(case), "gcc", "libc6-dev")
    along = ("pkg-config", "python3-dev") if _is_python(case) and name not in {"java", "node", "go"} else ()
    whole = needs.own(case)
    more = whole is not None and needs.is_more(case, whole, wanted)
    why = f"the toolchain of {name} is missing"
    if whole is not None and more:
        yield from needs.together(case, whole, wanted, why=why)
    probability = _FEWER if more else _ALONE
    yield from apt.install(wanted, case, why=why, probability=probability, source="rule", along=along)


def compiler(name: str, case: Case) -> Iterator[Repair]:
    """Repairs for a compiler that failed, if no Step has installed one: old tools do not tell the difference."""
    kind = of(name) or "c"
    if PACKAGES[kind][0] in apt.missing(PACKAGES[kind], case):
        yield from language(kind, case)


def node_gyp(case: Case) -> Iterator[Repair]:
    """What builds the compiled code of npm's packages."""
    why = "node-gyp builds with make, a C++ compiler and Python"
    yield from apt.install(NODE_GYP, case, why=why, probability=_ALONE, source="rule")


def _is_python(case: Case) -> bool:
    facts = case.facts
    return bool(facts.build_backend or facts.dependencies or any(one.value == "python" for one in facts.languages))


def _source_build(failure: NoPrebuiltBinary, case: Case) -> Iterator[Repair]:
    if "runtime=n" in failure.target or not failure.package:
        yield from node_gyp(case)
        return
    found = case.knowledge.build_needs(Ecosystem.PYTHON, failure.package, release=case.release)
    why = f"{failure.package} will be compiled"
    if found:
        yield from needs.together(case, found, (), why=why)
    probability = _FEWER if found and found.libraries else _ALONE
    along = ("pkg-config", "python3-dev") if _is_python(case) else ()
    yield from apt.install(PACKAGES["c"], case, why=why, probability=probability, source="rule", along=along)
