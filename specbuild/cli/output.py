"""The options that every command has, for what it prints and where: results on stdout, all else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from specbuild.cli.terminal import ColorMode, Terminal

if TYPE_CHECKING:
    from pydantic import BaseModel

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(slots=True)
class Output:
    """What the user wants to see. Filled while options are read, so that it also holds for errors among them."""

    json: bool = False
    verbose: int = 0
    quiet: int = 0
    """1: warnings and results; 2: nothing but results that were asked for with --json."""
    color: ColorMode = "auto"
    progress: str = "auto"

    @property
    def out(self) -> Terminal:
        """Where results go."""
        return Terminal.of(sys.stdout, self.color, results=True)

    @property
    def err(self) -> Terminal:
        """Where all else goes."""
        return Terminal.of(sys.stderr, self.color)

    def result(self, *lines: str) -> None:
        """A result for people; left out by --json and by -qq."""
        if self.json or self.quiet > 1:
            return
        out = self.out
        for line in lines:
            out.line(line)

    def result_object(self, value: BaseModel | dict[str, Any]) -> None:
        """The one JSON object of --json, in ASCII, so that no encoding of the terminal can damage it."""
        data = value if isinstance(value, dict) else value.model_dump(mode="json")
        self.out.line(json.dumps(data))


def _store(name: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def callback(ctx: click.Context, _: click.Parameter, value: Any) -> Any:
        setattr(ctx.ensure_object(Output), name, value)
        return value

    return callback


def output_options(*, progress: bool = False) -> Callable[[F], F]:
    """Adds --json, -q, -v and --color (and --progress) to a command, which reads them from its `Output` object."""
    shared: dict[str, Any] = {"is_eager": True, "expose_value": False}
    options = [
        click.option(
            "--json", is_flag=True, callback=_store("json"), help="Print exactly one JSON object on stdout.", **shared
        ),
        click.option("-v", "--verbose", count=True, callback=_store("verbose"), help="Show more.", **shared),
        click.option(
            "-q", "--quiet", count=True, callback=_store("quiet"), help="Show less; twice: nothing.", **shared
        ),
        click.option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            callback=_store("color"),
            help="Colour the output (auto heeds NO_COLOR and FORCE_COLOR).",
            **shared,
        ),
    ]
    if progress:
        options.insert(
            1,
            click.option(
                "--progress",
                type=click.Choice(["auto", "tty", "plain", "json", "none"]),
                default="auto",
                callback=_store("progress"),
                help="How to show progress on stderr: a live tree, log lines, JSON lines, not at all.",
                **shared,
            ),
        )

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
