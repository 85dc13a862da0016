"""What a decision costs in a tree of many recipes.

    python -m bench scheduler [--recipes N] [--decisions N] [--slots N] [--json FILE]

Three shapes of tree: `shared`, where all recipes pass through one edge for most of the time; `apart`, where none shares
more than its base; `mixed`, which branches at every step. Each is raced without sandboxes: a decision, then the end of
a random running step, one in four of them a failure with a repair, and so on. `decide` is `choose` and `cpu_weights`
together, `update` what the end of a step changes in the tree. In milliseconds of CPU: median, 99 of 100, worst; the
worst is when thousands of edges become runnable at once.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import median, quantiles

from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind
from specbuild.scheduler import choose, cpu_weights
from specbuild.tree import Entry, Tree

_CHECK = Check(level=Level.TESTS, runner="pytest", step=Step(kind=StepKind.TEST, run="test"))


def _shared(count: int) -> Iterator[list[str]]:
    for number in range(count):
        yield ["system", "toolchain", "install", f"build {number}"]


def _apart(count: int) -> Iterator[list[str]]:
    for number in range(count):
        yield [f"system {number}", "toolchain", "install", "build"]


def _mixed(count: int) -> Iterator[list[str]]:
    width = round(count**0.25)
    for row in product(range(width), repeat=4):
        yield [
            f"{place} {number}" for place, number in zip(("system", "toolchain", "install", "build"), row, strict=True)
        ]


SHAPES: dict[str, Callable[[int], Iterator[list[str]]]] = {"shared": _shared, "apart": _apart, "mixed": _mixed}


@dataclass(frozen=True)
class Figures:
    """Of one shape; milliseconds."""

    recipes: int
    decisions: int
    decide_median: float
    decide_most: float
    """99 of 100 take less."""
    decide_worst: float
    update_median: float
    update_most: float
    update_worst: float


def plant(rows: Iterator[list[str]], seed: int = 1) -> Tree:
    """A tree of Recipes with these commands."""
    tree, source = Tree(), random.Random(seed)
    base = BaseRef(name="base", digest="sha256:0")
    for order, commands in enumerate(rows):
        steps = tuple(Step(kind=StepKind.DEPENDENCIES, run=command) for command in commands)
        recipe = Recipe(base=base, steps=steps, check=_CHECK)
        tree.add(Entry(f"c{order}", recipe, source.uniform(0.05, 0.95), source.uniform(20, 200), order))
    return tree


def measure(tree: Tree, decisions: int, slots: int) -> Figures:
    """Race a tree without sandboxes."""
    source, decide, update = random.Random(2), list[float](), list[float]()
    recipes = len(tree.live())
    while len(decide) < decisions and tree.has_hope:
        began = time.thread_time()
        decision = choose(tree, slots=slots)
        tree.hold(decision.steady)
        for key in decision.start:
            tree.start(key)
        cpu_weights(tree)
        decide.append(1000 * (time.thread_time() - began))
        key = source.choice(sorted(edge.key for edge in tree.running()))
        began = time.thread_time()
        _end(tree, key, fails=isinstance(tree.edge(key).work, Check) or source.random() < 0.25)
        update.append(1000 * (time.thread_time() - began))
    return Figures(recipes, len(decide), *_spread(decide), *_spread(update))


def _spread(times: list[float]) -> tuple[float, float, float]:
    return median(times), quantiles(times, n=100)[98], max(times)


def _end(tree: Tree, key: str, *, fails: bool) -> None:
    work = tree.edge(key).work
    if not fails or isinstance(work, BaseRef) or len(tree.edge(key).recipes) > 100:
        tree.finish(key)
        return
    first = tree.fail(key)[0]
    repair = Step(kind=StepKind.SYSTEM, run=f"fix {key}")
    at = tree.path(first.id).index(key) - 1
    steps = (*first.recipe.steps[:at], repair, *first.recipe.steps[at:])
    repaired = first.recipe.model_copy(update={"steps": steps})
    if len(steps) < 8:
        tree.add(Entry(f"{first.id}.1", repaired, first.prior * 0.8, first.expected_seconds + 3, first.order))


def markdown(figures: dict[str, Figures]) -> str:
    """A row a shape."""
    lines = ["| tree | recipes | decisions | decide, ms | 99% | worst | update, ms | 99% | worst |", "|---" * 9 + "|"]
    for shape, row in figures.items():
        times = (
            row.decide_median,
            row.decide_most,
            row.decide_worst,
            row.update_median,
            row.update_most,
            row.update_worst,
        )
        lines.append(f"| {shape} | {row.recipes} | {row.decisions} | {' | '.join(f'{one:.2f}' for one in times)} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m bench scheduler", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--recipes", type=int, default=10_000)
    parser.add_argument("--decisions", type=int, default=300)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    figures = {
        shape: measure(plant(rows(given.recipes)), given.decisions, given.slots) for shape, rows in SHAPES.items()
    }
    print(markdown(figures))
    if given.json:
        shapes = {shape: asdict(row) for shape, row in figures.items()}
        given.json.write_text(
            json.dumps({"schema_version": 1, "slots": given.slots, "shapes": shapes}, indent=2) + "\n"
        )
    return 0
