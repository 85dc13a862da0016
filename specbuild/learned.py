"""What builds on this machine know together: package indexes and the outcomes of earlier builds, ready for a race."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

import anyio

from specbuild.bases.choose import provider_of
from specbuild.bases.debian import architecture
from specbuild.config import Settings
from specbuild.durations import Durations, name_of
from specbuild.errors import ConfigError, DownloadError, StoreError, TransientError
from specbuild.events import Reporter
from specbuild.field import Field
from specbuild.knowledge.outcomes import Outcomes
from specbuild.knowledge.query import FOLDER, Knowledge
from specbuild.knowledge.refresh import Refresher, mirror_address
from specbuild.knowledge.wheels import PackageIndex
from specbuild.mending import Elsewhere, Mender
from specbuild.recipe import BaseRef, Check, Step
from specbuild.strategies.contract import Candidate
from specbuild.survey import Survey

Notify = Callable[[str], None]


class LearnedDurations(Durations):
    """Expected seconds of work from earlier builds, each looked up once."""

    def __init__(self, outcomes: Outcomes | None) -> None:
        super().__init__()
        self._outcomes = outcomes
        self._known: dict[str, float | None] = {}

    def learned(self, work: BaseRef | Step | Check) -> float | None:
        """The median of what this very work took; None if it never ended well here."""
        name = name_of(work)
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name]

    def _read(self, name: str) -> float | None:
        try:
            return self._outcomes.usual_seconds(name) if self._outcomes else None
        except StoreError:
            return None


class Learned:
    """The knowledge below a cache folder, and the user's package index; an asynchronous context manager.

    A store that cannot be had is told of, and done without.
    """

    def __init__(self, settings: Settings, notify: Notify) -> None:
        self._settings = settings
        self._notify = notify
        self._asked: set[str] = set()
        self._asking = anyio.Lock()
        self.outcomes: Outcomes | None = None
        self._index = PackageIndex(settings.cache_dir)
        self.knowledge = Knowledge(settings.cache_dir, architecture=architecture())

    async def __aenter__(self) -> Self:
        try:
            self.outcomes = Outcomes(self._settings.cache_dir / FOLDER) if self._settings.learn else None
        except StoreError as error:
            self._notify(f"nothing is learned from this build: {error.message}; {error.hint}")
        await self._index.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.outcomes is not None:
            self.outcomes.close()
        await self._index.__aexit__(kind, error, trace)

    def durations(self) -> Durations:
        """How long work is expected to take."""
        return LearnedDurations(self.outcomes)

    async def prepare(self, release: str) -> None:
        """Make the package index of a release, or make it anew if it is old; asked for once a build."""
        async with self._asking:
            if release and release not in self._asked:
                self._asked.add(release)
                await self._refresh(release)

    async def _refresh(self, release: str) -> None:
        try:
            refresher = Refresher(
                self._settings.cache_dir,
                mirror=mirror_address(self._settings.debian_mirror),
                architecture=architecture(),
                notify=self._notify,
            )
            await refresher.refresh(release)
        except (ConfigError, DownloadError, TransientError, StoreError) as error:
            self._notify(f"packages are not looked up in the index of {release}: {error.message}")

    def mender(self, field: Field, found: Survey, reporter: Reporter, now: Callable[[], float]) -> Mender:
        """What repairs the candidates of a race."""
        return Mender(
            field,
            found.facts,
            self.knowledge,
            reporter=reporter,
            now=now,
            prepare=self.prepare,
            elsewhere=self._elsewhere(found),
            index=self._index,
            outcomes=self.outcomes,
            earlier=found.earlier,
        )

    def _elsewhere(self, found: Survey) -> Elsewhere:
        async def on(base: str) -> Sequence[Candidate]:
            if "auto" not in self._settings.bases:
                return ()
            ref = await provider_of(base, self._settings, notify=self._notify).resolve(base)
            return found.propose_on((ref,))

        return on
