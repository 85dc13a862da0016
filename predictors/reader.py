"""Reads the output of a command line by line and tells what is going wrong in it.

The work for a line is bounded, whatever it holds: a long line is cut, a few substrings decide whether it can tell of
anything, and only the signatures of those substrings look at it. Nothing is kept of lines but what failures need.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from specbuild.failures import Failure, Weight
from specbuild.predictors.signature import Found, Signature
from specbuild.predictors.text import COLOURED, EVIDENCE, LINE, inner, plain, uncoloured

MOST = 500
"""Failures that one reader reports; what is wrong shows in the first few."""

_BUILDS = re.compile(r"\s{0,12}(?P<what>Building|Built) (?P<name>[A-Za-z0-9][\w.-]{0,80}?)(?:==| @ )")

_OPEN = 16
"""Signatures that may wait for a following line at a time."""

_LEADERS = 4
"""Texts of a line that are looked at: itself, and what is left of it without the classes of exceptions before it."""

_PLAIN_WORDS = frozenset({"the", "to", "is", "in", "a", "of", "for", "and", "on", "with", "be", "by", "from", "an"})
"""Words that every second line holds."""

_WORD = re.compile(r"[A-Za-z]{2,40}")
_LETTERS = bytes(byte if chr(byte).isascii() and chr(byte).isalpha() else 0x20 for byte in range(256))
"""Makes a space of every byte that is no letter."""


def words_of(line: str) -> list[bytes]:
    """What the line holds of letters, in a few calls whatever there is in it."""
    return line.encode(errors="replace").translate(_LETTERS).split()


def gates_of(literal: str) -> frozenset[bytes]:
    """Words of which a line holds one if it holds the literal: the longest that is whole within it.

    Where none is, the longest that its ends may cut: literals leave out the first letter of a word that a sentence may
    begin with, and end where words do.
    """
    found = [one for one in _WORD.finditer(literal) if one.group() not in _PLAIN_WORDS]
    whole = [one for one in found if one.start() > 0 and one.end() < len(literal)]
    if not found:
        raise ValueError(f"no gate for the literal {literal!r}")
    best = max(whole or found, key=lambda one: len(one.group()))
    word = best.group()
    if best.start() > 0 or word[0].isupper():
        return frozenset({word.encode()})
    return frozenset({word.encode(), *(f"{letter}{word}".encode() for letter in string.ascii_letters)})


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
    """Signatures by the words through which their lines come. Made once, shared by readers."""

    def __init__(self, signatures: Sequence[Signature]) -> None:
        self.signatures = tuple(signatures)
        behind: dict[bytes, list[tuple[str, int]]] = {}
        for number, one in enumerate(self.signatures):
            for literal in one.literals:
                for gate in gates_of(literal):
                    behind.setdefault(gate, []).append((literal, number))
        self.behind = {gate: tuple(literals) for gate, literals in behind.items()}
        self.gates = frozenset(self.behind)

    def candidates(self, line: str) -> list[Signature]:
        """Those whose literals the line holds, in the order in which they were given."""
        numbers = {
            number
            for gate in self.gates.intersection(words_of(line))
            for literal, number in self.behind[gate]
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
        self._gates = index.gates
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
        if "\x1b" in line:
            line = uncoloured(line[:COLOURED])
        if "Buil" in line:
            self._follow_builds(line)
        if self._waiting:
            return self._release(self._follow(plain(line)) + self._look(line))
        if self._gates.isdisjoint(words_of(line if len(line) <= LINE else line[:LINE])) or line in self._told:
            return []
        return self._release(self._look(line))

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
