"""A server between a client and a registry that makes trouble as it is told: the network as it is on bad days.

with faulty(registry.url, [Fault("GET", r"/blobs/", cut=1000)]) as proxy:
    ... proxy.host in place of the registry's ...
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive", "host"}


@dataclass(slots=True)
class Fault:
    """What goes wrong with requests of a method whose path matches."""

    method: str
    path: str
    """A regular expression that is looked for."""
    times: int = 1
    """How many requests it befalls; then they pass."""
    status: int = 0
    """Answer so, without asking the registry; 0 to ask."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of that answer."""
    body: bytes = b""
    """Of that answer."""
    corrupt: bool = False
    """Change one byte in the middle of the body."""
    cut: int | None = None
    """Close the connection after so many bytes of the body; -1 before the answer."""
    ignore_range: bool = False
    """Send everything, whatever part was asked for."""


@dataclass(slots=True)
class Gate:
    """Demands credentials. With `bearer` by tokens of the proxy's own service, else by name and password."""

    user: str = ""
    password: str = ""
    """Without a user everybody gets a token."""
    bearer: bool = True
    uses: int = 1_000_000
    """Requests for which a token is good, however long it is said to last."""
    tokens: dict[str, int] = field(default_factory=dict[str, int])
    """Each token with what it is still good for."""
    issued: int = 0

    def opens(self, authorization: str) -> bool:
        """Whether a request with that header passes."""
        kind, _, value = authorization.partition(" ")
        if not self.bearer:
            return kind == "Basic" and self._knows(value)
        left = self.tokens.get(value, 0) if kind == "Bearer" else 0
        self.tokens[value] = left - 1
        return left > 0

    def issue(self, authorization: str) -> str | None:
        """A new token, or None for whom there is none."""
        if self.user and not self._knows(authorization.removeprefix("Basic ")):
            return None
        token = secrets.token_hex(8)
        self.tokens[token] = self.uses
        self.issued += 1
        return token

    def _knows(self, value: str) -> bool:
        return base64.b64decode(value or "") == f"{self.user}:{self.password}".encode()


@dataclass(slots=True)
class Proxy:
    """Where it listens, and what it has been asked."""

    host: str
    """`localhost:PORT`."""
    requests: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list[tuple[str, str, Mapping[str, str]]])
    """Method, path and headers (names in lower case) of each request."""

    @property
    def url(self) -> str:
        """Without a slash at its end."""
        return f"http://{self.host}"

    def asked(self, method: str, path: str) -> list[Mapping[str, str]]:
        """The headers of the requests that match, in order."""
        return [headers for verb, where, headers in self.requests if verb == method and re.search(path, where)]


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is part of the game."""


@contextmanager
def faulty(registry: str, faults: Iterable[Fault] = (), *, gate: Gate | None = None) -> Generator[Proxy]:
    """Stand before the registry at that address, with its faults one after the other and perhaps a gate."""
    pending = list(faults)
    lock = threading.Lock()
    upstream = urlsplit(registry).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with lock:
                proxy.requests.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
                fault = _next(pending, self.command, self.path)
                challenge = self._challenge()
            if challenge is not None:
                self._answer(*challenge)
            elif fault and fault.cut == -1:
                self.close_connection = True
            elif fault and fault.status:
                self._answer(fault.status, fault.headers, fault.body)
            else:
                self._pass_on(body, fault)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - names of the base class

        def _challenge(self) -> tuple[int, Mapping[str, str], bytes] | None:
            given = self.headers.get("Authorization") or ""
            if gate is None:
                return None
            if urlsplit(self.path).path == "/token":
                scopes = parse_qs(urlsplit(self.path).query).get("scope", [])
                token = gate.issue(given) if scopes else None
                body = json.dumps({"token": token, "expires_in": 300}).encode()
                return (200, {}, body) if token else (401, {}, b"{}")
            if gate.opens(given):
                return None
            bearer = f'Bearer realm="{proxy.url}/token",service="test registry"'
            return 401, {"WWW-Authenticate": bearer if gate.bearer else 'Basic realm="test"'}, b"{}"

        def _pass_on(self, body: bytes, fault: Fault | None) -> None:
            left_out = {*_HOP_BY_HOP, *(["range"] if fault and fault.ignore_range else [])}
            headers = {name: value for name, value in self.headers.items() if name.lower() not in left_out}
            connection = HTTPConnection(upstream, timeout=60)
            try:
                connection.request(self.command, self.path, body, {**headers, "Host": proxy.host})
                answer = connection.getresponse()
                data = answer.read()
            finally:
                connection.close()
            if fault and fault.corrupt and data:
                middle = len(data) // 2
                data = data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]
            kept = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP}
            length = answer.getheader("Content-Length") if self.command == "HEAD" else None
            self._answer(answer.status, kept, data, cut=fault.cut if fault else None, length=length)

        def _answer(
            self,
            status: int,
            headers: Mapping[str, str],
            data: bytes,
            *,
            cut: int | None = None,
            length: str | None = None,
        ) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": length or str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data if cut is None else data[:cut])
            self.close_connection = self.close_connection or cut is not None

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
            pass

    with _Listener(("127.0.0.1", 0), Handler) as listener:
        proxy = Proxy(f"localhost:{listener.server_port}")
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield proxy
        finally:
            listener.shutdown()
            thread.join()


def _next(pending: list[Fault], method: str, path: str) -> Fault | None:
    """The fault that befalls this request; used up once it has done so often enough."""
    for fault in pending:
        if fault.times > 0 and fault.method == method and re.search(fault.path, path):
            fault.times -= 1
            return fault
    return None
