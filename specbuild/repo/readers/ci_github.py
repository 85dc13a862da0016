"""GitHub Actions workflows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from posixpath import normpath

from specbuild.repo.facts import CiJob, Fact, Service
from specbuild.repo.readers import yaml
from specbuild.repo.readers.ci_yaml import fill
from specbuild.repo.readers.commands import looks_like_test, split_script
from specbuild.repo.readers.expressions import Context, expand, is_excluded
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.matrix import combinations, flat, is_computed, preferred, version_key
from specbuild.repo.readers.tree import Tree
from specbuild.repo.readers.yaml import Mapping, Str, mapping, sequence, strings

MAX_WORKFLOWS = 40
MAX_JOBS = 60
_FOREIGN_SHELLS = ("pwsh", "powershell", "cmd")
_SETUP = re.compile(
    r"(actions/setup-python|astral-sh/setup-uv|conda-incubator/setup-miniconda|mamba-org/setup-micromamba)@"
)


def read(tree: Tree, found: Findings) -> None:
    """Every job on Linux that runs commands."""
    files = [f for f in tree.match(".github/workflows/*.yml", ".github/workflows/*.yaml") if f.count("/") == 2]
    for file in files[:MAX_WORKFLOWS]:
        workflow = mapping(yaml.load(tree, file))
        for name, job in list(mapping(workflow.get("jobs")).items())[:MAX_JOBS]:
            if isinstance(job, Mapping):
                result = _Job(tree, file, name, workflow, job).read()
                if result is not None:
                    found.ci.append(result)


@dataclass
class _Job:
    """One job of a workflow."""

    tree: Tree
    file: str
    name: str
    workflow: Mapping
    job: Mapping
    pythons: list[str] = field(default_factory=list[str])
    run: list[Fact[str]] = field(default_factory=list[Fact[str]])

    def read(self) -> CiJob | None:
        contexts = [self._context(combo) for combo in combinations(mapping(self.job.get("strategy")).get("matrix"))]
        linux = [context for context in contexts if self._is_linux(context)]
        if not linux:
            return None
        steps = [step for step in sequence(self.job.get("steps")) if isinstance(step, Mapping)]
        if _is_elsewhere(steps):
            return None
        versions = [self._setup_versions(steps, context) for context in linux]
        for found in versions:
            self.pythons += [v for v in found if v not in self.pythons]
        context = linux[
            preferred([found[-1] if found else _python_axis(c) for found, c in zip(versions, linux, strict=True)])
        ]
        self._steps(steps, context, "", 0)
        if not self.run:
            return None
        return CiJob(
            provider="github",
            name=self.name,
            image=self._image(context),
            pythons=tuple(self.pythons),
            env=self._env(context),
            services=self._services(context),
            run=tuple(self.run),
            tests=any(looks_like_test(fill(fact.value, dict(self._env(context)))) for fact in self.run),
            evidence=self.tree.evidence(self.file, self._line()),
        )

    def _line(self) -> int | None:
        key = next((key for key in mapping(self.workflow.get("jobs")) if key == self.name), None)
        return key.line if isinstance(key, Str) else yaml.line_of(self.job)

    def _context(self, combination: Mapping) -> dict[str, str]:
        context = {"runner.os": "Linux", "github.workspace": ".", "runner.temp": "/tmp", "github.event_name": "push"}  # noqa: S108
        for trigger in ("workflow_call", "workflow_dispatch"):
            for name, spec in mapping(mapping(mapping(self.workflow.get("on")).get(trigger)).get("inputs")).items():
                if isinstance(default := mapping(spec).get("default"), Str):
                    context.setdefault(f"inputs.{name}", str(default))
        context |= flat("matrix", combination)
        context["inputs.*"] = ""
        if not is_computed(mapping(self.job.get("strategy")).get("matrix")):
            context["matrix.*"] = ""
        for scope in (self.workflow, self.job):
            for name, value in mapping(scope.get("env")).items():
                if isinstance(value, Str):
                    context[f"env.{name}"] = expand(value, context)
        return context

    def _runner(self, context: Context) -> str:
        runner = self.job.get("runs-on")
        labels = strings(mapping(runner).get("labels") if isinstance(runner, Mapping) else runner)
        return ",".join(expand(label, context) for label in labels)

    def _is_linux(self, context: dict[str, str]) -> bool:
        runner = self._runner(context).lower()
        if any(word in runner for word in ("windows", "macos", "win-", "osx")) or "uses" in self.job:
            return False
        return not is_excluded(_text(self.job.get("if")), context) or "github" in _text(self.job.get("if"))

    def _image(self, context: Context) -> str | None:
        container = self.job.get("container")
        image = container.get("image") if isinstance(container, Mapping) else container
        return (expand(image, context) if isinstance(image, Str) and image else "") or self._runner(context) or None

    def _env(self, context: Context) -> tuple[tuple[str, str], ...]:
        merged = {**mapping(self.workflow.get("env")), **mapping(self.job.get("env"))}
        return tuple((str(k), expand(v, context)) for k, v in merged.items() if isinstance(v, Str))

    def _services(self, context: Context) -> tuple[Service, ...]:
        result: list[Service] = []
        for name, spec in mapping(self.job.get("services")).items():
            image = mapping(spec).get("image")
            if isinstance(image, Str) and image:
                evidence = self.tree.evidence(self.file, image.line)
                env = mapping(mapping(spec).get("env"))
                told = tuple((str(key), expand(value, context)) for key, value in env.items() if isinstance(value, Str))
                result.append(Service(name=str(name), image=expand(image, context), env=told, evidence=evidence))
        return tuple(result)

    def _setup_versions(self, steps: list[Mapping], context: Context) -> list[str]:
        """Versions that the set-up steps install; of several, the last is the default `python`."""
        result: list[str] = []
        for step in steps:
            if _SETUP.search(_text(step.get("uses"))) and not is_excluded(_text(step.get("if")), context):
                value = mapping(step.get("with")).get("python-version")
                for text in strings(value):
                    lines = expand(text, context).replace(",", "\n").split("\n")
                    result += [line.strip() for line in lines if re.match(r"\s*(pypy|graalpy)?-?v?\d", line)]
        return result or [v for v in [_python_axis(context)] if v]

    def _steps(self, steps: list[Mapping], context: dict[str, str], folder: str, depth: int) -> None:
        for step in steps:
            if is_excluded(_text(step.get("if")), context):
                continue
            script, uses = step.get("run"), _text(step.get("uses"))
            if isinstance(script, Str) and not _text(step.get("shell")).startswith(_FOREIGN_SHELLS):
                self._script(script, step, context, folder)
            elif uses.startswith("./") and depth < 3:
                self._local_action(normpath(uses.split("@")[0]), step, context, depth)

    def _script(self, script: Str, step: Mapping, context: dict[str, str], folder: str) -> None:
        env = {str(k): expand(v, context) for k, v in mapping(step.get("env")).items() if isinstance(v, Str)}
        local = {**context, **{f"env.{name}": value for name, value in env.items()}}
        defaults = mapping(mapping(self.job.get("defaults")).get("run")) or mapping(
            mapping(self.workflow.get("defaults")).get("run")
        )
        directory = step.get("working-directory", defaults.get("working-directory"))
        prefix = [f"cd {expand(directory, local)}"] if isinstance(directory, Str) and directory else []
        prefix += [f"export {name}={quoted(value)}" for name, value in env.items() if "${{" not in value]
        text = expand(script, local)
        for offset, command in split_script("\n".join(["", *prefix, text]) if prefix else text):
            line = script.line + (offset if script.block and not prefix else 0)
            self.run.append(Fact(value=command.strip(), evidence=self.tree.evidence(self.file, line)))

    def _local_action(self, folder: str, step: Mapping, context: dict[str, str], depth: int) -> None:
        """The steps of a composite action of the same repository, with its inputs filled in."""
        file = next((f for f in (f"{folder}/action.yml", f"{folder}/action.yaml") if self.tree.has(f)), None)
        if file is None:
            return
        action = mapping(yaml.load(self.tree, file))
        inner = dict(context)
        for name, spec in mapping(action.get("inputs")).items():
            given = mapping(step.get("with")).get(name, mapping(spec).get("default"))
            inner[f"inputs.{name}"] = expand(given, context) if isinstance(given, Str) else ""
        steps = [s for s in sequence(mapping(action.get("runs")).get("steps")) if isinstance(s, Mapping)]
        versions = self._setup_versions(steps, inner)
        self.pythons += [v for v in versions if v not in self.pythons]
        outer, self.file = self.file, file
        self._steps(steps, inner, folder, depth + 1)
        self.file = outer


def _is_elsewhere(steps: list[Mapping]) -> bool:
    """Whether a job checks out other repositories only, as tests of dependent projects do."""
    checkouts = [step for step in steps if _text(step.get("uses")).startswith("actions/checkout@")]
    named = [_text(mapping(step.get("with")).get("repository")) for step in checkouts]
    return bool(named) and all(name and "github.repository" not in name for name in named)


def quoted(value: str) -> str:
    """A shell word; left open to expansion where it holds `$`."""
    if re.fullmatch(r"[\w./:,@%+=-]*", value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("`", "\\`") + '"'


def _text(node: object) -> str:
    return str(node) if isinstance(node, Str) else ""


def _python_axis(context: Context) -> str:
    """The version on a matrix axis that is named for Python, if there is one."""
    for name, value in context.items():
        if re.fullmatch(
            r"matrix\.(.*\.)?(python|python[-_]?version|py|pyver|py[-_]version|version)", name, re.IGNORECASE
        ) and version_key(value):
            return value
    return ""
