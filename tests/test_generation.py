"""For how long builds share checkpoints."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from specbuild.generation import FILE, Generation, current
from specbuild.recipe import SALT, salted
from specbuild.repo.facts import Facts
from specbuild.strategies import propose
from specbuild.testing.proposals import fact, request

DAY = 86400.0


def began(cache: Path, ago: timedelta, salt: str = "") -> None:
    made = Generation(salt=salt, began=datetime.now(UTC) - ago)
    (cache / FILE).write_text(made.model_dump_json())


def test_builds_share_one_generation(tmp_path: Path) -> None:
    assert current(tmp_path, max_age=DAY).salt == ""
    assert current(tmp_path, max_age=DAY).salt == ""


def test_an_old_generation_is_followed_by_one_that_later_builds_share(tmp_path: Path) -> None:
    began(tmp_path, timedelta(days=1, seconds=5))
    following = current(tmp_path, max_age=DAY)
    assert following.salt
    assert current(tmp_path, max_age=DAY) == following


def test_a_refresh_begins_another_each_time(tmp_path: Path) -> None:
    salts = {current(tmp_path, max_age=DAY, refresh=True).salt for _ in range(3)}
    assert len(salts) == 3
    assert current(tmp_path, max_age=DAY).salt in salts


@pytest.mark.parametrize("content", ["", "{", "[]", '{"salt": 1}'])
def test_checkpoints_of_unknown_age_are_not_taken(content: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(content)
    assert current(tmp_path, max_age=DAY).salt


def test_a_clock_that_was_set_back_does_not_make_checkpoints_eternal(tmp_path: Path) -> None:
    began(tmp_path, timedelta(days=-400), "x")
    assert current(tmp_path, max_age=DAY).salt != "x"


def test_a_generation_changes_every_checkpoint_but_the_bases_and_nothing_that_is_told_to_others() -> None:
    (candidate, *_) = propose(request(Facts(name=fact("mine"), build_backend=fact("setuptools.build_meta"))))
    plain, other = candidate.recipe, salted(candidate.recipe, "2026-11-30.ab")
    assert plain.checkpoints[0] == other.checkpoints[0]
    assert not set(plain.checkpoints[1:]) & set(other.checkpoints[1:])
    assert salted(other, "") == plain
    assert SALT not in plain.model_dump_json()
