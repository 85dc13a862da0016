"""What a Recipe brings and installs, read from its commands: repaired Recipes have Steps that no strategy wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from specbuild.predictors.foresee.commands import Arguments, arguments, commands
from specbuild.recipe import Recipe, Step, StepKind
from specbuild.repo.facts import Facts

EVERY = ":all:"
"""Stands for every distribution, as in pip's `--no-binary`."""

_CONSTRAINTS = frozenset(
    {"UV_BUILD_CONSTRAINT", "UV_CONSTRAINT", "UV_OVERRIDE", "PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT"}
)
"""Variables that name files of constraints."""

_BUILD_ESSENTIAL = ("gcc", "g++", "libc6-dev", "make")


@dataclass(frozen=True, slots=True)
class Policy:
    """Which releases one command may take."""

    cut: datetime | None = None
    """Only what was uploaded before."""
    cuts: Mapping[str, datetime | None] = field(default_factory=dict[str, "datetime | None"])
    """The same for single distributions, by normalised name; None where there is none."""
    lowest: bool = False
    """Whether the oldest that is allowed is taken of what is asked for directly."""
    sources: frozenset[str] = frozenset()
    """Distributions of which no wheel may be taken, or `EVERY`."""

    def until(self, name: str) -> datetime | None:
        """The date that holds for a distribution."""
        return self.cuts.get(name, self.cut)

    def from_source(self, name: str) -> bool:
        """Whether no wheel of it may be taken."""
        return name in self.sources or EVERY in self.sources


@dataclass(frozen=True, slots=True)
class Root:
    """A requirement that a command asks for."""

    requirement: Requirement
    policy: Policy
    at: StepKind

    @property
    def name(self) -> str:
        """Normalised."""
        return canonicalize_name(self.requirement.name)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a Recipe has by its end."""

    packages: frozenset[str] = frozenset()
    """System packages that its Steps name; what these depend on is not among them."""
    roots: tuple[Root, ...] = ()
    """No two for one distribution unless they differ: what was asked for first comes first."""
    project: Policy | None = None
    """How the project itself is built; None if it is not."""
    isolated: bool = True
    """Whether it is built in an environment of its own."""
    variables: frozenset[str] = frozenset()
    """Names of variables that are set for Steps or the Check."""
    limits: tuple[Requirement, ...] = ()
    """Constraints that builds, or all installs, are held to."""
    text: str = ""
    """All commands."""

    def allows(self, name: str, version: Version) -> bool:
        """Whether the constraints admit a version."""
        return all(
            limit.specifier.contains(version, prereleases=True)
            for limit in self.limits
            if canonicalize_name(limit.name) == name
        )


def contents_of(recipe: Recipe, facts: Facts) -> Contents:
    """Read all Steps."""
    reader = _Reader(facts)
    for step in recipe.steps:
        if step.kind is not StepKind.SOURCE:
            reader.read(step)
    variables = {name for step in (*recipe.steps, recipe.check.step) for name, _ in step.env}
    return replace(
        reader.found,
        packages=frozenset(reader.packages),
        roots=tuple(reader.roots),
        limits=tuple(reader.limits),
        variables=frozenset(variables | {name for name, _ in recipe.test_env}),
        text="\n".join(step.run for step in recipe.steps),
    )


class _Reader:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.found = Contents()
        self.packages: set[str] = set()
        self.roots: list[Root] = []
        self.limits: list[Requirement] = []
        self.listings: dict[str, tuple[str, ...]] = {}
        self.compiled: dict[str, tuple[tuple[str, ...], Policy]] = {}

    def read(self, step: Step) -> None:
        """Take what the Step's commands bring."""
        names: tuple[str, ...] = ()
        self._hold(path for name, path in step.env if name in _CONSTRAINTS)
        for words in commands(step.run):
            if words[0] == "for" and "in" in words:
                names = words[words.index("in") + 1 :]
            elif words[0] in ("printf", "echo") and words[-2:-1] in ((">",), (">>",)):
                self.listings[words[-1]] = (*self.listings.get(words[-1], ()), *words[1:-2])
            elif (at := _position(words, "apt-get", "install")) is not None:
                self._apt(arguments(words[at:]).words, names)
            elif (at := _position(words, "pip", "compile")) is not None:
                self._compile(arguments(words[at:]), step)
            elif (at := _position(words, "pip", "install")) is not None:
                self._install(arguments(words[at:]), step)
            elif (at := _position(words, "uv", "sync")) is not None:
                self._sync(step)

    def _apt(self, words: Iterable[str], names: tuple[str, ...]) -> None:
        for word in words:
            self.packages.update(names if word == "$@" else (word.partition("=")[0],))
        if "build-essential" in self.packages:
            self.packages.update(_BUILD_ESSENTIAL)

    def _compile(self, given: Arguments, step: Step) -> None:
        texts = tuple(text for word in given.words for text in self.listings.get(word, ()))
        for path in given.values("-o", "--output-file"):
            self.compiled[path] = (texts, _policy(given, step))

    def _install(self, given: Arguments, step: Step) -> None:
        if given.values("--python", "-p", "--target"):
            return  # into an environment of a tool's own
        policy = _policy(given, step)
        self._hold(given.values("--build-constraint", "--build-constraints", "-b"))
        for path in given.values("-c", "--constraint", "--constraints"):
            texts, older = self.compiled.get(path, ((), policy))
            self._ask(texts, older, step.kind)
            self._hold([path])
        for path in given.values("-r", "--requirement", "--requirements"):
            listed = (d.requirement for d in self.facts.dependencies if d.group == f"file:{path.removeprefix('./')}")
            self._ask(self.listings.get(path, tuple(listed)), policy, step.kind)
        self._ask((word for word in given.words if not word.startswith((".", "/", "$"))), policy, step.kind)
        trees = [t for t in (*given.words, *given.values("-e", "--editable")) if re.match(r"\.(\[|$)|/repo", t)]
        if trees:
            self.found = replace(self.found, project=policy, isolated=_isolated(given, step))
            if "--no-deps" not in dict(given.options):
                self._ask(self._declared(trees), policy, step.kind)

    def _sync(self, step: Step) -> None:
        """The pins of a lock file are not among the facts: they are of the revision's time."""
        revision = self.facts.revision_date
        policy = Policy(cut=revision.value if revision else None)
        self._ask((d.requirement for d in self.facts.dependencies if d.group == ""), policy, step.kind)
        if step.kind is StepKind.BUILD:
            self.found = replace(self.found, project=Policy())

    def _declared(self, trees: Iterable[str]) -> Iterator[str]:
        extras = {e.strip() for tree in trees for e in tree.partition("[")[2].rstrip("]").split(",")} - {""}
        groups = {"", *(f"extra:{extra}" for extra in extras)}
        yield from (d.requirement for d in self.facts.dependencies if d.group in groups)

    def _hold(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.limits += map(Requirement, filter(_is_requirement, self.listings.get(path, ())))

    def _ask(self, texts: Iterable[str], policy: Policy, at: StepKind) -> None:
        for text in texts:
            if _is_requirement(text):
                self.roots.append(Root(Requirement(text), policy, at))


def _is_requirement(text: str) -> bool:
    try:
        Requirement(text)
    except InvalidRequirement:
        return False
    return True


def _position(words: tuple[str, ...], program: str, command: str) -> int | None:
    """Where the words behind `program command` begin; options may stand between the two."""
    for at, word in enumerate(words):
        if word.rpartition("/")[2] == program and command in words[at:]:
            return words.index(command, at) + 1
    return None


def _isolated(given: Arguments, step: Step) -> bool:
    shared = dict(step.env).keys() & {
        "UV_NO_BUILD_ISOLATION",
        "UV_NO_BUILD_ISOLATION_PACKAGE",
        "PIP_NO_BUILD_ISOLATION",
    }
    return not shared and "--no-build-isolation" not in dict(given.options)


def _policy(given: Arguments, step: Step) -> Policy:
    env = dict(step.env)
    cuts = dict[str, "datetime | None"]()
    for value in given.values("--exclude-newer-package"):
        name, _, until = value.partition("=")
        cuts[canonicalize_name(name)] = _moment(until)
    general = [*given.values("--exclude-newer"), env.get("UV_EXCLUDE_NEWER", "")]
    unbuilt = [*given.values("--no-binary", "--no-binary-package"), env.get("UV_NO_BINARY_PACKAGE", "")]
    sources = {name for value in unbuilt for name in value.replace(",", " ").split()}
    return Policy(
        cut=_moment(general[0]),
        cuts=cuts,
        lowest="lowest" in "".join(given.values("--resolution")),
        sources=frozenset(name if name == EVERY else canonicalize_name(name) for name in sources),
    )


def _moment(text: str) -> datetime | None:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)
