"""Names of images are read as Docker and Podman read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbuild.errors import UsageError
from specbuild.oci.reference import Reference, parse_reference

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("python:3.9", Reference("docker.io", "library/python", "3.9")),
        ("python", Reference("docker.io", "library/python", "latest")),
        ("docker.io/python:3", Reference("docker.io", "library/python", "3")),
        ("index.docker.io/library/python:3", Reference("docker.io", "library/python", "3")),
        ("docker://python:3", Reference("docker.io", "library/python", "3")),
        ("owner/name", Reference("docker.io", "owner/name", "latest")),
        ("localhost/name", Reference("localhost", "name", "latest")),
        ("localhost:5000/a/b:c", Reference("localhost:5000", "a/b", "c")),
        ("[::1]:5000/name", Reference("[::1]:5000", "name", "latest")),
        ("10.0.0.1/name", Reference("10.0.0.1", "name", "latest")),
        (f"ghcr.io/x/y@{DIGEST}", Reference("ghcr.io", "x/y", None, DIGEST)),
        (f"ghcr.io/x/y:1@{DIGEST}", Reference("ghcr.io", "x/y", "1", DIGEST)),
        ("quay.io/a/b__c/d-e.f:A_b-1", Reference("quay.io", "a/b__c/d-e.f", "A_b-1")),
    ],
)
def test_what_is_left_out_is_filled_in(text: str, wanted: Reference) -> None:
    assert parse_reference(text) == wanted


@pytest.mark.parametrize(
    "text",
    ["", ":", "a:", "a@", "a@sha256:1234", f"a@{DIGEST.upper()}", "Owner:tag", "a//b", "/a", "a/", "-a", "a:-b", "../a",
     "a b", "a:b c", "a" * 256, "ghcr.io/Upper/name", "http://ghcr.io/x/y", "a\n", "a:b\n", "ghcr.io/x/y?z", "é/a",
     "localhost:port/name"],
)  # fmt: skip
def test_what_is_no_name_is_told(text: str) -> None:
    with pytest.raises(UsageError, match="is no name of an image"):
        parse_reference(text)


def test_names_are_shown_as_people_write_them() -> None:
    assert parse_reference("docker.io/library/python:3.9").familiar == "python:3.9"
    assert parse_reference("owner/name:1").familiar == "owner/name:1"
    assert parse_reference(f"ghcr.io/x/y@{DIGEST}").familiar == f"ghcr.io/x/y@{DIGEST}"


_PART = st.from_regex(r"[a-z0-9]{1,8}((\.|_|__|-{1,3})[a-z0-9]{1,8}){0,2}", fullmatch=True)
_REFERENCES = st.builds(
    Reference,
    st.sampled_from(["ghcr.io", "localhost", "localhost:5000", "registry.example.com:443", "127.0.0.1:1", "[::1]"]),
    st.lists(_PART, min_size=1, max_size=4).map("/".join),
    st.one_of(st.none(), st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}", fullmatch=True)),
    st.one_of(st.none(), st.just(DIGEST)),
).filter(lambda reference: reference.tag or reference.digest)


@given(_REFERENCES)
def test_a_name_that_is_written_and_read_is_the_same(reference: Reference) -> None:
    assert parse_reference(str(reference)) == reference
    assert parse_reference(parse_reference(str(reference)).familiar) == reference


@given(st.text(max_size=40))
def test_any_text_is_a_name_or_an_error_of_the_user(text: str) -> None:
    try:
        found = parse_reference(text)
    except UsageError:
        return
    assert parse_reference(str(found)) == found
    assert ".." not in str(found).split("/")
