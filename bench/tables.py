"""What simulations come to: figures by machine and mode, as a table and as a plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median

from bench.plot import curves
from bench.race import LIMITS
from bench.simulated import Machine, Run, Simulated

THINKING_SECONDS = 10.0
"""Of an agent before each command, in `less_than_thinking`."""

SLOWER = 1.05
"""Seconds over those of a rival from which a repository counts as slower."""

Results = dict[str, dict[str, list[Run]]]
"""Machine → mode → one run a repository."""

Figures = dict[str, float | None]


def oracles(worlds: Sequence[Simulated], machine: Machine, runs: Mapping[str, Sequence[Run]]) -> list[float]:
    """Of each world, known beforehand or by what won on the machine."""
    return [
        min(one.oracle(machine.cores), *(some[n].alone_seconds for some in runs.values()))
        for n, one in enumerate(worlds)
    ]


def summary(
    results: Results, oracle: Mapping[str, Sequence[float]], *, limited: bool = False
) -> dict[str, dict[str, Figures]]:
    """Machine → mode → figures; `oracle` is by machine, `limited` tells whether builds end at a limit."""
    table: dict[str, dict[str, Figures]] = {}
    for machine, runs in results.items():
        counted = _counted(runs, oracle[machine], limited=limited)
        table[machine] = {name: _figures(runs[name], runs, oracle[machine], counted) for name in runs}
    return table


def _counted(runs: Mapping[str, Sequence[Run]], oracle: Sequence[float], *, limited: bool) -> list[int]:
    """The repositories that every mode commits; with a limit, that some mode does."""
    if limited:
        return [n for n, seconds in enumerate(oracle) if math.isfinite(seconds)]
    return [n for n in range(len(oracle)) if all(some[n].committed for some in runs.values())]


def _figures(
    mine: Sequence[Run], runs: Mapping[str, Sequence[Run]], oracle: Sequence[float], common: Sequence[int]
) -> Figures:
    """Seconds are of the `common` repositories; success is over all."""
    figures: Figures = {
        "success": fmean(one.committed for one in mine),
        "assumed": fmean(one.assumed for one in mine),
        "assumed_wins": fmean(one.assumed_win for one in mine),
    }
    figures |= {
        f"success_within_{limit}": fmean(one.committed and one.seconds <= limit for one in mine) for limit in LIMITS
    }
    if not common:
        return figures
    mean, best = fmean(mine[n].seconds for n in common), fmean(oracle[n] for n in common)
    figures |= {
        "mean_seconds": mean,
        "median_seconds": median(mine[n].seconds for n in common),
        "oracle_seconds": best,
        "regret": mean / best,
        "cpu": fmean(mine[n].cpu_seconds for n in common) / best,
    }
    for name in ("sequential", "checkpoint"):
        if name in runs:
            ratios = [mine[n].seconds / runs[name][n].seconds for n in common]
            figures[f"slower_than_{name}"] = fmean(ratio > SLOWER for ratio in ratios)
            figures[f"worst_to_{name}"] = max(ratios)
            slow = fmean(runs[name][n].seconds for n in common)
            closed = (slow - mean) / (slow - best) if slow > best else None
            figures["gap_closed" if name == "sequential" else "gap_closed_of_checkpoint"] = closed
    if "sequential" in runs:
        thinking = fmean(
            one.seconds + THINKING_SECONDS * one.commands for one in (runs["sequential"][n] for n in common)
        )
        figures["less_than_thinking"] = 1 - mean / thinking
    return figures


def markdown(table: Mapping[str, Mapping[str, Figures]]) -> str:
    """A row a machine and mode."""
    head = ("cores/slots", "mode", "success", "mean s", "regret", "gap closed", "of checkpoint's")
    more = ("slower than sequential, worst", "slower than checkpoint, worst", "CPU", "assumed, wins by it")
    lines = [f"| {' | '.join((*head, *more))} |", "|---" * len((*head, *more)) + "|"]
    for machine, modes in table.items():
        for name, row in modes.items():
            cells = [percent(row["success"]), number(row.get("mean_seconds")), number(row.get("regret"))]
            cells += [percent(row.get("gap_closed")), percent(row.get("gap_closed_of_checkpoint"))]
            for rival in ("sequential", "checkpoint"):
                share = percent(row.get(f"slower_than_{rival}"))
                cells.append(f"{share}, {number(row.get(f'worst_to_{rival}'))}")
            cells += [number(row.get("cpu")), f"{percent(row['assumed'])}, {percent(row['assumed_wins'])}"]
            lines.append(f"| {machine} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def drawn(table: Mapping[str, Mapping[str, Figures]], machines: Sequence[Machine], count: int) -> str:
    """The plot: mean seconds of each mode over slots."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for machine in machines:
        rows = table[str(machine)]
        oracle = next((row.get("oracle_seconds") for row in rows.values()), None)
        for mode, seconds in [(mode, row.get("mean_seconds")) for mode, row in rows.items()] + [("oracle", oracle)]:
            if seconds is not None:
                lines.setdefault(mode, []).append((machine.slots, seconds))
    return curves(lines, f"seconds to a verified environment over slots, mean of {count} repositories")


def number(value: float | None) -> str:
    """As in tables."""
    return "-" if value is None else f"{value:.2f}"


def percent(value: float | None) -> str:
    """As in tables."""
    return "-" if value is None else f"{value:.0%}"
