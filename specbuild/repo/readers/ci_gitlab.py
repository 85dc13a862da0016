"""GitLab CI."""

from __future__ import annotations

from specbuild.repo.readers import yaml
from specbuild.repo.readers.ci_yaml import JobDraft, fill, python_of_image
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.matrix import preferred
from specbuild.repo.readers.tree import Tree
from specbuild.repo.readers.yaml import Mapping, Str, mapping, sequence, strings

FILE = ".gitlab-ci.yml"
_RESERVED = frozenset(
    {
        "stages",
        "variables",
        "image",
        "services",
        "before_script",
        "after_script",
        "cache",
        "default",
        "include",
        "workflow",
        "pages",
    }
)
MAX_JOBS = 60


def read(tree: Tree, found: Findings) -> None:
    """Jobs with a script, `extends` and `default` applied."""
    config = mapping(yaml.load(tree, FILE))
    for name, node in list(config.items())[:MAX_JOBS]:
        if name in _RESERVED or name.startswith(".") or not isinstance(node, Mapping):
            continue
        job = _job(tree, config, name, node)
        if (result := job.done()) is not None:
            found.ci.append(result)


def _inherited(config: Mapping, node: Mapping, depth: int = 0) -> Mapping:
    """A job with those that it extends merged below it."""
    result = Mapping()
    if depth < 10:
        for parent in strings(node.get("extends")):
            result.update(_inherited(config, mapping(config.get(parent)), depth + 1))
    result.update(node)
    return result


def _job(tree: Tree, config: Mapping, name: str, node: Mapping) -> JobDraft:
    default = mapping(config.get("default"))
    job = _inherited(config, node)
    draft = JobDraft(tree, FILE, "gitlab", name, line=name.line if isinstance(name, Str) else yaml.line_of(node))
    values: dict[str, str] = {}
    for scope in (config, job):
        variables = mapping(scope.get("variables"))
        draft.set_env(variables)
        values |= {str(key): str(value) for key, value in variables.items() if isinstance(value, Str)}
    draft.image = _image(job, default, config)
    for combination in _matrix(job):
        draft.add_python(python_of_image(fill(draft.image, {**values, **combination})))
    combos = _matrix(job)
    chosen = combos[
        preferred([python_of_image(fill(draft.image, {**values, **c})) or next(iter(c.values()), "") for c in combos])
    ]
    values |= chosen
    draft.env += list(chosen.items())
    draft.image = fill(draft.image, values) or None
    for service in sequence(job.get("services", default.get("services", config.get("services")))):
        text = service.get("name") if isinstance(service, Mapping) else service
        if isinstance(text, Str):
            env = service.get("variables") if isinstance(service, Mapping) else None
            draft.add_service(text.split("/")[-1].split(":")[0], fill(text, values), text.line, env)
    draft.script(job.get("before_script", default.get("before_script", config.get("before_script"))), values=values)
    draft.script(job.get("script"), values=values)
    return draft


def _image(job: Mapping, default: Mapping, config: Mapping) -> str:
    image = job.get("image", default.get("image", config.get("image")))
    text = image.get("name") if isinstance(image, Mapping) else image
    return str(text) if isinstance(text, Str) else ""


def _matrix(job: Mapping) -> list[dict[str, str]]:
    """The variables of each combination of `parallel: matrix:`, axis by axis; one empty combination without it."""
    result: list[dict[str, str]] = []
    for entry in sequence(mapping(job.get("parallel")).get("matrix")):
        combos: list[dict[str, str]] = [{}]
        for key, value in mapping(entry).items():
            combos = [{**combo, str(key): str(item)} for combo in combos for item in strings(value)][:200]
        result += combos
    return result or [{}]
