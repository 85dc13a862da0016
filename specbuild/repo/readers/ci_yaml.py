"""What the YAML files of CI services have in common: commands, environments, jobs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from specbuild.repo.facts import CiJob, Evidence, Fact, Service
from specbuild.repo.readers.commands import looks_like_test, split_script
from specbuild.repo.readers.tree import Tree
from specbuild.repo.readers.yaml import Mapping, Str, strings


@dataclass
class JobDraft:
    """A job under construction."""

    tree: Tree
    file: str
    provider: str
    name: str
    line: int | None = None
    image: str | None = None
    pythons: list[str] = field(default_factory=list[str])
    env: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    services: list[Service] = field(default_factory=list[Service])
    run: list[Fact[str]] = field(default_factory=list[Fact[str]])

    def script(self, node: object, *, folder: str = "", values: dict[str, str] | None = None) -> None:
        """Add the commands of a scalar or a (nested) list, with `${NAME}` and the like filled in from `values`."""
        for text in strings(node):
            filled = fill(text, values or {})
            script = f"cd {folder}\n{filled}" if folder else filled
            for offset, command in split_script(script):
                line = text.line + (offset if text.block and not folder else 0)
                self.run.append(Fact(value=command.strip(), evidence=self.evidence(line)))

    def set_env(self, node: object) -> None:
        """Add a mapping of variables."""
        if isinstance(node, Mapping):
            self.env += [(str(key), str(value)) for key, value in node.items() if isinstance(value, Str)]

    def add_python(self, version: str) -> None:
        if version and version not in self.pythons:
            self.pythons.append(version)

    def add_service(self, name: str, image: str, line: int, env: object = None) -> None:
        """Add a server; `env` is the mapping of what it is told."""
        items = env.items() if isinstance(env, Mapping) else ()
        told = tuple((str(key), str(value)) for key, value in items if isinstance(value, Str))
        self.services.append(Service(name=name, image=image, env=told, evidence=self.evidence(line)))

    def evidence(self, line: int | None) -> Evidence:
        return self.tree.evidence(self.file, line or None)

    def done(self) -> CiJob | None:
        """The job; None if it runs nothing."""
        if not self.run:
            return None
        return CiJob(
            provider=self.provider,
            name=self.name,
            image=self.image,
            pythons=tuple(self.pythons),
            env=tuple(self.env),
            services=tuple(self.services),
            run=tuple(self.run),
            tests=any(looks_like_test(fill(fact.value, dict(self.env))) for fact in self.run),
            evidence=self.evidence(self.line),
        )


def fill(text: str, values: dict[str, str]) -> str:
    """`$NAME`, `${NAME}`, `%NAME%`, `$(name)` and `$[[ ]]`-free templates with known values filled in."""

    def value(match: re.Match[str]) -> str:
        name = next(group for group in match.groups() if group is not None)
        return values.get(name, match[0])

    return re.sub(r"\$\{(\w[\w.-]*)\}|\$\((\w[\w.-]*)\)|%(\w+)%|\$(\w+)", value, text) if values else text


def python_of_image(image: str) -> str:
    """The version in the name of a Python image (`python:3.9-slim`, `cimg/python:3.10`); empty for other images."""
    match = re.search(r"(?:^|/)(python|pypy)(?::|-)(\d+(?:\.\d+)?)", image)
    return ("pypy" if match[1] == "pypy" else "") + match[2] if match else ""


def python_of_toxenv(name: str) -> str:
    """The version that a tox factor names (`py39` → `3.9`); empty for others."""
    match = re.search(r"(?<![a-z])(py|pypy|python)(\d)\.?(\d+)(?!\d)", name)
    return ("pypy" if match[1] == "pypy" else "") + f"{match[2]}.{match[3]}" if match else ""
