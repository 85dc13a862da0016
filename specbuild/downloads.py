"""The relay for apt, for as long as a build or a replay runs."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio.to_thread

from specbuild.errors import ConfigError
from specbuild.sandbox.apt_settings import CONF, acquire_settings
from specbuild.sandbox.backends import shares_loopback
from specbuild.sandbox.contract import Backend
from specbuild.sandbox.passthrough import HostSettings, host_settings
from specbuild.sandbox.relay import Relay, open_relay
from specbuild.sandbox.settings_parts import this_host
from specbuild.workshop import Surroundings

FOLDER = "apt"
"""Where the files lie, among the caches."""


@dataclass(frozen=True, slots=True)
class _Shared:
    settings: HostSettings
    relay: Relay

    def distrust(self, output: str) -> None:
        self.relay.distrust(output)


@asynccontextmanager
async def shared_downloads(
    surroundings: Surroundings, backend: Backend, notify: Callable[[str], None]
) -> AsyncGenerator[Surroundings]:
    """The surroundings with a relay for apt, where the backend's sandboxes can reach one.

    They are as before where it cannot be had, which `notify` is told: then each sandbox downloads for itself.
    """
    async with AsyncExitStack() as stack:
        found = surroundings
        if shares_loopback(backend):
            try:
                found = replace(surroundings, relay=await stack.enter_async_context(_relay(surroundings)))
            except (OSError, ConfigError) as error:
                notify(f"downloads of apt are not shared: {error}")
        yield found


@asynccontextmanager
async def _relay(surroundings: Surroundings) -> AsyncGenerator[_Shared]:
    folder = surroundings.settings.cache_dir / "settings"
    options = await anyio.to_thread.run_sync(lambda: acquire_settings(this_host(folder)))
    async with open_relay(surroundings.caches / FOLDER, options) as relay:
        settings = await anyio.to_thread.run_sync(lambda: host_settings(folder, relay=relay.address))
        try:
            yield _Shared(settings, relay)
        finally:
            _remove(settings)


def _remove(settings: HostSettings) -> None:
    """The file that leads to the relay is of no use without it."""
    for bind in settings.binds:
        if Path(bind.target).name == CONF:
            shutil.rmtree(bind.source.parent, ignore_errors=True)
