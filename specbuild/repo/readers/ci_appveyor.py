"""AppVeyor, which some projects use on Linux."""

from __future__ import annotations

import re

from specbuild.repo.readers import yaml
from specbuild.repo.readers.ci_yaml import JobDraft
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.tree import Tree
from specbuild.repo.readers.yaml import Mapping, Str, mapping, sequence, strings

FILES = ("appveyor.yml", ".appveyor.yml")


def read(tree: Tree, found: Findings) -> None:
    """The one job of the file, if one of its images is a Linux; `sh:` lines and unmarked ones."""
    for file in FILES:
        config = mapping(yaml.load(tree, file))
        images = [
            str(image) for image in strings(config.get("image")) if re.search("ubuntu|linux", image, re.IGNORECASE)
        ]
        if not images:
            continue
        draft = JobDraft(tree, file, "appveyor", "build", line=1, image=images[-1])
        draft.set_env(mapping(config.get("environment")))
        for variant in sequence(mapping(config.get("environment")).get("matrix")):
            for key, value in mapping(variant).items():
                if "python" in key.lower() and isinstance(value, Str) and re.match(r"\d", value):
                    draft.add_python(str(value))
        for phase in ("install", "build_script", "before_test", "test_script"):
            for line in sequence(config.get(phase)):
                draft.script(line.get("sh") if isinstance(line, Mapping) else line)
        if (job := draft.done()) is not None:
            found.ci.append(job)
