import pytest

from modern_demo.core import answer


def test_answer() -> None:
    assert answer() == 42


@pytest.mark.trio
async def test_mocked(mocker) -> None:
    mocker.patch("modern_demo.core.answer")
