"""Reads JUnit XML reports as pytest, nose, unittest-xml-reporting and others write them.

The document is streamed and never built as a tree. A DOCTYPE is refused: no test runner writes one, and it is
what entity bombs and external entities need (https://docs.python.org/3/library/xml.html#xml-vulnerabilities).
"""

from __future__ import annotations

from collections import Counter
from xml.parsers import expat

from specbuild.verify.tally import NAMES_KEPT, ReportError, Tally, one_line

_ROOTS = frozenset({"testsuites", "testsuite"})
_COLLECTION = "collection failure"
"""The message that pytest gives to a module that it could not import (`_pytest/junitxml.py`)."""

_LOADERS = ("nose.failure.Failure", "unittest.loader.", "nose2.loader.")
"""Beginnings of the class names that other runners give to such modules."""

_TEXT_KEPT = 64 << 10


def read_junit(data: bytes) -> Tally:
    """Count the test cases of a report, of all its suites, nested ones too.

    Raises ReportError if it is not a complete JUnit document.
    """
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise ReportError(f"the report is not well-formed XML ({error})") from error
    return reader.tally()


def _refuse_doctype(name: str, system: str | None, public: str | None, internal: int) -> None:
    raise ReportError("the report has a DOCTYPE, which no test runner writes")


def _essence(text: str) -> str:
    """The last exception, which pytest marks with an E, of a collection failure; its own message says nothing."""
    found, before = "", ""
    for line in text.splitlines():
        if line.startswith("E ") and not before.startswith("E "):
            found = line[2:]
        before = line
    return one_line(found)


class _Reader:
    """Collects outcomes case by case as the parser comes along them."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._failing: list[str] = []
        self._blocking: list[str] = []
        self._first_message = ""
        self._seen_root = False
        self._name = ""
        self._in_case = False
        self._outcome = "passed"
        self._blocked = False
        self._listening, self._heard = False, 0
        self._text: list[str] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._seen_root:
            if tag not in _ROOTS:
                raise ReportError(f"the report is XML of another kind: its root is <{tag[:40]}>")
            self._seen_root = True
        if tag == "testcase":
            self._start_case(attributes)
        elif self._in_case:
            self._mark(tag, attributes)

    def text(self, data: str) -> None:
        if self._listening and self._heard < _TEXT_KEPT:
            self._text.append(data)
            self._heard += len(data)

    def end(self, tag: str) -> None:
        if tag in ("error", "failure") and self._listening:
            self._listening = False
            self._first_message = _essence("".join(self._text)) or self._first_message
        elif tag == "testcase" and self._in_case:
            self._end_case()

    def tally(self) -> Tally:
        return Tally(
            **self._counts,
            failing=tuple(self._failing),
            blocking=tuple(self._blocking),
            first_message=self._first_message,
        )

    def _start_case(self, attributes: dict[str, str]) -> None:
        owner, name = attributes.get("classname", ""), attributes.get("name", "")
        self._name = f"{owner}::{name}" if owner else name
        self._in_case, self._outcome, self._blocked = True, "passed", False

    def _mark(self, tag: str, attributes: dict[str, str]) -> None:
        """Take the worst of what is said about one case: an error, then a failure, then a skip."""
        message = attributes.get("message", "")
        match tag:
            case "error":
                self._outcome = "errors"
                self._blocked = self._blocked or message == _COLLECTION or self._name.startswith(_LOADERS)
            case "failure" if self._outcome != "errors":
                self._outcome = "failed"
            case "skipped" if self._outcome == "passed":
                self._outcome = "expected_failures" if attributes.get("type") == "pytest.xfail" else "skipped"
            case _:
                return
        if tag != "skipped" and not self._first_message:
            self._first_message = one_line(message)
            self._listening = message == _COLLECTION

    def _end_case(self) -> None:
        self._in_case = False
        self._counts[self._outcome] += 1
        if self._outcome in ("failed", "errors") and len(self._failing) < NAMES_KEPT:
            self._failing.append(self._name)
        if self._blocked and len(self._blocking) < NAMES_KEPT:
            self._blocking.append(self._name)
