"""Reads what an environment resolved to: every Python distribution and every system package, with versions."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Protocol

import anyio
from pydantic import BaseModel, ValidationError

from specbuild.environment import Package
from specbuild.errors import SandboxError
from specbuild.model import Frozen
from specbuild.recipe import VENV_DIR, Recipe, Step, StepKind
from specbuild.sandbox.contract import Command, Inside
from specbuild.urls import without_credentials

_SECONDS = 300.0

# Distributions are read by the interpreter that uses them, so that its own search path decides (system packages of
# an environment that sees them included). `-I` keeps the source tree out, whose metadata is not an installation.
_DISTRIBUTIONS = """
import json
from importlib import metadata
for found in metadata.distributions():
    meta = found.metadata
    if meta["Name"]:
        lines = (found.read_text("WHEEL") or "").splitlines()
        tags = [line[4:].strip() for line in lines if line.startswith("Tag:")]
        source = found.read_text("direct_url.json")
        about = {"name": meta["Name"], "version": found.version or "", "source": source, "tags": tags}
        print(json.dumps(about), flush=True)
"""

_SYSTEM = r"dpkg-query --show --showformat '${db:Status-Abbrev}\t${binary:Package}\t${Version}\t${Architecture}\n'"

# The package lists, which apt keeps compressed, tell of every package that could be installed; a stanza is told by its
# last line that matters. See deb822(5) and https://wiki.debian.org/DebianRepository/Format#A.22Packages.22_Indices
_SYSTEM_HASHES = r"""
helper=/usr/lib/apt/apt-helper
[ -x $helper ] || exit 0
for list in /var/lib/apt/lists/*_Packages*; do
  [ ! -f "$list" ] || $helper cat-file "$list"
done | awk '/^Package: /{p=$2} /^Version: /{v=$2} /^Architecture: /{a=$2} /^SHA256: /{print p "\t" v "\t" a "\t" $2}' |
  sort -u >"${TMPDIR:-/tmp}/specbuild-known"
dpkg-query --show --showformat '${Package}\t${Version}\t${Architecture}\n' |
  awk 'NR==FNR{have[$1 "\t" $2 "\t" $3]; next} ($1 "\t" $2 "\t" $3) in have' - "${TMPDIR:-/tmp}/specbuild-known"
"""

_INDEX_SECONDS = 15.0
"""That all questions to an index may take together; what has no answer by then is locked without a hash."""


class _Distribution(Frozen):
    name: str
    version: str
    source: str | None
    tags: tuple[str, ...] = ()


class Artifacts(Protocol):
    """What knows the files of Python distributions."""

    async def hashes(self, name: str, version: str, tags: Sequence[str]) -> tuple[str, ...]:
        """`sha256:…` of the files that an installation with these wheel tags can be of; none if it is not known."""
        ...


class _DirInfo(BaseModel):
    editable: bool = False


class _VcsInfo(BaseModel):
    commit_id: str = ""


class _DirectUrl(BaseModel):
    url: str
    dir_info: _DirInfo = _DirInfo()
    vcs_info: _VcsInfo = _VcsInfo()


async def read_lock(
    sandbox: Inside, command: Callable[[Step], Command], recipe: Recipe, *, artifacts: Artifacts | None = None
) -> tuple[Package, ...]:
    """Every resolved package of the environment, sorted by ecosystem and name.

    Whichever kind the environment does not have (no `VENV_DIR`, no dpkg) is left out. `command` turns a Step into
    what the sandbox runs. With `artifacts`, packages have hashes where they can be had.

    Raises SandboxError if a list that is there cannot be read.
    """
    python = f"{VENV_DIR}/bin/python"
    listing = f"[ -x {python} ] || exit 0\n{shlex.join([python, '-I', '-c', _DISTRIBUTIONS])}"
    distributions = await _lines(sandbox, command, recipe, listing, "Python distributions")
    system = await _lines(
        sandbox, command, recipe, f"command -v dpkg-query >/dev/null || exit 0\n{_SYSTEM}", "packages"
    )
    found = _distributions(distributions)
    python_hashes = await _python_hashes(found, artifacts) if artifacts else {}
    listed = f"command -v dpkg-query >/dev/null || exit 0\n{_SYSTEM_HASHES}"
    system_hashes = await _lines(sandbox, command, recipe, listed, "package hashes") if artifacts else []
    packages = [
        *(_python_package(each, python_hashes.get(each.name, ())) for each in found),
        *_system_packages(system, system_hashes),
    ]
    return tuple(sorted(packages, key=lambda package: (package.ecosystem, package.name.lower(), package.version)))


async def _lines(sandbox: Inside, command: Callable[[Step], Command], recipe: Recipe, run: str, what: str) -> list[str]:
    step = Step(kind=StepKind.TEST, run=run, cwd="/", env=recipe.test_env, network=False, timeout=_SECONDS)
    lines: list[str] = []
    completed = await sandbox.run(command(step), on_line=lines.append)
    if not completed.ok:
        raise SandboxError(
            f"the list of {what} could not be read (exit code {completed.exit_code}): {completed.tail.strip()[-300:]}"
        )
    return lines


def _distributions(lines: list[str]) -> list[_Distribution]:
    """One a line of JSON; other lines are warnings of the interpreter."""
    found: dict[str, _Distribution] = {}
    for line in lines:
        try:
            distribution = _Distribution.model_validate_json(line)
        except ValidationError:
            continue
        # The first one on the search path is the one that gets imported.
        found.setdefault(distribution.name.lower(), distribution)
    return list(found.values())


def _python_package(found: _Distribution, hashes: tuple[str, ...]) -> Package:
    source = _source(found.source)
    return Package(name=found.name, version=found.version, ecosystem="pypi", source=source, hashes=hashes)


async def _python_hashes(found: list[_Distribution], artifacts: Artifacts) -> dict[str, tuple[str, ...]]:
    """Of those that came from an index, as far as they can be told in time."""
    hashes: dict[str, tuple[str, ...]] = {}

    async def ask(each: _Distribution) -> None:
        hashes[each.name] = await artifacts.hashes(each.name, each.version, each.tags)

    with anyio.move_on_after(_INDEX_SECONDS):
        async with anyio.create_task_group() as tasks:
            for each in found:
                if not each.source:
                    tasks.start_soon(ask, each)
    return hashes


def _source(direct_url: str | None) -> str:
    """In words, from `direct_url.json`: empty for what came from an index.

    https://packaging.python.org/en/latest/specifications/direct-url-data-structure/
    """
    if not direct_url:
        return ""
    try:
        origin = _DirectUrl.model_validate_json(direct_url)
    except ValidationError:
        return "unreadable direct_url.json"
    url = without_credentials(origin.url)
    if origin.dir_info.editable:
        return f"editable {url}"
    return f"{url}@{origin.vcs_info.commit_id}" if origin.vcs_info.commit_id else url


def _system_packages(lines: list[str], hash_lines: list[str]) -> list[Package]:
    hashes: dict[tuple[str, str, str], str] = {}
    for line in hash_lines:
        name, version, architecture, digest = (line.split("\t") + [""] * 3)[:4]
        hashes[name, version, architecture] = digest
    packages: list[Package] = []
    for line in lines:
        status, name, version, architecture = (line.split("\t") + [""] * 3)[:4]
        if status.startswith("ii") and version:
            found = hashes.get((name.partition(":")[0], version, architecture))
            known = (f"sha256:{found}",) if found else ()
            packages.append(
                Package(name=name, version=version, ecosystem="debian", architecture=architecture, hashes=known)
            )
    return packages
