"""`specbuild build`: the main job."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import click

from specbuild.cli.output import Output, output_options
from specbuild.cli.settings import race_options, route_options, settings_from
from specbuild.errors import BudgetSpentError, BuildFailed, UsageError

if TYPE_CHECKING:
    from specbuild.environment import Environment

EXIT_CODES = {"committed": 0, "failed": BuildFailed.exit_code, "timeout": BudgetSpentError.exit_code}
"""By the outcome of an Environment."""


@click.command(short_help="Make a verified environment for a repository.")
@click.argument("repo", required=False)
@click.option(
    "--locked",
    is_flag=False,
    flag_value=".",
    metavar="[FILE]",
    help="Do again exactly what a specbuild.lock holds, without a race.  [FILE: the one of the present folder]",
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("specbuild-out"),
    show_default=True,
    help="Where Dockerfile, setup.sh, specbuild.lock, environment.json and journal.jsonl go.",
)
@route_options
@race_options
@output_options(progress=True)
@click.pass_obj
def build(output: Output, /, repo: str | None, locked: str | None, folder: Path, **options: Any) -> int:
    """Make a verified environment for REPO.

    REPO is a folder, an archive, pypi:NAME==VERSION, or a git address, with @REVISION if you like. With --locked it can
    be left out: the lock names it.
    """
    if repo is None and locked is None:
        raise click.UsageError("name a repository: specbuild build REPO")
    settings = settings_from(options)
    check_output_folder(folder)
    from specbuild import journey
    from specbuild.cli.interrupts import run_to_end
    from specbuild.cli.progress import progress_for

    wanted = repo if repo is not None else _repo_of(Path(locked or "."))

    with progress_for(output) as progress:
        environment = run_to_end(
            lambda: journey.build(wanted, settings=settings, output=folder, reporter=progress.reporter, locked=locked),
            output.err,
            progress.tick,
        )
    hide_from_git(folder)
    show_result(environment, output)
    return EXIT_CODES[environment.outcome]


def _repo_of(lock: Path) -> str:
    """Where the lock says that its source tree is: for a folder, where the lock itself is."""
    from specbuild.lockfile import HERE, read_lock_file

    origin = read_lock_file(lock).repo.origin
    return origin if origin != HERE else str(lock if lock.is_dir() else lock.parent)


def check_output_folder(folder: Path) -> None:
    """Refuse, before minutes are spent, what cannot hold the result or holds files that are not of an earlier one."""
    try:
        if folder.is_dir() and any(folder.iterdir()) and not (folder / "environment.json").exists():
            raise UsageError(
                f"the output folder {folder} holds files that SpecBuild did not write",
                hint="name another folder with --output, or empty this one",
            )
        there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        with TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise UsageError(
            f"the output folder {folder} cannot be written: {error.strerror}",
            hint="name another folder with --output",
        ) from error


def hide_from_git(folder: Path) -> None:
    """A result inside of a repository is no part of it: neither for git nor for the next build."""
    if folder.is_dir() and not (folder / ".gitignore").exists():
        (folder / ".gitignore").write_text("*\n")


def show_result(environment: Environment, output: Output) -> None:
    """The Environment as the JSON object, or in words; a failure goes to stderr."""
    from specbuild.cli.result import explain_failure, summarise

    if output.json:
        output.result_object(environment)
    if environment.outcome == "committed":
        output.result(*summarise(environment, output.out))
    elif output.quiet < 2:
        for line in explain_failure(environment, output.err):
            output.err.line(line)
