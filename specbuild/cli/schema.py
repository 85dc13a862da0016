"""`specbuild schema`: the JSON Schema of what SpecBuild reads and writes."""

from __future__ import annotations

import json
from typing import Any

import click

from specbuild.cli.output import Output, output_options


@click.command(short_help="Print a JSON Schema.")
@click.argument(
    "what", type=click.Choice(["environment", "event", "plan", "settings", "story", "lock"]), default="environment"
)
@output_options()
@click.pass_obj
def schema(output: Output, what: str) -> int:
    """Print the JSON Schema of what SpecBuild reads and writes.

    That is an environment (what `build --json` prints), an event (a line of the journal), a plan, the settings, a
    story (what `explain --json` prints), or a lock.
    """
    text = json.dumps(_schema_of(what), indent=None if output.json else 2)
    output.out.line(text)
    return 0


def _schema_of(what: str) -> dict[str, Any]:
    from pydantic import TypeAdapter

    match what:
        case "event":
            from specbuild.events import Event

            return TypeAdapter[Any](Event).json_schema()
        case "plan":
            from specbuild.journey import Plan

            return Plan.model_json_schema()
        case "settings":
            from specbuild.config import Settings

            return Settings.model_json_schema()
        case "story":
            from specbuild.story import Story

            return Story.model_json_schema()
        case "lock":
            from specbuild.lockfile import Lock

            return Lock.model_json_schema()
        case _:
            from specbuild.environment import Environment

            return Environment.model_json_schema()
