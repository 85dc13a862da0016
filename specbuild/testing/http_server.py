"""A real HTTP server on the loopback interface that answers as it is told, badly if need be."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_GATE_SECONDS = 60.0
"""Longer than any test keeps a gate closed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer to a GET."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Beside the length of the body, which is left out where it is given as an empty value."""
    cut: int | None = None
    """Close the connection after so many bytes of the body; -1 before the first byte of the answer."""
    gate: threading.Event | None = None
    """What the second half of the body waits for."""


@dataclass(frozen=True, slots=True)
class Request:
    """A GET that was received."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""


@dataclass(slots=True)
class Server:
    """Where the server listens and what it has been asked."""

    url: str
    """Without a slash at its end."""
    requests: list[Request] = field(default_factory=list[Request])

    def asked(self, path: str) -> int:
        """How often `path` was asked for."""
        return sum(request.path == path for request in self.requests)


@contextmanager
def serve(routes: Mapping[str, Answer | Sequence[Answer]]) -> Generator[Server]:
    """Serve `routes`; of several answers to a path each is given once, and the last from then on."""
    given: dict[str, int] = {}
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with lock:
                server.requests.append(Request(self.path, {k.lower(): v for k, v in self.headers.items()}))
                turn = given[self.path] = given.get(self.path, -1) + 1
            answers = routes.get(self.path, Answer(status=404))
            self._give(answers if isinstance(answers, Answer) else answers[min(turn, len(answers) - 1)])

        def _give(self, answer: Answer) -> None:
            self.close_connection = True
            if answer.cut == -1:
                return
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                if value:
                    self.send_header(name, value)
            self.end_headers()
            body = answer.body if answer.cut is None else answer.body[: answer.cut]
            half = len(body) // 2 if answer.gate else 0
            with suppress(ConnectionError):  # whoever asked may have gone
                self.wfile.write(body[:half])
                if answer.gate:
                    answer.gate.wait(_GATE_SECONDS)
                self.wfile.write(body[half:])

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        server = Server(f"http://127.0.0.1:{listener.server_port}")
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown()
            thread.join()
