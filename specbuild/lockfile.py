"""`specbuild.lock`: all that a committed Environment was made of, so that the same can be made again without a race.

JSON in a fixed order, for a repository to keep: the same Environment gives the same text, and nothing in it tells of
the machine that it was found on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ValidationError

from specbuild.environment import Environment, Package, PackageChange, PackageDifferences, RepoInfo
from specbuild.errors import LockError, UsageError
from specbuild.model import Frozen, digest_of
from specbuild.recipe import BaseRef, Check, Recipe, Step, StepKind, Variables, salted
from specbuild.repo.digest import LOCK_FILE
from specbuild.repo.facts import Facts
from specbuild.urls import without_credentials

HERE = "."
"""The origin of a source tree that was a folder of the machine."""
SCHEMA_VERSION: Final = 1


_CONTENT = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}", re.ASCII)


class LockedStep(Frozen):
    """A Step with what names it."""

    digest: str
    """`recipe.Step.digest`."""
    step: Step


class LockedCheck(Frozen):
    """The Check and what it counted."""

    digest: str
    check: Check
    passed: int
    failed: int
    errors: int
    skipped: int


class _Form(BaseModel):
    """What locks of all versions have."""

    schema_version: int


class Lock(Frozen):
    """What `specbuild.lock` holds."""

    schema_version: Literal[1] = SCHEMA_VERSION
    specbuild_version: str
    repo: RepoInfo
    facts: str
    """Digest of what was read of the source tree."""
    base: BaseRef
    strategy: str
    dates: tuple[str, ...]
    """Days as of which packages were resolved, as the steps name them; empty where none was."""
    recipe: str
    """`recipe.Recipe.digest`."""
    steps: tuple[LockedStep, ...]
    test_env: Variables
    check: LockedCheck
    packages: tuple[Package, ...]
    """By ecosystem and name."""

    def to_recipe(self) -> Recipe:
        """The Recipe. Raises LockError if it is not the one that was locked: the file was edited.

        Checkpoints go by what a lock says, so it must not say that another tree is placed than the one it is for.
        """
        steps = tuple(locked.step for locked in self.steps)
        made = Recipe(base=self.base, steps=steps, check=self.check.check, test_env=self.test_env)
        altered = next((locked for locked in self.steps if locked.digest != locked.step.digest), None)
        if altered or self.check.digest != made.check.digest or self.recipe != made.digest:
            where = f"the step {altered.step.title!r}" if altered else "the check, the base or the order of the steps"
            raise _altered(f"{where} is not what its digest names")
        if not _CONTENT.fullmatch(self.base.digest):
            raise _altered(f"{self.base.digest[:80]!r} is no digest of a base")
        if any(step.run != self.repo.digest for step in steps if step.kind is StepKind.SOURCE):
            raise _altered("the source tree that it places is not the one that it is for")
        return made

    def dump(self) -> str:
        """The text of the file."""
        return self.model_dump_json(indent=2) + "\n"


def _altered(what: str) -> LockError:
    hint = "take the lock as it was written, or build without it"
    return LockError(f"the lock was altered: {what}", hint=hint)


def lock_of(environment: Environment) -> Lock:
    """The lock of a committed Environment. Raises UsageError if nothing was committed."""
    recipe, verdict = environment.recipe, environment.verdict
    if recipe is None or verdict is None:
        raise UsageError(
            f"there is nothing to lock in environment {environment.id}: no candidate was verified",
            hint="see its report for how far each candidate came",
        )
    recipe = salted(recipe, "")
    check = recipe.check
    return Lock(
        specbuild_version=environment.specbuild_version,
        repo=environment.repo.model_copy(update=_anywhere(environment.repo)),
        facts=facts_digest(environment.facts),
        base=recipe.base,
        strategy=environment.strategy or "",
        dates=tuple(sorted({date for step in recipe.steps for date in _dates(step)})),
        recipe=recipe.digest,
        steps=tuple(LockedStep(digest=step.digest, step=step) for step in recipe.steps),
        test_env=recipe.test_env,
        check=LockedCheck(
            digest=check.digest,
            check=check,
            passed=verdict.passed,
            failed=verdict.failed,
            errors=verdict.errors,
            skipped=verdict.skipped,
        ),
        packages=environment.lock,
    )


def read_lock_file(path: Path) -> Lock:
    """The lock in a file, or in a folder's `specbuild.lock`. Raises UsageError."""
    file = path / LOCK_FILE if path.is_dir() else path
    try:
        text = file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"the lock {file} cannot be read: {error.strerror}", hint="a build writes one beside its Dockerfile"
        ) from error
    try:
        return Lock.model_validate_json(text)
    except ValidationError as error:
        if (newer := _schema_of(text)) > SCHEMA_VERSION:
            raise UsageError(
                f"{file} is a lock of a newer SpecBuild: its form is {newer}, and this one reads {SCHEMA_VERSION}",
                hint="update SpecBuild, or build without the lock",
            ) from error
        first = error.errors(include_url=False)[0]
        where = f"{'.'.join(map(str, first['loc']))}: " if first["loc"] else ""
        raise UsageError(
            f"{file} is not a lock of this version of SpecBuild: {where}{first['msg']}", hint="build without it"
        ) from error


def _schema_of(text: bytes) -> int:
    """The version of its form that a lock names; 0 for what names none."""
    try:
        return _Form.model_validate_json(text).schema_version
    except ValidationError:
        return 0


def facts_digest(facts: Facts) -> str:
    """Names what was read of the files of a source tree; version control and clocks tell other things of each copy."""
    return digest_of(facts.model_dump(mode="json", exclude={"revision_date", "has_tags"}))


def compare_packages(before: Iterable[Package], after: Iterable[Package]) -> PackageDifferences:
    """What `after` has more, less, or in another version."""
    old = {(package.ecosystem, package.name.lower()): package for package in before}
    new = {(package.ecosystem, package.name.lower()): package for package in after}
    changed = [
        PackageChange(name=new[key].name, ecosystem=key[0], before=old[key].version, after=new[key].version)
        for key in sorted(old.keys() & new.keys())
        if old[key].version != new[key].version
    ]
    return PackageDifferences(
        added=tuple(new[key] for key in sorted(new.keys() - old.keys())),
        removed=tuple(old[key] for key in sorted(old.keys() - new.keys())),
        changed=tuple(changed),
    )


def _anywhere(repo: RepoInfo) -> dict[str, str | None]:
    """Where the tree is for everybody: as the user named it; a folder is wherever the lock is, and of no date."""
    if repo.kind == "folder":
        return {"origin": HERE, "date": repo.date if repo.revision else None}
    return {"origin": without_credentials(repo.origin)}


def _dates(step: Step) -> list[str]:
    """The days in `--exclude-newer DAY`: what the strategies of dated resolution write."""
    words = step.run.split()
    return [day for word, day in pairwise(words) if word == "--exclude-newer"]
