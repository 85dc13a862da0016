"""Edits that repairs of Python environments are made of, written in one way only, and so that they compose.

What holds from a place on stands in files of `NOTES`, which uv reads because a variable names them: two repairs append
a line each to one file and set one and the same variable. Tried with uv 0.13: `UV_BUILD_CONSTRAINT` bounds what
isolated builds get; `extra-build-dependencies` adds to it, by the name of what is built, which uv does not know of a
tree with a bare setup.py; `UV_CONFIG_FILE` is read in spite of `UV_NO_CONFIG`, which only stops the search for others.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from datetime import datetime

from packaging.utils import canonicalize_name

from specbuild.recipe import Step, StepKind
from specbuild.repairs.contract import Case, Repair
from specbuild.repairs.edits import Edit, InsertSteps, ReplaceWork, SetVariables, apply
from specbuild.strategies import steps
from specbuild.strategies.dated import OLDEST_SETUPTOOLS, OLDEST_SETUPTOOLS_312
from specbuild.strategies.variants import NOTES
from specbuild.verify.checks import OWN

BUILD_CONSTRAINTS = f"{NOTES}/build-constraints.txt"
"""Bounds on what isolated builds get."""

OVERRIDES = f"{NOTES}/overrides.txt"
"""Requirements that replace all others of their names."""

PINS = f"{NOTES}/pins.txt"
"""Bounds on what later installs get."""

UV_SETTINGS = f"{NOTES}/uv.toml"
"""uv's settings: one dotted key a line, so that lines can be appended in any order."""

_INHERITED = ("UV_BUILD_CONSTRAINT", "UV_CONFIG_FILE", "UV_CONSTRAINT", "UV_OVERRIDE", "UV_EXCLUDE_NEWER")
_NEW_PYTHONS = frozenset({"3.12", "3.13", "3.14"})
_PIP = re.compile(r"(?<!uv )\bpip3? (install|wheel)\b")
_DATES = re.compile(r"\s--exclude-newer(?:-package)?[= ]\S+")
_LIMITS = re.compile(r"\s(?:-c|--constraints?)[= ]\S+")


def step(case: Case, run: str, title: str, *, env: Iterable[tuple[str, str]] = ()) -> Step:
    """A Step of uv commands that heeds the notes which the failing one heeds."""
    kept = [(name, value) for name, value in case.step.env if name in _INHERITED]
    return steps.uv(run, title, env=(*kept, *env), outside=case.step.cwd == "/")


def command(case: Case, requirements: Iterable[str], *options: str, newest: Iterable[str] = ()) -> str:
    """The command that installs requirements; those of `newest` are exempt from dates that the recipe keeps to."""
    exempt = [f"--exclude-newer-package {name}=false" for name in newest] if dated(case) else []
    return " ".join((case.install, *options, *exempt, steps.words(requirements)))


def installed(case: Case, requirements: Iterable[str], *options: str, newest: Iterable[str] = ()) -> InsertSteps:
    """The edit that installs requirements before the failing work."""
    chosen = tuple(requirements)
    run = command(case, chosen, *options, newest=newest)
    return InsertSteps(steps=(step(case, run, f"install {', '.join(chosen)}"),))


def pinned(case: Case, requirement: str, *others: str) -> tuple[Edit, ...]:
    """The edits that install a requirement and keep later installs to it; `others` are resolved along with it."""
    # Limits that the recipe computed for itself would contradict it, and stand before the variable.
    install = _LIMITS.sub("", case.install)
    run = f"{_note(requirement, PINS)}\n{install} {steps.words((requirement, *others))}"
    return (
        InsertSteps(steps=(step(case, run, f"install {requirement}"),)),
        SetVariables(env=(("UV_CONSTRAINT", PINS),)),
    )


def build_constrained(case: Case, *requirements: str) -> tuple[Edit, ...]:
    """The edits that bound what isolated builds get from the failing work on: uv's, and pip's where that is used."""
    run = "\n".join(_note(requirement, BUILD_CONSTRAINTS) for requirement in requirements)
    env = [("UV_BUILD_CONSTRAINT", BUILD_CONSTRAINTS)]
    if _PIP.search(case.step.run):
        # Until pip 25.3 the constraints of an install were those of its builds too.
        env += [("PIP_BUILD_CONSTRAINT", BUILD_CONSTRAINTS), ("PIP_CONSTRAINT", BUILD_CONSTRAINTS)]
    return (
        InsertSteps(steps=(step(case, run, f"bound builds: {', '.join(requirements)}"),)),
        SetVariables(env=tuple(env)),
    )


def build_extended(case: Case, of: str, requirement: str) -> tuple[Edit, ...]:
    """The edits that add a requirement to the isolated builds of the distribution `of`, from the failing work on."""
    key, quoted = f"extra-build-dependencies.{canonicalize_name(of)} = ", f'"{requirement}"'
    more = f"s/\\]$/, {quoted}]/"
    run = (
        f"mkdir -p {NOTES}\ntouch {UV_SETTINGS}\n"
        f"if grep -q {shlex.quote('^' + key)} {UV_SETTINGS}\n"
        f"then sed -i {shlex.quote(f'/^{key}/{more}')} {UV_SETTINGS}\n"
        f"else echo {shlex.quote(f'{key}[{quoted}]')} >> {UV_SETTINGS}\nfi"
    )
    return (
        InsertSteps(steps=(step(case, run, f"build {of} with {requirement}"),)),
        SetVariables(env=(("UV_CONFIG_FILE", UV_SETTINGS),)),
    )


def overridden(case: Case, requirement: str) -> tuple[Edit, ...]:
    """The edits by which a requirement replaces every other one of its name, from the failing work on."""
    return (
        InsertSteps(steps=(step(case, _note(requirement, OVERRIDES), f"require {requirement} whoever asks"),)),
        SetVariables(env=(("UV_OVERRIDE", OVERRIDES),)),
    )


def has(case: Case, requirements: Iterable[str]) -> bool:
    """Whether earlier Steps have installed all of these, written in the same way."""
    done = [one.run for one in case.recipe.steps[: case.index] if " install " in one.run]
    words = {word for run in done for word in run.split()}
    return all(words.issuperset(shlex.quote(text).split()) for text in requirements)


def rerun(case: Case, **changes: object) -> ReplaceWork:
    """The failing Step or Check again, with changes to its Step."""
    if case.index == len(case.recipe.steps):
        check = case.recipe.check
        return ReplaceWork(check=check.model_copy(update={"step": check.step.model_copy(update=changes)}))
    return ReplaceWork(step=case.step.model_copy(update=changes))


def option(case: Case, text: str) -> SetVariables:
    """pytest's options from the environment, with further ones."""
    old = dict(case.step.env).get("PYTEST_ADDOPTS", "")
    return SetVariables(env=(("PYTEST_ADDOPTS", f"{old} {text}".strip()),))


def dated(case: Case) -> bool:
    """Whether the recipe keeps to the releases of some date."""
    env = dict(case.step.env)
    return "--exclude-newer " in f"{case.install}\n{case.step.run} " or "UV_EXCLUDE_NEWER" in env


def undated(text: str) -> str:
    """A command without its dates."""
    return _DATES.sub("", text)


def setuptools_day(case: Case, revision: datetime) -> datetime:
    """The day whose setuptools builds sources of that revision and runs on the base's interpreter."""
    new = case.recipe.base.python in _NEW_PYTHONS
    return max(revision, OLDEST_SETUPTOOLS_312 if new else OLDEST_SETUPTOOLS)


def in_check(case: Case) -> bool:
    """Whether the failing work is the Check."""
    return case.index == len(case.recipe.steps)


def runs_own_command(case: Case) -> bool:
    """Whether the failing work is a command of the user's own, which is not to be replaced by another."""
    return in_check(case) and case.recipe.check.reason == OWN


def builds(case: Case) -> bool:
    """Whether the failing work builds distributions in isolation, where what is installed beside them is not seen."""
    return case.step.kind in (StepKind.BUILD, StepKind.DEPENDENCIES)


def fresh(case: Case, repairs: Iterable[Repair]) -> Iterator[Repair]:
    """The repairs that the recipe does not have yet."""
    done = {(one.kind, one.run) for one in case.recipe.steps}
    for repair in repairs:
        inserted = [one for edit in repair.edits if isinstance(edit, InsertSteps) for one in edit.steps]
        if inserted and all((one.kind, one.run) in done for one in inserted):
            continue
        moves = any(edit.kind == "move-to-base" for edit in repair.edits)
        if moves or apply(repair.edits, case.recipe, case.index).recipe.digest != case.recipe.digest:
            yield repair


def _note(line: str, file: str) -> str:
    """The commands that append a line to a file of `NOTES`."""
    return f"mkdir -p {NOTES}\necho {shlex.quote(line)} >> {file}"
