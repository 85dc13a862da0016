"""The tests of an Environment, run in a container as a user would: by an engine's client, with the image's command.

What they come to is read from the report that they leave in the container, and compared with the Environment's own
Verdict.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from specbuild.environment import Environment
from specbuild.recipe import Recipe
from specbuild.testing.clients import Client
from specbuild.verify import same
from specbuild.verify.judge import read_report
from specbuild.verify.verdict import Verdict

_MORE_SECONDS = 1800.0
"""That a container may take besides the tests: `setup.sh` installs everything first."""
_ENDLESS = ("/bin/sh", "-c", "while :; do sleep 3600; done")


class NotSameError(Exception):
    """An export is not what it should be; the text says how."""


def run_tests(made: Environment, engine: Client, image: str, *command: str, options: Sequence[str] = ()) -> str:
    """Run a container of the image, with `command` in place of its own; the counts, which are those of the Verdict.

    Raises NotSameError if they are not.
    """
    recipe, name = committed(made), f"specbuild-bench-{os.getpid()}"
    words = ["run", "--name", name, *network(recipe, options), *options, image, *command]
    try:
        done = engine(*words, check=False, timeout=recipe.check.step.timeout + _MORE_SECONDS)
        return compared(made, engine, name, done.stdout + done.stderr, done.returncode)
    finally:
        engine("rm", "--force", name, check=False)


@contextmanager
def container(engine: Client, image: str, *options: str) -> Generator[str]:
    """A container that does nothing, for commands in it."""
    name = f"specbuild-bench-{os.getpid()}"
    engine("run", "--detach", "--name", name, *options, image, *_ENDLESS)
    try:
        yield name
    finally:
        engine("kill", name, check=False)
        engine("rm", "--force", name, check=False)


def network(recipe: Recipe, options: Sequence[str] = ()) -> list[str]:
    """The private engines have no network of their own; a check that was verified without one runs without one."""
    if "--network" in options:
        return []
    return ["--network", "host" if recipe.check.step.network else "none"]


def compared(made: Environment, engine: Client, name: str, output: bytes, status: int) -> str:
    """The counts of the report in a container whose tests have printed `output`. Raises NotSameError."""
    check, verdict = committed(made).check, made.verdict
    assert verdict is not None
    end = f"exit code {status}: {output.decode(errors='replace').strip()[-1500:]}"
    if check.report is None:
        if status:
            raise NotSameError(end)
        return "exit code 0"
    copied = engine("cp", f"{name}:{check.report}", "-", check=False)
    if copied.returncode:
        raise NotSameError(f"no report; {end}")
    tally = read_report(check, _only_file(copied.stdout))
    counts = {name: getattr(tally, name) for name in ("passed", "failed", "errors", "skipped", "failing")}
    found = verdict.model_copy(update=counts)
    if not same(verdict, found):
        raise NotSameError(f"{in_words(found)} instead of {in_words(verdict)}; {end}")
    return in_words(found)


def in_words(verdict: Verdict) -> str:
    """The counts."""
    return f"{verdict.passed} passed, {verdict.failed + verdict.errors} failed, {verdict.skipped} skipped"


def committed(made: Environment) -> Recipe:
    """The Recipe of an Environment that has one."""
    assert made.recipe is not None
    return made.recipe


def _only_file(archive: bytes) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        member = tar.next()
        content = tar.extractfile(member) if member else None
        return content.read() if content else b""
