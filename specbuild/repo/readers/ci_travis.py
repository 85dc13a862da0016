"""Travis CI."""

from __future__ import annotations

import re

from specbuild.repo.readers import yaml
from specbuild.repo.readers.ci_yaml import JobDraft, python_of_toxenv
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.matrix import preferred
from specbuild.repo.readers.tree import Tree
from specbuild.repo.readers.yaml import Mapping, Str, mapping, sequence, strings

FILE = ".travis.yml"
_PHASES = ("before_install", "install", "before_script", "script")
MAX_JOBS = 40
_IMAGES = {
    "precise": "ubuntu-12.04", "trusty": "ubuntu-14.04", "xenial": "ubuntu-16.04", "bionic": "ubuntu-18.04",
    "focal": "ubuntu-20.04", "jammy": "ubuntu-22.04",
}  # fmt: skip
_DEFAULT_DIST = "xenial"
"""What `dist` was when it was left out, since 2019; see Travis CI's page on build environments."""


def read(tree: Tree, found: Findings) -> None:
    """One job for the top level, and one for each entry of the matrix that replaces a phase."""
    config = mapping(yaml.load(tree, FILE))
    if not config:
        return
    jobs = mapping(config.get("jobs", config.get("matrix")))
    entries = [
        e for e in sequence(jobs.get("include")) if isinstance(e, Mapping) and _text(e.get("os")) in ("", "linux")
    ]
    top = _job(tree, config, entries)
    drafts = [top, *(_entry(tree, config, n, e) for n, e in enumerate(entries[:MAX_JOBS]) if set(_PHASES) & set(e))]
    found.ci.extend(job for draft in drafts if (job := draft.done()) is not None)


def _job(tree: Tree, config: Mapping, entries: list[Mapping]) -> JobDraft:
    draft = _draft(tree, config, "build", 1, _text(config.get("dist")))
    for version in strings(config.get("python")):
        draft.add_python(version)
    own_phases = [entry for entry in entries if not {"script", "install"} & set(entry)]
    for entry in own_phases:
        for version in strings(entry.get("python")):
            draft.add_python(version)
        for _, value in _env(entry.get("env")):
            draft.add_python(python_of_toxenv(value))
    variants = [*(_env(item) for item in _variants(config.get("env"))), *(_env(e.get("env")) for e in own_phases)]
    labels = [_text(e.get("python")) for e in own_phases]
    first = len(variants) - len(own_phases)
    if first:
        draft.env += variants[
            preferred([" ".join(python_of_toxenv(v) for _, v in variant) for variant in variants[:first]])
        ]
    elif own_phases:
        draft.env += variants[preferred(labels)]
    _phases(draft, config, config)
    return draft


def _entry(tree: Tree, config: Mapping, number: int, entry: Mapping) -> JobDraft:
    name = _text(entry.get("name")) or _text(entry.get("stage")) or f"include-{number + 1}"
    draft = _draft(tree, config, name, yaml.line_of(entry), _text(entry.get("dist", config.get("dist"))))
    for version in strings(entry.get("python", config.get("python"))):
        draft.add_python(version)
    draft.env += _env(entry.get("env"))
    _phases(draft, config, entry)
    return draft


def _draft(tree: Tree, config: Mapping, name: str, line: int | None, dist: str) -> JobDraft:
    dist = dist or _DEFAULT_DIST
    draft = JobDraft(tree, FILE, "travis", name, line=line, image=_IMAGES.get(dist, dist))
    env = config.get("env")
    draft.env += _env(mapping(env).get("global")) if isinstance(env, Mapping) else []
    for service in strings(config.get("services")):
        draft.add_service(str(service), str(service), service.line)
    return draft


def _phases(draft: JobDraft, config: Mapping, entry: Mapping) -> None:
    packages = strings(mapping(mapping(config.get("addons")).get("apt")).get("packages"))
    if packages:
        draft.script(Str(f"sudo apt-get install -y {' '.join(packages)}", packages[0].line))
    for phase in _PHASES:
        value = entry.get(phase, config.get(phase))
        if phase == "install" and value is None and draft.tree.has("requirements.txt"):
            continue  # Travis' own default, which is `pip install -r requirements.txt`, is no fact of the project
        if _text(value) not in ("skip", "true"):
            draft.script(value)


def _variants(env: object) -> list[Str]:
    """The lines of which each makes a job."""
    if isinstance(env, Mapping):
        return strings(env.get("matrix", env.get("jobs")))
    return strings(env)


def _env(node: object) -> list[tuple[str, str]]:
    """Variables of one line `A=1 B="2 3"`, of several, or of a mapping."""
    if isinstance(node, Mapping):
        return [
            (str(k), str(v)) for k, v in node.items() if isinstance(v, Str) and k not in ("secure", "matrix", "global")
        ]
    pairs: list[tuple[str, str]] = []
    for line in strings(node):
        found = re.finditer(r"""(\w+)=("[^"]*"|'[^']*'|\S*)""", line)
        pairs += [(match[1], match[2].strip("\"'")) for match in found]
    return pairs


def _text(node: object) -> str:
    return str(node) if isinstance(node, Str) else ""
