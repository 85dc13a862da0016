"""The end of a build in words: what was made, or how far every candidate came and what to try."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from specbuild.cli.terminal import Terminal, clean
from specbuild.cli.words import counts, duration, ending, last_lines, plural, size
from specbuild.environment import CandidateReport, Environment, Predictions, Waste

_SHOWN = 6
"""Ways to fail that are explained in full; of the others the reason alone is told."""

_DIAGNOSES = 3
"""Causes that are told of one candidate."""


def summarise(environment: Environment, terminal: Terminal) -> Iterator[str]:
    """A committed environment."""
    verdict, base = environment.verdict, environment.base
    headline = f"{terminal.symbols.won} {environment.repo.origin} has a verified environment"
    yield terminal.paint(headline, "green", bold=True)
    yield f"  how       {environment.strategy} on {base.name if base else '?'}"
    if environment.reason:
        yield f"  why       {clean(environment.reason)}"
    for repair in environment.repairs:
        yield f"  repaired  {clean(repair.title)}, since {clean(str(repair.failure))}"
    if verdict is not None:
        yield f"  verified  {verdict.level}: {counts(verdict)}"
    yield f"  replay    {_replay(environment)}"
    yield f"  time      {_time(environment)}"
    if environment.waste.winner_seconds:
        yield f"  spent     {_spent(environment.waste)}"
    if environment.predictions.told:
        yield f"  foreseen  {_foreseen(environment.predictions)}"
    yield from _files(environment)
    where = _folder(environment) or environment.id
    yield f"  next      specbuild run {where} -- COMMAND, or specbuild shell {where}"


def _replay(environment: Environment) -> str:
    match environment.reproducible:
        case True:
            return "built again from its base with the same verdict and packages: reproducible"
        case False:
            return _not_reproducible(environment)
        case None:
            return "not made"


def _not_reproducible(environment: Environment) -> str:
    count = len(environment.differences.lines()) if environment.differences else 0
    if environment.verdict is not None and environment.verdict.repeatable and count:
        return f"built again from its base {plural(count, 'package')} differed: not reproducible"
    how = f" ({ending(environment.replayed)})" if environment.replayed else ""
    return f"built again from its base it ended differently{how}: do not rely on it"


def _time(environment: Environment) -> str:
    seconds = environment.seconds
    parts = [f"{duration(seconds.total)} in all"]
    if seconds.to_commit is not None:
        parts.append(f"{duration(seconds.to_commit)} until it was verified")
    if seconds.replay is not None:
        parts.append(f"{duration(seconds.replay)} for the replay")
    return ", ".join(parts)


def _spent(waste: Waste) -> str:
    """What the winner cost, and what speculation cost beside it."""
    won = f"{duration(waste.winner_cpu_seconds)} of CPU and {size(waste.winner_bytes)} for the winner"
    return f"{won}, {duration(waste.loser_cpu_seconds)} and {size(waste.loser_bytes)} beside it"


def _foreseen(predictions: Predictions) -> str:
    """How many failures were told ahead, and what came of it."""
    parts = [f"{plural(predictions.told, 'failure')} told ahead: {predictions.hit} came"]
    if predictions.missed:
        parts.append(f"{predictions.missed} did not")
    if predictions.open:
        parts.append(f"{predictions.open} prevented or cut short")
    lead = f"; {duration(predictions.lead_seconds)} of lead" if predictions.lead_seconds else ""
    return ", ".join(parts) + lead


def _files(environment: Environment) -> Iterator[str]:
    made = environment.artifacts
    paths = [path for path in (made.dockerfile, made.setup_sh, made.lock, made.environment, made.journal) if path]
    if paths:
        names = ", ".join(Path(path).name for path in paths)
        yield f"  files     {Path(paths[0]).parent}: {names}"


def _folder(environment: Environment) -> str:
    path = environment.artifacts.environment
    return str(Path(path).parent) if path else ""


def explain_failure(environment: Environment, terminal: Terminal) -> Iterator[str]:
    """Why nothing was committed: for each candidate how far it came, the last lines, and what to try."""
    tried = plural(len(environment.candidates), "candidate")
    spent = duration(environment.seconds.total)
    message = clean(environment.message) or "no candidate verified"
    yield ""
    error = terminal.paint("error", "red", bold=True)
    yield f"{error}: {environment.repo.origin}: {message} ({tried}, {spent})"
    ends = _alike(environment.candidates)
    for candidates in ends[:_SHOWN]:
        yield ""
        yield from (f"  {_headline(candidate, terminal)}" for candidate in candidates)
        yield from _explain(candidates[0], terminal)
    if ends[_SHOWN:]:
        yield ""
    for candidate in chain.from_iterable(ends[_SHOWN:]):
        yield f"  {_headline(candidate, terminal)}: {clean(candidate.why)}"
    yield ""
    yield f"{terminal.paint('hint', 'cyan')}: {_advice(environment)}"


def _alike(candidates: Iterable[CandidateReport]) -> list[list[CandidateReport]]:
    """Candidates by how they ended, failures first: they share steps, and different ones often fail for one reason."""
    groups: dict[tuple[str | None, ...], list[CandidateReport]] = {}
    for candidate in sorted(candidates, key=lambda candidate: candidate.end != "failed"):
        conclusion = re.sub(r"\d+", "", " ".join(last_lines(candidate.tail, 1)))
        end = (candidate.end, candidate.failed_step, candidate.why, conclusion)
        groups.setdefault(end, []).append(candidate)
    return list(groups.values())


def _headline(candidate: CandidateReport, terminal: Terminal) -> str:
    mark = terminal.symbols.lost if candidate.end == "failed" else terminal.symbols.cancelled
    name = terminal.paint(f"{mark} {candidate.id} {clean(candidate.strategy)} on {candidate.base}", None, bold=True)
    return f"{name}: {candidate.end} after {candidate.steps_done} of {candidate.steps_total} steps"


def _explain(candidate: CandidateReport, terminal: Terminal) -> Iterator[str]:
    yield f"      why     {clean(candidate.why)}"
    if candidate.failed_step and candidate.failed_step not in candidate.why:
        yield f"      at      {clean(candidate.failed_step)}"
    for diagnosis in candidate.diagnoses[:_DIAGNOSES]:
        yield f"      cause   {terminal.paint(clean(diagnosis.words), 'yellow')}"
        if diagnosis.evidence:
            yield f"      line    {clean(diagnosis.evidence)}"
        if diagnosis.repairs:
            yield f"      repair  {clean('; or '.join(diagnosis.repairs))}"
    for line in last_lines(candidate.tail):
        yield f"      {terminal.symbols.bar} {line}"
    if candidate.verdict is not None and candidate.verdict.failing:
        yield f"      failing {', '.join(clean(name) for name in candidate.verdict.failing[:5])}"
    if candidate.log:
        yield f"      log     {candidate.log}"
    if candidate.hint and not (candidate.log and candidate.log in candidate.hint):
        yield f"      {terminal.paint('hint', 'cyan')}    {clean(candidate.hint)}"


def _advice(environment: Environment) -> str:
    if environment.outcome == "timeout":
        return "give it more time with --time-limit, or leave out what will not work with --strategy and --base"
    verdicts = [candidate.verdict for candidate in environment.candidates if candidate.verdict is not None]
    if any(verdict.passed for verdict in verdicts):
        best = max(verdict.ratio for verdict in verdicts)
        return f"the best candidate passed {best:.0%} of its tests; --min-pass-ratio accepts that, if it is good enough"
    if not environment.candidates:
        return "see `specbuild plan` for what was read of the repository; --test-command states your own measure"
    if not verdicts:
        return "none came as far as its tests: is a requirement gone, or a system library missing? Try another --base"
    return "name another --base, or a weaker --level (imports, collect), or your own --test-command"
