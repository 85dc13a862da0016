"""When the revision was made, and whether version control with tags is there."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from specbuild.repo.facts import Evidence, Fact
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.tree import Tree

OLDEST = datetime(1995, 1, 1, tzinfo=UTC)
FRESH = timedelta(hours=12)
"""Files younger than this were probably written by the copy or checkout, not by the author."""
PLACEHOLDERS = frozenset({1_580_601_600, 1_667_997_441, 1_153_704_088})
"""Times that build tools write for reproducibility: hatchling (2020-02-02), scikit-build-core, maturin. Zip's 1980 is
below OLDEST."""
_CHANGELOG = re.compile(
    r"^(docs?/|doc/source/|docs/source/)?(changes|changelog|history|news|release[-_]?notes|whatsnew)[^/]*$",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATES = (
    re.compile(r"\b(?P<y>(?:19|20)\d\d)[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})\b"),
    re.compile(rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?[ -](?P<n>{_MONTH})[ ,-]+(?P<y>(?:19|20)\d\d)\b", re.IGNORECASE),
    re.compile(rf"\b(?P<n>{_MONTH})\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<y>(?:19|20)\d\d)\b", re.IGNORECASE),
)


def read(tree: Tree, found: Findings, now: datetime) -> None:
    """The newest plausible file time; where those say nothing, the newest date at the head of a changelog."""
    found.revision_date = found.revision_date or _newest_file(tree, now) or _changelog_date(tree, now)


def _newest_file(tree: Tree, now: datetime) -> Fact[datetime] | None:
    newest: tuple[int, str] | None = None
    fresh = 0
    limit = (now - FRESH).timestamp()
    for path in tree.files:
        try:
            seconds = int((tree.root / path).lstat().st_mtime)
        except OSError:
            continue
        if seconds > limit:
            fresh += 1
        elif seconds not in PLACEHOLDERS and OLDEST.timestamp() <= seconds and (newest is None or seconds > newest[0]):
            newest = (seconds, path)
    # A tree that was mostly written just now is a checkout, whose times say nothing.
    if newest is None or fresh > len(tree.files) / 2:
        return None
    return Fact(value=datetime.fromtimestamp(newest[0], UTC), evidence=Evidence(file=newest[1]))


def _changelog_date(tree: Tree, now: datetime) -> Fact[datetime] | None:
    best: Fact[datetime] | None = None
    for file in [path for path in tree.files if _CHANGELOG.match(path)][:10]:
        for number, line in enumerate(tree.lines(file)[:400], start=1):
            for date in _dates(line[:500]):
                if OLDEST <= date <= now and (best is None or date > best.value):
                    best = Fact(value=date, evidence=tree.evidence(file, number))
    return best


def _dates(line: str) -> list[datetime]:
    result: list[datetime] = []
    for pattern in _DATES:
        for match in pattern.finditer(line):
            parts = match.groupdict()
            month = _MONTHS.index(parts["n"][:3].lower()) + 1 if "n" in parts else int(parts["m"])
            try:
                result.append(datetime(int(parts["y"]), month, int(parts["d"]), tzinfo=UTC))
            except ValueError:
                continue
    return result


def has_git(root: Path) -> bool:
    """Whether the tree is the root of a git work tree."""
    return os.path.lexists(root / ".git")


def has_tags(root: Path) -> bool:
    """Whether the repository in `.git` has at least one tag. A `.git` file, which points elsewhere, counts as none."""
    git = root / ".git"
    try:
        if git.is_symlink() or not git.is_dir():
            return False
        with os.scandir(git / "refs" / "tags") as entries:
            if any(True for _ in entries):
                return True
    except OSError:
        pass
    try:
        packed = git / "packed-refs"
        if packed.is_symlink() or not packed.is_file():
            return False
        with packed.open("rb") as file:
            return b" refs/tags/" in file.read(16 * 1024 * 1024)
    except OSError:
        return False
