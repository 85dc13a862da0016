"""Parts of generated files: comments, heredocs and folders to run in, safe for any content."""

from __future__ import annotations

import re

from specbuild.environment import Environment
from specbuild.errors import UsageError
from specbuild.recipe import BaseRef, Check, Recipe, Step, salted

_USER_IN_URL = re.compile(r"(?<=://)[^/@\s]+@")


def committed(environment: Environment) -> tuple[BaseRef, Recipe, Check]:
    """What an export is made of; the Recipe without what keeps checkpoints apart on this machine.

    Raises UsageError for an Environment without a winner.
    """
    if environment.recipe is None or environment.base is None:
        raise UsageError(
            f"the environment {environment.id} cannot be exported: no candidate was verified",
            hint="see its report for how far each candidate came",
        )
    return environment.base, salted(environment.recipe, ""), environment.recipe.check


def comment(text: str) -> str:
    """Lines of a comment; user names and passwords in addresses are left out."""
    lines = without_users(text).splitlines() or [""]
    return "\n".join(f"# {_printable(line)}".rstrip() for line in lines)


def one_line(text: str) -> str:
    """`text` on a single line of printable characters."""
    return _printable(" ".join(text.split()))


def without_users(text: str) -> str:
    """The text with addresses that name no user."""
    return _USER_IN_URL.sub("", text)


def heredoc(body: str, word: str) -> tuple[str, str]:
    """A delimiter that no line of `body` equals, and the body with its last line ended, both to be quoted verbatim."""
    lines = {line.strip() for line in body.splitlines()}
    delimiter, number = word, 0
    while delimiter in lines:
        number += 1
        delimiter = f"{word}_{number}"
    return delimiter, body if body.endswith("\n") else body + "\n"


def title_of(step: Step) -> str:
    """A few words on one line."""
    return one_line(step.title or step.run.strip().partition("\n")[0])[:120]


def fetchable(environment: Environment) -> bool:
    """Whether the source tree can be fetched from anywhere, not only on the machine that it was built on."""
    repo = environment.repo
    return bool(repo.fetch) and not repo.origin.startswith("file:") and "file://" not in repo.fetch


def headline(environment: Environment) -> list[str]:
    """What the environment is and what was verified, as lines for a comment."""
    repo, verdict = environment.repo, environment.verdict
    lines = [f"Environment {environment.id} for {repo.origin}" + (f" at {repo.revision}" if repo.revision else "")]
    lines.append(f"Found by SpecBuild {environment.specbuild_version} on {environment.created}")
    if environment.strategy:
        lines.append(f"Strategy: {environment.strategy}" + (f" ({environment.reason})" if environment.reason else ""))
    if verdict:
        lines.append(f"Verified at the level {verdict.level}: {verdict.reason}")
    return [one_line(without_users(line)) for line in lines]


def _printable(line: str) -> str:
    return "".join(character if character.isprintable() else " " for character in line)
