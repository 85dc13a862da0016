"""Shell scripts of CI files and documents: splitting into commands, and what kind of command one is."""

from __future__ import annotations

import re

_TEST = re.compile(
    r"""(?x) (?<![\w./-])(?:
      pytest | py\.test | nosetests[\d.-]* | trial | stestr | green | ward | zope-testrunner | bin/test
    | tox(?!ico) | nox
    | (?:-m\s+)(?:unittest|pytest|nose2?|tox|nox|doctest|stestr)
    | (?:-m\s+)(?:twisted\.trial|test\.regrtest|zope\.testrunner|testtools\.run)
    | coverage3?\s+run
    | (?:\./)?scripts?/(?:run-)?tests?(?:\.sh)?
    | (?:\./)?(?:\S*/)?(?:manage|runtests?|run[-_]?tests?|test|tests/runtests|run_all_tests|alltests)\.(?:py|sh)
    | (?:django-admin|manage\.py)\s+test
    | setup\.py\s+(?:test|pytest|nosetests|check_tests)
    | (?:make|gmake|just|inv|invoke|task|doit)\s+(?:-\S+\s+)*(?:[\w-]+\s+)*?[\w-]*(?:test|check|coverage|unit)[\w-]*
    | hatch\s+(?:test | (?:run|env\s+run)\s+\S*(?:test|cov)\S*)
    | (?:pdm|poetry|uv|pipenv|rye)\s+(?:run\s+)?\S*(?:test|tox|nox)\S*
    | (?:meson|ninja)\s+test | ctest | cargo\s+test | go\s+test | npm\s+(?:run\s+)?test
    )(?![\w-])"""
)
_NOT_TEST = re.compile(
    r"^\s*(?:(?:python\S*\s+-m\s+)?(?:pip|uv\s+pip|pipx|uv\s+tool|conda|mamba|apt|apt-get|sudo)\s|echo\s|#)"
)
_OTHER_ENV = re.compile(
    r"(?:tox|nox)\b.*\s-(?:e|s)[\s=]*(?:[\w.{}$-]*(?:doc|lint|style|mypy|typ(?:e|ing)|pyright|flake8|black|format|check-|changelog|"
    r"pre-commit|release|build|package|clean|report)[\w.-]*,?)+(?:\s|$)"
)
"""tox and nox environments that do something else than test."""
_INSTALL = re.compile(
    r"""(?x) (?<![\w./-])(?:
      pip[\d.]*\s+install | pip-sync | easy_install | pipx\s+install | uv\s+(?:sync|venv|add|tool\s+install)
    | poetry\s+install | pdm\s+(?:install|sync) | pipenv\s+(?:install|sync) | hatch\s+env\s+create | flit\s+install
    | setup\.py\s+(?:install|develop|build_ext|build)
    | conda\s+(?:install|(?:env\s+)?create|env\s+update) | mamba\s+\S+
    | apt(?:-get)?\s+(?:-\S+\s+)*(?:install|update|build-dep)
    | yum\s+install | dnf\s+install | apk\s+add | brew\s+install
    | make\s+(?:install|develop|dev|build|init|setup|deps|bootstrap|env)[\w-]* | npm\s+(?:ci|install) | cargo\s+build
    | maturin\s+(?:develop|build) | git\s+submodule
    )(?![\w-])"""
)
_COMPOUND = re.compile(
    r"(^|[\s;&|])(if|then|for|while|until|case|function|export|set|source|cd|pushd|shopt|trap|declare|alias|unset|read)\s"
    r"|<<|^\s*[\w-]+\s*\(\)\s*\{|^\s*\.\s|^\s*[A-Za-z_]\w*=[^\s]*\s*$",
    re.MULTILINE,
)
MAX_SCRIPT = 20_000


def looks_like_test(script: str) -> bool:
    """Whether a script seems to run tests, rather than to install a tool for them."""
    lines = script[:MAX_SCRIPT].split("\n")
    return any(_TEST.search(line) and not (_NOT_TEST.match(line) or _OTHER_ENV.search(line)) for line in lines)


def looks_like_install(script: str) -> bool:
    """Whether a script seems to install or build something."""
    return bool(_INSTALL.search(script[:MAX_SCRIPT]))


def split_script(script: str) -> list[tuple[int, str]]:
    """The commands of a script with their line offsets from 0.

    A script whose lines depend on each other (control structures, `cd`, variables, here-documents) stays whole.
    """
    script = script[:MAX_SCRIPT]
    if _COMPOUND.search(script):
        return [(0, script.strip("\n"))] if script.strip() else []
    result: list[tuple[int, str]] = []
    pending, start = "", 0
    for number, raw in enumerate(script.split("\n")):
        line = raw.rstrip()
        if not pending:
            start = number
        if line.endswith("\\"):
            pending += line[:-1].strip() + " "
            continue
        if line.endswith(("&&", "||", "|")):
            pending += line.strip() + " "
            continue
        command, pending = (pending + line.strip()).strip(), ""
        if command.startswith(("&&", "||", "|")) and result:
            result[-1] = (result[-1][0], f"{result[-1][1]} {command}")
        elif command and not command.startswith("#"):
            result.append((start, command))
    if pending.strip():
        result.append((start, pending.strip()))
    return result
