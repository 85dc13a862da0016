"""pkg-config, autotools, and the checks of setup scripts."""

from __future__ import annotations

from specbuild.failures import (
    Failure,
    MissingCommand,
    MissingDevelopmentFiles,
    MissingHeader,
    MissingLibrary,
    MissingMacro,
    MissingPkgConfig,
    StageFailed,
    Weight,
)
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


SIGNATURES = (
    signature(
        "was not found in the pkg-config search path",
        r"Package ['\"]?(?P<module>[^\s'\"]{1,100})['\"]? was not found in the pkg-config search path",
        MissingPkgConfig,
        ("Package libusb-1.0 was not found in the pkg-config search path.", MissingPkgConfig(module="libusb-1.0")),
    ),
    signature(
        ("', required by '", "No package '"),
        r"(?P<went_on>-- {0,4})?(?:Package|No package) '(?P<module>[^\s']{1,100})'(?:, required by '[^']{1,100}', not)? found$",
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
        "configure: error: ",
        r"configure: error: (?:\*{1,4} ?)?(?:(?:[Cc]an(?:not|'t|not)|[Cc]ould not|[Uu]nable to) find (?:the )?)?"
        r"(?P<name>lib[\w.+-]{1,40}|[A-Z]?[A-Za-z0-9]{2,20})(?: (?:library|libraries|headers?|development files))?"
        r"(?: (?:was |were )?not found| (?:is|are) (?:required|missing|needed)|$)",
        _lower,
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
)
"""What is looked for before anything is compiled."""
