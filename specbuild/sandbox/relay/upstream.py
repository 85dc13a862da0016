"""How this host reaches mirrors: through the proxies that its apt is told of, those of its variables, or directly."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack

from specbuild.http import Client, Network

_PROXY = "acquire::http::proxy"
_DIRECT = "DIRECT"


class Upstream:
    """The clients by which mirrors are asked; an asynchronous context manager."""

    def __init__(self, options: Iterable[tuple[str, str]]) -> None:
        """`options` are those of the host's apt."""
        proxies = {key.lower(): value for key, value in options if key.lower().startswith(_PROXY)}
        self._default = proxies.pop(_PROXY, "")
        self._by_host = {key.removeprefix(f"{_PROXY}::"): value for key, value in proxies.items()}
        self._clients: dict[str, Client] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Upstream:
        """Raises ConfigError for a proxy that cannot be used."""
        try:
            for proxy in {self._default, *self._by_host.values()}:
                self._clients[proxy] = await self._stack.enter_async_context(Client(_network(proxy)))
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    def client(self, host: str) -> Client:
        """The client for a host name. As apt has it, an option counts before variables, one for the host above all."""
        return self._clients[self._by_host.get(host.lower(), self._default)]


def _network(proxy: str) -> Network:
    return Network(no_proxy=("*",)) if proxy.upper() == _DIRECT else Network(proxy=proxy or None)
