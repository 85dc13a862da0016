"""Lines of CI workflows and Dockerfiles, sorted by what they do, so that only what sets up an environment is kept."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from specbuild.repo.facts import Evidence, Fact


class Purpose(StrEnum):
    """What a line is for."""

    PACKAGES = "system packages"
    PYTHON = "Python packages"
    SET_UP = "other set-up"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Translated:
    """What is kept of a script."""

    packages: tuple[str, ...]
    """Names of system packages, sorted."""
    lines: tuple[str, ...]
    """Commands that install Python packages or prepare the tree, in order."""
    python: bool
    """Whether any of them installs Python packages."""
    skipped: tuple[str, ...]
    """Lines that were left out."""
    evidence: tuple[Evidence, ...] = field(default=())


_APT = re.compile(r"\b(apt-get|apt|aptitude)\s+(-\S+\s+)*install\b")
_APT_OTHER = re.compile(r"\b(apt-get|apt|apt-key|add-apt-repository|dpkg)\b|/var/lib/apt|/etc/apt")
_PYTHON = re.compile(
    r"^(python[\d.]*|py)\s+-m\s+pip\s+install\b|^pip[\d.]*\s+install\b|^uv\s+(pip\s+install|sync)\b"
    r"|^python[\d.]*\s+setup\.py\s+(develop|install|build_ext|build)\b|^(poetry|pdm|pipenv)\s+(install|sync)\b"
)
_SET_UP = re.compile(
    r"^(make|invoke|inv)\s+(init|install|develop|dev|deps|build|setup|bootstrap|generate)\b"
    r"|^(export\s+)?[A-Z][A-Z0-9_]*=\S*$|^(cp|mkdir|touch|ln|git\s+submodule|git\s+config|locale-gen)\b"
)
_NEVER = re.compile(
    r"codecov|coveralls|coverage\s+(xml|report|html|upload)|twine|pre-commit|sphinx|mkdocs|\bgh\s|curl|wget|docker\b|brew\b|choco\b"
    r"|\$\{\{|\$GITHUB_|secrets\.|GITHUB_TOKEN|deploy|publish|release"
)
_ONLY_TOOLS = re.compile(
    r"(pip|setuptools|wheel|virtualenv|tox|nox|tox-gh-actions|codecov|coveralls|uv|build|twine|poetry|pdm|pipenv)"
)


def translate(facts: Iterable[Fact[str]]) -> Translated:
    """Sort the commands of `facts`, with `sudo` taken off."""
    packages: set[str] = set()
    kept: list[str] = []
    skipped: list[str] = []
    evidence: list[Evidence] = []
    installs = False
    for fact in facts:
        for command in _commands(fact.value):
            match purpose(command):
                case Purpose.PACKAGES:
                    packages |= set(package_names(command))
                case Purpose.PYTHON | Purpose.SET_UP as kind:
                    kept.append(command)
                    installs = installs or kind is Purpose.PYTHON
                case Purpose.SKIPPED:
                    skipped.append(command)
                    continue
            evidence.append(fact.evidence)
    return Translated(tuple(sorted(packages)), tuple(kept), installs, tuple(skipped), tuple(dict.fromkeys(evidence)))


def purpose(command: str) -> Purpose:
    """What one command is for; what is not known to set something up is skipped."""
    if _APT.search(command):
        return Purpose.PACKAGES
    if _APT_OTHER.search(command) or _NEVER.search(command):
        return Purpose.SKIPPED
    if _PYTHON.search(command):
        return Purpose.SKIPPED if _tools_only(command) else Purpose.PYTHON
    return Purpose.SET_UP if _SET_UP.search(command) else Purpose.SKIPPED


def package_names(command: str) -> tuple[str, ...]:
    """The packages that an apt command installs; variables and version pins are dropped."""
    found = _APT.search(command)
    names = _split(command[found.end() :]) if found else []
    kept = (re.split(r"[=/]", name)[0] for name in names if not name.startswith("-"))
    return tuple(name for name in kept if re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", name))


def _tools_only(command: str) -> bool:
    """Whether only installers and the like are installed, which a Recipe brings itself."""
    names = [w for w in _split(command.partition("install")[2]) if not w.startswith("-")]
    return bool(names) and all(_ONLY_TOOLS.fullmatch(re.split(r"[\[<>=!~ ;]", name)[0]) for name in names)


def _commands(script: str) -> list[str]:
    """The commands of a script: continued lines joined, `&&` and `;` split outside of quotes, `sudo` removed."""
    commands: list[str] = []
    for line in script.replace("\\\n", " ").splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        for part in re.split(r"""\s*(?:&&|;(?=\s|$))\s*(?=(?:[^'"]*['"][^'"]*['"])*[^'"]*$)""", text):
            plain = re.sub(r"^(sudo\s+(-\S+\s+)*)", "", part.strip())
            if plain:
                commands.append(plain)
    return commands


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return text.split()
