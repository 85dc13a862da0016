"""devcontainer.json, which is JSON with comments and trailing commas."""

from __future__ import annotations

import json
import re
from posixpath import dirname, join, normpath
from typing import cast

from specbuild.repo.facts import DockerImage, Fact
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.tree import Tree, clean

_COMMANDS = ("onCreateCommand", "updateContentCommand", "postCreateCommand")
"""In the order in which they run when a container is made."""
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


def read(tree: Tree, found: Findings) -> None:
    """The image (or Dockerfile) that it names and the commands that fill it."""
    for file in tree.match(
        ".devcontainer/devcontainer.json", ".devcontainer.json", ".devcontainer/*/devcontainer.json"
    )[:5]:
        data = _load(tree, file)
        build = data.get("build")
        dockerfile = (
            cast("dict[str, object]", build).get("dockerfile") if isinstance(build, dict) else data.get("dockerFile")
        )
        image = data.get("image")
        if not isinstance(image, str):
            image = normpath(join(dirname(file), dockerfile)) if isinstance(dockerfile, str) else ""
        commands = [
            Fact(value=c, evidence=tree.evidence(file, _line(tree, file, key)))
            for key in _COMMANDS
            for c in _shell(data.get(key))
        ]
        if image or commands:
            where = tree.evidence(file, _line(tree, file, "image") or _line(tree, file, "build"))
            found.docker.append(DockerImage(image=clean(image), run=tuple(commands), evidence=where))


def _load(tree: Tree, file: str) -> dict[str, object]:
    text = tree.text(file)
    if text is None:
        return {}
    bare = _TOKEN.sub(lambda match: match[0] if match[0].startswith('"') else " ", text)
    try:
        data: object = json.loads(re.sub(r",(\s*[}\]])", r"\1", bare), strict=False)
    except (ValueError, RecursionError) as error:
        tree.warn(file, f"is not valid JSON with comments: {error}")
        return {}
    return cast("dict[str, object]", data) if isinstance(data, dict) else {}


def _shell(value: object) -> list[str]:
    """A command as a string, as a list of words, or a table of several."""
    if isinstance(value, str):
        return [clean(value)] if value.strip() else []
    if isinstance(value, list):
        return [clean(" ".join(str(word) for word in cast("list[object]", value)))]
    if isinstance(value, dict):
        return [command for item in cast("dict[str, object]", value).values() for command in _shell(item)]
    return []


def _line(tree: Tree, file: str, key: str) -> int | None:
    return next((n for n, line in enumerate(tree.lines(file), 1) if f'"{key}"' in line), None)
