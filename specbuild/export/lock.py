"""Reads what an environment resolved to: every Python distribution and every system package, with versions."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from pydantic import BaseModel, ValidationError

from specbuild.environment import Package
from specbuild.errors import SandboxError
from specbuild.model import Frozen
from specbuild.recipe import VENV_DIR, Recipe, Step, StepKind
from specbuild.sandbox.contract import Command, Sandbox
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
        source = found.read_text("direct_url.json")
        print(json.dumps({"name": meta["Name"], "version": found.version or "", "source": source}), flush=True)
"""

_SYSTEM = r"dpkg-query --show --showformat '${db:Status-Abbrev}\t${binary:Package}\t${Version}\n'"


class _Distribution(Frozen):
    name: str
    version: str
    source: str | None


class _DirInfo(BaseModel):
    editable: bool = False


class _VcsInfo(BaseModel):
    commit_id: str = ""


class _DirectUrl(BaseModel):
    url: str
    dir_info: _DirInfo = _DirInfo()
    vcs_info: _VcsInfo = _VcsInfo()


async def read_lock(sandbox: Sandbox, command: Callable[[Step], Command], recipe: Recipe) -> tuple[Package, ...]:
    """Every resolved package of the environment, sorted by ecosystem and name.

    Whichever kind the environment does not have (no `VENV_DIR`, no dpkg) is left out. `command` turns a Step into
    what the sandbox runs.

    Raises SandboxError if a list that is there cannot be read.
    """
    python = f"{VENV_DIR}/bin/python"
    listing = f"[ -x {python} ] || exit 0\n{shlex.join([python, '-I', '-c', _DISTRIBUTIONS])}"
    distributions = await _lines(sandbox, command, recipe, listing, "Python distributions")
    system = await _lines(
        sandbox, command, recipe, f"command -v dpkg-query >/dev/null || exit 0\n{_SYSTEM}", "packages"
    )
    packages = [*_python_packages(distributions), *_system_packages(system)]
    return tuple(sorted(packages, key=lambda package: (package.ecosystem, package.name.lower(), package.version)))


async def _lines(
    sandbox: Sandbox, command: Callable[[Step], Command], recipe: Recipe, run: str, what: str
) -> list[str]:
    step = Step(kind=StepKind.TEST, run=run, cwd="/", env=recipe.test_env, network=False, timeout=_SECONDS)
    lines: list[str] = []
    completed = await sandbox.run(command(step), on_line=lines.append)
    if not completed.ok:
        raise SandboxError(
            f"the list of {what} could not be read (exit code {completed.exit_code}): {completed.tail.strip()[-300:]}"
        )
    return lines


def _python_packages(lines: list[str]) -> list[Package]:
    """One a line of JSON; other lines are warnings of the interpreter."""
    packages: list[Package] = []
    seen: set[str] = set()
    for line in lines:
        try:
            found = _Distribution.model_validate_json(line)
        except ValidationError:
            continue
        # The first one on the search path is the one that gets imported.
        if found.name.lower() not in seen:
            seen.add(found.name.lower())
            source = _source(found.source)
            packages.append(Package(name=found.name, version=found.version, ecosystem="pypi", source=source))
    return packages


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


def _system_packages(lines: list[str]) -> list[Package]:
    packages: list[Package] = []
    for line in lines:
        status, _, rest = line.partition("\t")
        name, _, version = rest.partition("\t")
        if status.startswith("ii") and version:
            packages.append(Package(name=name, version=version, ecosystem="debian"))
    return packages
