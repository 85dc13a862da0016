"""Memory, time and signals, as compilers and run times of all languages say that a limit was reached."""

from __future__ import annotations

from specbuild.failures import DiskFull, Failure, Killed, OutOfMemory, TimedOut, Weight
from specbuild.predictors.phrases import RAISED
from specbuild.predictors.signature import always, signature


def _killed(evidence: str) -> Failure:
    return Killed(signal="SIGKILL", evidence=evidence)


def _milliseconds(evidence: str, first: str = "", second: str = "") -> Failure:
    """The limit of one test, which may be one of many."""
    return TimedOut(seconds=f"{int(first or second) / 1000:g}", evidence=evidence, weight=Weight.SYMPTOM)


SIGNATURES = (
    signature(
        "ompiler error: Killed",
        r"(?:(?P<program>[\w+.-]{1,40}): )?internal compiler error: Killed(?: \(program \w{1,20}\))?",
        OutOfMemory,
        ("c++: internal compiler error: Killed (program cc1plus)", OutOfMemory(program="c++")),
    ),
    signature(
        ("erminated with signal 9", "ignal: 9, SIGKILL"),
        r"(?:collect2: fatal error: (?P<program>ld) terminated with signal 9"
        r"|(?:process didn't exit successfully: `.{1,800}?` |could not compile `[^`]{1,80}`[^;]{0,60}; "
        r")?\(signal: 9, SIGKILL: kill\)$)",
        OutOfMemory,
        ("collect2: fatal error: ld terminated with signal 9 [Killed]", OutOfMemory(program="ld")),
        ("process didn't exit successfully: `rustc --crate-name a` (signal: 9, SIGKILL: kill)", OutOfMemory()),
        near=("docs.md: it may end with `(signal: 9, SIGKILL: kill)`.",),
    ),
    signature(
        ("signal: killed", 'signal "SIGKILL"'),
        r"(?:\S{1,200}: )?(?:signal: killed$|(?:error )?Command failed with signal \"SIGKILL\")",
        _killed,
        ("/usr/local/go/pkg/tool/compile: signal: killed", Killed(signal="SIGKILL")),
        ('error Command failed with signal "SIGKILL".', Killed(signal="SIGKILL")),
    ),
    signature(
        "disappeared unexpectedly",
        r"(?:> )?Gradle build daemon disappeared unexpectedly",
        always(Killed, program="gradle"),
        (
            "> Gradle build daemon disappeared unexpectedly (it may have been killed or may have crashed)",
            Killed(program="gradle"),
        ),
    ),
    signature(
        "llowed memory size of ",
        r"(?:PHP )?Fatal error: {1,2}Allowed memory size of \d{1,15} bytes exhausted",
        always(OutOfMemory, program="php"),
        (
            "PHP Fatal error:  Allowed memory size of 134217728 bytes exhausted (tried to allocate 20480 bytes) in",
            OutOfMemory(program="php"),
        ),
    ),
    signature(
        "nsufficient memory for the Java",
        r"# There is insufficient memory for the Java Runtime Environment to continue",
        always(OutOfMemory, program="java"),
        (
            "# There is insufficient memory for the Java Runtime Environment to continue.",
            OutOfMemory(program="java"),
        ),
    ),
    signature(
        ("to allocate memory", "ut of memory", "std::bad_alloc", "memory allocation of "),
        r"(?:LLVM ERROR: out of memory|fatal error: runtime: out of memory|(?:\S{1,160}: )?failed to allocate memory "
        r"\(NoMemoryError\)|memory allocation of \d{1,20} bytes failed|terminate called after throwing an instance of "
        r"'std::bad_alloc'|c(?:c1|c1plus): out of memory allocating|FATAL ERROR: .{0,120}out of memory)",
        OutOfMemory,
        ("LLVM ERROR: out of memory", OutOfMemory()),
        ("cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes", OutOfMemory()),
        ("memory allocation of 4096 bytes failed", OutOfMemory()),
    ),
    signature(
        "est timed out after ",
        r"panic: test timed out after (?P<seconds>[\w.]{1,20})",
        TimedOut,
        ("panic: test timed out after 10m0s", TimedOut(seconds="10m0s")),
    ),
    signature(
        ("xceeded timeout of ", "imeout of "),
        r"(?:(?:\w{0,40}Error|thrown): \"?)?(?:Exceeded timeout of (?P<first>\d{1,8}) ?ms for a (?:test|hook)"
        r"|Timeout of (?P<second>\d{1,8})ms exceeded)",
        _milliseconds,
        (
            'Error: Timeout of 2000ms exceeded. For async tests and hooks, ensure "done()" is called',
            TimedOut(seconds="2", weight=Weight.SYMPTOM),
        ),
        (
            'thrown: "Exceeded timeout of 5000 ms for a test.',
            TimedOut(seconds="5", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "***Timeout",
        r"\s{0,4}\d{1,6}/\d{1,6} Test {1,6}#\d{1,6}: \S{1,80} \.{1,80}\*\*\*Timeout {1,6}(?P<seconds>[\d.]{1,12}) sec",
        TimedOut,
        ("1/2 Test #1: slow .............***Timeout 1500.01 sec", TimedOut(seconds="1500.01")),
    ),
    signature(
        ("o space left on device", "rror: database or disk is full"),
        RAISED
        + r"(?:(?:open|write|mkdir|copy|create) \S{1,160}: )?(?:no space left on device$|database or disk is full)",
        DiskFull,
        ("write /x/a: no space left on device", DiskFull()),
        ("sqlite3.OperationalError: database or disk is full", DiskFull()),
    ),
)
"""Limits of the machine."""
