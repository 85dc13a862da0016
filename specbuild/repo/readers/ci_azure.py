"""Azure Pipelines."""

from __future__ import annotations

import re

from specbuild.repo.readers import yaml
from specbuild.repo.readers.ci_yaml import JobDraft, fill, python_of_toxenv
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.matrix import preferred, version_key
from specbuild.repo.readers.tree import Tree
from specbuild.repo.readers.yaml import Mapping, Str, mapping, sequence, strings

FILES = ("azure-pipelines.yml", ".azure-pipelines.yml", ".azure-pipelines/azure-pipelines.yml", "azure-pipelines.yaml")
MAX_JOBS = 40


def read(tree: Tree, found: Findings) -> None:
    """Jobs on Linux, whether in stages, by themselves, or the single one of the top level."""
    for file in FILES:
        config = mapping(yaml.load(tree, file))
        for node in _jobs(config)[:MAX_JOBS]:
            job = _job(tree, file, config, node)
            if job is not None and (result := job.done()) is not None:
                found.ci.append(result)


def _jobs(config: Mapping) -> list[Mapping]:
    jobs = [*sequence(config.get("jobs"))]
    for stage in sequence(config.get("stages")):
        jobs += sequence(mapping(stage).get("jobs"))
    return [job for job in jobs if isinstance(job, Mapping)] or ([config] if "steps" in config else [])


def _job(tree: Tree, file: str, config: Mapping, node: Mapping) -> JobDraft | None:
    values = {**_variables(config.get("variables")), **_variables(node.get("variables"))}
    legs = _legs(mapping(node.get("strategy")).get("matrix"))
    image = _text(mapping(node.get("pool", config.get("pool"))).get("vmImage"))
    linux = [leg for leg in legs if not re.search("win|mac|vs20", fill(image, {**values, **leg}), re.IGNORECASE)]
    if not linux:
        return None
    versions = [_version(node, {**values, **leg}) for leg in linux]
    values |= linux[preferred(versions)]
    draft = JobDraft(tree, file, "azure", _text(node.get("job")) or "build", line=yaml.line_of(node))
    draft.image = fill(_text(node.get("container")) or image, values) or None
    for version in versions:
        draft.add_python(version)
    # The agent exports variables in upper case, with dots as underscores.
    draft.env += [(name.upper().replace(".", "_"), value) for name, value in values.items()]
    for step in sequence(node.get("steps")):
        table = mapping(step)
        folder = fill(_text(table.get("workingDirectory")), values)
        draft.script(table.get("script", table.get("bash")), folder=folder, values=values)
    return draft


def _variables(node: object) -> dict[str, str]:
    if isinstance(node, Mapping):
        return {str(key): str(value) for key, value in node.items() if isinstance(value, Str)}
    pairs = [(mapping(item).get("name"), mapping(item).get("value")) for item in sequence(node)]
    return {str(key): str(value) for key, value in pairs if isinstance(key, Str) and isinstance(value, Str)}


def _legs(matrix: object) -> list[dict[str, str]]:
    return [_variables(leg) for leg in mapping(matrix).values() if isinstance(leg, Mapping)] or [{}]


def _version(node: Mapping, values: dict[str, str]) -> str:
    """The version of the set-up task, else of a variable that is named for Python or tox."""
    for step in sequence(node.get("steps")):
        if _text(mapping(step).get("task")).startswith("UsePythonVersion"):
            version = fill(_text(mapping(mapping(step).get("inputs")).get("versionSpec")), values)
            if version_key(version) is not None:
                return version
    named = [value for key, value in values.items() if "py" in key.lower() and version_key(value) is not None]
    return next(iter(named), "") or next((v for value in values.values() if (v := python_of_toxenv(value))), "")


def _text(node: object) -> str:
    return str(next(iter(strings(node)), ""))
