"""The half of the journey in which nothing runs yet: what is made for it, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbuild.config import Settings
from specbuild.errors import UsageError
from specbuild.survey import survey


async def test_no_base_is_made_for_a_tree_that_no_strategy_knows(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "one.txt").write_text("Dear reader\n")
    (tmp_path / "work").mkdir()
    found = await survey(str(tmp_path / "letters"), tmp_path / "work", Settings(cache_dir=tmp_path / "cache"), print)
    assert (found.candidates, found.bases.ready, found.bases.pending) == ((), (), ())
    assert not list((tmp_path / "cache").rglob("*.tar"))


async def test_no_base_is_made_for_a_strategy_that_nobody_knows(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "module.py").write_text("x = 1\n")
    (tmp_path / "work").mkdir()
    settings = Settings(cache_dir=tmp_path / "cache", strategies=("nonsense",))
    with pytest.raises(UsageError, match="nonsense"):
        await survey(str(tmp_path / "project"), tmp_path / "work", settings, print)
    assert not list((tmp_path / "cache").rglob("*.tar"))
