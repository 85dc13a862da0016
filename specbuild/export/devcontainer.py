"""The Environment for editors: `devcontainer.json` with its Dockerfile, the user's own checkout in the tree's place.

https://containers.dev/implementors/json_reference/. The checkout hides the tree of the image, and what the project's
build has written into it; so the build steps are run once more when a container is made.
"""

from __future__ import annotations

import json
import shlex

from specbuild.environment import Environment
from specbuild.export.dockerfile import dockerfile
from specbuild.export.image import image_name
from specbuild.export.text import comment, committed, fetchable, title_of
from specbuild.recipe import SOURCE_DIR, VENV_DIR, Recipe, Step, StepKind

_PREPARE = "prepare.sh"


def devcontainer(environment: Environment) -> dict[str, str]:
    """The files of a `.devcontainer` folder by name. Raises UsageError if nothing was committed."""
    _, recipe, _ = committed(environment)
    about = {
        "name": image_name(environment).rpartition("/")[2],
        "build": {"dockerfile": "Dockerfile", "context": "." if fetchable(environment) else ".."},
        "workspaceFolder": SOURCE_DIR,
        "workspaceMount": f"source=${{localWorkspaceFolder}},target={SOURCE_DIR},type=bind",
        "remoteUser": "root",
        "overrideCommand": True,
        "onCreateCommand": ["/bin/sh", f"{SOURCE_DIR}/.devcontainer/{_PREPARE}"],
        "customizations": {"vscode": {"settings": {"python.defaultInterpreterPath": f"{VENV_DIR}/bin/python"}}},
    }
    return {
        "devcontainer.json": json.dumps(about, indent=2) + "\n",
        "Dockerfile": dockerfile(environment),
        _PREPARE: _prepare(recipe),
    }


def _prepare(recipe: Recipe) -> str:
    """What the project's own build does to the tree."""
    kinds = [step.kind for step in recipe.steps]
    placed = kinds.index(StepKind.SOURCE) if StepKind.SOURCE in kinds else len(kinds)
    steps = [step for step in recipe.steps[placed:] if step.kind is StepKind.BUILD]
    parts = ["#!/bin/sh", comment("Builds the project in the checkout, as it was built in the image."), "set -eu"]
    return "\n".join([*parts, *map(_script, steps)]) + "\n"


def _script(step: Step) -> str:
    exports = " ".join(shlex.quote(f"{name}={value}") for name, value in step.env)
    return (
        f"{comment(title_of(step))}\ncd {shlex.quote(step.cwd)}\nenv {exports} /bin/sh -eu -c {shlex.quote(step.run)}"
    )
