"""What a call of the engine's API sends."""

from __future__ import annotations

from collections.abc import AsyncIterator

from specbuild.sandbox.docker.request import Request


async def sent(request: Request) -> list[bytes]:
    content = request.content()
    assert content is not None
    assert not isinstance(content, str)
    return [piece async for piece in content]


def test_a_parameter_of_several_values_is_given_several_times() -> None:
    request = Request("POST", "commit", {"container": "c", "changes": ["LABEL a=1", "LABEL b=2"]})
    assert request.query == [("container", "c"), ("changes", "LABEL a=1"), ("changes", "LABEL b=2")]
    assert request.name == "POST commit"


def test_a_body_is_sent_as_json_also_an_empty_one() -> None:
    assert Request("GET", "info").content() is None
    assert Request("POST", "commit", body={}).content() == "{}"
    assert Request("POST", "commit").headers == {"Content-Type": "application/json"}


async def test_an_archive_is_sent_in_pieces_that_others_get_a_turn_between() -> None:
    archive = bytes(600_000)
    request = Request("PUT", "archive", archive=archive)
    pieces = await sent(request)
    assert len(pieces) == 3
    assert b"".join(pieces) == archive
    assert request.headers == {"Content-Type": "application/x-tar"}


async def test_an_archive_may_be_sent_as_it_comes() -> None:
    async def coming() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"

    assert await sent(Request("PUT", "archive", archive=coming())) == [b"one", b"two"]
