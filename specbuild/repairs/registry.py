"""All repairers, and what they say of a Failure together."""

from __future__ import annotations

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

MOST = 4
"""Rivals for one Failure: more share too little probability among them to be worth a fork."""

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

    Blocking: package indexes are read.
    """
    if failure.infrastructure:
        return ()
    found = [repair for repairer in REPAIRERS.values() for repair in repairer(failure, case)]
    best: dict[str, Repair] = {}
    for repair in found:
        other = best.get(repair.name)
        if other is None or repair.probability > other.probability:
            best[repair.name] = repair
    return tuple(sorted(best.values(), key=lambda repair: -repair.probability)[:MOST])
