"""A container engine that only has images and gives them away, in each form that engines have had of an archive."""

from __future__ import annotations

import hashlib
import io
import json
import socketserver
import tarfile
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Literal

from specbuild.testing.images import compress

Form = Literal["legacy", "podman", "oci", "oci-compressed"]


@dataclass(slots=True)
class FakeEngine:
    """What it has and what it was asked."""

    socket: Path
    requests: list[str] = field(default_factory=list[str])

    @property
    def address(self) -> str:
        """For DOCKER_HOST."""
        return f"unix://{self.socket}"


def archive(layers: Sequence[bytes], form: Form) -> bytes:
    """What `docker save` or `podman save` writes of an image with these layers."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as tar:
        for number, data in enumerate(layers):
            digest = hashlib.sha256(data).hexdigest()
            match form:
                case "legacy":
                    other = hashlib.sha256(f"v1 {number}".encode()).hexdigest()
                    _add(tar, f"{other}/VERSION", b"1.0")
                    _add(tar, f"{other}/json", b'{"id": "x"}')
                    _add(tar, f"{other}/layer.tar", data)
                case "podman":
                    _add(tar, f"{digest}.tar", data)
                case "oci":
                    _add(tar, f"blobs/sha256/{digest}", data)
                case "oci-compressed":
                    packed = compress(data, "gzip")
                    _add(tar, f"blobs/sha256/{hashlib.sha256(packed).hexdigest()}", packed)
        _add(tar, "blobs/sha256/" + "c" * 64, b'{"config": {}}')
        _add(tar, "manifest.json", b"[]")
        _add(tar, "repositories", b"{}")
    return sink.getvalue()


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))


@contextmanager
def fake_engine(
    socket: Path, name: str, layers: Sequence[bytes], *, form: Form = "oci", config: Mapping[str, Any] | None = None
) -> Generator[FakeEngine]:
    """Serve one image on a socket until the end of the `with`."""
    diff_ids = [f"sha256:{hashlib.sha256(data).hexdigest()}" for data in layers]
    identity = "sha256:" + hashlib.sha256("".join(diff_ids).encode()).hexdigest()
    told = {"Id": identity, "RootFS": {"Type": "layers", "Layers": diff_ids}, "Config": dict(config or {})}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            engine.requests.append(self.path)
            for known in (name, identity):
                if self.path.endswith(f"/images/{known}/json"):
                    return self._answer(200, json.dumps(told).encode())
                if self.path.endswith(f"/images/{known}/get"):
                    return self._answer(200, archive(layers, form))
            return self._answer(404, b'{"message": "no such image"}')

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
            pass

        def address_string(self) -> str:
            return "a socket"

    with socketserver.ThreadingUnixStreamServer(str(socket), Handler) as listener:
        listener.daemon_threads = True
        engine = FakeEngine(socket)
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield engine
        finally:
            listener.shutdown()
            thread.join()
