"""How good predictions were in builds that were made: precision, recall, calibration, seconds of lead.

    python -m bench predictors FOLDER... [--json FILE]

Each FOLDER is searched for journals of builds (`journal.jsonl`). A prediction is a failure that was told before its
step had ended: `before` anything ran, from facts and indexes, or from `output` while the step ran. It was right if the
step then failed so, wrong if it ended well; what was cancelled before it could show is left out and counted. A failure
that came is recalled if it was told before the end of its step. What one build prevented may have come in another one
of the same repository, as in the modes of `bench race` that foresee nothing: all builds in the folders are held
against each other. Precision is over what was told with a probability from
which a repair is forked; the Brier score is over everything: the mean of (probability - outcome)², 0.25 for a guess.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from specbuild.errors import UsageError
from specbuild.execution import FORK_FROM
from specbuild.failures import Weight
from specbuild.story import Source, Story, Told, kin, read_journal, tell

_BINS = (0.0, 0.2, FORK_FROM, 0.7, 0.85, 1.0)


@dataclass(frozen=True)
class Quality:
    """Of the predictions from one source."""

    source: str
    told: int
    right: int
    wrong: int
    open: int
    """Whose step never came to its end."""
    precision: float | None
    """Of those with a probability of `FORK_FROM` and more."""
    brier: float | None
    lead_median: float | None
    """Seconds from the telling until the step had failed."""
    lead_total: float


@dataclass(frozen=True)
class Bin:
    """Of all predictions with a probability in a range, how many came true."""

    low: float
    high: float
    told: int
    came: float | None


def quality(source: Source, told: Sequence[Told]) -> Quality:
    """The figures of one source."""
    mine = [one for one in told if one.source == source]
    known = [one for one in mine if one.came is not None]
    likely = [one for one in known if one.probability >= FORK_FROM]
    leads = [one.lead for one in known if one.came and one.lead is not None]
    return Quality(
        source=source,
        told=len(mine),
        right=sum(one.came is True for one in known),
        wrong=sum(one.came is False for one in known),
        open=len(mine) - len(known),
        precision=_share(one.came is True for one in likely),
        brier=_mean([(one.probability - bool(one.came)) ** 2 for one in known]),
        lead_median=median(leads) if leads else None,
        lead_total=sum(leads),
    )


def recall(stories: Iterable[Story]) -> dict[str, float | int | None]:
    """Of the failures that steps ended with, the share that was told before."""
    came: dict[tuple[str, str, str], set[Source]] = {}
    for story in stories:
        foreseen = {(kin(one.failure), one.step_kind) for one in story.failures if one.source == "before"}
        for one in story.failures:
            if one.came and one.failure.weight is not Weight.WARNING and not one.failure.infrastructure:
                sources = came.setdefault((story.build, one.step, one.failure.key), set())
                sources.add(one.source)
                if (kin(one.failure), one.step_kind) in foreseen:
                    sources.add("before")
    before = [("before" in sources) for sources in came.values()]
    ahead = [bool(sources & {"before", "output"}) for sources in came.values()]
    return {"failures": len(came), "before": _share(before), "before_the_end": _share(ahead)}


def reliability(told: Sequence[Told]) -> Iterator[Bin]:
    """How often predictions of each range of probability came true."""
    for low, high in pairwise(_BINS):
        mine = [one for one in told if one.came is not None and low <= one.probability < high + (high == 1.0)]
        yield Bin(low, high, len(mine), _share(one.came is True for one in mine))


def main(arguments: list[str]) -> int:
    """Read the journals, print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench predictors", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    stories = list(_stories(given.folders))
    if not stories:
        parser.error("no journal of a build was found there")
    told = [one for one in _settled(stories) if one.source != "end"]
    rows = [quality("before", told), quality("output", told)]
    print(f"{len(stories)} builds, {sum(story.winner is not None for story in stories)} committed\n")
    print("| source | told | right | wrong | open | precision | Brier | lead, median | lead, total |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row.source} | {row.told} | {row.right} | {row.wrong} | {row.open} | {_percent(row.precision)} | "
            f"{_number(row.brier)} | {_number(row.lead_median)} s | {row.lead_total:.0f} s |"
        )
    remembered = recall(stories)
    print(f"\n{remembered['failures']} failures came; told before anything ran: {_percent(remembered['before'])},")
    print(f"before their step had ended: {_percent(remembered['before_the_end'])}\n")
    print("| probability | told | came true |\n|---|---|---|")
    bins = list(reliability(told))
    for one in bins:
        print(f"| {one.low:.2f} to {one.high:.2f} | {one.told} | {_percent(one.came)} |")
    if given.json:
        result = {"sources": [asdict(row) for row in rows], "recall": remembered, "bins": [asdict(one) for one in bins]}
        given.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0


def _settled(stories: Sequence[Story]) -> Iterator[Told]:
    """What was told in all builds; what nobody knows of one build is taken from another one of the same repository."""
    seen = {(story.repo, kin(one.failure), one.step_kind): True for story in stories for one in _came(story)}
    missed = {
        (story.repo, kin(one.failure), one.step_kind)
        for story in stories
        for one in story.failures
        if one.came is False
    }
    for story in stories:
        for one in story.failures:
            what = (story.repo, kin(one.failure), one.step_kind)
            if one.came is not None or one.source != "before":
                yield one
            elif what in seen:
                yield one.model_copy(update={"came": True})
            else:
                yield one.model_copy(update={"came": False if what in missed else None})


def _came(story: Story) -> Iterator[Told]:
    return (one for one in story.failures if one.came and one.source != "before")


def _stories(folders: Iterable[Path]) -> Iterator[Story]:
    for folder in folders:
        for path in sorted(folder.rglob("journal.jsonl")):
            try:
                yield tell(read_journal(path))
            except UsageError as error:
                print(f"left out: {error}")


def _share(values: Iterable[bool]) -> float | None:
    return _mean([float(value) for value in values])


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _percent(value: float | int | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
