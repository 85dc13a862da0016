"""What apt downloads, fetched once for all sandboxes: a proxy on the loopback interface that the engine runs.

apt holds a lock on its archive folder for the whole of an installation, so that sandboxes cannot share one, as they do
with the caches of uv and pip. They share a proxy instead, which keeps the files whose name says what they are: package
files in a pool, and index files named by their hash. Everything else passes through untouched, so that what is new is
found, and what is not signed is refused, as ever: apt still checks each file by the hash that a signed index gives.

- `kept`: the files on disk;
- `flight`: one download for all who want the file now;
- `upstream`: how this host reaches mirrors;
- `wire`: HTTP with one client;
- `server`: who may use it, and what becomes of a request.
"""

from __future__ import annotations

from specbuild.sandbox.relay.server import Relay, open_relay

__all__ = ["Relay", "open_relay"]
