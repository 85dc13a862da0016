"""The Environment: what a build returns, in the form that `--json` prints and `environment.json` holds."""

from __future__ import annotations

from typing import Final, Literal

from specbuild.events import RepairMade
from specbuild.failures import Failure
from specbuild.model import Frozen
from specbuild.outcome import Outcome
from specbuild.recipe import BaseRef, Recipe
from specbuild.repo.facts import Facts
from specbuild.verify.verdict import Verdict

SCHEMA_VERSION: Final = 1


class RepoInfo(Frozen):
    """Which source tree this is about."""

    origin: str
    kind: str
    revision: str | None
    digest: str
    date: str | None
    """ISO 8601."""
    fetch: str = ""
    """Shell commands that fetch the same tree; empty for local folders."""


class Package(Frozen):
    """One resolved package."""

    name: str
    version: str
    ecosystem: str
    """`debian`, `pypi`."""
    source: str = ""
    """Where it came from, when not from its ecosystem's index (`editable`, a URL)."""
    architecture: str = ""
    """Of a system package, in its distribution's words."""
    hashes: tuple[str, ...] = ()
    """`sha256:…` of the file that it was installed from, where its index tells; several where it could be any."""


class PackageChange(Frozen):
    """One package in two versions."""

    name: str
    ecosystem: str
    before: str
    after: str


class PackageDifferences(Frozen):
    """What two sets of packages do not have in common."""

    added: tuple[Package, ...] = ()
    removed: tuple[Package, ...] = ()
    changed: tuple[PackageChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    def lines(self) -> list[str]:
        """A line for each, `+` for what is new, `-` for what is gone, `~` for another version."""
        return [
            *(f"+ {each.ecosystem} {each.name} {each.version}" for each in self.added),
            *(f"- {each.ecosystem} {each.name} {each.version}" for each in self.removed),
            *(f"~ {each.ecosystem} {each.name} {each.before} -> {each.after}" for each in self.changed),
        ]


class Diagnosis(Frozen):
    """What a failed candidate's output was taken for."""

    failure: Failure
    words: str
    """The failure in a sentence."""
    evidence: str
    """The line of output that told of it."""
    repairs: tuple[str, ...] = ()
    """What would cure it, in words, likeliest first; tried or not."""


class CandidateReport(Frozen):
    """What became of one candidate."""

    id: str
    strategy: str
    base: str
    prior: float
    reason: str
    end: Literal["committed", "failed", "cancelled"]
    why: str
    steps_done: int
    steps_total: int
    failed_step: str | None = None
    """Title of the step that failed."""
    tail: str = ""
    """Last lines of the failing step."""
    hint: str = ""
    """What to try."""
    log: str | None = None
    verdict: Verdict | None = None
    of: str = ""
    """The candidate that it repairs; empty for what a strategy proposed."""
    repairs: tuple[RepairMade, ...] = ()
    """What was done to it, from the first repair on."""
    diagnoses: tuple[Diagnosis, ...] = ()
    """Why it failed, as far as its output tells, the first first."""


class TimelineEntry(Frozen):
    """One step execution, in seconds since the build began."""

    title: str
    kind: str
    node: str
    start: float
    end: float
    outcome: Outcome
    candidates: tuple[str, ...]
    cpu_seconds: float = 0.0
    written_bytes: int = 0


class Waste(Frozen):
    """What was spent on steps that are not on the winner's path, and on those that are."""

    loser_seconds: float = 0.0
    loser_cpu_seconds: float = 0.0
    loser_bytes: int = 0
    winner_seconds: float = 0.0
    winner_cpu_seconds: float = 0.0
    winner_bytes: int = 0
    warmer_seconds: float = 0.0
    """Of downloads ahead of the steps that need them, which are part of neither."""
    warmer_cpu_seconds: float = 0.0
    warmer_bytes: int = 0


class Predictions(Frozen):
    """How failures that were told before their step had ended compare with what came."""

    told: int = 0
    hit: int = 0
    """They came."""
    missed: int = 0
    """The step ended well."""
    open: int = 0
    """The step never came to its end, mostly since a repair made it needless."""
    unforeseen: int = 0
    """Failures that were told of at the end of their step only."""
    lead_seconds: float = 0.0
    """From the telling of those that came until their step had failed, in all."""


class Seconds(Frozen):
    total: float
    """From the call to the return."""
    to_commit: float | None
    """From the call until a candidate verified."""
    replay: float | None = None


class Artifacts(Frozen):
    """Paths of the files that a build writes."""

    dockerfile: str | None = None
    setup_sh: str | None = None
    lock: str | None = None
    environment: str | None = None
    journal: str | None = None
    logs: str | None = None
    source: str | None = None


class Holder(Frozen):
    """What holds the files of an Environment."""

    backend: str
    """`overlay` or `docker`."""
    engine: str = ""
    """The address of the container engine, as of DOCKER_HOST; empty where none holds them."""

    def __str__(self) -> str:
        return f"{self.backend} at {self.engine}" if self.engine else self.backend


class Environment(Frozen):
    """A verified environment, or why there is none.

    `outcome` is `committed`, or `failed` when no candidate verified; then `base`, `strategy`, `recipe` and `verdict`
    are None and `candidates` tells of each how far it came.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    id: str
    """Names the environment in the store and for `run`, `shell` and `replay`."""
    outcome: Literal["committed", "failed", "timeout"]
    message: str = ""
    specbuild_version: str
    created: str
    """ISO 8601, UTC."""
    repo: RepoInfo
    base: BaseRef | None = None
    strategy: str | None = None
    reason: str = ""
    recipe: Recipe | None = None
    repairs: tuple[RepairMade, ...] = ()
    """What was repaired of the strategy's recipe until it verified."""
    verdict: Verdict | None = None
    reproducible: bool | None = None
    """Whether the replay from the base gave the same Verdict and the same packages; None when none was made."""
    differences: PackageDifferences | None = None
    """Which packages the replay has that the lock has not, and the other way round; None when none was made."""
    replayed: Verdict | None = None
    """What the replay found; None when none was made."""
    seconds: Seconds
    candidates: tuple[CandidateReport, ...] = ()
    waste: Waste = Waste()
    predictions: Predictions = Predictions()
    lock: tuple[Package, ...] = ()
    facts: Facts = Facts()
    timeline: tuple[TimelineEntry, ...] = ()
    artifacts: Artifacts = Artifacts()
    held_by: Holder | None = None
    """Where its files are on the machine that built it; None if there are none, or if an earlier version built it."""
