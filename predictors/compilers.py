"""Compilers, assemblers and linkers: headers, libraries, standards."""

from __future__ import annotations

from specbuild.failures import (
    CompilerFailed,
    Failure,
    MissingBuildDependency,
    MissingHeader,
    MissingLibrary,
    MissingToolchain,
    NotBuilt,
    UnfitCompiler,
    VersionOutOfRange,
    Weight,
    WrongArchitecture,
)
from specbuild.predictors.signature import always, signature

_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".pyx", ".f", ".f90", ".s", ".S")
_PYTHON_HEADERS = {"longintrepr.h": "3.11", "graminit.h": "3.10"}
"""Headers of Python → the first release that hides them. What includes them was generated for older ones."""

_LANGUAGES = {"C": "c", "C++": "c++", "CXX": "c++", "Fortran": "fortran", "Fortran 77": "fortran"}
_BY_PROGRAM = {"c++": "c++", "g++": "c++", "clang++": "c++", "gfortran": "fortran", "rustc": "rust", "javac": "java"}
_WHERE = r"(?:\S{1,300}:\d{1,7}:(?:\d{1,7}:)? |\w{1,20}: )?"
"""Where in the source, or which stage of the compiler."""


def _header(header: str, evidence: str) -> Failure:
    if below := _PYTHON_HEADERS.get(header):
        return VersionOutOfRange(tool="python", required=f"<{below}", because=header, evidence=evidence)
    if header.startswith("numpy/"):
        return MissingBuildDependency(module="numpy", evidence=evidence)
    if header.endswith(_SOURCES):
        return NotBuilt(path=header, evidence=evidence)
    return MissingHeader(header=header, evidence=evidence)


def _toolchain(evidence: str, language: str = "C", program: str = "") -> Failure:
    name = _LANGUAGES.get(language, _BY_PROGRAM.get(program, "c"))
    return MissingToolchain.model_validate({"language": name, "program": program, "evidence": evidence})


def _first(program: str, evidence: str) -> Failure:
    return _toolchain(evidence, "", program)


def _standard(standard: str, evidence: str) -> Failure:
    short = f"c++{standard[-2:]}" if standard[:1].isdigit() else standard.lower()
    return UnfitCompiler(compiler="c++", direction="too-old", standard=short, evidence=evidence)


def _base_name(header: str, evidence: str) -> Failure:
    return MissingHeader(header=header.rsplit("/", 1)[-1], evidence=evidence)


def _broken(evidence: str, program: str = "", plus: str = "") -> Failure:
    return _toolchain(evidence, "C++" if plus else "C" if not program else "", program)


def _newer(standard: str, evidence: str) -> Failure:
    return UnfitCompiler(compiler="c++", direction="too-new", standard=standard.lower(), evidence=evidence)


def _common(standard: str, evidence: str) -> Failure:
    """Since GCC 10 a variable is defined in one file only."""
    del standard
    return UnfitCompiler(
        compiler="cc", direction="too-new", standard="-fno-common", evidence=evidence, weight=Weight.SYMPTOM
    )


_PROGRAMS = frozenset(
    {"as", "ld", "cc1", "cc1plus", "gcc", "g", "g++", "cc", "clang", "clang++", "f951", "gfortran", "lto1"}
)


def _option_of_compiler(compiler: str, standard: str, evidence: str) -> Failure | None:
    if compiler not in _PROGRAMS:
        return None
    return UnfitCompiler(compiler=compiler, direction="too-old", standard=standard, evidence=evidence)


def _quoted_subject(subject: str, evidence: str) -> Failure:
    return WrongArchitecture(subject=subject.strip('"'), evidence=evidence)


SIGNATURES = (
    signature(
        "No such file or directory",
        _WHERE + r"(?:fatal )?error: (?P<header>[^\s:'\"]{1,200}): No such file or directory$",
        _header,
        ("a/b.c:3:10: fatal error: pcap/pcap.h: No such file or directory", MissingHeader(header="pcap/pcap.h")),
        ("fatal error: zlib.h: No such file or directory", MissingHeader(header="zlib.h")),
        ("cc1: fatal error: src/_speed.c: No such file or directory", NotBuilt(path="src/_speed.c")),
        near=(
            "README.md: when you see `fatal error: zlib.h: No such file or directory`, install zlib1g-dev",
            "If the build ends in fatal error: zlib.h: No such file or directory",
            "# fatal error: zlib.h: No such file or directory",
        ),
    ),
    signature(
        "file not found",
        _WHERE + r"fatal error: ['\"](?P<header>[^\s:'\"]{1,200})['\"] file not found$",
        _header,
        ("x.cc:1:10: fatal error: 'gmp.h' file not found", MissingHeader(header="gmp.h")),
    ),
    signature(
        "annot find -l",
        r"(?:\S{0,200}ld(?:\.\w{1,8})?: )cannot find -l(?P<library>[^\s:]{1,120})(?:: No such file or directory)?$",
        always(MissingLibrary, when="link"),
        ("/usr/bin/ld: cannot find -lxslt: No such file or directory", MissingLibrary(library="xslt", when="link")),
        ("ld.bfd: cannot find -lcrypt", MissingLibrary(library="crypt", when="link")),
        near=("checking whether ld: cannot find -lfoo is fatal",),
    ),
    signature(
        "unable to find library -l",
        r"ld\.lld: error: unable to find library -l(?P<library>[^\s:]{1,120})$",
        always(MissingLibrary, when="link"),
        ("ld.lld: error: unable to find library -lpq", MissingLibrary(library="pq", when="link")),
    ),
    signature(
        "no acceptable ",
        r"configure: error: no acceptable (?P<language>C\+\+|C|Fortran(?: 77)?) compiler found",
        _toolchain,
        ("configure: error: no acceptable C compiler found in $PATH", MissingToolchain(language="c")),
        ("configure: error: no acceptable C++ compiler found in $PATH", MissingToolchain(language="c++")),
    ),
    signature(
        "compiler cannot create executables",
        r"configure: error: (?P<language>C\+\+|C|Fortran(?: 77)?) compiler cannot create executables",
        _toolchain,
        ("configure: error: C++ compiler cannot create executables", MissingToolchain(language="c++")),
    ),
    signature(
        "ERROR: Unknown compiler",
        r"(?:\S{1,300}:\d{1,7}:\d{1,7}: )?ERROR: Unknown compiler\(s\): \[\[?'(?P<program>[^'\s]{1,60})'",
        _first,
        (
            "../meson.build:1:0: ERROR: Unknown compiler(s): [['gfortran'], ['flang-new'], ['flang']]",
            MissingToolchain(language="fortran", program="gfortran"),
        ),
        (
            "../meson.build:1:0: ERROR: Unknown compiler(s): [['c++'], ['g++']]",
            MissingToolchain(language="c++", program="c++"),
        ),
    ),
    signature(
        "_COMPILER could be found",
        r"(?:CMake Error: )?No CMAKE_(?P<language>C|CXX|Fortran)_COMPILER could be found",
        _toolchain,
        ("  No CMAKE_C_COMPILER could be found.", MissingToolchain(language="c")),
    ),
    signature(
        ("error: linker `", "error: could not exec the linker"),
        r"error: (?:could not exec the )?linker `(?P<program>[^`\s]{1,80})`(?: not found$|: No such file)",
        _first,
        ("error: linker `cc` not found", MissingToolchain(language="c", program="cc")),
    ),
    signature(
        '" not found',
        r"(?:cgo: )?C compiler \"(?P<program>[^\"\s]{1,80})\" not found",
        _first,
        (
            'cgo: C compiler "clang" not found: exec: "clang": executable file not found in $PATH',
            MissingToolchain(language="c", program="clang"),
        ),
    ),
    signature(
        "find Rust compiler",
        r"error: can't find Rust compiler$",
        always(MissingToolchain, language="rust"),
        ("error: can't find Rust compiler", MissingToolchain(language="rust")),
    ),
    signature(
        "is not installed or not in PATH",
        r"(?:Caused by: )?rustc, the rust compiler, is not installed or not in PATH",
        always(MissingToolchain, language="rust", program="rustc"),
        (
            "  Caused by: rustc, the rust compiler, is not installed or not in PATH.",
            MissingToolchain(language="rust", program="rustc"),
        ),
    ),
    signature(
        "No compiler is provided",
        r"No compiler is provided in this environment\.",
        always(MissingToolchain, language="java", program="javac"),
        (
            "[ERROR] No compiler is provided in this environment. Perhaps you are running on a JRE",
            MissingToolchain(language="java", program="javac"),
        ),
    ),
    signature(
        "#error This file requires compiler",
        _WHERE + r"error: #error This file requires compiler and library support for the ISO C\+\+ (?P<standard>\d{4})",
        _standard,
        (
            (
                "c++0x_warning.h:32:2: error: #error This file requires compiler and library support for the ISO C++ "
                "2017 standard"
            ),
            UnfitCompiler(compiler="c++", direction="too-old", standard="c++17"),
        ),
    ),
    signature(
        "#error",
        _WHERE + r"error: #error \"?(?:\S{1,40} )?(?:requires? )?(?:at least )?(?:a )?(?P<standard>C\+\+[12]\d)\b",
        _standard,
        (
            'ATen.h:4:2: error: #error "C++17 or later compatible compiler is required to use ATen."',
            UnfitCompiler(compiler="c++", direction="too-old", standard="c++17"),
        ),
    ),
    signature(
        "error: unrecognized",
        r"(?P<compiler>\w{1,12}(?:\+\+)?): error: unrecognized command-line option [‘'](?P<standard>[^’'\s]{1,80})[’']",
        always(UnfitCompiler, direction="too-old"),
        (
            "cc1plus: error: unrecognized command-line option ‘-std=c++23’",
            UnfitCompiler(compiler="cc1plus", direction="too-old", standard="-std=c++23"),
        ),
    ),
    signature(
        " error: ",
        _WHERE + r"error: [^\[]{1,300}\[-W(?:error=)?(?P<standard>[a-z][a-z0-9+-]{1,60})=?\]$",
        always(UnfitCompiler, compiler="cc", direction="too-new"),
        (
            "a.c:3:5: error: implicit declaration of function ‘f’ [-Wimplicit-function-declaration]",
            UnfitCompiler(compiler="cc", direction="too-new", standard="implicit-function-declaration"),
        ),
        near=("a.c:3:5: warning: implicit declaration of function ‘f’ [-Wimplicit-function-declaration]",),
    ),
    signature(
        "is no longer supported. Use ",
        r"(?:error: )?Source option (?P<standard>[\d.]{1,6}) is no longer supported\.",
        always(UnfitCompiler, compiler="javac", direction="too-new"),
        (
            "[ERROR] Source option 6 is no longer supported. Use 7 or later.",
            UnfitCompiler(compiler="javac", direction="too-new", standard="6"),
        ),
    ),
    signature(
        "find header files for ruby",
        r"mkmf\.rb can't find header files for ruby at (?P<header>\S{1,200})",
        _base_name,
        (
            "mkmf.rb can't find header files for ruby at /usr/lib/ruby/include/ruby.h",
            MissingHeader(header="ruby.h"),
        ),
    ),
    signature(
        ("Exec format error", "wrong ELF class"),
        r"(?:OSError|ImportError|bash|sh|exec \S{1,200})?:? ?(?:line \d{1,6}: )?(?:\[Errno 8\] Exec format error: )?"
        r"['\"]?(?P<subject>[^\s:'\"]{1,200})['\"]?(?:: (?:cannot execute binary file: )?Exec format error"
        r"|: wrong ELF class: \w{1,20}|$)",
        WrongArchitecture,
        (
            "bash: ./tool: cannot execute binary file: Exec format error",
            WrongArchitecture(subject="./tool"),
        ),
        ("ImportError: /x/a.so: wrong ELF class: ELFCLASS32", WrongArchitecture(subject="/x/a.so")),
    ),
    signature(
        "has no member named",
        _WHERE + r"error: [‘'](?:struct )?(?:Py\w{1,30}|_\w{1,30}|struct _\w{1,30})(?: \{aka [^}]{1,80}\})?[’'] "
        r"(?:\{aka [^}]{1,80}\} )?has no member named [‘'](?P<because>\w{1,40})[’']",
        always(VersionOutOfRange, tool="python"),
        (
            "a.c:9:3: error: ‘PyThreadState’ {aka ‘struct _ts’} has no member named ‘exc_type’; did you mean",
            VersionOutOfRange(tool="python", because="exc_type"),
        ),
    ),
    signature(
        "ould not find native static library",
        r"error: could not find native static library `(?P<library>[^`\s]{1,80})`",
        always(MissingLibrary, when="link"),
        (
            "error: could not find native static library `z`, perhaps an -L flag is missing?",
            MissingLibrary(library="z", when="link"),
        ),
    ),
    signature(
        "nsupported compiler -- at least",
        r"RuntimeError: Unsupported compiler -- at least (?P<standard>C\+\+\d\d) support is needed",
        _standard,
        (
            "RuntimeError: Unsupported compiler -- at least C++11 support is needed!",
            UnfitCompiler(compiler="c++", direction="too-old", standard="c++11"),
        ),
    ),
    signature(
        "No working compiler found",
        r"No working compiler found, or bogus compiler options passed",
        _toolchain,
        (
            "    No working compiler found, or bogus compiler options passed to",
            MissingToolchain(language="c"),
        ),
    ),
    signature(
        "compiler identification is unknown",
        r"(?:-- )?The (?P<language>C|CXX|Fortran) compiler identification is unknown",
        _toolchain,
        ("-- The CXX compiler identification is unknown", MissingToolchain(language="c++")),
    ),
    signature(
        "error: linking with `",
        r"error: linking with `(?P<compiler>[^`\s]{1,80})` failed",
        always(CompilerFailed, weight=Weight.SYMPTOM),
        (
            "error: linking with `cc` failed: exit status: 1",
            CompilerFailed(compiler="cc", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "invalid value '",
        r"(?:\S{0,40}: )?error: invalid value '(?P<standard>[^'\s]{1,40})' in '-std=",
        always(UnfitCompiler, compiler="clang", direction="too-old"),
        (
            "error: invalid value 'c++23' in '-std=c++23'",
            UnfitCompiler(compiler="clang", direction="too-old", standard="c++23"),
        ),
    ),
    signature(
        ("oes not allow dynamic exception specifications", "oes not allow ‘register’", "oes not allow 'register'"),
        _WHERE + r"error: ISO (?P<standard>C\+\+\d\d) does not allow ",
        _newer,
        (
            "a.h:3:5: error: ISO C++17 does not allow dynamic exception specifications",
            UnfitCompiler(compiler="c++", direction="too-new", standard="c++17"),
        ),
    ),
    signature(
        "multiple definition of `",
        r"(?:\S{0,200}ld(?:\.\w{1,8})?: )?\S{0,300}: multiple definition of [`'](?P<standard>\w{1,80})'",
        _common,
        (
            "/usr/bin/ld: b.o:(.bss+0x0): multiple definition of `verbose'; a.o:(.bss+0x0): first defined here",
            UnfitCompiler(compiler="cc", direction="too-new", standard="-fno-common", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "Type mismatch between actual argument",
        r"(?:Error: )?Type mismatch between actual argument at ",
        always(UnfitCompiler, compiler="gfortran", direction="too-new", standard="argument-mismatch"),
        (
            "Error: Type mismatch between actual argument at (1) and actual argument at (2) (REAL(4)/INTEGER(4)).",
            UnfitCompiler(compiler="gfortran", direction="too-new", standard="argument-mismatch"),
        ),
    ),
    signature(
        ("has not been declared", "does not name a type", "is not a member of ‘std’", "is not a member of 'std'"),
        _WHERE + r"error: [‘'](?:std::)?(?P<standard>u?int(?:8|16|32|64|ptr)_t|numeric_limits|string_view|optional"
        r"|function|array"
        r"|unique_ptr|sort|exchange)[’'] (?:has not been declared|does not name a type|is not a member of)",
        always(UnfitCompiler, compiler="c++", direction="too-new", weight=Weight.SYMPTOM),
        (
            "a.h:9:5: error: ‘uint32_t’ does not name a type",
            UnfitCompiler(compiler="c++", direction="too-new", standard="uint32_t", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        (
            "nsupported architecture",
            "nsupported platform",
            "nsupported GOOS/GOARCH",
            "nknown architecture",
            "not supported on this",
        ),
        r"(?:"
        + _WHERE
        + r"error: #error \"?|(?:go: |\w{1,40}Error: |[Ee]rror: ))(?:.{0,40}? )?[Uu]n(?:supported|known) "
        r"(?:architecture|platform|GOOS/GOARCH pair)[: ]{0,2}(?P<subject>[\w/.-]{0,40})",
        WrongArchitecture,
        ("go: unsupported GOOS/GOARCH pair linux/foo", WrongArchitecture(subject="linux/foo")),
        ("a.h:3:2: error: #error Unsupported architecture", WrongArchitecture(subject="")),
        near=("warning: unsupported platform for x",),
    ),
    signature(
        "xec format error",
        r"(?:[\w/.-]{1,60}: )?(?:fork/)?exec:? (?P<subject>\"?/?[^\s:\"]{1,200}\"?):? exec format error",
        _quoted_subject,
        ("fork/exec /w/tool: exec format error", WrongArchitecture(subject="/w/tool")),
    ),
    signature(
        "ailed with exit ",
        r"error: command '?(?P<compiler>[^'\s]{0,60}(?:gcc|g\+\+|cc|clang|c\+\+|gfortran))' failed with exit "
        r"(?:status|code) [2-9]",
        always(CompilerFailed, weight=Weight.SYMPTOM),
        (
            "error: command 'gcc' failed with exit status 4",
            CompilerFailed(compiler="gcc", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "ibrary not found for -l",
        r"ld: library not found for -l(?P<library>[^\s:]{1,120})$",
        always(MissingLibrary, when="link"),
        ("ld: library not found for -lssl", MissingLibrary(library="ssl", when="link")),
    ),
    signature(
        ("rror: unrecognized command line option", "unrecognized option '", "nknown argument: '"),
        r"(?P<compiler>\w{1,12}(?:\+\+)?): (?:error: )?(?:unrecogni[sz]ed (?:command[ -]line )?option|unknown "
        r"argument:) [‘'\"](?P<standard>-[^’'\"\s]{1,80})[’'\"]",
        _option_of_compiler,
        (
            'cc1: error: unrecognized command line option "-std=c17"',
            UnfitCompiler(compiler="cc1", direction="too-old", standard="-std=c17"),
        ),
        near=("mytool: unrecognized option '--fast'",),
    ),
    signature(
        "cannot compile programs",
        r"(?:\S{1,300}:\d{1,7}:\d{1,7}: )?ERROR: Compiler (?P<program>[\w.+-]{1,60}) cannot compile programs",
        _first,
        (
            "meson.build:1:0: ERROR: Compiler c++ cannot compile programs.",
            MissingToolchain(language="c++", program="c++"),
        ),
    ),
    signature(
        ("ompiler(s) not found: ", "roken toolchain: cannot link"),
        r"(?:RuntimeError: )?(?:[Rr]equired )?[Cc]ompiler\(s\) not found: (?P<program>[\w.+-]{1,60})"
        r"|(?:RuntimeError: )Broken toolchain: cannot link a simple C(?P<plus>\+\+)? program",
        _broken,
        ("RuntimeError: Broken toolchain: cannot link a simple C program.", MissingToolchain(language="c")),
    ),
    signature(
        "ortran compiler",
        r"(?:[\w.]{1,80}: )?(?:error: )?(?:extension '?\S{1,80} has Fortran sources but no Fortran compiler "
        r"found|[Nn]o (?:compatible )?Fortran compiler(?: found)?)",
        always(MissingToolchain, language="fortran"),
        (
            "error: extension _flib has Fortran sources but no Fortran compiler found",
            MissingToolchain(language="fortran"),
        ),
    ),
)
"""What compilers and linkers say, and what build tools say when there are none."""
