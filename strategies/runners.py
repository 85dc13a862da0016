"""What the ways to verify need to be installed: test runners and the plugins that the tests use."""

from __future__ import annotations

import re
from collections.abc import Iterable

from specbuild.recipe import Check
from specbuild.repo.facts import Facts
from specbuild.strategies.requirements import name_of

CROSSED = 2
"""With how many ways to verify the likeliest routes are crossed."""

RUNNERS: dict[str, tuple[str, ...]] = {
    "pytest": ("pytest",),
    "collect": ("pytest",),
    "nose": ('nose; python_version < "3.10"', 'pynose; python_version >= "3.10"'),
    "trial": ("twisted",),
}
"""Requirements of each `Check.runner` that is no part of Python. The last nose, of 2015, ends with Python 3.9; pynose
has its module and its commands."""

_SAME = {"nose": frozenset({"nose", "pynose"}), "pynose": frozenset({"nose", "pynose"})}
_PYTEST = re.compile(r"\b(pytest|py\.test)\b")


def needed(checks: Iterable[Check]) -> tuple[str, ...]:
    """Requirements of the runners of the checks that routes are crossed with."""
    crossed = tuple(checks)[:CROSSED]
    found = [requirement for check in crossed for requirement in RUNNERS.get(check.runner, ())]
    return tuple(dict.fromkeys((*found, *(("pytest",) if any(map(_runs_pytest, crossed)) else ()))))


def plugins(facts: Facts, checks: Iterable[Check]) -> tuple[str, ...]:
    """Requirements of the plugins that the tests use, no two of one name; none where pytest runs nothing."""
    if "pytest" not in needed(checks):
        return ()
    demanded = (need.name for need in facts.test_needs if need.kind != "import")
    return tuple({name_of(requirement): requirement for requirement in demanded if name_of(requirement)}.values())


def there(requirement: str, names: frozenset[str]) -> bool:
    """Whether one of the distributions `names` stands for the requirement."""
    name = name_of(requirement)
    return bool(_SAME.get(name, frozenset({name})) & names)


def _runs_pytest(check: Check) -> bool:
    # A command of the user's own names its runner only in its words.
    return check.runner in ("pytest", "collect") or (check.runner == "command" and bool(_PYTEST.search(check.step.run)))
