"""The Repo: a private, pinned copy of the source tree to set up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Repo:
    """A source tree that SpecBuild owns a copy of. The original is never written to."""

    origin: str
    """As the user named it."""
    kind: str
    """`folder`, `git`, `archive`, `pypi`."""
    path: Path
    """Root of the private copy."""
    revision: str | None
    """Commit id, or version of a source distribution."""
    digest: str
    """sha256 over relative paths, modes, link targets and contents of the tree, `.git` left out."""
    tracked: Mapping[str, str]
    """Files that no Recipe may change: relative path → sha256 of the content. What git tracks; without git, every
    regular file except metadata that build tools rewrite (`*.egg-info`, `PKG-INFO`, scm version files)."""
    date: datetime | None
    """Date of the revision in UTC."""
    fetch: str
    """Shell commands that fetch the same tree into the present folder, for export; empty for local folders."""
