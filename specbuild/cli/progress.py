"""Which reporter shows the progress of a build."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from specbuild.cli.output import Output
from specbuild.events import Reporter, Silent


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Progress:
    """A reporter, and what must be called a few times a second to keep it moving."""

    reporter: Reporter
    tick: Callable[[], None] = _nothing


@contextmanager
def progress_for(output: Output) -> Generator[Progress]:
    """The progress that the user asked for; the terminal is as it was at the end."""
    from specbuild.cli.jsonlines import JsonLines
    from specbuild.cli.plain import Fold, Plain

    match _kind(output):
        case "tty":
            from specbuild.cli.live import LiveTree

            live = LiveTree(output.err)
            try:
                yield Progress(live, live.tick)
            finally:
                live.close()
        case "plain":
            fold = Fold.for_service(os.environ)
            yield Progress(Plain(output.err, verbose=output.verbose, quiet=output.quiet > 0, fold=fold))
        case "json":
            yield Progress(JsonLines(output.err, verbose=output.verbose))
        case _:
            yield Progress(Silent())


def _kind(output: Output) -> str:
    if output.progress != "auto":
        return output.progress
    if output.quiet > 1:
        return "none"
    live = output.err.tty and not output.quiet and not output.verbose and not os.environ.get("CI")
    return "tty" if live else "plain"
