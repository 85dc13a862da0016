import pytest

from modern_demo.core import answer


def test_answer() -> None:
    assert answer() == 42
