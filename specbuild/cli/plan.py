"""`specbuild plan`: what would be tried, and why. Nothing of the repository is run."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from specbuild.cli.output import Output, output_options
from specbuild.cli.settings import route_options, settings_from
from specbuild.cli.terminal import Terminal, clean

if TYPE_CHECKING:
    from specbuild.environment import RepoInfo
    from specbuild.journey import Plan
    from specbuild.repo.facts import Evidence, Fact, Facts
    from specbuild.strategies.contract import Candidate


@click.command(short_help="Show what is known and what would be tried.")
@click.argument("repo")
@route_options
@output_options()
@click.pass_obj
def plan(output: Output, /, repo: str, **options: Any) -> int:
    """Show what is known of REPO, and the candidates that `build` would race, with odds and reasons.

    Nothing is run in a sandbox, and no code of the repository is executed. Ends with 1 if there is no candidate.
    """
    settings = settings_from(options)
    from specbuild import journey
    from specbuild.cli.interrupts import run_to_end

    made = run_to_end(lambda: journey.plan(repo, settings=settings), output.err)
    if output.json:
        output.result_object(made)
    output.result(*_describe(made, output))
    return 0 if made.candidates else 1


def _describe(made: Plan, output: Output) -> Iterator[str]:
    out = output.out
    yield from _repo(made.repo, out)
    yield out.paint("facts", bold=True)
    yield from _wrapped(_facts(made.facts, verbose=output.verbose > 0), out)
    yield out.paint("bases", bold=True)
    for base in made.bases:
        python = f", python {base.python}" if base.python else ""
        state = "not made yet" if base.is_planned else base.digest[:19]
        yield f"  {base.name} ({state}{python})"
    yield out.paint(f"candidates ({len(made.candidates)})", bold=True)
    for number, candidate in enumerate(made.candidates, start=1):
        yield from _candidate(f"c{number}", candidate, output)
    for notice in made.notices:
        yield f"{out.paint('note', 'yellow')}: {clean(str(notice))}"


def _repo(repo: RepoInfo, out: Terminal) -> Iterator[str]:
    yield out.paint(repo.origin, bold=True)
    yield f"  {repo.kind}, revision {repo.revision or 'unknown'}, {repo.date[:10] if repo.date else 'undated'}"


def _wrapped(rows: Iterator[tuple[str, str]], out: Terminal) -> Iterator[str]:
    for name, text in rows:
        yield from textwrap.wrap(
            text,
            width=max(40, out.width),
            initial_indent=f"  {name:<16} ",
            subsequent_indent=" " * 19,
            break_on_hyphens=False,
        )


def _places(evidence: Iterable[Evidence]) -> str:
    """` [setup.cfg:3,7; tox.ini]`, or nothing where there is no evidence."""
    lines: dict[str, list[str]] = {}
    for one in evidence:
        if one.file:
            lines.setdefault(one.file, []).extend([] if one.line is None else [str(one.line)])
    places = [file + (f":{','.join(dict.fromkeys(numbers))}" if numbers else "") for file, numbers in lines.items()]
    return f" [{'; '.join(places)}]" if places else ""


def _fact(fact: Fact[Any]) -> str:
    value = fact.value.date() if isinstance(fact.value, datetime) else fact.value
    return clean(str(value)) + _places([fact.evidence])


def _facts(facts: Facts, *, verbose: bool) -> Iterator[tuple[str, str]]:
    """Name and text of what was found, each with where it stands."""
    singles = {
        "name": facts.name,
        "version": facts.version,
        "build backend": facts.build_backend,
        "requires python": facts.requires_python,
        "scm version": facts.scm_version,
        "revision date": facts.revision_date,
    }
    yield "languages", ", ".join(str(language.value) for language in facts.languages) or "none recognised"
    yield from ((name, _fact(fact)) for name, fact in singles.items() if fact is not None)
    yield from _lists(facts, verbose=verbose)


def _lists(facts: Facts, *, verbose: bool) -> Iterator[tuple[str, str]]:
    limit = None if verbose else 8
    lists = {
        "dependencies": [f"{clean(d.requirement)}{f' ({d.group})' if d.group else ''}" for d in facts.dependencies],
        "locks": [lock.kind + _places([lock.evidence]) for lock in facts.locks],
        "ci": [f"{job.provider} {clean(job.name)}{_places([job.evidence])}" for job in facts.ci],
        "test envs": [f"{env.tool} {clean(env.name)}" for env in facts.test_envs],
        "extensions": [f"{extension.language} {clean(extension.name)}".strip() for extension in facts.extensions],
        "tests": [f"{layout.runner}: {' '.join(layout.paths) or 'no folder'}" for layout in facts.tests],
        "packages": [clean(package.value) for package in facts.packages],
        "unreadable": [_fact(warning) for warning in facts.warnings],
    }
    for name, items in lists.items():
        if items:
            rest = len(items) - len(items[:limit])
            yield name, ", ".join(items[:limit]) + (f", and {rest} more (-v shows all)" if rest else "")


def _candidate(name: str, candidate: Candidate, output: Output) -> Iterator[str]:
    out, recipe = output.out, candidate.recipe
    headline = f"  {name:<3} {clean(candidate.strategy)} on {recipe.base.name}"
    yield f"{out.paint(headline, bold=True)}  {candidate.prior:.0%} likely, about {candidate.expected_seconds:.0f}s"
    yield from _indented(clean(candidate.reason) + _places(candidate.evidence), out)
    steps = [*recipe.steps, recipe.check.step]
    if not output.verbose:
        yield from _indented(f" {out.symbols.next} ".join(clean(step.title) or step.kind for step in steps), out)
        return
    for step in steps:
        yield f"      {out.symbols.running} {clean(step.title) or step.kind}"
        yield from (f"          {clean(line)}" for line in step.run.splitlines())


def _indented(text: str, out: Terminal) -> list[str]:
    margin = " " * 6
    return textwrap.wrap(
        text, width=max(40, out.width), initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False
    )
