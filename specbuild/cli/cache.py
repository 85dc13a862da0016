"""`specbuild cache`: where checkpoints, bases and downloads lie, how much they take, and how to be rid of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import click

from specbuild.cli.output import Output, output_options
from specbuild.cli.types import to_age

SCHEMA_VERSION = 1


@click.group(short_help="Look at and shrink the cache.")
def cache() -> None:
    """Look at and shrink the cache: checkpoints, bases, downloads (of apt, pip and uv), earlier builds."""


@cache.command("dir")
@output_options()
@click.pass_obj
def show_dir(output: Output) -> int:
    """Print the folder of the cache."""
    from specbuild.config import load_settings

    folder = load_settings().cache_dir
    output.result(str(folder))
    if output.json:
        output.result_object(_object("shown", dir=str(folder)))
    return 0


@cache.command("size")
@output_options()
@click.pass_obj
def show_size(output: Output) -> int:
    """Print how much disk the cache takes, in all and by folder, and what container engines hold of it."""
    from specbuild.cli.disk import disk_usage, held_by_engines
    from specbuild.cli.words import size
    from specbuild.config import load_settings

    folder = load_settings().cache_dir
    usage, engines = disk_usage(folder), held_by_engines(folder)
    total = sum(usage.values())
    if output.json:
        output.result_object(_object("shown", dir=str(folder), total_bytes=total, folders=usage, engines=engines))
    output.result(*(f"{size(count):>10}  {name}" for name, count in usage.items()), f"{size(total):>10}  {folder}")
    output.result(*(f"{size(count):>10}  in images of the engine at {name}" for name, count in engines.items()))
    return 0


@cache.command("prune")
@click.option(
    "--older-than", type=to_age, metavar="TIME", help="Also give up environments built longer ago, as in 72h."
)
@output_options()
@click.pass_obj
def prune(output: Output, older_than: float | None) -> int:
    """Remove checkpoints that no environment needs, and what crashed builds have left."""
    from specbuild.cli.disk import prune_cache
    from specbuild.cli.interrupts import run_to_end
    from specbuild.config import load_settings

    settings = load_settings()
    before = None if older_than is None else time.time() - older_than
    freed = run_to_end(lambda: prune_cache(settings, before=before, notify=_noting(output)), output.err)
    _freed(output, freed, settings.cache_dir)
    return 0


@cache.command("clean")
@output_options()
@click.pass_obj
def clean(output: Output) -> int:
    """Remove everything in the cache: environments, checkpoints, bases, downloads. Output folders stay."""
    from specbuild.cli.disk import clean_cache, running_builds
    from specbuild.cli.interrupts import run_to_end
    from specbuild.config import load_settings

    settings = load_settings()
    for build in running_builds(settings):
        _noting(output)(f"build {build} is running; what it may need stays")
    freed = run_to_end(lambda: clean_cache(settings, notify=_noting(output)), output.err)
    _freed(output, freed, settings.cache_dir)
    return 0


def _noting(output: Output) -> Callable[[str], None]:
    return lambda message: output.err.line(f"{output.err.paint('note', 'yellow')}: {message}")


def _freed(output: Output, freed: int, folder: Path) -> None:
    from specbuild.cli.words import size

    if output.json:
        output.result_object(_object("cleaned", dir=str(folder), freed_bytes=freed))
    output.result(f"freed {size(freed)} of {folder}")


def _object(outcome: str, **fields: object) -> dict[str, object]:
    return {"schema_version": SCHEMA_VERSION, "outcome": outcome, **fields}
