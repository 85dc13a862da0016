"""The options of `build` and `plan` that say how a repository is to be set up, and the Settings made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from specbuild.cli.types import to_bytes, to_seconds

if TYPE_CHECKING:
    from specbuild.config import Settings

F = TypeVar("F", bound=Callable[..., Any])

LEVELS = ("imports", "collect", "build", "tests", "command")

_ROUTES = (
    click.option(
        "--base",
        "bases",
        multiple=True,
        metavar="BASE",
        help="Root filesystem to start from: auto, host, debian:RELEASE, an image, engine:IMAGE. Repeat for several.",
    ),
    click.option(
        "--strategy",
        "strategies",
        multiple=True,
        metavar="NAME",
        help="Only strategies whose name begins so. Repeat for several.",
    ),
    click.option("--level", type=click.Choice(LEVELS), help="How much a verification must prove.  [default: tests]"),
    click.option("--test-command", metavar="CMD", help="Your own measure; the level command judges its exit code."),
    click.option(
        "--min-pass-ratio",
        type=click.FloatRange(0, 1),
        metavar="RATIO",
        help="Share of the tests that ran which must pass.  [default: 0.9]",
    ),
)

_RACE = (
    click.option("--backend", metavar="NAME", help="What makes the sandboxes: auto, overlay, docker.  [default: auto]"),
    click.option(
        "-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Steps at once.  [default: usable cores + 1]"
    ),
    click.option("--sequential", is_flag=True, default=None, help="One candidate at a time."),
    click.option(
        "--pursue",
        type=click.Choice(["recipe", "strategy", "all"]),
        help="One recipe at a time, one strategy with its repairs, or all that pays.  [default: all]",
    ),
    click.option("--repair/--no-repair", default=None, help="Repair what fails.  [default: yes]"),
    click.option(
        "--ahead/--no-ahead",
        default=None,
        help="Fork repairs before the failure that they cure was observed.  [default: yes]",
    ),
    click.option("--warm/--no-warm", default=None, help="Download ahead where a slot would be idle.  [default: yes]"),
    click.option(
        "--beside/--no-beside",
        default=None,
        help="Install system packages beside the steps before them.  [default: yes]",
    ),
    click.option(
        "--reuse",
        type=click.Choice(["builds", "build", "none"]),
        help="Take checkpoints of earlier builds, of this one alone, or none.  [default: builds]",
    ),
    click.option(
        "--refresh", is_flag=True, default=None, help="Take no checkpoint from before; later builds share the new ones."
    ),
    click.option(
        "--max-age", type=to_seconds, metavar="TIME", help="For how long builds share checkpoints.  [default: 7 days]"
    ),
    click.option("--time-limit", type=to_seconds, metavar="TIME", help="For the whole build, as in 90s, 10m, 1h30m."),
    click.option("--replay/--no-replay", default=None, help="Build the winner again from its base.  [default: yes]"),
    click.option("--memory", "memory_bytes", type=to_bytes, metavar="SIZE", help="For each sandbox, as in 4G."),
    click.option("--disk", "disk_bytes", type=to_bytes, metavar="SIZE", help="For what each sandbox writes.  [20G]"),
)


def _adds(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def route_options(command: F) -> F:
    """What is to be tried and how it is verified."""
    return _adds(*_ROUTES)(command)


def race_options(command: F) -> F:
    """How it is run, and what it may use."""
    return _adds(*_RACE)(command)


def backend_option(command: F) -> F:
    """Where an environment is, for those who do not want it where it was built."""
    words = "Use this backend, and not the one that built the environment: overlay, docker."
    return click.option("--backend", metavar="NAME", help=words)(command)


def client_option(command: F) -> F:
    """Which of several engines, for those who have more than one."""
    words = "Use this client's container engine: docker, podman, or auto, the first that answers.  [default: auto]"
    return click.option("--client", type=click.Choice(["auto", "docker", "podman"]), help=words)(command)


def settings_from(options: dict[str, Any]) -> Settings:
    """Settings with the options that were given over variables and files.

    Raises ConfigError.
    """
    from specbuild.config import load_settings

    return load_settings(**{name: value for name, value in options.items() if value not in (None, ())})
