"""A Debian archive from which apt really installs: packages of one file each, for `serve`."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping

from specbuild.testing.debian_mirror import DATE
from specbuild.testing.http_server import Answer

SUITE = "test"

USE = "rm -rf /etc/apt/sources.list.d; echo 'deb [trusted=yes] {url} test main' > /etc/apt/sources.list"
"""Shell commands that make it the only one, once `url` is filled in."""


def pool_path(name: str) -> str:
    """Where the package of that name lies."""
    return f"/pool/main/{name[0]}/{name}/{name}_1.0_all.deb"


def installable_routes(packages: Mapping[str, bytes]) -> dict[str, Answer]:
    """Path → answer, of an archive with a package for each name, which brings `/opt/NAME` of these bytes."""
    debs = {name: _deb(name, content) for name, content in packages.items()}
    routes = {pool_path(name): Answer(deb) for name, deb in debs.items()}
    plain = "\n".join(_stanza(name, deb) for name, deb in debs.items()).encode()
    index = gzip.compress(plain, mtime=0)
    folder = f"/dists/{SUITE}/main/binary-amd64"
    digest = hashlib.sha256(index).hexdigest()
    release = (
        f"Origin: Test\nSuite: {SUITE}\nCodename: {SUITE}\nDate: {DATE}\nArchitectures: amd64 all\nComponents: main\n"
        # apt asks for what is compressed, but only if the plain index is listed, too.
        f"Acquire-By-Hash: yes\nSHA256:\n {digest} {len(index)} main/binary-amd64/Packages.gz\n"
        f" {hashlib.sha256(plain).hexdigest()} {len(plain)} main/binary-amd64/Packages\n"
    )
    return {
        **routes,
        f"/dists/{SUITE}/Release": Answer(release.encode()),
        f"{folder}/Packages.gz": Answer(index),
        f"{folder}/by-hash/SHA256/{digest}": Answer(index),
    }


def _stanza(name: str, deb: bytes) -> str:
    return (
        f"{_control(name)}Filename: {pool_path(name)[1:]}\nSize: {len(deb)}\n"
        f"SHA256: {hashlib.sha256(deb).hexdigest()}\n"
    )


def _control(name: str) -> str:
    return (
        f"Package: {name}\nVersion: 1.0\nArchitecture: all\nMaintainer: Nobody <nobody@example.org>\n"
        f"Description: a package for tests\n"
    )


def _deb(name: str, content: bytes) -> bytes:
    """deb(5): an ar archive of a version, what dpkg is to know, and the files."""
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": _tar({"./control": _control(name).encode()}),
        "data.tar.gz": _tar({f"./opt/{name}": content}),
    }
    return b"!<arch>\n" + b"".join(
        f"{member:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
        for member, data in members.items()
    )


def _tar(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", format=tarfile.GNU_FORMAT) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o644
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()
