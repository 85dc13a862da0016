"""`debian:RELEASE`: a minimal Debian, made on this machine from the host's own mirror and kept by content."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread

from specbuild.bases import bootstrap
from specbuild.bases.apt_sources import Mirrors, Source, debian_mirrors, host_sources, sources_file
from specbuild.bases.bootstrap_errors import explain, lacks_pockets
from specbuild.bases.programs import run_program
from specbuild.bases.releases import ALIASES, RELEASES, Release, find_release
from specbuild.bases.rootfs_tar import add_file, digest_of_file, installed_packages
from specbuild.bases.shelf import Record, Shelf, utc_now
from specbuild.bases.tools import find_tool
from specbuild.errors import BaseUnavailableError, ConfigError, TransientError
from specbuild.recipe import BaseRef, checkpoint_root
from specbuild.sandbox.apt_settings import acquire_settings, auth_text
from specbuild.sandbox.contract import Backend, Checkpoint, RootfsTar
from specbuild.sandbox.settings_parts import Host
from specbuild.tail import end_of, last_lines

PREFIX = "debian:"

MAX_AGE = 30 * 86_400.0
"""Seconds after which a base is made anew. Steps can update packages at any time; what ages is the starting point."""

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "armhf", "ppc64le": "ppc64el", "i686": "i386"}
"""The kernel's names and Debian's; the others are the same."""

Notify = Callable[[str], None]


def _silent(message: str) -> None:
    del message


class DebianBases:
    """Makes and keeps Debian releases. See `BaseProvider`."""

    def __init__(
        self,
        cache_dir: Path,
        *,
        mirror: str | None = None,
        max_age: float = MAX_AGE,
        refresh: bool = False,
        notify: Notify = _silent,
    ) -> None:
        """`mirror` replaces the host's mirrors (the address of an archive, as in sources.list)."""
        self._cache = cache_dir
        self._shelf = Shelf(cache_dir / "bases")
        self._mirror = mirror
        self._max_age = 0.0 if refresh else max_age
        self._notify = notify

    @property
    def name(self) -> str:
        """`debian`."""
        return "debian"

    def claims(self, base: str) -> bool:
        """Whether that is `debian:` and something."""
        return base.startswith(PREFIX)

    def cached(self, base: str) -> BaseRef | None:
        """The reference of a base that needs no making now."""
        release = self._release(base)
        record = self._shelf.newest(_slot(release))
        return _reference(release, record) if record and record.age <= self._max_age else None

    async def resolve(self, base: str, *, background: bool = False) -> BaseRef:
        """The reference of the base, making it if need be (15 to 30 s, 170 MB); with `background` at low priority.

        Raises ConfigError for a release that there is not, BaseUnavailableError, or TransientError for trouble with the
        network.
        """
        release = self._release(base)
        if ref := self.cached(base):
            return ref
        self._shelf.open()
        async with self._shelf.lock(_slot(release)):
            if ref := self.cached(base):  # another process made it meanwhile
                return ref
            return await self._renew(release, background)

    async def provide(self, ref: BaseRef, backend: Backend) -> Checkpoint:
        """The base as a Checkpoint of `backend`.

        Raises BaseUnavailableError if an archive with that content is not kept any more, or is damaged.
        """
        key = checkpoint_root(ref)
        if found := await backend.find(key):
            return found
        digest = ref.digest.removeprefix("sha256:")
        if await anyio.to_thread.run_sync(self._shelf.discard_damaged, digest):
            raise BaseUnavailableError(
                f"the archive of {ref.name} was damaged on the disk, so it is removed",
                hint="build again: it will be made anew",
            )
        archive = self._shelf.archive(digest)
        if not archive.is_file():
            raise BaseUnavailableError(
                f"{ref.name} with the content {ref.digest[:19]}… is not kept on this machine any more",
                hint="build again: the environment will be made from the present state of that release",
            )
        return await backend.import_base(key, RootfsTar(archive))

    def _release(self, base: str) -> Release:
        wanted = base.removeprefix(PREFIX)
        if release := find_release(wanted):
            return release
        known = ", ".join([*(r.name for r in RELEASES), *ALIASES])
        raise ConfigError(f"there is no Debian release {wanted!r} here", hint=f"known: {known}, or a number")

    async def _renew(self, release: Release, background: bool) -> BaseRef:
        """Make it; where that fails for want of a network, an older one will do."""
        old = self._shelf.newest(_slot(release))
        try:
            record = await self._make(release, background)
        except TransientError as error:
            if old is None:
                raise
            self._notify(f"{PREFIX}{release.name} of {old.made[:10]} is used: a newer one failed ({error.message})")
            record = old
        return _reference(release, record)

    async def _make(self, release: Release, background: bool) -> Record:
        await anyio.to_thread.run_sync(self._shelf.sweep, f".{release.name}.")
        tool = await find_tool(self._cache / "tools")
        mirrors = Mirrors(self._mirror) if self._mirror else debian_mirrors(host_sources())
        self._notify(f"making {PREFIX}{release.name} with {tool.kind}; it is kept for later builds")
        with tempfile.TemporaryDirectory(prefix=f".{release.name}.", dir=self._shelf.folder) as folder:
            work = Path(folder)
            sources = mirrors.sources(release) if mirrors else ()
            try:
                log = await self._bootstrap(work, tool, release, sources, background)
            except _PocketsMissing:
                sources = mirrors.sources(release, pockets=False) if mirrors else ()
                self._notify(
                    f"the mirror has no updates of {release.name} any more; {PREFIX}{release.name} is made without them"
                )
                log = await self._bootstrap(work, tool, release, sources, background)
            return await anyio.to_thread.run_sync(self._shelve, work, tool, release, sources, log)

    async def _bootstrap(
        self, work: Path, tool: bootstrap.Tool, release: Release, sources: tuple[Source, ...], background: bool
    ) -> Path:
        """Run the tool; the path of its log."""
        log, target = work / "log", work / "root.tar"
        conf = _apt_conf(work)
        argv = bootstrap.command(tool, bootstrap.Order(release, sources, conf, target))
        status = await run_program(argv, log=log, env=bootstrap.environment(release), background=background)
        if status == 0 and target.is_file():
            return log
        tail = "\n".join(last_lines(end_of(log), 40))
        if len(sources) > 1 and lacks_pockets(tail):
            log.unlink()
            target.unlink(missing_ok=True)
            raise _PocketsMissing
        raise explain(release, tool, status, tail)

    def _shelve(
        self, work: Path, tool: bootstrap.Tool, release: Release, sources: tuple[Source, ...], log: Path
    ) -> Record:
        archive = work / "root.tar"
        text = log.read_text(encoding="utf-8", errors="replace")
        inside = sources or _sources_of(text)
        add_file(archive, *bootstrap.POLICY, mtime=release.epoch, mode=0o755)
        record = Record(
            name=PREFIX + release.name,
            architecture=architecture(),
            digest=digest_of_file(archive),
            made=utc_now(),
            checked=time.time(),
            tool=tool.kind,
            python=_python(text) or release.python,
            sources=tuple(source.suite for source in inside),
            packages=installed_packages(archive),
        )
        name, content = sources_file(release, inside, bootstrap.KEYRING)
        add_file(archive, name, content, mtime=release.epoch)
        self._shelf.put(_slot(release), record, archive)
        return record


class _PocketsMissing(Exception):  # noqa: N818 - a branch of the flow above, never seen outside
    """The mirror has the release, but not its updates."""


def _apt_conf(work: Path) -> Path:
    """The host's ways to its mirrors, for apt while it makes the base."""
    host = Host(os.environ, Path.home(), Path("/"), work)
    lines = [f'{key} "{value}";\n' for key, value in acquire_settings(host)]
    if auth := auth_text(host):
        netrc = work / "auth.conf"
        netrc.write_text(auth + "\n", encoding="utf-8")
        lines.append(f'Dir::Etc::netrc "{netrc}";\n')
    conf = work / "apt.conf"
    conf.write_text("".join(lines), encoding="utf-8")
    return conf


def _python(log: str) -> str | None:
    """The upstream version of `python3` that the tool's log tells."""
    found = re.findall(rf"{bootstrap.PYTHON_MARK}(\d+(?:\.\d+)+)", log)
    return max(found, key=lambda version: [int(part) for part in version.split(".")], default=None)


def _sources_of(log: str) -> tuple[Source, ...]:
    """The sources that the tool chose by itself."""
    lines = re.findall(rf"^{bootstrap.SOURCE_MARK}(?:\[[^\]]*\] )?(\S+) (\S+) (.+)$", log, re.MULTILINE)
    return tuple(Source(uri, suite, tuple(components.split())) for uri, suite, components in lines)


def _slot(release: Release) -> str:
    return f"debian-{release.name}-{architecture()}"


def architecture() -> str:
    machine = os.uname().machine
    return _ARCHITECTURES.get(machine, machine)


def _reference(release: Release, record: Record) -> BaseRef:
    minor = ".".join(record.python.split(".")[:2]) if record.python else None
    return BaseRef(
        name=record.name, digest=f"sha256:{record.digest}", python=minor, release=release.name, portable=True
    )
