"""The Steps of a script that somebody wrote for CI or an image, and of what it leaves undone for the tests."""

from __future__ import annotations

from collections.abc import Iterable

from specbuild.recipe import UV, Step, StepKind
from specbuild.strategies import project, steps
from specbuild.strategies.completion import complete
from specbuild.strategies.contract import Request
from specbuild.strategies.declared import newest_steps
from specbuild.strategies.needs import Mode, Needs
from specbuild.strategies.shell_lines import Translated


def scripted_steps(
    request: Request, script: Translated, title: str, *, env: Iterable[tuple[str, str]] = (), mode: Mode = "plain"
) -> tuple[Step, ...]:
    """The lines as they stand, with pip in the project's environment; without any, what is declared.

    They are one Step, since what a script exports holds for its later lines, and a build Step, since builds of the
    tree are mostly among them.
    """
    if not script.python:
        return newest_steps(request)
    needs = Needs.of(request)
    version = project.version_env(request.facts)
    tools = " ".join(("pip", "wheel", *(steps.words(needs.seeds or ("setuptools",)),)))
    lines = "\n".join((f"{UV} pip install --quiet {tools}", *script.lines))
    what = project.target((), in_place=project.editable(request.facts)) if project.installable(request.facts) else ""
    rest = f"{what} {steps.words(needs.tests.requirements)}".strip()
    return (
        steps.uv(lines, title, kind=StepKind.BUILD, env={**dict(env), **dict(version)}.items()),
        steps.uv(
            f"{UV} pip install --no-cache {rest}" if rest else "true",
            "install the project and what its tests need",
            kind=StepKind.BUILD,
            env=version,
        ),
        *complete(needs.completed(mode)),
    )
