"""From a source tree to Facts, by reading alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from specbuild.repo.facts import Evidence, Fact, Facts
from specbuild.repo.readers import (
    ci_appveyor,
    ci_azure,
    ci_circle,
    ci_github,
    ci_gitlab,
    ci_travis,
    conda,
    dates,
    devcontainer,
    docker,
    extensions,
    languages,
    layout,
    locks,
    make,
    nox,
    packages,
    pkg_info,
    pyproject,
    readme,
    requirements,
    setup_cfg,
    setup_py,
    test_needs,
    tox,
)
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.tree import Tree

Reader = Callable[[Tree, Findings], None]

READERS: dict[str, Reader] = {
    "pyproject": pyproject.read,
    "setup.cfg": setup_cfg.read,
    "setup.py": setup_py.read,
    "locks": locks.read,
    "PKG-INFO": pkg_info.read,
    "requirements": requirements.read,
    "conda": conda.read,
    "tox": tox.read,
    "nox": nox.read,
    "GitHub Actions": ci_github.read,
    "GitLab CI": ci_gitlab.read,
    "Travis CI": ci_travis.read,
    "CircleCI": ci_circle.read,
    "Azure Pipelines": ci_azure.read,
    "AppVeyor": ci_appveyor.read,
    "make": make.read,
    "Dockerfile": docker.read,
    "devcontainer": devcontainer.read,
    "README": readme.read,
    "extensions": extensions.read,
    "packages": packages.read,
    "languages": languages.read,
    "layout": layout.read,
    "test needs": test_needs.read,
}
"""In the order in which they run: of two sources for one value the first wins; the layout and the needs of the tests
use what others found."""


def inspect(root: Path, *, revision_date: datetime | None = None, has_git: bool | None = None) -> Facts:
    """What the tree at `root` says about itself. Nothing of it is run, and nothing outside of it is read.

    `revision_date` is the date of the revision where version control knows it; else file times and changelogs are
    asked. `has_git` says whether version control will be there when the tree is built; by default, whether `.git` is.
    Never raises on what the tree holds: what cannot be read becomes a warning.
    """
    tree, found = Tree(root), Findings()
    for name, reader in READERS.items():
        try:
            reader(tree, found)
        except Exception as error:  # noqa: BLE001 - a gap in one reader must not hide what the others know
            tree.warn("", f"the reader of {name} failed: {type(error).__name__}: {error}")
    if revision_date is not None:
        where = Evidence(file=".git" if dates.has_git(root) else "")
        found.revision_date = Fact(value=revision_date.astimezone(UTC), evidence=where)
    dates.read(tree, found, datetime.now(UTC))
    with_git = dates.has_git(root) if has_git is None else has_git
    found.has_tags = with_git and dates.has_tags(root)
    return found.facts(tree.warnings)
