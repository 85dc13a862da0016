"""How well a simulation holds: its seconds against those of the builds that it was recorded from, at their slots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median

from bench.recorded import RecordedWorld
from bench.simulated import Machine
from bench.tables import Results, percent


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


def comparisons(worlds: Sequence[RecordedWorld], results: Results, cores: int) -> list[Comparison]:
    """Every project in every mode in which it was recorded, each build at the slots that it had, on so many cores."""
    found: list[Comparison] = []
    for number, world in enumerate(worlds):
        for mode in dict.fromkeys(one.mode for one in world.recordings):
            recorded = [one for one in world.recordings if one.mode == mode]
            machines = [str(Machine(cores, one.slots)) for one in recorded]
            if all(mode in results.get(machine, {}) for machine in machines):
                runs = [results[machine][mode][number] for machine in machines]
                real = _middle(one.seconds for one in recorded)
                simulated = _middle(one.seconds if one.committed else None for one in runs)
                found.append(Comparison(world.name, mode, real, simulated))
    return found


def _middle(seconds: Iterable[float | None]) -> float | None:
    known = [one for one in seconds if one is not None]
    return median(known) if known else None


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


def as_json(some: Sequence[Comparison], cores: int) -> dict[str, object]:
    """What `--json` writes."""
    return {
        "cores": cores,
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
