"""`specbuild run`, `shell` and `replay`: what can be done with an environment that was built."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import click

from specbuild.cli.output import Output, output_options
from specbuild.cli.settings import backend_option, client_option
from specbuild.cli.types import to_seconds
from specbuild.errors import BuildFailed

if TYPE_CHECKING:
    from specbuild.environment import Environment
    from specbuild.sandbox.contract import Completed

SCHEMA_VERSION = 1

ENV_HELP = """ENV is an output folder, an environment.json, the id of a build or its beginning, or `last`."""


@click.command(epilog=ENV_HELP, short_help="Run a command in an environment.")
@click.argument("env")
@click.argument("command", nargs=-1, required=True, metavar="-- COMMAND...")
@click.option("--timeout", type=to_seconds, metavar="TIME", help="Kill the command after this time, as in 90s, 10m.")
@backend_option
@output_options()
@click.pass_obj
def run(output: Output, env: str, command: tuple[str, ...], timeout: float | None, backend: str | None) -> int:
    """Run a command in a fresh fork of an environment; what it writes is thrown away.

    One argument is a shell command line, several are a program and its arguments. The exit code is the command's own.
    """
    from specbuild import journey
    from specbuild.cli.interrupts import run_to_end
    from specbuild.config import load_settings

    settings = load_settings(backend=backend)
    line, *rest = command
    show = output.err.line if output.json else output.out.line

    async def job() -> Completed:
        opened = await journey.open_environment(env, settings=settings)
        return await opened.run(command if rest else line, timeout=timeout, on_line=show)

    done = run_to_end(job, output.err)
    if output.json:
        output.result_object(_as_object(env, shlex.join(command) if rest else line, done))
    if done.note or done.end not in ("exited", "signalled"):
        output.err.line(f"{output.err.paint('note', 'yellow')}: the command ended by {done.end}: {done.note}")
    return done.exit_code


def _as_object(env: str, line: str, done: Completed) -> dict[str, object]:
    return {
        "schema_version": SCHEMA_VERSION,
        "outcome": "ran",
        "environment": env,
        "command": line,
        "end": done.end,
        "exit_code": done.exit_code,
        "seconds": done.seconds,
        "cpu_seconds": done.cpu_seconds,
        "peak_memory_bytes": done.peak_memory_bytes,
        "note": done.note,
        "tail": done.tail,
    }


@click.command(epilog=ENV_HELP, short_help="Open a shell in an environment.")
@click.argument("env")
@backend_option
@output_options()
@click.pass_obj
def shell(output: Output, env: str, backend: str | None) -> int:
    """Open an interactive shell in a fresh fork of an environment; what it writes is thrown away."""
    if output.json:
        raise click.UsageError("an interactive shell has no JSON result; use `specbuild run --json ENV -- COMMAND`")
    if not sys.stdin.isatty():
        raise click.UsageError("a shell needs a terminal as its input; use `specbuild run ENV -- COMMAND`")
    from specbuild import journey
    from specbuild.cli import interactive
    from specbuild.cli.interrupts import run_to_end
    from specbuild.config import load_settings

    settings = load_settings(backend=backend)

    async def job() -> int:
        return await interactive.shell(await journey.open_environment(env, settings=settings))

    return run_to_end(job, output.err)


@click.command(epilog=ENV_HELP, short_help="Build an environment again from its base.")
@click.argument("env")
@click.option("--docker", is_flag=True, help="Have a container engine build the Dockerfile, and test inside.")
@click.option("--base-image", default="", metavar="IMAGE", help="With --docker: start from this image.")
@click.option("--network", default="", metavar="NAME", help="With --docker: the engine's network to build in.")
@click.option(
    "--build-arg", "arguments", multiple=True, metavar="NAME=VALUE", help="With --docker: as of `docker build`."
)
@client_option
@backend_option
@output_options(progress=True)
@click.pass_obj
def replay(
    output: Output,
    env: str,
    docker: bool,
    base_image: str,
    network: str,
    arguments: tuple[str, ...],
    client: str | None,
    backend: str | None,
) -> int:
    """Build an environment again from its base, without checkpoints of earlier steps, and compare.

    Ends with 0 if the verdict and the packages are the same as before, with 1 if they are not.
    """
    if not docker and (base_image or network or arguments or client):
        raise click.UsageError("--base-image, --network, --build-arg and --client are for --docker")
    wrong = next((each for each in arguments if each.find("=") < 1), None)
    if wrong is not None:
        raise click.UsageError(f"--build-arg {wrong}: write it as NAME=VALUE")
    from specbuild import journey
    from specbuild.cli.interrupts import run_to_end
    from specbuild.cli.progress import progress_for
    from specbuild.config import load_settings
    from specbuild.engine_replay import EngineOptions

    settings = load_settings(client=client, backend=backend)
    with progress_for(output) as progress:

        async def job() -> Environment:
            opened = await journey.open_environment(env, settings=settings)
            if not docker:
                return await journey.replay(opened, settings=settings, reporter=progress.reporter)
            pairs = {name: value for name, _, value in (each.partition("=") for each in arguments)}
            options = EngineOptions(base_image, network, pairs)
            return await journey.replay_docker(opened, options, settings=settings, reporter=progress.reporter)

        environment = run_to_end(job, output.err, progress.tick)
    _show_replay(environment, output)
    return 0 if environment.reproducible else BuildFailed.exit_code


def _show_replay(environment: Environment, output: Output) -> None:
    from specbuild.cli.words import counts

    if output.json:
        output.result_object(environment)
    out = output.out
    verdict = environment.verdict
    found = counts(verdict) if verdict else ""
    if environment.reproducible:
        line = f"{out.symbols.won} reproducible, with the same verdict and packages: {found}"
        output.result(out.paint(line, "green"))
        return
    if verdict is not None and verdict.repeatable:
        line = f"{out.symbols.lost} not reproducible: the verdict is the same ({found}), but packages differ:"
        output.result(out.paint(line, "red"))
    else:
        line = f"{out.symbols.lost} not reproducible: built again it ended differently from: {found}"
        output.result(out.paint(line, "red"), *_how_it_ended(environment))
    if environment.differences:
        output.result(*(f"  {each}" for each in environment.differences.lines()))


def _how_it_ended(environment: Environment) -> list[str]:
    from specbuild.cli.words import ending, last_lines

    replayed = environment.replayed
    if replayed is None:
        return []
    _, _, more = replayed.reason.partition("\n")
    lines = [ending(replayed), *last_lines(more), *(f"failing: {name}" for name in replayed.failing[:5])]
    return [f"  {line}" for line in lines]
