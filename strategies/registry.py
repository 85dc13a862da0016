"""All strategies, and the candidates that they propose together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.metadata import entry_points

from specbuild.errors import UsageError
from specbuild.strategies.contract import Candidate, Request, Strategy
from specbuild.strategies.forward import forward
from specbuild.strategies.interpreters import sites

ENTRY_POINTS = "specbuild.strategies"
"""The group under which other distributions offer strategies: a class, or a function that returns an instance."""

BUILT_IN = {
    "locked": "specbuild.strategies.locked:Locked",
    "declared": "specbuild.strategies.declared:Declared",
    "declared@": "specbuild.strategies.dated:Dated",
    "ci": "specbuild.strategies.ci:Ci",
    "debian-packages": "specbuild.strategies.debian_packages:DebianPackages",
    "docker": "specbuild.strategies.docker:Docker",
    "lowest-direct": "specbuild.strategies.declared:LowestDirect",
}


def names() -> tuple[str, ...]:
    """The names of all strategies that are installed, sorted."""
    return tuple(sorted({*BUILT_IN, *(point.name for point in entry_points(group=ENTRY_POINTS))}))


def load(name: str) -> Strategy:
    """The strategy of that name. Raises UsageError for an unknown one."""
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        make: Callable[[], Strategy] = getattr(import_module(module), attribute)
        return make()
    for point in entry_points(group=ENTRY_POINTS):
        if point.name == name:
            make = point.load()
            return make()
    raise _unknown([name])


def propose(request: Request, *, only: Sequence[str] = (), limit: int = 24) -> tuple[Candidate, ...]:
    """The candidates of all strategies, best first by prior ÷ expected seconds, at most `limit`.

    `only` keeps candidates whose strategy starts with one of the given prefixes. Candidates with equal recipes are
    merged: the best prior stays, the reasons are joined. Raises UsageError for a prefix that names no strategy, and
    when no base has an interpreter that the Repo allows.
    """
    _refuse_unknown(only)
    _refuse_impossible(request)
    found = [candidate for name in names() for candidate in load(name).propose(request)]
    kept = [c for c in found if not only or c.strategy.startswith(tuple(only))]
    ranked = sorted(_merged(kept), key=_rank)
    return tuple(sorted(_merged((*ranked, *forward(request, ranked))), key=_rank)[:limit])


def left_out(request: Request) -> tuple[str, ...]:
    """Why bases of the request are not used, a sentence each."""
    return tuple(unable.why for unable in sites(request)[1])


def _rank(candidate: Candidate) -> float:
    return -candidate.prior / candidate.expected_seconds


def _merged(found: Iterable[Candidate]) -> list[Candidate]:
    best: dict[str, Candidate] = {}
    for candidate in found:
        digest = candidate.recipe.digest
        other = best.get(digest)
        best[digest] = _joined(other, candidate) if other else candidate
    return list(best.values())


def _joined(one: Candidate, two: Candidate) -> Candidate:
    first, second = (one, two) if one.prior >= two.prior else (two, one)
    reason = (
        first.reason if second.reason in first.reason else f"{first.reason}; also {second.strategy}: {second.reason}"
    )
    evidence = tuple(dict.fromkeys((*first.evidence, *second.evidence)))
    return first.model_copy(update={"reason": reason, "evidence": evidence})


def _refuse_unknown(only: Sequence[str]) -> None:
    known = names()
    unknown = [given for given in only if not any(name.startswith(given) or given.startswith(name) for name in known)]
    if unknown:
        raise _unknown(unknown)


def _refuse_impossible(request: Request) -> None:
    able, unable = sites(request)
    if unable and not able:
        raise UsageError(
            "none of the bases has a Python that the project allows: " + "; ".join(base.why for base in unable),
            hint="name a base with another Python, such as `--base debian:trixie` or `--base debian:bullseye`",
        )


def _unknown(given: Sequence[str]) -> UsageError:
    return UsageError(
        f"no strategy is called {', '.join(map(repr, given))}; known are {', '.join(names())}",
        hint="strategies of other distributions are found once these are installed",
    )
