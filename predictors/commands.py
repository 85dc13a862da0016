"""Programs that are not there, as shells, interpreters and build tools say it."""

from __future__ import annotations

import re

from specbuild.failures import (
    CompilerFailed,
    Failure,
    MissingCommand,
    MissingConfigTool,
    MissingData,
    MissingMacro,
    MissingProjectFile,
    MissingToolchain,
    Weight,
)
from specbuild.predictors.phrases import OUTCOME
from specbuild.predictors.signature import always, signature

_COMPILERS: dict[str, str] = {
    "cc": "c",
    "gcc": "c",
    "clang": "c",
    "cpp": "c",
    "c++": "c++",
    "g++": "c++",
    "clang++": "c++",
    "gfortran": "fortran",
    "f77": "fortran",
    "f95": "fortran",
    "rustc": "rust",
    "cargo": "rust",
    "go": "go",
    "javac": "java",
    "java": "java",
    "node": "node",
    "nodejs": "node",
}
_TRIPLET = re.compile(r"^[a-z0-9_]{2,12}-(?:[a-z]{2,10}-)?linux-gnu\w{0,8}-|-\d{1,3}(?:\.\d{1,3})?$")
_CONFIG = re.compile(r"[-_]config$")
_PROGRAM = re.compile(r"[a-z0-9][A-Za-z0-9_+.-]{0,60}$|[A-Z][a-z][A-Za-z0-9_+-]{0,60}$")
_FILE = re.compile(r"\.[a-z]{2,6}$")
_SCRIPTS = (".sh", ".py", ".pl", ".rb")


_MACRO = re.compile(r"[A-Z]{1,6}_[A-Z0-9_]{2,60}$")


def missing_command(command: str, evidence: str) -> Failure:
    """What a missing program stands for: a toolchain, the flags of a library, or itself."""
    name = _TRIPLET.sub("", command.rsplit("/", 1)[-1]) if command.startswith("/") else _TRIPLET.sub("", command)
    if language := _COMPILERS.get(name):
        return MissingToolchain.model_validate({"language": language, "program": name, "evidence": evidence})
    if _CONFIG.search(name) and name != "pkg-config":
        return MissingConfigTool(tool=name, evidence=evidence)
    if _MACRO.match(name):  # autoconf left a macro that it does not know, and the shell runs it
        return MissingMacro(macro=name, evidence=evidence)
    if command.startswith("./"):
        return MissingProjectFile(path=command[2:], tool="sh", evidence=evidence)
    return MissingCommand(command=name, evidence=evidence)


def program_or_file(name: str, evidence: str) -> Failure:
    """The interpreter says the same of a program that cannot be run and of a file that cannot be opened."""
    program = name.rsplit("/", 1)[-1] if name.startswith(("/usr/bin/", "/bin/", "/usr/local/bin/")) else name
    if _PROGRAM.match(program) and not _FILE.search(program):
        return missing_command(program, evidence)
    return MissingData(path=name, evidence=evidence, weight=Weight.SYMPTOM)


def _failed_compiler(command: str, evidence: str) -> Failure | None:
    name = _TRIPLET.sub("", command.rsplit("/", 1)[-1])
    if name not in _COMPILERS:
        return None
    return CompilerFailed(compiler=name, evidence=evidence, weight=Weight.SYMPTOM)


_PARTS = {"cc1": "c", "cc1plus": "c++", "cc1obj": "c", "f951": "fortran", "lto1": "c"}
"""Compilers proper, which the driver runs."""


def _part_of_compiler(command: str, evidence: str) -> Failure:
    if language := _PARTS.get(command):
        return MissingToolchain.model_validate({"language": language, "program": command, "evidence": evidence})
    return missing_command(command, evidence)


def _script_or_program(path: str, evidence: str) -> Failure:
    name = path.rsplit("/", 1)[-1]
    if path.startswith("/") and ("/bin/" in path) and _PROGRAM.match(name) and not _FILE.search(name):
        return missing_command(path, evidence)
    return MissingProjectFile(path=path, tool="sh", evidence=evidence)


SIGNATURES = (
    signature(
        "No such file or directory: ",
        OUTCOME + r"(?:[A-Za-z.]{1,60}: Could not run \S{1,60}: |"
        r"(?:FileNotFoundError|OSError|error|subprocess\.\w{1,40}|ERROR|Error|(?!IO)[\w.]{1,80}Error): )"
        r"(?:Could not run \S{1,60}: |server exited with status \d{1,3}: )?\[Errno 2\] No such file or "
        r"directory: b?['\"](?P<name>[^'\"\s]{1,200})['\"]"
        r"(?:: b?['\"][^'\"\s]{1,200}['\"])?$",
        program_or_file,
        (
            "error: [Errno 2] No such file or directory: 'gcc'",
            MissingToolchain(language="c", program="gcc"),
        ),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: 'convert'",
            MissingCommand(command="convert"),
        ),
        (
            "FAILED t.py::test_a - FileNotFoundError: [Errno 2] No such file or directory: 'rsync': 'rsync'",
            MissingCommand(command="rsync"),
        ),
        (
            "FlagsError: Could not run xslt-config: [Errno 2] No such file or directory: 'xslt-config'",
            MissingConfigTool(tool="xslt-config"),
        ),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: 'tests/data/a.bin'",
            MissingData(path="tests/data/a.bin", weight=Weight.SYMPTOM),
        ),
        near=(
            "The error reads FileNotFoundError: [Errno 2] No such file or directory: 'gcc'",
            "expected = \"[Errno 2] No such file or directory: 'gcc'\"",
        ),
    ),
    signature(
        "No such file or directory: ",
        r"IOError: \[Errno 2\] No such file or directory: u?'(?P<path>[^']{1,200})'$",
        MissingData,
        (
            "IOError: [Errno 2] No such file or directory: '/home/ci/.netrc'",
            MissingData(path="/home/ci/.netrc"),
        ),
    ),
    signature(
        "No such file or directory",
        r"(?:/usr/bin/)?env: ['‘\"](?P<command>[^'’\"\s]{1,80})['’\"]: No such file or directory$",
        missing_command,
        ("/usr/bin/env: ‘perl6’: No such file or directory", MissingCommand(command="perl6")),
        ("env: 'node': No such file or directory", MissingToolchain(language="node", program="node")),
    ),
    signature(
        "not found",
        r"(?:[^\s`'\"]{1,200}: (?:line )?\d{1,6}: |(?:/\S{1,60}/)?(?:ba|da|a|z|)sh: |make(?:\[\d{1,3}\])?: )"
        r"(?:[^\s`'\"]{1,200}: )?(?P<command>[\w./+-]{1,80}): (?:[Cc]ommand )?not found$",
        missing_command,
        ("/bin/sh: 1: xml2-config: not found", MissingConfigTool(tool="xml2-config")),
        ("bash: line 1: cmake: command not found", MissingCommand(command="cmake")),
        ("bash: ninja: command not found", MissingCommand(command="ninja")),
        ("./configure: line 9: AX_PTHREAD: command not found", MissingMacro(macro="AX_PTHREAD")),
        ("./autogen.sh: 3: ./autogen.sh: gtkdocize: not found", MissingCommand(command="gtkdocize")),
        ("sh: 1: tsc: not found", MissingCommand(command="tsc")),
        near=(
            "checking for gcc... not found",
            "This fails with bash: foo: command not found in the README",
            "404: page not found",
            "GET /x: not found",
        ),
    ),
    signature(
        "not found",
        r"(?:OSError|EnvironmentError|RuntimeError|Exception|Error|error|ERROR): (?:Could not find \w{1,30}: )?"
        r"(?P<command>[a-z][\w.+-]{0,60}(?:-|_)config) (?:executable )?(?:was )?not found",
        missing_command,
        ("Error: pg_config executable not found.", MissingConfigTool(tool="pg_config")),
        ("OSError: sdl2-config not found", MissingConfigTool(tool="sdl2-config")),
    ),
    signature(
        "xecutable not found",
        r"(?:\w{1,40}: )?(?!the |an? |no |this )(?P<command>[a-z][\w.+-]{0,60}) executable not found\b(?! in \$PATH)",
        missing_command,
        ("proj executable not found. Please set the PROJ_DIR variable.", MissingCommand(command="proj")),
        near=("If the executable not found message shows, install it",),
    ),
    signature(
        "failed: No such file or directory",
        r"(?:error: )?command '(?P<command>[^'\s]{1,200})' failed: No such file or directory$",
        missing_command,
        ("error: command 'bison' failed: No such file or directory", MissingCommand(command="bison")),
        (
            "error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory",
            MissingToolchain(language="c", program="gcc"),
        ),
    ),
    signature(
        "unable to execute '",
        r"(?:error: )?unable to execute '(?P<command>[^'\s]{1,200})': No such file or directory$",
        missing_command,
        ("unable to execute 'gcc': No such file or directory", MissingToolchain(language="c", program="gcc")),
    ),
    signature(
        "failed with exit ",
        r"error: command '(?P<command>[^'\s]{1,200})' failed with exit (?:status|code) 1$",
        _failed_compiler,
        (
            "error: command '/usr/bin/gcc' failed with exit code 1",
            CompilerFailed(compiler="gcc", weight=Weight.SYMPTOM),
        ),
        near=("error: command 'ls' failed with exit code 1",),
    ),
    signature(
        "Can't exec ",
        r"(?:\w{1,20}: )?Can't exec \"(?P<command>[^\"\s]{1,80})\": No such file or directory",
        missing_command,
        (
            'Can\'t exec "libtoolize": No such file or directory at /usr/bin/autoreconf line 196.',
            MissingCommand(command="libtoolize"),
        ),
    ),
    signature(
        "No such file or directory",
        r"make(?:\[\d{1,3}\])?: (?P<command>[\w.+-]{1,80}): No such file or directory$",
        missing_command,
        ("make[2]: flex: No such file or directory", MissingCommand(command="flex")),
        near=("make: Makefile: No such file or directory is what you would see",),
    ),
    signature(
        "xecutable file not found",
        r"(?:[^\"]{1,120}\"|(?:[\w ]{1,40}: ){1,3})?exec: \"(?P<command>[^\"\s]{1,80})\": executable file not "
        r"found in \$PATH",
        missing_command,
        (
            'exec: "protoc": executable file not found in $PATH',
            MissingCommand(command="protoc"),
        ),
    ),
    signature(
        ("not in PATH", "not in your", "not in the", "not in path", "not in system"),
        r"[\w.]{1,100}: (?P<command>[a-z][\w.+-]{0,60}) (?:is not|isn't|was not) (?:installed|found)"
        r" (?:or|and|nor) (?:it's |it is )?not in (?:your |the )?(?:system )?PATH",
        missing_command,
        (
            "shapes.ExecutableError: dot is not installed or it's not in your PATH.",
            MissingCommand(command="dot"),
        ),
    ),
    signature(
        "Cannot find command ",
        r"(?:ERROR: )?Cannot find command '(?P<command>[^'\s]{1,60})' - do you have",
        missing_command,
        (
            "ERROR: Cannot find command 'hg' - do you have 'hg' installed and in your PATH?",
            MissingCommand(command="hg"),
        ),
    ),
    signature(
        "may not be available",
        r"OSError: Unable to run (?P<command>[\w.+-]{1,60}) \([^)]{1,120}\) - it may not be available",
        missing_command,
        ("OSError: Unable to run gpg (gpg) - it may not be available.", MissingCommand(command="gpg")),
    ),
    signature(
        "CalledProcessError: Command",
        r"(?:subprocess\.)?CalledProcessError: Command '?(?:\[')?(?P<command>[\w.+-]{1,60})(?:'?,? "
        r"[^]]{0,200}?)?['\]]{1,3} "
        r"returned non-zero exit status 127",
        missing_command,
        (
            "subprocess.CalledProcessError: Command 'krb5-config --libs gssapi' returned non-zero exit status 127.",
            MissingConfigTool(tool="krb5-config"),
        ),
    ),
    signature(
        "ot found: ",
        r"stack Error: not found: (?P<command>[\w.+-]{1,60})$",
        missing_command,
        ("gyp ERR! stack Error: not found: gmake", MissingCommand(command="gmake")),
    ),
    signature(
        "find Python",
        r"find Python (?:You need to install|Python is not set)",
        always(MissingCommand, command="python3"),
        (
            "npm ERR! gyp ERR! find Python You need to install the latest version of Python.",
            MissingCommand(command="python3"),
        ),
    ),
    signature(
        "command could not be found",
        r"The (?P<command>[\w.+-]{1,60}) command could not be found\.",
        missing_command,
        ("  The pkg-config command could not be found.", MissingCommand(command="pkg-config")),
    ),
    signature(
        ("ould not find `", "` not installed?"),
        r"(?:Error: \"?)?(?:is `|[Cc]ould not find `)(?P<command>[\w.+-]{1,40})`"
        r"(?: not installed\?| installation| executable| binary| program)",
        missing_command,
        ("is `cmake` not installed?", MissingCommand(command="cmake")),
        (
            'Error: "Could not find `protoc` installation and this build crate cannot proceed',
            MissingCommand(command="protoc"),
        ),
    ),
    signature(
        "find Python executable",
        r"(?:stack Error: )?Can't find Python executable",
        always(MissingCommand, command="python3"),
        (
            'gyp ERR! stack Error: Can\'t find Python executable "python", you can set the PYTHON env variable.',
            MissingCommand(command="python3"),
        ),
    ),
    signature(
        "ENOENT",
        r"(?:Error: |enoent )?spawn (?P<command>[\w./+-]{1,80}) ENOENT$",
        missing_command,
        ("npm ERR! enoent spawn git ENOENT", MissingCommand(command="git")),
        ("Error: spawn convert ENOENT", MissingCommand(command="convert")),
    ),
    signature(
        "command not found: ",
        r"zsh: command not found: (?P<command>[\w.+-]{1,60})$",
        missing_command,
        ("zsh: command not found: meson", MissingCommand(command="meson")),
    ),
    signature(
        "is not installed",
        r"\S{1,60} could not be (?:built|installed|compiled) .{0,60}because "
        r"(?P<command>[\w.+-]{1,40}) is not installed",
        missing_command,
        (
            "psutil could not be installed from sources because gcc is not installed. Try running:",
            MissingToolchain(language="c", program="gcc"),
        ),
    ),
    signature(
        "No such file or directory",
        r"[^\s`'\"]{1,200}: line \d{1,6}: (?P<path>[\w.+-]{0,60}/[^\s:]{1,200}): No such file or directory$",
        _script_or_program,
        (
            "run.sh: line 4: scripts/env.sh: No such file or directory",
            MissingProjectFile(path="scripts/env.sh", tool="sh"),
        ),
    ),
    signature(
        "No such file or directory",
        r"(?:cat|cp|mv|sed|grep|awk|ls|source|install|chmod|tar): (?:can't read |cannot (?:stat|access|open) )?"
        r"['‘]?(?P<path>[^\s:'’]{1,200})['’]?: No such file or directory$",
        always(MissingData, weight=Weight.SYMPTOM),
        (
            "cp: cannot stat 'build/x.so': No such file or directory",
            MissingData(path="build/x.so", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        ("annot execute '", "annot execute ‘", "annot find 'ld'", "rror trying to exec "),
        r"(?:gcc|g\+\+|cc|c\+\+|clang|collect2|gfortran): (?:fatal )?error: (?:cannot execute|cannot find|error "
        r"trying to exec) [‘'\"](?P<command>[\w.+-]{1,40})[’'\"]",
        _part_of_compiler,
        (
            "gcc: fatal error: cannot execute 'cc1plus': execvp: No such file or directory",
            MissingToolchain(language="c++", program="cc1plus"),
        ),
        ("collect2: fatal error: cannot find 'ld'", MissingCommand(command="ld")),
    ),
)
"""Missing programs."""
