"""Counts from JUnit XML: right for what runners write, refused for anything that is not a whole report."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbuild.verify.junit import read_junit
from specbuild.verify.tally import NAMES_KEPT, ReportError

CHILDREN = {
    "passed": "",
    "failed": '<failure message="assert 0">text</failure>',
    "errors": '<error message="failed on setup">text</error>',
    "skipped": '<skipped type="pytest.skip" message="no"/>',
    "expected_failures": '<skipped type="pytest.xfail" message=""/>',
}
TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=0xD7FF, exclude_characters="\x7f"), max_size=20)
CASES = st.lists(st.tuples(TEXT, st.sampled_from(sorted(CHILDREN))), max_size=30)


def case(name: str, outcome: str) -> str:
    return f"<testcase classname={quoteattr('c')} name={quoteattr(name)}>{CHILDREN[outcome]}</testcase>"


def document(*suites: list[tuple[str, str]], noise: str = "") -> bytes:
    inner = "".join(
        f"<testsuite name='s'><properties><property name='a' value='b'/></properties>"
        f"{''.join(case(*item) for item in suite)}<system-out>{escape(noise)}</system-out></testsuite>"
        for suite in suites
    )
    return f'<?xml version="1.0" encoding="utf-8"?><testsuites>{inner}</testsuites>'.encode()


@given(st.lists(CASES, max_size=3), TEXT)
def test_each_case_is_counted_once_by_its_outcome(suites: list[list[tuple[str, str]]], noise: str) -> None:
    tally = read_junit(document(*suites, noise=noise))
    outcomes = [outcome for suite in suites for _, outcome in suite]
    found = (tally.passed, tally.failed, tally.errors, tally.skipped, tally.expected_failures)
    assert found == tuple(outcomes.count(name) for name in CHILDREN)
    assert tally.collected == len(outcomes)
    assert len(tally.failing) == min(NAMES_KEPT, tally.failed + tally.errors)


@given(CASES, st.data())
def test_a_report_that_was_cut_off_is_refused(cases: list[tuple[str, str]], data: st.DataObject) -> None:
    whole = document(cases)
    length = data.draw(st.integers(min_value=0, max_value=len(whole) - 1))
    with pytest.raises(ReportError):
        read_junit(whole[:length])


@given(st.binary(max_size=200))
def test_any_bytes_are_a_report_or_refused(data: bytes) -> None:
    with pytest.raises(ReportError):
        read_junit(data)


BOMB = b"""<?xml version="1.0"?><!DOCTYPE testsuites [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<testsuites><testsuite><testcase name="&b;"/></testsuite></testsuites>"""


@pytest.mark.parametrize("data", [BOMB, BOMB.decode().encode("utf-16")], ids=["utf-8", "utf-16"])
def test_a_doctype_is_refused(data: bytes) -> None:
    data = data.replace('<?xml version="1.0"?>'.encode("utf-16-le"), b"")
    with pytest.raises(ReportError, match="DOCTYPE"):
        read_junit(data)


def test_xml_of_another_kind_is_refused() -> None:
    with pytest.raises(ReportError, match="<coverage>"):
        read_junit(b"<coverage><testcase name='a'/></coverage>")


def test_nested_suites_are_counted() -> None:
    inner = b"<testsuite><testcase name='a'/></testsuite>"
    assert read_junit(b"<testsuites><testsuite>" + inner + b"<testcase name='b'/></testsuite></testsuites>").passed == 2


def test_the_worst_that_is_said_of_a_case_counts() -> None:
    tally = read_junit(
        b"<testsuite><testcase name='a'><skipped/><failure/><error/></testcase>"
        b"<testcase name='b'><failure/><skipped/></testcase></testsuite>"
    )
    assert (tally.errors, tally.failed, tally.skipped) == (1, 1, 0)


def test_a_failure_element_outside_of_a_case_does_not_count() -> None:
    assert read_junit(b"<testsuite><error message='x'/><testcase name='a'/></testsuite>").ratio == 1.0


@pytest.mark.parametrize(
    "attributes",
    [
        "classname='' name='tests.test_a'><error message='collection failure'>E   ImportError: no</error>",
        "classname='nose.failure.Failure' name='runTest'><error message='x'/>",
        "classname='unittest.loader._FailedTest' name='test_a'><error message='x'/>",
    ],
)
def test_a_module_that_did_not_load_blocks(attributes: str) -> None:
    tally = read_junit(f"<testsuite><testcase {attributes}</testcase></testsuite>".encode())
    assert len(tally.blocking) == 1


def test_a_large_report_is_read_as_a_stream() -> None:
    cases = b"<testcase classname='c' name='n'/>" * 200_000
    assert read_junit(b"<testsuites><testsuite>" + cases + b"</testsuite></testsuites>").passed == 200_000
