"""How well a simulation holds: its seconds against those of the builds that it was recorded from, at their slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median

from bench.recorded import RecordedWorld
from bench.simulated import Run
from bench.tables import percent


@dataclass(frozen=True)
class Comparison:
    """One project in one mode."""

    project: str
    mode: str
    real: float | None
    """Median seconds of the recorded builds that committed; None if none did."""
    simulated: float | None
    """None if it did not commit."""

    @property
    def error(self) -> float | None:
        """(simulated - real) ÷ real."""
        return None if self.real is None or self.simulated is None else self.simulated / self.real - 1


def comparisons(worlds: Sequence[RecordedWorld], runs: Mapping[str, Sequence[Run]]) -> list[Comparison]:
    """Every project in every mode in which it was recorded; `runs` are by mode, one a world."""
    found: list[Comparison] = []
    for number, world in enumerate(worlds):
        for mode, some in runs.items():
            recorded = [one for one in world.recordings if one.mode == mode]
            if recorded:
                real = [one.seconds for one in recorded if one.seconds is not None]
                run = some[number]
                seconds = run.seconds if run.committed else None
                found.append(Comparison(world.name, mode, median(real) if real else None, seconds))
    return found


Figures = dict[str, float | int | None]


def figures(some: Sequence[Comparison]) -> Figures:
    """Over what committed both really and in simulation; `agree` counts where both or neither did."""
    errors = [error for one in some if (error := one.error) is not None]
    return {
        "compared": len(errors),
        "agree": sum((one.real is None) == (one.simulated is None) for one in some),
        "of": len(some),
        "mean_absolute_error": fmean(map(abs, errors)) if errors else None,
        "bias": fmean(errors) if errors else None,
    }


def by_mode(some: Sequence[Comparison]) -> dict[str, Figures]:
    """Mode → figures; `all` over all of them."""
    modes = dict.fromkeys(one.mode for one in some)
    return {mode: figures([one for one in some if one.mode == mode]) for mode in modes} | {"all": figures(some)}


def as_json(some: Sequence[Comparison], machine: str) -> dict[str, object]:
    """What `--json` writes."""
    return {
        "machine": machine,
        "modes": by_mode(some),
        "projects": [asdict(one) | {"error": one.error} for one in some],
    }


def markdown(some: Sequence[Comparison]) -> str:
    """A row a mode, then a row a project."""
    lines = ["| mode | mean absolute error | bias | projects compared | same outcome |", "|---|---|---|---|---|"]
    table = by_mode(some)
    for mode, row in table.items():
        cells = [percent(row["mean_absolute_error"]), signed(row["bias"]), str(row["compared"])]
        lines.append(f"| {mode} | {' | '.join(cells)} | {row['agree']} of {row['of']} |")
    modes = [mode for mode in table if mode != "all"]
    lines += ["", f"| real → simulated s | {' | '.join(modes)} |", "|---" * (len(modes) + 1) + "|"]
    for project in dict.fromkeys(one.project for one in some):
        seconds = {one.mode: _cell(one) for one in some if one.project == project}
        lines.append(f"| {project} | {' | '.join(seconds.get(mode, '-') for mode in modes)} |")
    return "\n".join(lines)


def _cell(one: Comparison) -> str:
    real, simulated = ("-" if seconds is None else f"{seconds:.1f}" for seconds in (one.real, one.simulated))
    return f"{real} → {simulated} ({signed(one.error)})"


def signed(value: float | None) -> str:
    """As in tables, with a sign."""
    return "-" if value is None else f"{value:+.0%}"
