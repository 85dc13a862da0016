"""pkg-config, autotools, and the checks of setup scripts."""

from __future__ import annotations

from specbuild.failures import (
    Failure,
    MissingCommand,
    MissingConfigTool,
    MissingData,
    MissingDevelopmentFiles,
    MissingHeader,
    MissingLibrary,
    MissingMacro,
    MissingModule,
    MissingPkgConfig,
    MissingProjectFile,
    StageFailed,
    VersionOutOfRange,
    Weight,
)
from specbuild.predictors.commands import missing_command
from specbuild.predictors.signature import always, signature


def _headers(first: str, second: str, evidence: str) -> tuple[Failure, ...]:
    """The headers tell what to install; what the message says of kernel headers is of no help."""
    return tuple(MissingHeader(header=header, evidence=evidence) for header in (first, second))


def _lower(name: str, evidence: str) -> Failure:
    return MissingDevelopmentFiles(name=name.lower(), evidence=evidence)


def _alternatives(modules: str, evidence: str) -> Failure:
    first, *others = modules.split(" or ")
    return MissingPkgConfig(module=first, alternatives=tuple(others), evidence=evidence)


def _several(names: str, evidence: str) -> tuple[Failure, ...]:
    return tuple(MissingDevelopmentFiles(name=name, evidence=evidence) for name in names.split(" and "))


def _escaped(module: str, evidence: str, none: str = "") -> Failure:
    if none:
        return MissingCommand(command="pkg-config", evidence=evidence)
    return MissingPkgConfig(module=module, evidence=evidence)


def _by_variable(evidence: str, variable: str = "") -> Failure | None:
    return MissingPkgConfig(module=variable.lower(), evidence=evidence)


def _loaded_while_building(library: str, evidence: str) -> Failure | None:
    """A name without a version is a link of the development package."""
    return MissingLibrary(library=library, when="link", evidence=evidence)


def _no_package(module: str, evidence: str, went_on: str = "") -> Failure:
    """CMake passes on with dashes what pkg-config says, of optional modules too."""
    return MissingPkgConfig(module=module, evidence=evidence, weight=Weight.SYMPTOM if went_on else Weight.CAUSE)


def _macro(evidence: str, macro: str = "", second: str = "") -> Failure:
    return MissingMacro(macro=macro or second, evidence=evidence)


_PROGRAMS = frozenset(
    [
        "bison",
        "flex",
        "yacc",
        "lex",
        "gperf",
        "ragel",
        "nasm",
        "yasm",
        "swig",
        "xsltproc",
        "xmllint",
        "msgfmt",
        "gettext",
        "gettextize",
        "intltool",
        "libtool",
        "libtoolize",
        "perl",
        "python",
        "python3",
        "awk",
        "gawk",
        "sed",
        "m4",
        "make",
        "gmake",
        "cmake",
        "ninja",
        "help2man",
        "makeinfo",
        "asciidoc",
        "doxygen",
        "git",
        "valac",
        "pkg-config",
        "glib-genmarshal",
        "gdbus-codegen",
        "protoc",
        "protobuf-compiler",
        "xgettext",
        "ocaml",
        "ocamlc",
        "ghc",
        "wget",
        "curl",
        "rsync",
        "unzip",
        "zip",
        "rst2man",
        "pandoc",
        "dot",
        "convert",
        "gcc",
        "g++",
        "cc",
        "c++",
        "go",
        "cargo",
        "rustc",
        "javac",
        "java",
        "node",
        "npm",
        "tclsh",
        "ruby",
        "lua",
    ]
)
"""What configure scripts look for as programs; all else they look for is a library."""


def _configured(name: str, evidence: str) -> Failure:
    return missing_command(name, evidence) if name.lower() in _PROGRAMS else _lower(name, evidence)


def _python_or_lower(name: str, evidence: str) -> Failure:
    return MissingHeader(header="Python.h", evidence=evidence) if name == "Python" else _lower(name, evidence)


_NO_NAMES = frozenset(
    {"a", "an", "the", "working", "recent", "suitable", "in", "see", "your", "this", "at", "both", "either"}
)


def _configured_lib(name: str, evidence: str) -> Failure | None:
    return None if name.lower() in _NO_NAMES else _configured(name, evidence)


def _blas(name: str, evidence: str) -> Failure:
    return MissingDevelopmentFiles(name=name.lower().partition("/")[0], evidence=evidence)


def _interpreted(evidence: str, language: str = "", first: str = "", second: str = "") -> Failure:
    if second or language.lower() == "perl":
        return MissingModule(language="perl", module=second or first, evidence=evidence)
    return MissingModule(language="python", module=first, evidence=evidence)


def _shape(evidence: str, first: str = "", second: str = "", third: str = "", fourth: str = "") -> Failure | None:
    if first in {"c", "compiler", "version"}:
        return None
    if third or fourth:
        return _configured(third or fourth, evidence)
    return missing_command(first or second, evidence) if (first or second).islower() else None


def _old_tool(tool: str, required: str, evidence: str) -> Failure:
    return VersionOutOfRange(tool=tool.lower(), required=required, evidence=evidence)


def _needed_file(path: str, evidence: str) -> Failure | None:
    """A file of the system that a make rule wants."""
    if "/include/" in path:
        return MissingHeader(header=path.partition("/include/")[2], evidence=evidence)
    name = path.rpartition("/")[2]
    if name.startswith("lib") and (".so" in name or name.endswith(".a")):
        return MissingLibrary(library=name, when="link", evidence=evidence)
    return MissingData(path=path, evidence=evidence, weight=Weight.SYMPTOM)


SIGNATURES = (
    signature(
        "onfigure: error: ",
        r"(?:checking for [\w:. -]{1,60}\.\.\. )?configure: error: (?:\*{1,4} ?)?(?:the |missing |[Mm]issing "
        r"|[Rr]equired |[Cc]ould not find |[Cc]annot find ){0,2}"
        r"(?:(?P<language>[Pp]erl|[Pp]ython) (?:3 )?module[: ]{1,2}['\"]?(?P<first>[\w:.-]{1,60}?)['\"]?"
        r"|(?P<second>\w{1,40}(?:::\w{1,40}){1,4}) [Pp]erl module)"
        r" (?:is |was |could )?(?:required|not found|missing|needed|not (?:be )?(?:found|installed))",
        _interpreted,
        (
            "configure: error: Perl module XML::Parser is required for intltool",
            MissingModule(language="perl", module="XML::Parser"),
        ),
        ("configure: error: Python module yaml not found", MissingModule(language="python", module="yaml")),
        (
            "checking for XML::Parser... configure: error: XML::Parser perl module is required for intltool",
            MissingModule(language="perl", module="XML::Parser"),
        ),
    ),
    signature(
        "onfigure: error: ",
        r"configure: error: (?:\*{1,4} ?)?(?:no acceptable (?P<first>[a-z][\w+-]{1,20}) (?:could be )?found"
        r"|[`'\"‘](?P<second>[A-Za-z][\w.+-]{1,40})['\"`’] "
        r"(?:is |was |could )?(?:not (?:be )?(?:found|installed)|required|missing)"
        r"|--with-(?P<third>[a-z][\w+-]{1,30}) was (?:given|requested|specified)|[Yy]our system does not have "
        r"(?:the )?(?P<fourth>[a-z][\w+-]{1,30})\b)",
        _shape,
        ("configure: error: no acceptable m4 could be found in $PATH.", MissingCommand(command="m4")),
        ("configure: error: 'msgfmt' not found. Install gettext", MissingCommand(command="msgfmt")),
        (
            "configure: error: --with-libevent was given, but test for libevent failed",
            MissingDevelopmentFiles(name="libevent"),
        ),
    ),
    signature(
        "was not found in the pkg-config search path",
        r"Package ['\"]?(?P<module>[^\s'\"]{1,100})['\"]? was not found in the pkg-config search path",
        MissingPkgConfig,
        ("Package libusb-1.0 was not found in the pkg-config search path.", MissingPkgConfig(module="libusb-1.0")),
    ),
    signature(
        ("', required by '", "No package '"),
        r"(?P<went_on>-- {0,4})?(?:Package|No package) '(?P<module>[^\s']{1,100})'(?:, required by "
        r"'[^']{1,100}', not)? found$",
        _no_package,
        ("Package 'zlib', required by 'virtual:world', not found", MissingPkgConfig(module="zlib")),
        ("--   No package 'gtk+-3.0' found", MissingPkgConfig(module="gtk+-3.0", weight=Weight.SYMPTOM)),
        ("No package 'gtk+-3.0' found", MissingPkgConfig(module="gtk+-3.0")),
    ),
    signature(
        "CalledProcessError: Command",
        r"subprocess\.CalledProcessError: Command '[\[(]'pkg-config', (?:'--?[\w-]{1,40}(?:=[^']{0,40})?', ){0,4}"
        r"'(?P<module>[^\s'-][^\s']{0,100})'[\])]' returned non-zero",
        MissingPkgConfig,
        (
            (
                "subprocess.CalledProcessError: Command '['pkg-config', '--libs-only-L', 'libvirt']' returned non-zero"
                " exit status 1."
            ),
            MissingPkgConfig(module="libvirt"),
        ),
    ),
    signature(
        "error: Package requirements",
        r"configure: error: Package requirements \((?P<module>[^\s)]{1,100})"
        r"(?: (?P<requirement>[<>=]{1,2} [^\s),]{1,40}))?",
        MissingPkgConfig,
        (
            "configure: error: Package requirements (gio-2.0 >= 2.50 gtk4) were not met:",
            MissingPkgConfig(module="gio-2.0", requirement=">= 2.50"),
        ),
    ),
    signature(
        "Cannot find ",
        r"Cannot find (?P<modules>lib[\w.+-]{1,60}(?: or lib[\w.+-]{1,60}){0,4}):$",
        _alternatives,
        (
            "Cannot find libusb or libusb-1.0:",
            MissingPkgConfig(module="libusb", alternatives=("libusb-1.0",)),
        ),
    ),
    signature(
        "find valid pkg-config name",
        r"(?:Exception: )?Can ?not find valid pkg-config name",
        _by_variable,
        (
            "Exception: Can not find valid pkg-config name.\nSpecify FOO_CFLAGS and FOO_LDFLAGS env vars manually",
            MissingPkgConfig(module="foo"),
        ),
        follow=r"Specify (?P<variable>[A-Z0-9_]{1,40})_CFLAGS and ",
    ),
    signature(
        ("undefined macro", "not found in library"),
        r"(?:\S{1,200}:\d{1,6}: )?(?:error|warning): (?:possibly undefined macro: (?P<macro>\w{1,80})"
        r"|macro '(?P<second>\w{1,80})' not found in library)",
        _macro,
        ("configure.ac:7: error: possibly undefined macro: AX_PTHREAD", MissingMacro(macro="AX_PTHREAD")),
        (
            "configure.ac:20: warning: macro 'AM_PATH_X' not found in library",
            MissingMacro(macro="AM_PATH_X"),
        ),
    ),
    signature(
        "Please make sure the ",
        r"(?:Error: )?Please make sure the (?P<names>[\w.+-]{1,40}(?: and [\w.+-]{1,40}){0,3}) development packages? "
        r"(?:is|are) installed",
        _several,
        (
            "Error: Please make sure the libfoo development package is installed.",
            MissingDevelopmentFiles(name="libfoo"),
        ),
    ),
    signature(
        "could not be found for ",
        r"(?:The )?headers or library files could not be found for (?P<name>[\w.+-]{1,40})",
        MissingDevelopmentFiles,
        (
            "The headers or library files could not be found for zlib,",
            MissingDevelopmentFiles(name="zlib"),
        ),
    ),
    signature(
        ("make sure ", "ould not find "),
        r"(?:\.\. )?(?:[A-Za-z]{1,20}:{1,2} )?(?:Unable to load dependency|Could not find a local|did not find|"
        r"[Cc]ould not find(?: the)?) (?P<name>[A-Z][\w+-]{1,30})(?: headers|, make sure| installation| library)",
        _lower,
        (
            "error: Unable to load dependency NETCDF, make sure NETCDF is installed properly",
            MissingDevelopmentFiles(name="netcdf"),
        ),
        (
            ".. ERROR:: Could not find a local BLOSC installation headers (hdrdir=None) and/or libdir (libdir=False).",
            MissingDevelopmentFiles(name="blosc"),
        ),
    ),
    signature(
        "did not find ",
        r"(?:ValueError|RuntimeError|Exception|error): did not find (?P<name>\w[\w+-]{1,30}) headers$",
        _lower,
        ("ValueError: did not find NETCDF headers", MissingDevelopmentFiles(name="netcdf")),
    ),
    signature(
        "and this `-sys` crate cannot",
        r"Could not find directory of (?P<name>[\w.+-]{1,40}) installation, and this `-sys` crate cannot",
        _lower,
        (
            "Could not find directory of LibreSSL installation, and this `-sys` crate cannot",
            MissingDevelopmentFiles(name="libressl"),
        ),
    ),
    signature(
        "not in path",
        r"error: (?P<name>[\w.+-]{1,40}) is not installed or not in path",
        MissingDevelopmentFiles,
        ("error: xmlsec1 is not installed or not in path.", MissingDevelopmentFiles(name="xmlsec1")),
    ),
    signature(
        "annot open shared object file",
        r"error: (?P<library>lib[\w.+-]{1,80}\.so): cannot open shared object file",
        _loaded_while_building,
        (
            "error: libnetcdf.so: cannot open shared object file: No such file or directory",
            MissingLibrary(library="libnetcdf.so", when="link"),
        ),
    ),
    signature(
        "was not found",
        r"The system library `(?P<module>[^`\s]{1,80})` required by crate `[^`]{1,80}` was not found",
        MissingPkgConfig,
        (
            "  The system library `alsa` required by crate `alsa-sys` was not found.",
            MissingPkgConfig(module="alsa"),
        ),
    ),
    signature(
        "pkg_config fail",
        r"run pkg_config fail: \"`?(?:Failed to run `)?\\\"pkg-config\\\" .{0,120}?\\\"(?P<module>\w[\w.+-]{0,60})"
        r"(?: [^\"]{0,40})?\\\"`(?P<none>: No such file)?",
        _escaped,
        (
            'run pkg_config fail: "`\\"pkg-config\\" \\"--libs\\" \\"alsa\\"` did not exit successfully',
            MissingPkgConfig(module="alsa"),
        ),
        (
            'run pkg_config fail: "Failed to run `\\"pkg-config\\" \\"--libs\\" \\"alsa\\"`: No such file or',
            MissingCommand(command="pkg-config"),
        ),
    ),
    signature(
        ("could not be found or is too old", "annot find pkg-config", "pkg-config not found"),
        r"configure: error: (?:The pkg-config script could not be found|(?:.{0,20} )?pkg-config (?:not found|is "
        r"required))",
        always(MissingCommand, command="pkg-config"),
        (
            "configure: error: The pkg-config script could not be found or is too old.  Make sure it",
            MissingCommand(command="pkg-config"),
        ),
    ),
    signature(
        "onfigure: error: ",
        r"configure: error: (?:\*{1,4} ?)?(?:(?:[Cc]an ?(?:not|'t)|[Cc]ould not|[Uu]nable to|[Dd]id not"
        r"|[Mm]issing) ?(?:find|locate)?|No|no) "
        r"(?:the |header |file |required ){0,3}[<'\"`]?(?P<header>[\w+-]{1,40}(?:/[\w.+-]{1,40}){0,3}\.h(?:pp)?)\b",
        MissingHeader,
        ("configure: error: Unable to find libxml/parser.h", MissingHeader(header="libxml/parser.h")),
        ("configure: error: missing header <gmp.h>", MissingHeader(header="gmp.h")),
    ),
    signature(
        "onfigure: error: ",
        r"configure: error: (?:\*{1,4} ?)?[<'\"`]?(?P<header>[\w+-]{1,40}(?:/[\w.+-]{1,40}){0,3}\.h(?:pp)?)[>'\"]?"
        r"(?: header)?(?: file)? (?:was |is )?(?:not found|missing|required|needed)",
        MissingHeader,
        ("configure: error: zlib.h not found", MissingHeader(header="zlib.h")),
    ),
    signature(
        "configure: error: ",
        r"configure: error: (?:\*{1,4} ?)?(?:(?:[Cc]an(?:not|'t|not)|[Cc]ould not|[Uu]nable to) find (?:the )?)?"
        r"(?P<name>lib[\w.+-]{1,40}|[A-Z]?[A-Za-z0-9]{2,20})(?: (?:library|libraries|headers?|development files))?"
        r"(?: (?:was |were )?not found| (?:is|are) (?:required|missing|needed|not installed)|$)",
        _configured,
        ("configure: error: libevent not found", MissingDevelopmentFiles(name="libevent")),
        ("configure: error: cannot find OpenSSL headers", MissingDevelopmentFiles(name="openssl")),
        near=("configure: error: in `/w/build':", "configure: error: see `config.log' for details"),
    ),
    signature(
        "is missing. ",
        r"(?P<name>[a-z][\w.+-]{1,30}) is missing\. (?:[Pp]lease (?:locate|install)|[Tt]ry )",
        MissingDevelopmentFiles,
        (
            "libiconv is missing. Please locate mkmf.log to investigate how it is failing.",
            MissingDevelopmentFiles(name="libiconv"),
        ),
    ),
    signature(
        "configure: line ",
        r"(?:\S{0,60}/)?configure: line \d{1,6}: ` {0,12}(?P<macro>[A-Z]{1,6}_[A-Z0-9_]{2,60})\(",
        MissingMacro,
        ("./configure: line 52: `  PKG_CHECK_MODULES(A, a)'", MissingMacro(macro="PKG_CHECK_MODULES")),
    ),
    signature(
        "error: required file '",
        r"\S{1,80}:\d{1,6}: error: required file '[./]{0,12}ltmain\.sh' not found",
        always(MissingCommand, command="libtoolize"),
        (
            "configure.ac:3: error: required file './ltmain.sh' not found",
            MissingCommand(command="libtoolize"),
        ),
    ),
    signature(
        "include files are missing",
        r"The '(?P<first>[^\s']{1,80}\.h)' and '(?P<second>[^\s']{1,80}\.h)' include files are missing",
        _headers,
        (
            "The 'linux/a.h' and 'linux/b.h' include files are missing. You will have to install kernel headers",
            (MissingHeader(header="linux/a.h"), MissingHeader(header="linux/b.h")),
        ),
    ),
    signature(
        "missing some prerequisite",
        r"It appears you are missing some prerequisite to build the package from source",
        always(StageFailed, stage="a build from source", weight=Weight.SYMPTOM),
        (
            "It appears you are missing some prerequisite to build the package from source.",
            StageFailed(stage="a build from source", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        " or higher is required",
        r"(?:\S{1,80}:\d{1,6}: )?error: (?P<tool>Autoconf|Automake) version (?P<required>[\d.]{1,8}\d) or "
        r"higher is required",
        _old_tool,
        (
            "configure.ac:8: error: Autoconf version 2.71 or higher is required",
            VersionOutOfRange(tool="autoconf", required="2.71"),
        ),
    ),
    signature(
        "rror: required directory ",
        r"(?:\S{1,80}:\d{1,6}: )?error: required directory (?:\./)?(?P<path>[^\s]{1,120}) does not exist",
        always(MissingProjectFile, tool="autoconf"),
        (
            "configure.ac:30: error: required directory ./m4 does not exist",
            MissingProjectFile(path="m4", tool="autoconf"),
        ),
    ),
    signature(
        "rror: required file '",
        r"(?:\S{1,80}: )?error: required file '(?:\./)?(?P<path>[^'\s]{1,120})' not found",
        always(MissingProjectFile, tool="automake"),
        (
            "Makefile.am: error: required file './NEWS' not found",
            MissingProjectFile(path="NEWS", tool="automake"),
        ),
    ),
    signature(
        "No rule to make target ",
        r"(?:g?make(?:\[\d{1,3}\])?: )?\*{3} No rule to make target [`'](?P<path>/[^'\s]{1,200})', needed by",
        _needed_file,
        (
            "make: *** No rule to make target '/usr/include/tcl8.6/tcl.h', needed by 'a.o'.  Stop.",
            MissingHeader(header="tcl8.6/tcl.h"),
        ),
        (
            "make: *** No rule to make target '/usr/lib/x86_64-linux-gnu/libz.so', needed by 'a'.  Stop.",
            MissingLibrary(library="libz.so", when="link"),
        ),
    ),
    signature(
        "missing and no known rule",
        r"(?:ninja: error: )?'(?P<path>/[^'\s]{1,200})', needed by '[^']{1,200}', missing and no known rule",
        _needed_file,
        (
            (
                "ninja: error: '/usr/lib/x86_64-linux-gnu/libGL.so', needed by 'bin/app', missing and no known rule "
                "to make"
            ),
            MissingLibrary(library="libGL.so", when="link"),
        ),
    ),
    signature(
        "ould not find lib",
        r"(?:scons: \*{3} |\*{2,4} |[Ee]rror: |ERROR: )(?:Could not|Cannot|Did not|Unable to) find (?:the "
        r")?(?P<name>lib[\w+-]{1,40})"
        r"(?: library| headers?)?\b",
        MissingDevelopmentFiles,
        ("scons: *** Could not find libconfuse library", MissingDevelopmentFiles(name="libconfuse")),
    ),
    signature(
        " missing",
        r"(?P<header>[\w+-]{1,40}(?:/[\w.+-]{1,40}){0,3}\.h) is missing\.",
        MissingHeader,
        ("mysql.h is missing.  You may need to install it", MissingHeader(header="mysql.h")),
    ),
    signature(
        " missing; ",
        r"(?P<name>[a-z][\w+-]{1,30}) is missing; necessary for",
        MissingDevelopmentFiles,
        ("zlib is missing; necessary for building libxml2", MissingDevelopmentFiles(name="zlib")),
    ),
    signature(
        ("'t find the ", "annot find the ", "ailed to find ", "nable to find ", "ould not find "),
        r"(?:[\w.]{1,60}: )?(?:Can't install \S{1,40} [\d.]{1,12}\. )?(?:Can't|Could not|Cannot|Unable to"
        r"|Failed to) find (?:the )?(?P<name>[A-Za-z][\w+-]{1,30})"
        r"(?:'s)? (?:library or one of the dependent libraries|development (?:headers|files|libraries|package))",
        _python_or_lower,
        (
            "Can't install RMagick 4.0. Can't find the ImageMagick library or one of the dependent libraries.",
            MissingDevelopmentFiles(name="imagemagick"),
        ),
        (
            "RuntimeError: Unable to find the Python development headers; install python3-dev",
            MissingHeader(header="Python.h"),
        ),
    ),
    signature(
        "onfigure: error: ",
        r"configure: error: (?:\*{1,4} ?)?(?:[Yy]ou (?:need|must|have) (?:to )?(?:install|have)|[Pp]lease "
        r"install|[Ii]nstall) (?:the )?"
        r"(?P<name>[A-Za-z][\w.+-]{1,40}?)(?:[ ,.](?:library|libraries|development|headers?|dev|package"
        r"|installed|first|and|or|to)\b|[,.]?$|[ ,.])",
        _configured_lib,
        (
            "configure: error: You need to install the libpng development package",
            MissingDevelopmentFiles(name="libpng"),
        ),
        ("configure: error: please install bison first", MissingCommand(command="bison")),
        near=("configure: error: You must have a working setup",),
    ),
    signature(
        "onfigure: error: ",
        r"configure: error: (?:\*{1,4} ?)?(?:(?:[Cc]an(?:not| not|'t)|[Cc]ould not|[Uu]nable to) find (?:a |an "
        r"|the )?(?:suitable |usable |required |recent )?(?:version of )?"
        r"(?:the )?)?(?P<name>[A-Za-z][\w.+-]{1,40}?)(?:::[A-Za-z]\w{0,30})?(?: library| libraries| headers?| "
        r"development (?:files|package|headers))?,? "
        r"(?:version )?(?:[<>=]{1,2} ?v?[\d.]{1,12}\d?(?: or (?:newer|later|above|higher))?|\(?[<>=]{1,2} "
        r"?[\d.]{1,12}\)?|[\d.]{1,12} or (?:newer|later|above|higher|greater))(?: or (?:newer|later|above"
        r"|higher))? "
        r"?(?:is |are |was |were )?(?:required|not found|needed|missing)",
        _configured_lib,
        (
            "configure: error: libcurl >= 7.40 required, but not found",
            MissingDevelopmentFiles(name="libcurl"),
        ),
    ),
    signature(
        "onfigure: error: ",
        r"configure: error: (?:\*{1,4} ?)?(?:[Cc]an(?:not| not|'t)|[Cc]ould not|[Uu]nable to|[Ff]ailed to) find "
        r"(?:a |an |the |any )?(?:suitable |usable |required |working )?"
        r"(?:version of (?:the )?|copy of )?(?P<name>[A-Za-z][\w.+-]{1,40}?)(?:::[A-Za-z]\w{0,30})?(?: library| "
        r"libraries| headers?| development files| installation)?\b[!.,;]",
        _configured_lib,
        (
            "configure: error: Could not find a version of the Boost::System library!",
            MissingDevelopmentFiles(name="boost"),
        ),
    ),
    signature(
        "onfigure: error: ",
        r"configure: error: .{0,100}?\brequired (?:for|by) (?P<name>[a-z][\w+-]{1,30}) support",
        _configured_lib,
        (
            "configure: error: could not find function 'deflate' required for zlib support",
            MissingDevelopmentFiles(name="zlib"),
        ),
    ),
    signature(
        "rror: Libtool library used but",
        r"(?:\S{1,80}:\d{1,6}: )?error: Libtool library used but 'LIBTOOL' is undefined",
        always(MissingCommand, command="libtoolize"),
        (
            "Makefile.am:3: error: Libtool library used but 'LIBTOOL' is undefined",
            MissingCommand(command="libtoolize"),
        ),
    ),
    signature(
        "nable to find PostgreSQL client library",
        r"Unable to find PostgreSQL client library",
        always(MissingConfigTool, tool="pg_config"),
        ("Unable to find PostgreSQL client library.", MissingConfigTool(tool="pg_config")),
    ),
    signature(
        "specified. Provide a path",
        r"(?:[\w:]{1,60}: ?)?A GDAL API version must be specified",
        always(MissingConfigTool, tool="gdal-config"),
        (
            "CRITICAL:root:A GDAL API version must be specified. Provide a path to gdal-config using a GDAL_CONFIG",
            MissingConfigTool(tool="gdal-config"),
        ),
    ),
    signature(
        ("resources found", "ibraries found"),
        r"(?:[\w.]{1,80}: )?No (?P<name>(?:lapack/blas|BLAS/LAPACK|BLAS|LAPACK|FFTW|HDF5)) (?:resources"
        r"|libraries) found",
        _blas,
        ("No lapack/blas resources found.", MissingDevelopmentFiles(name="lapack")),
        ("x.NotFoundError: No BLAS/LAPACK libraries found. Note: x", MissingDevelopmentFiles(name="blas")),
    ),
    signature(
        "annot find required auxiliary files",
        r"(?:configure: )?error: cannot find required auxiliary files",
        always(MissingProjectFile, path="configure", tool="automake"),
        (
            "error: cannot find required auxiliary files: compile missing install-sh config.guess",
            MissingProjectFile(path="configure", tool="automake"),
        ),
    ),
    signature(
        "no makefile found",
        r"g?make(?:\[\d{1,3}\])?: \*{3} No targets specified and no makefile found",
        always(MissingProjectFile, path="Makefile", tool="make"),
        (
            "make: *** No targets specified and no makefile found.  Stop.",
            MissingProjectFile(path="Makefile", tool="make"),
        ),
    ),
    signature(
        "PackageNotFoundError: ",
        r"pkgconfig\.(?:pkgconfig\.)?PackageNotFoundError: (?P<module>[\w.+-]{1,80}) not found",
        MissingPkgConfig,
        ("pkgconfig.pkgconfig.PackageNotFoundError: libzmq not found", MissingPkgConfig(module="libzmq")),
    ),
    signature(
        "find the '",
        r"Can't find the '(?P<header>[\w/.+-]{1,80}\.h)\b",
        MissingHeader,
        ("Can't find the 'libpq-fe.h header", MissingHeader(header="libpq-fe.h")),
    ),
    signature(
        "onfigure: error: Library requirements",
        r"configure: error: Library requirements \((?P<module>[^\s)]{1,100})(?: (?P<requirement>[<>=]{1,2} "
        r"[^\s),]{1,40}))?",
        MissingPkgConfig,
        (
            "configure: error: Library requirements (sqlite3 >= 3.7) not met; consider adjusting the path",
            MissingPkgConfig(module="sqlite3", requirement=">= 3.7"),
        ),
    ),
)
"""What is looked for before anything is compiled."""
