"""All repairers, and what they say of a Failure together."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from specbuild.failures import Failure
from specbuild.repairs import (
    builds,
    distributions,
    drift,
    installing,
    interpreter,
    running,
    services,
    standard,
    surroundings,
    system,
    toolchains,
    versions,
)
from specbuild.repairs.contract import Case, Repair, Repairer
from specbuild.repairs.edits import ReplaceWork, SetVariables
from specbuild.repairs.import_names import is_name
from specbuild.repairs.python_steps import runs_own_command

MOST = 4
"""Rivals for one Failure: more share too little probability among them to be worth a fork."""

LONGEST = 300
"""Characters of a name, path or requirement in output that repairs are made for; what is longer is data."""

REPAIRERS: dict[str, Repairer] = {
    "system": system.repair,
    "toolchains": toolchains.repair,
    "interpreter": interpreter.repair,
    "versions": versions.repair,
    "services": services.repair,
    "distributions": distributions.repair_distributions,
    "drift": drift.repair_drift,
    "builds": builds.repair_builds,
    "installing": installing.repair_installing,
    "standard": standard.repair_standard,
    "surroundings": surroundings.repair_surroundings,
    "running": running.repair_running,
}
"""By family; all are asked."""


def repairs_for(failure: Failure, case: Case) -> tuple[Repair, ...]:
    """The Repairs of a Failure, likeliest first, at most `MOST`; none for infrastructure, which is nobody's to repair.

    Nor for what cannot be a name of anything. Blocking: package indexes are read.
    """
    if failure.infrastructure or not is_plain(failure):
        return ()
    case = replace(case, subject=case.subject if is_name(case.subject) else "")
    found = [one for repairer in REPAIRERS.values() for one in repairer(failure, case) if _admitted(one, case)]
    best: dict[str, Repair] = {}
    for repair in found:
        other = best.get(repair.name)
        if other is None or repair.probability > other.probability:
            best[repair.name] = repair
    return tuple(sorted(best.values(), key=lambda repair: -repair.probability)[:MOST])


def is_plain(failure: Failure) -> bool:
    """Whether all that output says in it is printable and of a length that names have: it was written by anybody."""
    return all(text.isprintable() and len(text) <= LONGEST for text in _texts(failure))


def _texts(failure: Failure) -> Iterator[str]:
    for value in failure.model_dump(exclude={"evidence", "weight", "building"}).values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            yield from (str(one) for one in cast("tuple[object, ...]", value))


def _admitted(repair: Repair, case: Case) -> bool:
    """Whether it leaves the user's own command what it is, and as it is told to pytest."""
    if not runs_own_command(case):
        return True
    for edit in repair.edits:
        if isinstance(edit, ReplaceWork) and not _wraps(edit, case):
            return False
        if isinstance(edit, SetVariables) and any(name == "PYTEST_ADDOPTS" for name, _ in edit.env):
            return False
    return True


def _wraps(edit: ReplaceWork, case: Case) -> bool:
    """Whether the command is run as it stands, by another user or in other surroundings."""
    return edit.check is not None and shlex.quote(case.step.run) in edit.check.step.run
