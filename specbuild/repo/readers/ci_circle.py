"""CircleCI."""

from __future__ import annotations

import re

from specbuild.repo.readers import yaml
from specbuild.repo.readers.ci_yaml import JobDraft, python_of_image
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.matrix import preferred
from specbuild.repo.readers.tree import Tree
from specbuild.repo.readers.yaml import Mapping, Str, mapping, sequence, strings

FILES = (".circleci/config.yml", ".circleci/config.yaml", "circle.yml")
MAX_JOBS = 60


def read(tree: Tree, found: Findings) -> None:
    """Jobs on Linux, with commands and executors of the same file filled in."""
    for file in FILES:
        config = mapping(yaml.load(tree, file))
        for name, node in list(mapping(config.get("jobs")).items())[:MAX_JOBS]:
            if isinstance(node, Mapping) and "macos" not in node:
                job = _Job(tree, file, config, name, node).draft().done()
                if job is not None:
                    found.ci.append(job)


class _Job:
    def __init__(self, tree: Tree, file: str, config: Mapping, name: str, node: Mapping) -> None:
        self.config, self.node = config, node
        line = name.line if isinstance(name, Str) else yaml.line_of(node)
        self.job = JobDraft(tree, file, "circleci", name, line=line)

    def draft(self) -> JobDraft:
        values = self._parameters()
        executor = self.node.get("executor")
        label = executor.get("name") if isinstance(executor, Mapping) else executor
        shared = mapping(mapping(self.config.get("executors")).get(label)) if isinstance(label, Str) else Mapping()
        for scope in (shared, self.node):
            self.job.set_env(scope.get("environment"))
            self._images(scope, values)
        self._steps(self.node.get("steps"), values, 0)
        return self.job

    def _parameters(self) -> dict[str, str]:
        """Defaults of the job's parameters, overridden by the preferred combination that a workflow gives."""
        values = {
            f"parameters.{name}": str(default)
            for name, spec in mapping(self.node.get("parameters")).items()
            if isinstance(default := mapping(spec).get("default"), Str)
        }
        given: list[dict[str, str]] = []
        for workflow in mapping(self.config.get("workflows")).values():
            for use in sequence(mapping(workflow).get("jobs")):
                given += self._given(mapping(mapping(use).get(self.job.name)))
        if given:
            chosen = given[preferred([_version_in(combo) for combo in given])]
            for combo in given:
                self.job.add_python(_version_in(combo))
            values |= {f"parameters.{key}": value for key, value in chosen.items()}
        return values

    def _given(self, use: Mapping) -> list[dict[str, str]]:
        combos = [{str(k): str(v) for k, v in use.items() if isinstance(v, Str)}] if use else []
        for name, axis in mapping(mapping(use.get("matrix")).get("parameters")).items():
            combos = [{**combo, str(name): str(value)} for combo in combos for value in strings(axis)][:200]
        return combos

    def _images(self, scope: Mapping, values: dict[str, str]) -> None:
        for number, item in enumerate(sequence(scope.get("docker"))):
            image = mapping(item).get("image")
            if not isinstance(image, Str):
                continue
            text = _filled(image, values)
            if number:
                env = mapping(item).get("environment")
                self.job.add_service(text.split("/")[-1].split(":")[0], text, image.line, env)
            else:
                self.job.image = text
                self.job.add_python(python_of_image(text))
                self.job.set_env(mapping(item).get("environment"))
        machine = scope.get("machine")
        if isinstance(image := mapping(machine).get("image"), Str):
            self.job.image = self.job.image or str(image)

    def _steps(self, node: object, values: dict[str, str], depth: int) -> None:
        for step in sequence(node):
            name = str(step) if isinstance(step, Str) else next(iter(mapping(step)), "")
            body = mapping(step).get(name)
            if name == "run":
                command = body.get("command") if isinstance(body, Mapping) else body
                folder = body.get("working_directory") if isinstance(body, Mapping) else None
                if isinstance(command, Str):
                    filled = Str(_filled(command, values), command.line, command.block)
                    self.job.script(filled, folder=_filled(folder, values) if isinstance(folder, Str) else "")
            elif depth < 5 and isinstance(command := mapping(self.config.get("commands")).get(name), Mapping):
                defaults = {
                    f"parameters.{key}": str(default)
                    for key, spec in mapping(command.get("parameters")).items()
                    if isinstance(default := mapping(spec).get("default"), Str)
                }
                own = {f"parameters.{k}": _filled(v, values) for k, v in mapping(body).items() if isinstance(v, Str)}
                self._steps(command.get("steps"), {**defaults, **own}, depth + 1)


def _filled(text: str, values: dict[str, str]) -> str:
    return re.sub(r"<<\s*([\w.-]+)\s*>>", lambda match: values.get(match[1], match[0]), text)


def _version_in(combo: dict[str, str]) -> str:
    return next((v for k, v in combo.items() if "py" in k.lower() or k == "version"), "")
