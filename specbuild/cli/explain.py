"""`specbuild explain`: every failure of a build, what it was taken for, which repairs were tried, what each did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from specbuild.cli.output import Output, output_options
from specbuild.cli.terminal import Terminal, clean
from specbuild.cli.words import abbreviated, duration

if TYPE_CHECKING:
    from specbuild.story import Story, Told, Tried


@click.command(short_help="Tell every failure of a build, and what its repairs did.")
@click.argument("run", default="last")
@output_options()
@click.pass_obj
def explain(output: Output, run: str) -> int:
    """Tell every failure of a build: what was seen, what it was taken for, which repairs were tried, what each did.

    RUN is an output folder, a journal.jsonl, the id of a build or its beginning, or `last` (the default).
    """
    from specbuild.config import load_settings
    from specbuild.journal import is_being_written
    from specbuild.library import Library
    from specbuild.story import read_journal, tell

    path = Path(run)
    journal = path if path.suffix == ".jsonl" else Library(load_settings().cache_dir).find_journal(run)
    story = tell(read_journal(journal))
    if story.outcome == "interrupted" and is_being_written(journal):
        story = story.model_copy(update={"outcome": "running"})
    if output.json:
        output.result_object(story)
    output.result(*story_lines(story, output.out))
    return 0


def story_lines(story: Story, terminal: Terminal) -> Iterator[str]:
    """The story in words."""
    winner = f" by {story.winner}" if story.winner else ""
    headline = f"{story.repo}: {story.outcome}{winner} after {duration(story.seconds)}"
    yield terminal.paint(headline, "green" if story.winner else "red", bold=True)
    if not story.failures:
        yield "  no failure was seen or foreseen"
    for told in story.failures:
        yield ""
        yield from _failure(told, terminal)


def _failure(told: Told, terminal: Terminal) -> Iterator[str]:
    mark = {True: terminal.symbols.lost, False: terminal.symbols.won, None: terminal.symbols.cancelled}[told.came]
    yield terminal.paint(f"{mark} {clean(told.words)}", None, bold=True)
    yield f"    in        {clean(told.step)} ({abbreviated(told.candidates)})"
    yield f"    told      {_when(told)}"
    if told.failure.evidence:
        yield f"    evidence  {clean(told.failure.evidence)}"
    if told.why:
        yield f"    why       {clean(told.why)}"
    if not told.repairs:
        from specbuild.execution import FORK_FROM

        unlikely = told.source == "before" and told.probability < FORK_FROM
        yield f"    repairs   {'none was made, as it is unlikely' if unlikely else 'none is known'}"
    for tried in told.repairs:
        yield f"    repair    {_repair(tried, terminal)}"


def _when(told: Told) -> str:
    at = f"at {duration(told.at)}"
    match told.source:
        case "before":
            how = f"{at}, before anything ran, {told.probability:.0%} likely"
        case "output":
            how = f"{at}, while the step ran"
        case _:
            how = f"{at}, when the step had failed"
    match told.came:
        case True:
            lead = f", {duration(told.lead)} before the step ended" if told.lead and told.source != "end" else ""
            return f"{how}; it came{lead}"
        case False:
            return f"{how}; it did not come"
        case None:
            return f"{how}; the step was not run to its end"


def _repair(tried: Tried, terminal: Terminal) -> str:
    mark = {"worked": terminal.symbols.won, "failed": terminal.symbols.lost}.get(
        tried.outcome, terminal.symbols.cancelled
    )
    ahead = ", forked ahead" if tried.repair.foreseen else ""
    title = f"{clean(tried.repair.title)} ({tried.candidate}{ahead}; {clean(tried.repair.why)})"
    return f"{mark} {title}: {tried.outcome}{f', {clean(tried.what)}' if tried.what else ''}"
