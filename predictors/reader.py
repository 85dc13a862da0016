"""Reads the output of a command line by line and tells what is going wrong in it.

The work for a line is bounded, whatever it holds: a long line is cut, a few substrings decide whether it can tell of
anything, and only the signatures of those substrings look at it. Nothing is kept of lines but what failures need.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from specbuild.failures import Failure, Weight
from specbuild.predictors.signature import Found, Signature
from specbuild.predictors.text import EVIDENCE, LINE, inner, plain

MOST = 500
"""Failures that one reader reports; what is wrong shows in the first few."""

_BUILDS = re.compile(r"\s{0,12}(?P<what>Building|Built) (?P<name>[A-Za-z0-9][\w.-]{0,80}?)(?:==| @ )")

_OPEN = 16
"""Signatures that may wait for a following line at a time."""

_LEADERS = 4
"""Texts of a line that are looked at: itself, and what is left of it without the classes of exceptions before it."""

GATES = (
    "rror",
    "ERR",
    "ENOENT",
    "configure: line",
    "not ",
    "annot",
    "'t ",
    "No ",
    "NO ",
    "no ",
    "find",
    "ound",
    "FOUND",
    "pkg_config fail",
    "issing",
    "ailed",
    "ailure",
    "requires",
    "required",
    "refused",
    "nvalid",
    "illed",
    "denied",
    "support",
    "indicates",
    "mismatch",
    "imed out",
    "imeout",
    "arning",
    "nknown",
    "fatal: ",
    "nable to",
    "undefined",
    "lock",
    "ompatib",
    "ake sure",
    "Ran 0 ",
    "collected 0 ",
    "Neither ",
    "compiler",
    "ariable",
    "specified",
    "getaddrinfo",
    "EAI_AGAIN",
    "establish",
    "nreachable",
    "ertificate",
    "_CERT",
    "ENOSPC",
    "uota",
    "exhausted",
    "heap",
    "root",
    " PATH",
    "nstalled",
    'The command "',
    "ou must ",
    "ou need to ",
    "Bad ",
    "unrecognized",
    "roblem with the CMake",
    "reading http",
    "compiled against",
    "NoBackendError",
    "Terminated",
    "lease install",
    "exec /",
    "Java gateway",
    "the target was",
    "DISPLAY",
    "ASCII",
    "SQLSTATE",
    "multiple def",
    "library.path",
    "pip install",
    "operand type",
    "subscriptable",
    "VersionConflict",
    "package.json",
    "ENGINE",
    "EBADPLATFORM",
    "packageManager",
    "different Node",
    "memory",
    "SIGKILL",
    "signal",
    "TIMEDOUT",
    "CONNRESET",
    "must be ",
    "bad_alloc",
    "exceeded",
    " - GET",
    "left on",
    "disappeared",
    "UNABLE_TO",
    "CERT_HAS",
    "reset by",
    "nconsistent",
    "updates to go",
    "rerequisite",
    "Base class",
    ") in -l",
    "PKIX",
    "tools.jar",
    "dial tcp",
    "verifying",
    "ownload",
    "constraints",
    "VCS",
    "ANDROID_HOME",
)
"""Substrings of which every line that tells of a failure holds at least one; each literal of a signature holds one."""


class FailureReader(Protocol):
    """Anything that reads output as it comes."""

    def feed(self, line: str) -> Iterable[Failure]: ...

    def finish(self) -> Iterable[Failure]: ...


@dataclass
class _Waiting:
    signature: Signature
    follow: re.Pattern[str]
    groups: dict[str, str]
    evidence: str
    lines: int


class Index:
    """Signatures by the gate through which their lines come. Made once, shared by readers."""

    def __init__(self, signatures: Sequence[Signature], gates: Sequence[str] = GATES) -> None:
        self.signatures = tuple(signatures)
        behind: dict[str, list[tuple[str, int]]] = {}
        for number, one in enumerate(self.signatures):
            for literal in one.literals:
                gate = next((gate for gate in gates if gate in literal), None)
                if gate is None:
                    raise ValueError(f"no gate for the literal {literal!r}")
                behind.setdefault(gate, []).append((literal, number))
        self.behind = {gate: tuple(literals) for gate, literals in behind.items()}

    def candidates(self, line: str) -> list[Signature]:
        """Those whose literals the line holds, in the order in which they were given."""
        numbers = {
            number
            for gate, literals in self.behind.items()
            if gate in line
            for literal, number in literals
            if literal in line
        }
        return [self.signatures[number] for number in sorted(numbers)]


class Reader:
    """Feed it every line of a command, then `finish` it. Each diagnosis is given once.

    Symptoms are kept back until the end, and given only if there was no cause. Lines that were told of are remembered,
    so that output which repeats itself costs no more than other output.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._gates = tuple(index.behind)
        self._seen: set[str] = set()
        self._symptoms: list[Failure] = []
        self._waiting: list[_Waiting] = []
        self._told: set[str] = set()
        self._caused = False
        self._building: list[str] = []
        """Distributions whose builds have begun and not ended well."""

    def feed(self, line: str) -> list[Failure]:
        """The failures that this line tells of and that were not known before. Never raises."""
        if len(self._seen) >= MOST:
            return []
        if "Buil" in line:
            self._follow_builds(line)
        if self._waiting:
            return self._release(self._follow(plain(line)) + self._look(line))
        for gate in self._gates:
            if gate in line:
                return self._release(self._look(line)) if line not in self._told else []
        return []

    def finish(self) -> list[Failure]:
        """What the end of the output tells: failures that waited for a further line, and symptoms without a cause."""
        found = [failure for one in self._waiting for failure in _made(one.signature, one.groups, one.evidence)]
        self._waiting = []
        released = self._release(found)
        symptoms = [] if self._caused else self._symptoms
        self._symptoms = []
        return released + symptoms

    def _follow_builds(self, line: str) -> None:
        """uv tells of every build that begins, and of those that end well."""
        found = _BUILDS.match(line[:LINE])
        if found is None:
            return
        name = found["name"]
        if found["what"] == "Building" and len(self._building) < _OPEN:
            self._building.append(name)
        elif found["what"] == "Built" and name in self._building:
            self._building.remove(name)

    def _look(self, line: str) -> list[Failure]:
        candidates = self._index.candidates(line[:LINE])
        if not candidates:
            return []
        told = text = plain(line)
        for _ in range(_LEADERS):
            matched, found = self._match(candidates, text, told)
            if found and len(line) <= LINE and len(self._told) < MOST:
                self._told.add(line)
            if matched:
                return found
            text = inner(text)
            if not text:
                break
        return []

    def _match(self, candidates: Sequence[Signature], text: str, told: str) -> tuple[bool, list[Failure]]:
        """Whether a signature makes something of the text, now or with a following line; and what it makes."""
        matched = False
        for one in candidates:
            match = one.pattern.match(text)
            if match is None:
                continue
            groups = {name: value for name, value in match.groupdict().items() if value is not None}
            if one.follow is not None and len(self._waiting) < _OPEN:
                self._waiting.append(_Waiting(one, one.follow, groups, told, one.within))
                matched = True
            elif made := _made(one, groups, told):
                return True, list(made)
        return matched, []

    def _follow(self, text: str) -> list[Failure]:
        found: list[Failure] = []
        still: list[_Waiting] = []
        for one in self._waiting:
            match = one.follow.match(text)
            one.lines -= 1
            if match is not None:
                groups = {name: value for name, value in match.groupdict().items() if value is not None}
                found += _made(one.signature, one.groups | groups, one.evidence)
            elif one.lines > 0:
                still.append(one)
            else:
                found += _made(one.signature, one.groups, one.evidence)
        self._waiting = still
        return found

    def _release(self, found: Iterable[Failure]) -> list[Failure]:
        released: list[Failure] = []
        for failure in found:
            key = failure.key
            if key in self._seen or len(self._seen) >= MOST:
                continue
            self._seen.add(key)
            if len(self._building) == 1 and not failure.building:
                failure = failure.model_copy(update={"building": self._building[0]})
            if failure.weight is Weight.SYMPTOM:
                self._symptoms.append(failure)
                continue
            self._caused = self._caused or failure.weight is Weight.CAUSE
            released.append(failure)
        return released


def _made(one: Signature, groups: dict[str, str], text: str) -> tuple[Failure, ...]:
    found: Found = one.make(**groups, evidence=text[:EVIDENCE])
    if found is None:
        return ()
    return found if isinstance(found, tuple) else (found,)
