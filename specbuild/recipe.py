"""Recipes: a Base, an ordered list of Steps, and the Check that verifies the result.

A Step is one shell command of which only the files survive. The digest of a Recipe covers what can change its
result, so two strategies that propose the same commands propose the same Recipe and share every checkpoint.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from enum import StrEnum
from functools import cached_property
from typing import Annotated

from pydantic import AfterValidator, Field

from specbuild.model import Frozen, digest_of

SOURCE_DIR = "/repo"
"""Where the source tree of the Repo is placed in every sandbox."""

VENV_DIR = "/opt/venv"
"""Where Python strategies put the project's virtual environment."""

SHELL = ("/bin/sh", "-eu", "-c")
"""What runs the command of a Step."""

UV = "/opt/uv/bin/uv"
"""Where Python strategies install uv."""


SALT = "SPECBUILD_SALT"
"""Variable that keeps apart what would else share its checkpoints."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

PLANNED = "planned:"
"""With the name of a base, in place of the digest that it will have once it is made."""


class StepKind(StrEnum):
    """What a Step is for; durations are learned and reported by kind."""

    SYSTEM = "system"
    TOOLCHAIN = "toolchain"
    SOURCE = "source"
    DEPENDENCIES = "dependencies"
    BUILD = "build"
    TEST = "test"


class Level(StrEnum):
    """How much a verification proves, weakest first (`command` is the user's own measure)."""

    IMPORTS = "imports"
    COLLECT = "collect"
    BUILD = "build"
    TESTS = "tests"
    COMMAND = "command"


def _sayable(variables: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    for name, value in variables:
        if not _NAME.fullmatch(name) or "\0" in value:
            raise ValueError(f"no process, shell or Dockerfile can have a variable {name!r} of that value")
    return variables


def _for_a_shell(variables: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    if odd := [name for name, _ in variables if not _SHELL_NAME.fullmatch(name)]:
        raise ValueError(f"no shell can export a variable {odd[0]!r}")
    return tuple(sorted(variables))


Variables = Annotated[tuple[tuple[str, str], ...], AfterValidator(_sayable)]
"""Names and values of an environment; among the names those with dots and dashes that some images have."""


class BaseRef(Frozen):
    """A root filesystem by name and content."""

    name: str
    """As the user writes it: `debian:bookworm`, `host`, `python:3.12`."""
    digest: str
    """`sha256:…` of the content, or of what the content was made from."""
    python: str | None = None
    """Version of the interpreter that the base's own package manager installs or has (`3.11`), if known."""
    release: str | None = None
    """Debian code name or other release name, if the base is of such a family."""
    portable: bool = True
    """Whether the base can be had on another machine (`host` cannot)."""
    env: Variables = ()
    """Variables that an image sets for all that runs in it, such as a `PATH` of its own."""

    @property
    def is_image(self) -> bool:
        """Whether somebody else has made it, and it may hold anything: also a tree where the source is to be."""
        return self.portable and not self.name.startswith("debian:")

    @property
    def is_planned(self) -> bool:
        """Whether it is not made yet, so that nothing can be run on it."""
        return self.digest.startswith(PLANNED)


class Step(Frozen):
    """One shell command, run by `/bin/sh -eu -c` in fresh namespaces."""

    kind: StepKind
    run: str
    """The command. For `source` steps the digest of the tree that is placed in `SOURCE_DIR`."""
    title: str = ""
    """A few words for people; not part of the digest."""
    cwd: str = SOURCE_DIR
    """An existing absolute folder in the sandbox."""
    env: Annotated[Variables, AfterValidator(_for_a_shell)] = ()
    """Variables added to the minimal environment, sorted by name. They hold for later Steps only if repeated."""
    network: bool = True
    caches: tuple[str, ...] = ()
    """Names of shared caches that the Step may use (`uv`, `pip`, `apt`); not part of the digest."""
    timeout: float = Field(default=1800.0, gt=0)
    """Seconds; not part of the digest."""

    @cached_property
    def digest(self) -> str:
        """Covers what can change the files that the Step leaves."""
        return digest_of([self.kind, self.run, self.cwd, self.env, self.network])


CLEAR_SOURCE = Step(kind=StepKind.SYSTEM, run=f"rm -rf {SOURCE_DIR}", cwd="/", network=False)
"""What comes before the source tree on an image, which may be an environment of an earlier revision."""


class Check(Frozen):
    """How a finished environment is verified: one command and where its machine-readable report lies."""

    level: Level
    runner: str
    """Who runs and reads it: `pytest`, `unittest`, `django`, `imports`, `command` (see `specbuild.verify`)."""
    step: Step
    report: str | None = None
    """Absolute path in the sandbox of the report that the step writes."""
    reason: str = ""
    """Why it is run in this way, in words; not part of the digest."""
    services: tuple[tuple[str, str], ...] = ()
    """Servers that the tests talk to, by name, each with the shell lines that start it. Processes do not outlive a
    Step, so they are started in the process space of whatever needs them."""

    @cached_property
    def digest(self) -> str:
        """Covers what can change the Verdict."""
        return digest_of([self.level, self.runner, self.step.digest, self.report, self.services])

    @property
    def mark(self) -> str:
        """Stands in the lines by which its runner tells how tests fare, so that nothing they print is taken for it."""
        return self.digest[:16]

    @property
    def whole(self) -> Step:
        """The Step with its services started before the command."""
        return self.step.model_copy(update={"run": with_services(self.services, self.step.run)})


def with_services(services: tuple[tuple[str, str], ...], run: str) -> str:
    """A shell command that starts the services and then runs `run`; it fails at once if one of them does not start.

    Each has a shell of its own: before `||` a subshell would go on after an error.
    """
    started = "".join(
        f"/bin/sh -eu -c {shlex.quote(script.strip())} || "
        f"{{ echo 'specbuild: the service {name} did not start' >&2; exit 1; }}\n"
        for name, script in services
    )
    return started + run


class Recipe(Frozen):
    """A Base, the Steps that lead to an environment, and the Check that verifies it."""

    base: BaseRef
    steps: tuple[Step, ...]
    check: Check
    test_env: Variables = ()
    """Variables that belong to the finished environment (`PATH`, `VIRTUAL_ENV`), for `run`, `shell` and export."""

    @cached_property
    def digest(self) -> str:
        """Names the Recipe: equal digests promise equal results."""
        return digest_of([self.checkpoints, self.check.digest])

    @cached_property
    def checkpoints(self) -> tuple[str, ...]:
        """The keys of the states that the Recipe passes through: the base's, then one a Step."""
        keys = [checkpoint_root(self.base)]
        for step in self.steps:
            keys.append(checkpoint_key(keys[-1], step))
        return tuple(keys)


def checkpoint_root(base: BaseRef) -> str:
    """The key of the state in which nothing has been run on `base` yet.

    What is run on it sees the variables of `base`, so that they are part of it: a lock could name others than the
    content has.
    """
    return digest_of(["base", base.digest, *([base.env] if base.env else [])])


def checkpoint_key(parent: str, step: Step) -> str:
    """The key of the state that `step` leaves when it is run on the state `parent`."""
    return digest_of(["step", parent, step.digest])


def source_step(tree_digest: str) -> Step:
    """The Step that places the source tree with this digest in `SOURCE_DIR`."""
    return Step(kind=StepKind.SOURCE, run=tree_digest, title="place the source tree", cwd="/", network=False)


def salted(recipe: Recipe, salt: str) -> Recipe:
    """The Recipe with a variable in its first Step that names its salt, and so every checkpoint after the base.

    Without a salt it is what a Recipe says to others: the variable is of this machine's checkpoints alone.
    """
    if not recipe.steps:
        return recipe
    first, *rest = recipe.steps
    env = tuple((name, value) for name, value in first.env if name != SALT)
    first = first.model_copy(update={"env": (*env, *(((SALT, salt),) if salt else ()))})
    return recipe.model_copy(update={"steps": (first, *rest)})


def with_source(steps: Iterable[Step], source: Step) -> tuple[Step, ...]:
    """The Steps with `source` as late as they allow: before the first one that works in the tree, or else at the end.

    What comes before it has the same checkpoints for every revision of the Repo.
    """
    others = tuple(steps)
    at = next((index for index, step in enumerate(others) if works_in_tree(step)), len(others))
    return (*others[:at], source, *others[at:])


def works_in_tree(step: Step) -> bool:
    """Whether a Step can see the source tree: it starts in it, or names it."""
    return f"{step.cwd}/".startswith(f"{SOURCE_DIR}/") or SOURCE_DIR in step.run


def outside(step: Step) -> Step:
    """The Step where there is no source tree to start in."""
    return step.model_copy(update={"cwd": "/"}) if f"{step.cwd}/".startswith(f"{SOURCE_DIR}/") else step
