"""What the project's lock file says, installed by the tool that wrote it or from the list that this tool prints."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path

from packaging.utils import canonicalize_name

from specbuild.recipe import UV, VENV_DIR, Step, StepKind
from specbuild.repo.facts import Lock
from specbuild.strategies import odds, project, steps
from specbuild.strategies.completion import complete
from specbuild.strategies.compose import Route, candidates
from specbuild.strategies.contract import Candidate, Request
from specbuild.strategies.interpreters import Site, sites
from specbuild.strategies.needs import Needs
from specbuild.strategies.requirements import name_of
from specbuild.strategies.runners import CROSSED
from specbuild.strategies.steps import end_of

_TOOLS = "/opt/locktool"
"""An environment of their own for poetry, pdm and pipenv."""

_LISTED = "/opt/specbuild/locked.txt"
"""The requirements that pipenv prints."""


_PRINT_LOCK = Path(__file__).with_name("print_poetry_lock.py")

_WHOLE = re.compile(r"(^|/)requirements\.(txt|lock)$|lock|dev|freeze")
_PARTIAL = re.compile(r"doc|lint|typing|mypy|build|example")


class Locked:
    """One candidate a lock file and base."""

    name = "locked"

    def propose(self, request: Request) -> Iterable[Candidate]:
        """The tools' own lock files first, then files with every line pinned."""
        locks = sorted(request.facts.locks, key=lambda lock: (lock.kind == "requirements", lock.evidence.file))
        for lock in _at_root(locks):
            for site in sites(request)[0]:
                for rank, (name, inside, kept) in enumerate(_ways(lock, site, request)):
                    route = _route(request, site, lock, name, inside, kept)
                    yield from candidates(request, route, checks=1 if rank else CROSSED)


def _at_root(locks: Iterable[Lock]) -> list[Lock]:
    """Those that belong to the project itself, not to one of its examples, and hold more than tools."""
    return [lock for lock in locks if _holds_project(lock)]


def _holds_project(lock: Lock) -> bool:
    path = lock.evidence.file
    if lock.kind != "requirements":
        return "/" not in path
    # Pinned lists for tests are what the declared routes take already; those for documentation lock nothing of use.
    return _WHOLE.search(path.lower()) is not None and not _PARTIAL.search(path.lower())


def _ways(lock: Lock, site: Site, request: Request) -> Iterator[tuple[str, tuple[Step, ...], float]]:
    """Names, Steps and kept odds of the ways to install one lock file."""
    if lock.kind == "uv":
        # Extras that conflict with each other make `--all-extras` impossible, and the project's settings of uv may
        # refuse the uv that is there; the rival has the default groups, without these settings.
        yield "locked:uv", _uv("--all-extras --all-groups", request, settings=True), 1.0
        yield "locked:uv-default", _uv("", request, settings=False), 0.8
    elif lock.kind == "pylock":
        yield "locked:pylock", _pylock(lock, request), 0.9
    elif lock.kind == "requirements":
        yield f"locked:{lock.evidence.file}", _pinned(lock, request), 0.7
    elif lock.kind in _BY_TOOL:
        # A tool of another time reads the file differently, refuses it, or breaks on its own dependencies.
        revision = request.facts.revision_date
        if revision:
            tool = _tool(lock.kind, site.settled(revision.value))
            yield f"locked:{lock.kind}", _BY_TOOL[lock.kind](lock, request, tool), 0.9
        tool = _tool(lock.kind, None)
        yield f"locked:{lock.kind}-newest", _BY_TOOL[lock.kind](lock, request, tool), 0.6
        if lock.kind == "poetry":
            yield "locked:poetry-pins", _poetry_pins(lock, request), 0.7


def _route(request: Request, site: Site, lock: Lock, name: str, inside: tuple[Step, ...], kept: float) -> Route:
    facts = request.facts
    revision = facts.revision_date.value if facts.revision_date else request.now
    lag = odds.years(revision, site.settled(revision))
    return Route(
        name=name,
        site=site,
        odds=odds.LOCKED * odds.DATED_TOO_OLD**lag * kept,
        reason=f"exactly the versions of {lock.evidence.file}",
        inside=inside,
        packages=(*project.compilers(facts), *project.tools(facts)),
        requirements=len(Needs.of(request).texts),
        evidence=(lock.evidence,),
    )


def _uv(selection: str, request: Request, *, settings: bool) -> tuple[Step, ...]:
    sync = " ".join(part for part in (f"{UV} sync --frozen --inexact", selection) if part)
    env = (("UV_PROJECT_ENVIRONMENT", VENV_DIR), *project.version_env(request.facts))
    in_place = "" if project.editable(request.facts) else " --no-editable"
    return (
        steps.uv(f"{sync} --no-install-project", "install what uv.lock says", env=env, settings=settings),
        steps.uv(
            f"{sync} --no-cache{in_place}", "install the project", kind=StepKind.BUILD, env=env, settings=settings
        ),
        *_rest(request),
    )


def _poetry(lock: Lock, request: Request, tool: str) -> tuple[Step, ...]:
    # The two options came with poetry 1.2 and 2.1; before, all groups were installed anyhow.
    wanted = (
        "options=\n"
        "for option in --all-extras --all-groups; do\n"
        f'  if {_TOOLS}/bin/poetry install --help | grep -q -e "$option"; then options="$options $option"; fi\n'
        "done\n"
    )
    run = f"{wanted}{_TOOLS}/bin/poetry install --no-interaction $options"
    env = (("POETRY_VIRTUALENVS_CREATE", "false"), *project.version_env(request.facts))
    return (
        steps.uv(f"{tool}\n{run} --no-root", f"install what {lock.evidence.file} says", env=env),
        *_project(request),
        *_rest(request),
    )


def _poetry_pins(lock: Lock, request: Request) -> tuple[Step, ...]:
    """Without poetry, which asks more of an index than mirrors have: the pins alone, installed by uv."""
    run = (
        f"{UV} venv --quiet --clear {_TOOLS}\n{UV} pip install --quiet --python {_TOOLS} tomli\n"
        f"mkdir -p {_LISTED.rpartition('/')[0]}\n"
        f"{_TOOLS}/bin/python - {lock.evidence.file} > {_LISTED} <<'PRINT_LOCK'\n"
        f"{_PRINT_LOCK.read_text('utf-8')}PRINT_LOCK\n"
        f"{UV} pip install --requirements {_LISTED}"
    )
    return steps.uv(run, f"install the pins of {lock.evidence.file}"), *_project(request), *_rest(request)


def _pdm(lock: Lock, request: Request, tool: str) -> tuple[Step, ...]:
    run = f"{tool}\n{_TOOLS}/bin/pdm sync --no-self --group :all"
    env = (("PDM_CHECK_UPDATE", "false"), ("PDM_IGNORE_SAVED_PYTHON", "1"), *project.version_env(request.facts))
    return (
        steps.uv(run, f"install what {lock.evidence.file} says", env=env),
        *_project(request),
        *_rest(request),
    )


def _pipenv(lock: Lock, request: Request, tool: str) -> tuple[Step, ...]:
    listed = f"mkdir -p {_LISTED.rpartition('/')[0]}\n{_TOOLS}/bin/pipenv requirements --dev > {_LISTED}"
    run = f"{tool}\n{listed}\n{UV} pip install --requirements {_LISTED}"
    return (
        steps.uv(run, f"install what {lock.evidence.file} says"),
        *_project(request),
        *_rest(request),
    )


def _pylock(lock: Lock, request: Request) -> tuple[Step, ...]:
    run = f"{UV} pip install --preview-features pylock --requirements {steps.words([lock.evidence.file])}"
    return steps.uv(run, f"install what {lock.evidence.file} says"), *_project(request), *_rest(request)


def _pinned(lock: Lock, request: Request) -> tuple[Step, ...]:
    """The pinned lines as they were read: the file may name the tree, which must keep out of the shared cache."""
    own = canonicalize_name(request.facts.name.value) if request.facts.name else ""
    listed = [d.requirement for d in request.facts.dependencies if d.group == f"file:{lock.evidence.file}"]
    chosen = [text for text in listed if name_of(text) != own]
    needs = Needs.of(request)
    texts = [f"--requirements {steps.words([lock.evidence.file])}"] if not chosen else [steps.words(chosen)]
    run = f"{UV} pip install {' '.join(texts)}"
    install = f"{UV} pip install {steps.words(needs.tests.requirements)}"
    return (
        steps.uv(run, f"install what {lock.evidence.file} says"),
        *_project(request),
        *([steps.uv(install, "install what the tests need")] if needs.tests.requirements else []),
        *complete(needs.completed()),
    )


_BY_TOOL: dict[str, Callable[[Lock, Request, str], tuple[Step, ...]]] = {
    "poetry": _poetry,
    "pdm": _pdm,
    "pipenv": _pipenv,
}


def _tool(name: str, until: datetime | None) -> str:
    """The commands that install a tool, its own requirements being of the same day."""
    cut = f" --exclude-newer {end_of(until)}" if until else ""
    return f"{UV} venv --quiet --clear {_TOOLS}\n{UV} pip install --quiet --python {_TOOLS}{cut} {name}"


def _project(request: Request) -> tuple[Step, ...]:
    """The Step that installs the project alone; none for an application that is run from its tree."""
    if not project.installable(request.facts):
        return ()
    what = project.target((), in_place=project.editable(request.facts))
    run = f"{UV} pip install --no-cache --no-deps {what}"
    return (steps.uv(run, "install the project", kind=StepKind.BUILD, env=project.version_env(request.facts)),)


def _rest(request: Request) -> tuple[Step, ...]:
    """The test runner and the plugins that the tests use, as far as the lock did not bring them."""
    tools = Needs.of(request).tools
    run = f"{UV} pip install {steps.words(tools)}"
    return (steps.uv(run, "install the test tools that are not locked"),) if tools else ()
