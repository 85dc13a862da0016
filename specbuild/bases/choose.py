"""Which bases a build starts from: those that the user names, or the ones that suit the source tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import entry_points

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from specbuild.bases.contract import BaseProvider
from specbuild.bases.debian import PREFIX, DebianBases
from specbuild.bases.engine import EngineBases
from specbuild.bases.host import HostBases
from specbuild.bases.images import ImageBases
from specbuild.bases.releases import RELEASES, Release
from specbuild.config import Settings
from specbuild.errors import BaseUnavailableError, ConfigError, TransientError
from specbuild.recipe import PLANNED, BaseRef
from specbuild.repo.facts import Facts

Notify = Callable[[str], None]

AUTO_COUNT = 2
"""Bases that `auto` picks: the best one, and a rival with another interpreter."""

IMAGE_MINORS = range(7, 15)
"""Minor versions of Python 3 whose images the tools that steps use still run in."""

_DEFAULT = "bookworm"
"""For source trees that tell nothing: the middle of the releases, with the broadest choice of prebuilt packages."""


_BARE = re.compile(r"[a-z0-9]+([._-]+[a-z0-9]+)*")
"""An image's name without tag, registry or owner."""


def _silent(message: str) -> None:
    del message


def _debian(settings: Settings, notify: Notify) -> BaseProvider:
    return DebianBases(settings.cache_dir, mirror=settings.debian_mirror, notify=notify)


def _host(settings: Settings, notify: Notify) -> BaseProvider:
    return HostBases(private=(settings.cache_dir,), notify=notify)


def _engine(settings: Settings, notify: Notify) -> BaseProvider:
    return EngineBases(settings.cache_dir, notify=notify)


def _images(settings: Settings, notify: Notify) -> BaseProvider:
    return ImageBases(settings.cache_dir, notify=notify)


_Maker = Callable[[Settings, Notify], BaseProvider]
_PROVIDERS: dict[str, _Maker] = {"debian": _debian, "host": _host, "engine": _engine}
_LAST: dict[str, _Maker] = {"image": _images}
"""Nearly every name is an image's, too."""


def providers(settings: Settings, *, notify: Notify = _silent) -> dict[str, BaseProvider]:
    """Every provider by name: ours, those of the entry points `specbuild.bases` (called with settings, notify), and
    the one of images, which claims what is left."""
    makers = dict(_PROVIDERS)
    for point in entry_points(group="specbuild.bases"):
        makers.setdefault(point.name, point.load())
    makers |= _LAST
    return {name: make(settings, notify) for name, make in makers.items()}


def provider_of(base: str, settings: Settings, *, notify: Notify = _silent) -> BaseProvider:
    """The provider that knows the base of that name. Raises ConfigError if there is none."""
    return _claiming(base, providers(settings, notify=notify))


def _claiming(base: str, known: Mapping[str, BaseProvider]) -> BaseProvider:
    for provider in known.values():
        if provider.claims(base):
            return provider
    ours = ["auto", "host", "debian:bookworm, …", "images by tag or digest (python:3.12)", "engine:IMAGE"]
    names = ", ".join([*ours, *(name for name in known if name not in {*_PROVIDERS, *_LAST})])
    tagged = f"an image is named with its tag, as in {base}:latest; " if _BARE.fullmatch(base) else ""
    raise ConfigError(f"there is no base {base!r}", hint=f"{tagged}known: {names}")


@dataclass(frozen=True, slots=True)
class Pending:
    """A base that suits and is not here yet."""

    planned: BaseRef
    """As far as it is known before it is made: the digest is `PLANNED` and the name."""
    provider: BaseProvider

    async def make(self, *, background: bool = True) -> BaseRef:
        """Make it, by default at low priority. Raises BaseUnavailableError or TransientError."""
        if isinstance(self.provider, DebianBases):
            return await self.provider.resolve(self.planned.name, background=background)
        return await self.provider.resolve(self.planned.name)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The bases of a build, best first."""

    ready: tuple[BaseRef, ...]
    pending: tuple[Pending, ...] = ()

    @property
    def planned(self) -> tuple[BaseRef, ...]:
        """All of them as far as they are known; the digests of those that are not made yet begin with `PLANNED`."""
        return (*self.ready, *(pending.planned for pending in self.pending))


async def choose_bases(
    names: Sequence[str],
    facts: Facts,
    *,
    providers: Mapping[str, BaseProvider],
    notify: Notify = _silent,
    make: bool = True,
) -> Chosen:
    """The bases to build on.

    `auto` stands for the Debian releases that suit `facts`, for an image with another interpreter where no release has
    one that the project names, or for the host where none of them can be had; which, and why, is told to `notify`.
    Of those that are not here yet only the first is made, and only if no other is ready: the rest is left `pending`.
    A base that the user named is made, and its error is raised. With `make` unset nothing is made at all.
    Raises ConfigError for a name that nobody knows.
    """
    wanted = _wanted(names, facts, notify, images="image" in providers)
    owners = {planned.name: _claiming(planned.name, providers) for planned, _ in wanted}
    found: dict[str, BaseRef | Pending] = {}
    for planned, named in wanted:
        pending = Pending(planned, owners[planned.name])
        ready = pending.provider.cached(planned.name)
        if ready is None and named and make:
            ready = await pending.make(background=False)
        found[planned.name] = ready or pending
    if make:
        await _make_one(found, notify)
    ready_ones = {ref.digest: ref for ref in found.values() if isinstance(ref, BaseRef)}
    waiting = tuple(pending for pending in found.values() if isinstance(pending, Pending))
    if not ready_ones and not waiting and "host" in providers:
        notify("the running system is used as the base: the result cannot be moved to another machine")
        return Chosen((await providers["host"].resolve("host"),))
    return Chosen(tuple(ready_ones.values()), waiting)


def _wanted(names: Sequence[str], facts: Facts, notify: Notify, *, images: bool) -> list[tuple[BaseRef, bool]]:
    """Each base once, as planned, and whether the user named it."""
    wanted: dict[str, tuple[BaseRef, bool]] = {}
    for name in names:
        if name != "auto":
            wanted[name] = (BaseRef(name=name, digest=PLANNED + name), True)
            continue
        ranked = rank_releases(facts)
        image = image_for(facts) if images else None
        reasons = [f"{PREFIX}{choice.release.name} ({choice.reason})" for choice in ranked]
        reasons += [f"{image.name} ({image.reason})"] if image else []
        notify(f"bases: {'; '.join(reasons)}")
        for planned in (*(_planned(choice.release) for choice in ranked), *([image.planned] if image else ())):
            wanted.setdefault(planned.name, (planned, False))
    return list(wanted.values())


def _planned(release: Release) -> BaseRef:
    minor = ".".join(release.python.split(".")[:2]) if release.python else None
    return BaseRef(
        name=PREFIX + release.name, digest=f"{PLANNED}{PREFIX}{release.name}", python=minor, release=release.name
    )


async def _make_one(found: dict[str, BaseRef | Pending], notify: Notify) -> None:
    """Make the best base that can be had, unless one is ready. What cannot be had is taken out."""
    for name, base in list(found.items()):
        if any(isinstance(other, BaseRef) for other in found.values()):
            return
        assert isinstance(base, Pending), "nothing else is left"  # noqa: S101
        try:
            found[name] = await base.make(background=False)
        except (BaseUnavailableError, TransientError) as error:
            notify(error.message if name in error.message else f"{name} cannot be had: {error.message}")
            del found[name]


@dataclass(frozen=True, slots=True)
class Choice:
    """A release that suits, and why, in words."""

    release: Release
    reason: str


def rank_releases(facts: Facts, *, count: int = AUTO_COUNT) -> tuple[Choice, ...]:
    """The Debian releases that suit a source tree, best first; pure.

    First come those whose `python3` the project's `requires-python` admits; among them those that its CI matrix or
    classifiers name, then the nearest to what these name, then the nearest to the date of the revision.
    """
    stable = [release for release in RELEASES if release.stable]
    if not any(fact.value == "python" for fact in facts.languages) and facts.requires_python is None:
        return tuple(Choice(release, "not a Python project") for release in _by_era(stable, None))[:count]
    specifier = _specifier(facts)
    fitting = [release for release in stable if specifier.contains(release.python or "0", prereleases=True)]
    if not fitting:
        return _none_fits(facts, specifier, count)
    named = _named_minors(facts)
    day = facts.revision_date.value.date() if facts.revision_date else None
    era = _by_era(stable, day)
    fitting.sort(key=lambda release: (_distance(release, named), era.index(release)))
    return tuple(Choice(release, _reason(release, facts, named, day)) for release in fitting[:count])


@dataclass(frozen=True, slots=True)
class ImageChoice:
    """An image that has an interpreter which no Debian release has, and why, in words."""

    minor: int
    reason: str

    @property
    def name(self) -> str:
        """`python:3.8`."""
        return f"python:3.{self.minor}"

    @property
    def planned(self) -> BaseRef:
        """As far as it is known."""
        return BaseRef(name=self.name, digest=PLANNED + self.name, python=f"3.{self.minor}")


def image_for(facts: Facts) -> ImageChoice | None:
    """The image for a Python project that no stable Debian release has an interpreter for; pure.

    None where one has an interpreter that the project names, or admits if it names none: then nothing is gained that
    would be worth a download.
    """
    if not any(fact.value == "python" for fact in facts.languages) and facts.requires_python is None:
        return None
    specifier, named = _specifier(facts), _named_minors(facts)
    able = {minor for minor in IMAGE_MINORS if specifier.contains(f"3.{minor}.99")}
    wanted = able & named or able
    if not wanted or wanted & {_minor(release) for release in RELEASES if release.stable}:
        return None
    why = "named by the project" if wanted & named else f"admitted by `requires-python` {specifier}"
    return ImageChoice(max(wanted), f"Python 3.{max(wanted)}, {why}, which no stable Debian has")


def _specifier(facts: Facts) -> SpecifierSet:
    try:
        return SpecifierSet(facts.requires_python.value if facts.requires_python else "")
    except InvalidSpecifier:
        return SpecifierSet()


def _none_fits(facts: Facts, specifier: SpecifierSet, count: int) -> tuple[Choice, ...]:
    """No stable release has such an interpreter: the one in the making for newer ones, else the nearest."""
    asked = facts.requires_python.value if facts.requires_python else ""
    if specifier.contains("3.14.0", prereleases=True) or specifier.contains("3.99", prereleases=True):
        forky = next(release for release in RELEASES if not release.stable)
        newest = [release for release in RELEASES if release.stable][-1]
        reason = f"no released Debian has an interpreter for `requires-python` {asked}"
        return (Choice(forky, reason), Choice(newest, "another interpreter has to be installed"))[:count]
    oldest = RELEASES[0]
    return (Choice(oldest, f"the oldest there is; `requires-python` {asked} admits no interpreter of Debian"),)


def _named_minors(facts: Facts) -> frozenset[int]:
    """Minor versions of Python 3 that CI tests on, or else that classifiers name."""
    written = [version for job in facts.ci if job.tests for version in job.pythons]
    written = written or [version for job in facts.ci for version in job.pythons]
    written = written or [fact.value for fact in facts.classifier_pythons]
    return frozenset(int(match[1]) for version in written if (match := re.match(r"3\.(\d+)", version)))


def _minor(release: Release) -> int:
    return int((release.python or "3.99").split(".")[1])


def _distance(release: Release, named: frozenset[int]) -> int:
    """How far its interpreter is from the named ones, in minor versions; 0 where none is named."""
    return min((abs(_minor(release) - minor) for minor in named), default=0)


def _by_era(releases: Sequence[Release], day: date | None) -> list[Release]:
    """Nearest first to the newest release that existed on that day, the older of two before the newer one."""
    if day is None:
        chosen = next(i for i, release in enumerate(releases) if release.name == _DEFAULT)
    else:
        existed = [i for i, release in enumerate(releases) if release.released and release.released <= day]
        chosen = existed[-1] if existed else 0
    order = sorted(range(len(releases)), key=lambda index: (abs(index - chosen), index if day else -index))
    return [releases[index] for index in order]


def _reason(release: Release, facts: Facts, named: frozenset[int], day: date | None) -> str:
    minor = _minor(release)
    source = "CI" if any(job.pythons for job in facts.ci) else "classifiers"
    if minor in named:
        return f"Python 3.{minor}, named by {source}"
    if named:
        return f"Python 3.{minor}, nearest to what {source} names"
    if facts.requires_python:
        return f"Python 3.{minor} satisfies `requires-python`"
    return f"Python 3.{minor}, nearest to the revision of {day}" if day else f"Python 3.{minor}"
