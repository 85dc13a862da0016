"""`specbuild export`: an environment as an image, a Dockerfile, a script, a bill of materials."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from specbuild.cli.environments import ENV_HELP
from specbuild.cli.output import Output, output_options
from specbuild.cli.settings import backend_option, client_option

if TYPE_CHECKING:
    from specbuild.export.targets import Exported

FORMATS = """\b
FORMAT is one of
  dockerfile       a Dockerfile for any builder
  setup-sh         a shell script for a bare machine
  oci              an OCI image layout: a folder, or an archive if PLACE ends in .tar
  docker-archive   an image for `docker load` and `podman load`
  engine           an image in the local container engine; PLACE is its name
  registry         an image in a registry; PLACE is HOST/NAME:TAG
  devcontainer     a folder with devcontainer.json and its Dockerfile
  rootfs           all files as one tar archive
  sbom             a CycloneDX bill of materials, in JSON
  lock             the lock, for `build --locked`
"""
"""As `export.targets.WORDS`, which a test compares; help is shown without the models."""


@click.command(epilog=f"{FORMATS}\n\n{ENV_HELP}", short_help="Export an environment as an image or as files.")
@click.argument("env")
@click.option(
    "--to", "targets", metavar="FORMAT[:PLACE]", multiple=True, required=True, help="What and where. Repeat for more."
)
@click.option("--force", is_flag=True, help="Replace what is there already.")
@client_option
@backend_option
@output_options()
@click.pass_obj
def export(
    output: Output, env: str, targets: tuple[str, ...], force: bool, client: str | None, backend: str | None
) -> int:
    """Export an environment: its files as an image with a layer for each step, or what makes it anew."""
    from specbuild import journey
    from specbuild.cli.interrupts import run_to_end
    from specbuild.config import load_settings
    from specbuild.export.targets import parse_target

    for target in targets:
        parse_target(target)  # before anything is written
    settings = load_settings(client=client, backend=backend)

    async def job() -> list[Exported]:
        opened = await journey.open_environment(env, settings=settings)
        return [await opened.export(target, force=force) for target in targets]

    made = run_to_end(job, output.err)
    if output.json:
        exports = [each.model_dump(mode="json") for each in made]
        output.result_object({"schema_version": 1, "outcome": "exported", "environment": env, "exports": exports})
    for each in made:
        output.result(_line(each, output))
    return 0


def _line(made: Exported, output: Output) -> str:
    from specbuild.cli.words import plural, size

    details = [size(made.size_bytes)] if made.size_bytes is not None else []
    if made.layers is not None:
        details.insert(0, plural(made.layers, "layer"))
    if made.digest:  # a folder of files has none
        details.append(made.digest[:19])
    mark = output.out.paint(output.out.symbols.won, "green")
    where = f" in {made.client}" if made.client else ""
    return f"{mark} {made.format}: {made.place}{where} ({', '.join(details)})"
