"""Races of random scripts on real sandboxes: small programs that wait, write, talk, fail, hang and leave others behind.

A `Play` is drawn from a seed, the same at every time. Each command leaves a mark of its own in `/marks`, named after
the edge that it ran for, so that a state tells by whose commands it was made. Those that install packages add to one
database, and leave alone what others write, so that they can be run before their turn.

    python -m specbuild.testing.staged STORE TAR SEED MARKER

runs one after another in a process of its own, which says `begun` once a step has.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import anyio

from specbuild.breadth import Breadth
from specbuild.errors import SandboxError, TransientError
from specbuild.events import Event, Reporter, StepStarted
from specbuild.model import digest_of
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind, checkpoint_root
from specbuild.sandbox.contract import Backend, BaseSource, Checkpoint, Command, Completed, LineSink, RootfsTar, Sandbox
from specbuild.speculate import Later, RaceResult, race
from specbuild.testing.mending import ScriptMender, package_step
from specbuild.testing.seer import Seer
from specbuild.testing.worlds import LISTS
from specbuild.tree import Entry
from specbuild.verify.verdict import Verdict

NAMES = ("gcc", "make", "pq")
"""What commands may want for."""
GHOST = "ghost"
"""What a command says it wants for when it lies."""
KINDS = {"c1": StepKind.TOOLCHAIN, "c2": StepKind.DEPENDENCIES, "c3": StepKind.DEPENDENCIES, "c4": StepKind.BUILD}
FIRST = "p0"
PACKAGES = (FIRST, "p1", "p2")
"""Commands that install system packages; the first one brings their lists."""
COMMANDS = (*KINDS, *PACKAGES[1:])
CHECKS = ("check", "other")
BASES = ("x", "y")

_SCRIPT = """\
set -u; mark=$1 marker=$2 ghost=$3 needs=$4 before=$5 after=$6 manners=" $7 " brings=$8 name=$9
does() { case $manners in *" $1 "*) ;; *) return 1;; esac; }
does ignores-signals && trap '' TERM INT HUP
mkdir -p "/marks/$mark" && : > "/marks/$mark/begun"
does installs && mkdir -p /db /fixed || { rm -rf /only; mkdir /only; : > "/only/$mark"; }
does leaves-a-session && (setsid sh -c 'trap "" TERM; exec sleep $1' sh "$marker" &)
does leaves-children && for n in 1 2 3; do (sleep 0.0$n; : > "/marks/$mark/late$n"; exec sleep "$marker") & done
does floods && seq 3000
missing=; for name in $needs; do [ -e "/fixed/$name" ] || { missing=$name; break; }; done
sleep "$before"
told=${missing:-$ghost}
if [ -n "$told" ]; then does tells-late && echo "END $told" || echo "FAIL $told"; fi
if [ -n "$missing" ] && does counts-tests; then echo "specbuild-tally 5 5 10"; sleep 1; fi
sleep "$after"
does hangs && exec sleep "$marker"
does rages && kill -9 -1
[ -z "$missing" ] || exit 1
does fixes && { does works || exit 1; mkdir -p /fixed; : > "/fixed/${ghost:-$brings}"; }
{ does installs || does clashes; } && { mkdir -p /db; echo "$name" >> /db/status; }
: > "/marks/$mark/done"
"""


@dataclass(frozen=True, slots=True)
class Act:
    """What a command does."""

    before: float
    """Seconds until it tells of what it wants for."""
    after: float
    """Seconds from then to its end."""
    needs: tuple[str, ...] = ()
    lies: bool = False
    manners: frozenset[str] = frozenset()
    """Words that the script knows."""
    timeout: float | None = None
    breaks: bool = False
    """Whether our machinery breaks under it, as soon as it has begun."""


def mark_of(parent: str, command: str) -> str:
    """What a command leaves in the state that it makes of the state `parent`."""
    return digest_of(["mark", parent, command])[-16:]


@dataclass(slots=True)
class Stage:
    """A workshop that runs acts; every process that it starts has `marker` as a word of its command line."""

    backend: Backend
    source: BaseSource
    acts: dict[str, Act]
    marker: str

    async def provide(self, base: BaseRef) -> Checkpoint:
        """The base's Checkpoint; all are made of one source."""
        return await self.backend.import_base(checkpoint_root(base), self.source)

    async def run_step(self, sandbox: Sandbox, step: Step, *, on_line: LineSink, log: Path | None) -> Completed:
        """Run the act of that name. Raises SandboxError where our machinery is to break."""
        act, fixes = self._act(step.run.removeprefix(LISTS))
        mark, ghost = mark_of(sandbox.parent.key, step.run), GHOST if act.lies else ""
        manners = " ".join([*act.manners, *(["installs"] if "apt" in step.caches else [])])
        words = [mark, self.marker, ghost, " ".join(act.needs), act.before, act.after, manners, fixes, step.run]
        argv = ("/bin/sh", "-c", _SCRIPT, "sh", *map(str, words))
        command = Command(argv, env={"PATH": "/usr/bin:/bin"}, network=False, timeout=act.timeout)
        if not act.breaks:
            return await sandbox.run(command, on_line=on_line, log=log)
        with anyio.move_on_after(act.before):
            await sandbox.run(command, on_line=on_line, log=log)
        raise SandboxError("our machinery broke")

    async def verify(self, sandbox: Sandbox, check: Check, *, on_line: LineSink, log: Path | None) -> Verdict:
        """Passes if the act exits with 0."""
        done = await self.run_step(sandbox, check.whole, on_line=on_line, log=log)
        passed = int(done.ok)
        reason = "1 passed" if done.ok else "1 failed"
        return Verdict(
            level=check.level, ok=done.ok, reason=reason, passed=passed, failed=1 - passed, ratio=float(passed)
        )

    def _act(self, command: str) -> tuple[Act, str]:
        word, _, rest = command.partition(" ")
        return (self.acts[f"fix {rest.split()[0]}"], rest.split()[0]) if word == "fix" else (self.acts[command], "")


@dataclass(slots=True)
class Play:
    """A race to be run, and how."""

    acts: dict[str, Act]
    entries: list[Entry]
    later: list[list[Entry]]
    foreseen: list[tuple[str, str, float]]
    latency: float
    rivals: int
    slots: int
    ahead: bool
    beside: bool
    warm: bool
    installed: frozenset[str]
    """What repairs bring as system packages."""
    early: frozenset[str]
    """What repairs bring before all other steps."""
    breadth: Breadth
    limit: float | None
    admits: list[int] = field(default_factory=list[int])
    """How many steps the machine bears, each time it is asked; then all slots."""

    async def race(self, backend: Backend, source: BaseSource, marker: str, reporter: Reporter) -> RaceResult:
        """Run it. Raises SandboxError as `race` does."""
        rivals: dict[str, int] = dict.fromkeys((*NAMES, GHOST), self.rivals)
        mender = ScriptMender(rivals=rivals, most=2, installed=self.installed, early=self.early)
        return await race(
            self.entries,
            backend,
            Stage(backend, source, self.acts, marker),
            slots=self.slots,
            reporter=reporter,
            admitted=self._admitted,
            later=[_bringing(entries) for entries in self.later],
            mender=Seer(mender, self.foreseen, self.latency),
            ahead=self.ahead,
            beside=self.beside,
            warm=self.warm,
            breadth=self.breadth,
            time_limit=self.limit,
        )

    def adds_to_database(self, command: str) -> bool:
        """Whether a command, in its turn, leaves its name in the database of packages."""
        word, _, name = command.partition(" ")
        installs = name.split()[0] in self.installed if word == "fix" else command in PACKAGES
        return installs or (word != "fix" and "clashes" in self.acts[command].manners)

    def _admitted(self) -> int:
        return self.admits.pop() if self.admits else self.slots


def _bringing(entries: list[Entry]) -> Later:
    async def bring() -> Iterable[Entry]:
        await anyio.sleep(0.02)
        if not entries:
            raise TransientError("nothing came")
        return entries

    return bring


def draw(random: Random) -> Play:
    """Any play."""
    acts = {name: _act(random) for name in (*COMMANDS, *CHECKS)}
    acts[FIRST] = replace(_act(random), needs=())
    for name in (*NAMES, GHOST):
        works = {"works"} if random.random() < 0.75 else set[str]()
        acts[f"fix {name}"] = Act(_seconds(random), 0.0, manners=frozenset({"fixes", *works, *_manners(random)}))
    entries = [_entry(random, number) for number in range(random.randint(1, 7))]
    count = min(random.choice([0, 0, 0, 1, 2]), len(entries) - 1)
    hangs = any("hangs" in act.manners and act.timeout is None for act in acts.values())
    return Play(
        acts=acts,
        entries=entries[: len(entries) - count],
        later=[entries[-1 - n : len(entries) - n] if random.random() < 0.7 else [] for n in range(count)],
        foreseen=[_prediction(random) for _ in range(random.randint(0, 3))],
        latency=random.choice([0.0, 0.005, 0.1]),
        rivals=random.choice([1, 1, 2]),
        slots=random.randint(1, 6),
        ahead=random.random() < 0.75,
        beside=random.random() < 0.7,
        warm=random.random() < 0.5,
        installed=_some(random),
        early=_some(random),
        breadth=random.choice(list(Breadth)),
        limit=random.uniform(0.1, 2.0) if hangs or random.random() < 0.2 else (None if len(entries) < 3 else 4.0),
        admits=[random.randint(1, 6) for _ in range(random.choice([0, 0, 10]))],
    )


def _act(random: Random) -> Act:
    manners = _manners(random)
    manners |= {"hangs"} if random.random() < 0.06 else set()
    manners |= {"rages"} if random.random() < 0.04 else set()
    manners |= {"tells-late"} if random.random() < 0.4 else set()
    manners |= {"counts-tests"} if random.random() < 0.3 else set()
    manners |= {"clashes"} if random.random() < 0.1 else set()
    return Act(
        before=_seconds(random),
        after=_seconds(random),
        needs=tuple(random.sample(NAMES, random.choice([0, 0, 1, 1, 2]))),
        lies=random.random() < 0.15,
        manners=frozenset(manners),
        timeout=random.choice([None, 0.3]) if "hangs" in manners else None,
        breaks=random.random() < 0.04,
    )


def _manners(random: Random) -> set[str]:
    odds = {"ignores-signals": 0.3, "leaves-a-session": 0.3, "leaves-children": 0.3, "floods": 0.1}
    return {word for word, chance in odds.items() if random.random() < chance}


def _some(random: Random) -> frozenset[str]:
    return frozenset(name for name in (*NAMES, GHOST) if random.random() < 0.5)


def _seconds(random: Random) -> float:
    return round(random.choice([0.0, random.uniform(0.0, 0.03), random.uniform(0.0, 0.2)]), 4)


def _prediction(random: Random) -> tuple[str, str, float]:
    return random.choice([*COMMANDS, *CHECKS]), random.choice([*NAMES, GHOST]), random.uniform(0.05, 0.95)


def _entry(random: Random, number: int) -> Entry:
    commands = [*random.choice([(), (FIRST,), (FIRST,)]), *random.sample(COMMANDS, random.randint(1, 4))]
    made = recipe(commands, random.choice(CHECKS), random.choice(BASES))
    return Entry(f"r{number}", made, random.uniform(0.05, 0.95), random.uniform(1.0, 100.0), 1000 * number)


def recipe(commands: Sequence[str], check: str, base: str) -> Recipe:
    """The Recipe of these commands."""
    return Recipe(
        base=BaseRef(name=base, digest=f"sha256:{base}"),
        steps=tuple(package_step(one) if one in PACKAGES else Step(kind=KINDS[one], run=one) for one in commands),
        check=Check(level=Level.TESTS, runner="pytest", step=Step(kind=StepKind.TEST, run=check)),
    )


class _Herald:
    """Says when the first step begins."""

    def __init__(self) -> None:
        self._said = False

    def emit(self, event: Event) -> None:
        if isinstance(event, StepStarted) and event.step_kind != "base" and not self._said:
            self._said = True
            print("begun", flush=True)


def main() -> None:
    """Run plays of a seed, one after another, until killed."""
    from specbuild.sandbox.overlay import OverlayBackend

    store, tar, seed, marker = sys.argv[1:]

    async def run() -> None:
        random, herald = Random(seed), _Herald()  # noqa: S311 - repeatable chance is the point
        while True:
            async with OverlayBackend(Path(store)) as backend:
                try:
                    await draw(random).race(backend, RootfsTar(Path(tar)), marker, herald)
                except SandboxError as error:  # one that was drawn
                    print(error, file=sys.stderr)

    anyio.run(run)


if __name__ == "__main__":
    main()
