"""Targets of a Makefile (and recipes of a justfile)."""

from __future__ import annotations

import re

from specbuild.repo.facts import Fact
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.tree import Tree

_TARGET = re.compile(r"^([A-Za-z0-9][\w./ -]*?)\s*::?(?![=:])(?:[^=]|$)")
_RECIPE = re.compile(r"^@?([a-z][\w-]*)(?:\s+[^:=]*)?:(?!=)")
MAX_TARGETS = 200


def read(tree: Tree, found: Findings) -> None:
    """Names of explicit targets of the root's Makefile, once each."""
    seen: set[str] = set()
    for pattern, rule in (
        ("makefile", _TARGET),
        ("gnumakefile", _TARGET),
        ("justfile", _RECIPE),
        (".justfile", _RECIPE),
    ):
        for file in tree.top(pattern):
            for number, line in enumerate(tree.lines(file), start=1):
                match = rule.match(line[:1_000])
                for name in match[1].split() if match else []:
                    if name not in seen and len(seen) < MAX_TARGETS and "%" not in name:
                        seen.add(name)
                        found.make_targets.append(Fact(value=name, evidence=tree.evidence(file, number)))
