"""The command `specbuild`: finds commands, and turns whatever they raise into one message and one exit code."""

from __future__ import annotations

import difflib
import importlib
import signal
import sys
from collections.abc import Sequence

import click

from specbuild._version import __version__
from specbuild.cli.failures import report_failure
from specbuild.cli.output import Output
from specbuild.cli.terminal import make_streams_safe

HOMES = {
    "build": "specbuild.cli.build",
    "plan": "specbuild.cli.plan",
    "run": "specbuild.cli.environments",
    "shell": "specbuild.cli.environments",
    "replay": "specbuild.cli.environments",
    "export": "specbuild.cli.export",
    "explain": "specbuild.cli.explain",
    "doctor": "specbuild.cli.doctor",
    "cache": "specbuild.cli.cache",
    "schema": "specbuild.cli.schema",
}
"""Commands in the order of the help, and the modules that they lie in, each under its own name."""

EPILOG = """\b
Exit codes:
  0    an environment was verified and committed
  1    no candidate verified
  2    the request makes no sense as it was given
  3    what is locked is not what is there
  4    sandboxes do not work here, a base cannot be had, or SpecBuild broke
  5    the time limit or another budget was spent first
  75   the network or a registry failed: trying again may help
  130  interrupted

\b
`run` and `shell` end with the exit code of the command itself.
Every option of `build` can also be set by a variable (SPECBUILD_JOBS=4), in
specbuild.toml, or in [tool.specbuild] of pyproject.toml.
Shell completion: eval "$(_SPECBUILD_COMPLETE=bash_source specbuild)"
(or zsh_source, fish_source).
"""


class Commands(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of a user's journey."""
        return list(HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or None."""
        if cmd_name not in HOMES:
            return None
        command: click.Command = getattr(importlib.import_module(HOMES[cmd_name]), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Like click's, with a guess at what a mistyped command was meant to be."""
        if args and args[0] not in HOMES and not args[0].startswith("-"):
            raise click.UsageError(_unknown(args[0]), ctx)
        return super().resolve_command(ctx, args)


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, HOMES, n=1)
    if near:
        return f"no such command: {name!r}. Did you mean {near[0]!r}?"
    return f"no such command: {name!r}. To set up a repository: specbuild build {name}"


@click.group(cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="specbuild %(version)s")
def cli() -> None:
    """Turn a code repository into a verified, reproducible environment.

    SpecBuild tries many ways to set the repository up at once, in copy-on-write sandboxes, keeps the first whose
    tests really pass, and throws the others away.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (by default `sys.argv`) and return its exit code; see `EPILOG` for what they mean."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    make_streams_safe()
    output = Output()
    try:
        code: object = cli.main(given, prog_name="specbuild", standalone_mode=False, obj=output)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the boundary: all that is left becomes a message
        if arguments is None:  # the process ends here: one more Ctrl-C must not change how
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
        return report_failure(error, output, given)
    return code if isinstance(code, int) else 0
