"""Programs that are not there, in the free words of libraries and tests.

There are few ways to put it: what kind of thing is missing (a program, an executable, ...), its name, that it was not
found, and where. A message that says program or PATH is a cause; one that says only that a name is not installed may
speak of anything, and is a symptom.
"""

from __future__ import annotations

from specbuild.failures import Failure, MissingCommand, MissingToolchain, Weight
from specbuild.predictors.commands import missing_command, program_or_file
from specbuild.predictors.phrases import OUTCOME, TOLD
from specbuild.predictors.signature import always, signature

_NOUN = r"(?:program|executable|command(?:[ -]line (?:tool|utility|program))?|tool|binary|utility|application)s?"
_NAME = r"[\"'`‘“]{0,2}(?P<command>[A-Za-z7][\w.+-]{1,40}?)[\"'`’”]{0,2}"
_GONE = (
    r"(?:(?:is|was|are|were|seems|appears)? ?(?:to be )?(?:not|missing|unavailable)"
    r"(?: (?:be )?(?:found|installed|available|present|detected|accessible|on|in))?"
    r"|(?:could|can|did|does) ?n[o']t (?:be )?(?:found|located|executed|run|detected|exist)"
    r"|(?:is|was|has)n't (?:been )?(?:found|installed|available)"
    r"|(?:needs? to|must|should) be (?:in|on|installed|available)"
    r"|is required|doesn't exist)"
)
_FIND = (
    r"(?:(?:[Cc]ould ?n[o']t|[Cc]an ?n[o']t|[Cc]an't|[Uu]nable to|[Ff]ailed to|[Dd]id ?n[o']t|[Cc]ould not|[Cc]an not)"
    r" (?:find|locate|execute|run|start|launch|invoke|detect)(?: (?:the|an?|any|required|valid))?)"
)
_PATH = r"(?:(?:on|in|from|via) (?:your |the |system(?:'s)? |env |environment )?(?:system(?:'s)? )?\$?(?:PATH|path)\b)"

_PROJECTS = {
    "poppler": "pdfinfo",
    "poppler-utils": "pdfinfo",
    "graphviz": "dot",
    "imagemagick": "convert",
    "ghostscript": "gs",
    "mercurial": "hg",
    "subversion": "svn",
    "gnupg": "gpg",
    "tesseract-ocr": "tesseract",
    "node.js": "node",
    "texlive": "latex",
    "libreoffice": "soffice",
    "protobuf": "protoc",
    "postgres": "postgres",
    "postgresql": "postgres",
    "mysql": "mysqld",
    "redis": "redis-server",
    "jdk": "javac",
}
"""What messages call by the name of a project → the program that they look for."""

_CAPITALS = frozenset({"xvfb", "xorg", "xephyr", "xnest"})
"""Programs whose names begin with a capital letter; others begin so only in a message."""

_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "any",
        "are",
        "value",
        "such",
        "as",
        "at",
        "be",
        "been",
        "by",
        "from",
        "has",
        "have",
        "in",
        "into",
        "on",
        "to",
        "args",
        "argument",
        "attribute",
        "class",
        "client",
        "column",
        "command",
        "config",
        "configuration",
        "data",
        "database",
        "dependency",
        "device",
        "directory",
        "document",
        "element",
        "entry",
        "executable",
        "file",
        "files",
        "fixture",
        "following",
        "for",
        "function",
        "given",
        "host",
        "id",
        "image",
        "index",
        "instance",
        "is",
        "it",
        "item",
        "key",
        "line",
        "method",
        "model",
        "module",
        "name",
        "not",
        "object",
        "of",
        "one",
        "option",
        "or",
        "package",
        "page",
        "parameter",
        "path",
        "plugin",
        "program",
        "project",
        "python",
        "record",
        "required",
        "resource",
        "route",
        "script",
        "server",
        "service",
        "session",
        "setting",
        "some",
        "source",
        "such",
        "table",
        "target",
        "template",
        "test",
        "tests",
        "that",
        "the",
        "them",
        "this",
        "tool",
        "token",
        "type",
        "user",
        "valid",
        "value",
        "variable",
        "version",
        "view",
        "was",
        "which",
        "with",
        "you",
        "your",
    ]
)


def _program(command: str, evidence: str, weight: Weight) -> Failure | None:
    name = command.strip(".")
    lower = name.lower()
    if lower in _WORDS or len(name) < 2 or lower.startswith(("lib", "--")) or lower.endswith((".py", ".txt", ".so")):
        return None
    if (
        lower in {"auxiliary", "pkg"}
        or lower.endswith("error")
        or "." in lower.removesuffix(".js").removesuffix(".exe")
    ):
        return None
    known = _PROJECTS.get(lower, name if lower in _CAPITALS or not name.istitle() else lower)
    failure = missing_command(known.removesuffix(".exe"), evidence)
    return failure.model_copy(update={"weight": weight})


def _sure(command: str, evidence: str, told: str = "") -> Failure | None:
    """Of a message that says program or PATH: a cause if something raises it."""
    return _program(command, evidence, Weight.CAUSE if told else Weight.SYMPTOM)


def _bare(command: str, evidence: str, told: str = "") -> Failure | None:
    """Of a message that may speak of a module or a package as well."""
    if "ImportError" in told or "ModuleNotFoundError" in told:
        return None
    return _program(command, evidence, Weight.SYMPTOM)


def _cause_told(command: str, evidence: str, told: str = "") -> Failure | None:
    del told
    return _program(command, evidence, Weight.CAUSE)


def _started(evidence: str, command: str = "") -> Failure | None:
    return missing_command(command, evidence) if command else None


def _tool(evidence: str, command: str = "", second: str = "") -> Failure:
    return missing_command((command or second).lower(), evidence)


def _after_127(command: str, evidence: str, code: str = "") -> Failure | None:
    """A shell ends with 127 if it does not find the command."""
    return missing_command(command, evidence) if code else None


def _path(path: str, evidence: str, told: str = "") -> Failure:
    del told
    return missing_command(path, evidence)


_LITERALS = (
    " PATH",
    "not found",
    "nstalled",
    "t be found",
    "annot be found",
    "not find",
    "annot find",
    "n't find",
    "nable to find",
    "nable to locate",
    "not locate",
    "annot locate",
    "ailed to find",
    "ailed to locate",
    "not available",
    "required",
    "issing",
    "not exist",
    "not run ",
    "annot run ",
    "annot execute",
    "not execute",
    "ailed to run",
    "ailed to execute",
    "nable to run",
    "nable to execute",
    "nstalled",
)

SIGNATURES = (
    signature(
        ("nable to run ", "annot run ", "not run ", "an not find ", "ailed to run "),
        rf"{TOLD}(?:Unable to run|Cannot run|Could not run|Failed to run|Can not find|Failed to start) "
        rf"[`'\"]?(?P<command>[a-zA-Z][\w+-]{{1,40}})['\"`]?\. "
        r"(?:Is it|Please|Make sure|Do you|Are you|You may)",
        _sure,
        ("E   RuntimeError: Unable to run pkg-config. Is it installed?", MissingCommand(command="pkg-config")),
        ("OSError: Can not find Xvfb. Please install it and try again.", MissingCommand(command="Xvfb")),
    ),
    signature(
        ("ailed to execute", "annot execute"),
        rf"{TOLD}(?:failed to|cannot) execute (?:\w{{1,20}}\(|\[)?{_NAME}[\])'\"]{{0,4}},.{{0,100}}\bPATH",
        _sure,
        (
            "x.ExecutableNotFound: failed to execute PosixPath('dot'), make sure the executables are on your PATH",
            MissingCommand(command="dot"),
        ),
    ),
    signature(
        _LITERALS,
        rf"(?:{TOLD})?(?:The |the |[Rr]equired |[Ee]xternal |[Nn]ecessary |An? |Some ){{0,2}}(?:[Pp]rogram|"
        rf"[Ee]xecutable|[Cc]ommand(?:[ -]line (?:tool|utility|program))?|[Tt]ool|[Bb]inary|[Uu]tility)s?:? "
        rf"{_NAME}(?: {_NOUN})? {_GONE}(?: {_PATH})?(?:[\s.,;:!]|$)",
        _sure,
        ("E   ValueError: Program nop not found in path.", MissingCommand(command="nop")),
        ("RuntimeError: The command 'xmllint' could not be found.", MissingCommand(command="xmllint")),
        ("error: required program `bison' is not installed", MissingCommand(command="bison")),
        (
            "Command 'svnadmin' not found, but can be installed with:",
            MissingCommand(command="svnadmin", weight=Weight.SYMPTOM),
        ),
        near=(
            "Program clang-format found: NO",
            "AssertionError: Command 'x' not found in the list",
            "ValueError: The command is required",
            "Skipped: command less not found",
        ),
    ),
    signature(
        _LITERALS,
        rf"(?:{TOLD})?(?:The |the )?{_NAME} {_NOUN} (?:{_GONE}|not found)(?: {_PATH})?(?:[\s.,;:!]|$)",
        _sure,
        (
            "x.WebDriverException: Message: 'geckodriver' executable needs to be in PATH.",
            MissingCommand(command="geckodriver"),
        ),
        ("RuntimeError: ffprobe executable not found", MissingCommand(command="ffprobe")),
        near=("ValueError: the executable not found", "error: no such command found"),
    ),
    signature(
        _LITERALS,
        rf"(?:{TOLD})?{_FIND} {_NOUN}(?: called| named|:)? {_NAME}(?:[\s.,;:!)]|$)",
        _sure,
        ("OSError: Unable to find executable 'inkscape'", MissingCommand(command="inkscape")),
        ("RuntimeError: could not run command xelatex: gone, not found", MissingCommand(command="xelatex")),
        near=("Could not find executable file of the project", "error: could not execute command in the file"),
    ),
    signature(
        _LITERALS,
        rf"(?:{TOLD})?{_FIND} {_NAME} (?:{_NOUN}|{_PATH})(?:[\s.,;:!]|$)",
        _sure,
        ("RuntimeError: Could not find 'patchelf' on the PATH", MissingCommand(command="patchelf")),
        ("RuntimeError: Unable to locate pdflatex executable", MissingCommand(command="pdflatex")),
        near=("Error: could not find the value in path",),
    ),
    signature(
        _LITERALS,
        rf"{TOLD}{_FIND} {_NAME}[\s.,;:!(-]{{1,4}}.{{0,80}}?(?:\bPATH\b|[Ii]nstall)",
        _bare,
        (
            "Exception: could not find wkhtmltopdf, please install it",
            MissingCommand(command="wkhtmltopdf", weight=Weight.SYMPTOM),
        ),
        near=("ImportError: could not find numpy, please install it",),
    ),
    signature(
        " PATH",
        rf"{TOLD}(?:The |the )?{_NAME} (?:is |was )?(?:{_GONE})?(?: or (?:is |it's |it is )?not)? ?{_PATH}",
        _sure,
        ("OSError: ffmpeg was not found in PATH", MissingCommand(command="ffmpeg")),
        ("x.NotFound: dot must be installed and in PATH", None),
        near=("OSError: setting was not found in PATH",),
    ),
    signature(
        ("nstalled", "not be found", "not found", "n't installed", "must be installed"),
        rf"{TOLD}(?:The |the )?{_NAME} {_GONE}(?: on (?:this|the|your) (?:system|machine|computer))?(?:[.,;:!]"
        rf"|$| -|\))",
        _bare,
        (
            "RuntimeError: ffmpeg could not be found on the system; please install it",
            MissingCommand(command="ffmpeg", weight=Weight.SYMPTOM),
        ),
        near=("KeyError: 'a' not found", "ValueError: the file is not installed"),
    ),
    signature(
        "nstalled",
        rf"(?:{TOLD}).{{0,160}}?\b[Ii]s {_NAME} installed(?: and (?:on|in) (?:your |the )?\$?PATH)?\?",
        _bare,
        (
            "x.InfoError: Unable to get page count. Is poppler installed and in PATH?",
            MissingCommand(command="pdfinfo", weight=Weight.SYMPTOM),
        ),
        near=("Is it installed?",),
    ),
    signature(
        "was found",
        rf"{TOLD}No {_NAME} (?:{_NOUN} )?(?:was )?found\b.{{0,60}}?(?:\bPATH\b|[Ii]nstall)",
        _sure,
        ("OSError: No pandoc was found: either install pandoc and add the directory", MissingCommand(command="pandoc")),
    ),
    signature(
        "') not found",
        rf"{TOLD}Cmd\('(?P<command>[\w.+-]{{1,40}})'\) not found",
        _cause_told,
        ("git.exc.GitCommandNotFound: Cmd('git') not found due to: x", MissingCommand(command="git")),
    ),
    signature(
        "annot run program ",
        r"(?:\[\w{1,10}\] )?(?:Caused by: |Exception in thread \"[^\"]{1,40}\" )?(?:[\w.]{1,100}: ){0,2}"
        r"Cannot run program \"(?P<name>[^\"\s]{1,200})\".{0,200}error=2, ",
        program_or_file,
        (
            'java.io.IOException: Cannot run program "gpg" (in directory "/w"): error=2, No such file or directory',
            MissingCommand(command="gpg"),
        ),
    ),
    signature(
        "No such file or directory - ",
        r"(?:.{0,200}: )?(?:Errno::ENOENT: )?No such file or directory - (?P<name>[^\s()]{1,200})(?: "
        r"\(Errno::ENOENT\))?$",
        program_or_file,
        ("Errno::ENOENT: No such file or directory - identify", MissingCommand(command="identify")),
        (
            "/w/a.rb:3:in `spawn': No such file or directory - node (Errno::ENOENT)",
            MissingToolchain(language="node", program="node"),
        ),
        near=("# No such file or directory - identify",),
    ),
    signature(
        "Bad git executable",
        r"(?:ImportError: )?Bad git executable\.?$",
        always(MissingCommand, command="git"),
        ("ImportError: Bad git executable.", MissingCommand(command="git")),
    ),
    signature(
        'The command "',
        OUTCOME + r".{0,120}?The command \"'?(?P<command>[\w.+-]{1,60})[^\"]{0,300}\" failed\.$",
        _after_127,
        (
            "The command \"'rsync' '-a'\" failed.\n\nExit Code: 127(Command not found)",
            MissingCommand(command="rsync"),
        ),
        ("The command \"'rsync' '-a'\" failed.\n\nExit Code: 1(General error)", None),
        follow=r"Exit Code: (?P<code>127)",
    ),
    signature(
        "failed with ENOENT",
        r"(?:Error: )?Command failed with ENOENT: (?P<command>[\w.+-]{1,60})",
        missing_command,
        ("Error: Command failed with ENOENT: rsync --version", MissingCommand(command="rsync")),
    ),
    signature(
        ("which: no ", "hich: no "),
        r"(?:/usr/bin/)?which: no (?P<command>[\w.+-]{1,60}) in \(",
        _bare,
        (
            "which: no javac in (/usr/bin:/bin)",
            MissingToolchain(language="java", program="javac", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        ("ou must have ", "ou need to have "),
        r"(?:\*{0,3}[Ee]rror\*{0,3}:? )?(?:You must have|[Yy]ou need to have) "
        r"[`'\"]?(?P<command>[a-z][\w.+-]{1,40})['\"`]? "
        r"(?:\S{1,20} )?installed",
        _bare,
        (
            "**Error**: You must have `intltool' installed to compile x.",
            MissingCommand(command="intltool", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "CommandNotFound: ",
        OUTCOME + r"[\w.]{1,80}\.CommandNotFound: (?:\(')?(?P<command>[\w.+-]{1,60})(?:'|$)",
        missing_command,
        ("E   sh.CommandNotFound: rsync", MissingCommand(command="rsync")),
        (
            "plumbum.commands.processes.CommandNotFound: ('ssh', ['/usr/bin', '/bin'])",
            MissingCommand(command="ssh"),
        ),
    ),
    signature(
        "was not found or was not executable: ",
        rf"{TOLD}The command was not found or was not executable: (?P<command>[\w.+-]{{1,60}}?)\.?$",
        _sure,
        (
            "pexpect.exceptions.ExceptionPexpect: The command was not found or was not executable: tmux.",
            MissingCommand(command="tmux"),
        ),
    ),
    signature(
        ("xecutable found", "xe could be found", "inary found", "xe found", "program found"),
        rf"{TOLD}No {_NAME} (?:exe|executable|binary|program|command)s? (?:could be |was |were )?found\b",
        _sure,
        ("OSError: No wkhtmltopdf executable found: x", MissingCommand(command="wkhtmltopdf")),
        near=("OSError: No such executable found",),
    ),
    signature(
        ("ould not found /", "ould not find /", "annot find /", "nable to find /", "not found: /", "exec /"),
        rf"(?:{TOLD})?(?:(?:[Cc]ould not|[Cc]annot|[Uu]nable to) (?:found|find) |fork/exec "
        rf")(?P<path>/(?:[\w.+-]{{1,40}}/){{1,8}}s?bin/[\w.+-]{{1,60}}?)"
        r"(?:[.,;:!]?$|[.,;:!] )",
        _path,
        (
            "x.ExecutableMissingException: Could not found /usr/lib/postgresql/15/bin/pg_ctl. Is PostgreSQL there?",
            MissingCommand(command="pg_ctl"),
        ),
        ("fork/exec /usr/bin/newuidmap: no such file or directory", MissingCommand(command="newuidmap")),
    ),
    signature(
        ("is required but", "s required, but"),
        r"(?:[Mm]akefile:\d{1,6}: \*{3} )?\"?(?:[Ee]rror: )?(?:The )?[`'\"]?(?P<command>[a-z][\w.+-]{1,40})['\"`"
        r"]? is required,? but (?:it is |it's |was )?not "
        r"(?:installed|found|available)",
        _bare,
        (
            'Makefile:14: *** "python3 is required but not installed".  Stop.',
            MissingCommand(command="python3", weight=Weight.SYMPTOM),
        ),
        near=("a value is required but not available",),
    ),
    signature(
        "ould not execute process `",
        r"(?:error: )?could not execute process `(?P<command>[\w./+-]{1,120})(?: [^`]{0,300})?` \(never executed\)",
        missing_command,
        (
            "error: could not execute process `protoc --version` (never executed)",
            MissingCommand(command="protoc"),
        ),
    ),
    signature(
        "failed to execute: ",
        r"(?:error occurred(?: in cc-rs)?: )?Command \"?(?P<command>[\w./+-]{1,80})\"? failed to execute: No such file",
        missing_command,
        (
            'error occurred: Command "cmake" failed to execute: No such file or directory',
            MissingCommand(command="cmake"),
        ),
    ),
    signature(
        "Command failed to start: No such file",
        r"(?:\w[\w ]{0,40}: )?Command failed to start: No such file or directory",
        _started,
        (
            (
                "Command failed to start: No such file or directory (os error 2)\n"
                'Command: cd "/w/build" && env -u A CC="cc" "perl" "./Configure"'
            ),
            MissingCommand(command="perl"),
        ),
        follow=r"Command: (?:cd \"[^\"]{1,300}\" && )?(?:env (?:-u [A-Z]{1,20} ){0,4})?(?:[A-Z_]{1,20}=\"[^\"]{0,200}\""
        r" ){0,12}\"(?P<command>[\w./+-]{1,60})\"",
        within=2,
    ),
    signature(
        ("no Python 3.x interpreter found", "interpreter found"),
        r"(?:error: )?[Nn]o [Pp]ython(?: 3\.x)? interpreter found",
        always(MissingCommand, command="python3"),
        ("error: no Python 3.x interpreter found", MissingCommand(command="python3")),
    ),
    signature(
        ("must be installed to ", "roblem with the CMake "),
        r"(?:[\w.]{1,60}: )?(?:(?P<command>CMake|Ninja|SWIG|Git|Bison|Flex|Perl|Go|Rust|pkg-config|cmake|ninja"
        r"|swig|git) must be installed to "
        r"|Problem with the (?P<second>CMake) installation, aborting)",
        _tool,
        (
            "RuntimeError: CMake must be installed to build the following extensions: dlib",
            MissingCommand(command="cmake"),
        ),
        (
            "Problem with the CMake installation, aborting build. CMake executable is cmake",
            MissingCommand(command="cmake"),
        ),
    ),
    signature(
        "bundler: command not found: ",
        r"bundler: (?:command not found|failed to load command): (?P<command>[\w.+-]{1,60})",
        missing_command,
        ("bundler: command not found: rspec", MissingCommand(command="rspec")),
    ),
    signature(
        "NoBackendError",
        r"(?:[\w.]{1,60}\.)?NoBackendError(?:: |$)",
        always(MissingCommand, command="ffmpeg", weight=Weight.SYMPTOM),
        ("E   audioread.exceptions.NoBackendError", MissingCommand(command="ffmpeg", weight=Weight.SYMPTOM)),
    ),
)
"""Missing programs, as those say it who wanted to run them."""
