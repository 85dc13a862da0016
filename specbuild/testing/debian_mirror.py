"""A Debian archive of a few packages, for `serve`: Release, Contents and Sources, with true hashes."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import tarfile
from collections.abc import Mapping

from specbuild.testing.http_server import Answer

DATE = "Sat, 10 Jun 2023 09:00:00 UTC"


def archive_routes(
    release: str,
    *,
    contents: str,
    contents_all: str | None = "",
    sources: str = "",
    pydist: str = "",
    by_hash: bool = True,
    date: str = DATE,
    codename: str = "",
) -> dict[str, Answer]:
    """Path → answer. `contents` is the text of `Contents-amd64`; None for `contents_all` leaves that index out.

    `release` is the name below `dists`, `codename` what the Release file says.

    With `pydist`, the archive has a source package dh-python with that list of distributions.
    """
    routes: dict[str, Answer] = {}
    if pydist:
        stanza, tarball = _dh_python(pydist)
        sources = f"{sources.strip()}\n\n{stanza}"
        routes["/pool/main/d/dh-python/dh-python_1.tar.xz"] = Answer(tarball)
    indexes = {"main/Contents-amd64.gz": gzip.compress(contents.encode())}
    if contents_all is not None:
        indexes["main/Contents-all.gz"] = gzip.compress(contents_all.encode())
    indexes["main/source/Sources.xz"] = lzma.compress(sources.encode())
    for path, body in indexes.items():
        routes[f"/dists/{release}/{path}"] = Answer(body)
        if by_hash:
            folder = path.rpartition("/")[0]
            routes[f"/dists/{release}/{folder}/by-hash/SHA256/{_sha256(body)}"] = Answer(body)
    routes[f"/dists/{release}/InRelease"] = Answer(
        release_text(indexes, by_hash=by_hash, date=date, codename=codename or release).encode()
    )
    return routes


def release_text(indexes: Mapping[str, bytes], *, by_hash: bool = True, date: str = DATE, codename: str = "") -> str:
    """An InRelease file (its signature is none) of these indexes."""
    sums = "".join(f" {_sha256(body)} {len(body)} {path}\n" for path, body in indexes.items())
    return (
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nOrigin: Debian\n"
        f"Codename: {codename}\nDate: {date}\nAcquire-By-Hash: {'yes' if by_hash else 'no'}\n"
        f"MD5Sum:\n 0123 1 main/Contents-amd64.gz\nSHA256:\n{sums}"
        "-----BEGIN PGP SIGNATURE-----\n\nnone\n-----END PGP SIGNATURE-----\n"
    )


def _dh_python(pydist: str) -> tuple[str, bytes]:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as archive:
        member = tarfile.TarInfo("dh-python/pydist/cpython3_fallback")
        member.size = len(pydist.encode())
        archive.addfile(member, io.BytesIO(pydist.encode()))
    tarball = packed.getvalue()
    stanza = (
        "Package: dh-python\nVersion: 1\nDirectory: pool/main/d/dh-python\nPackage-List:\n"
        " dh-python deb python optional arch=all\nChecksums-Sha256:\n"
        f" {_sha256(tarball)} {len(tarball)} dh-python_1.tar.xz\n\n"
    )
    return stanza, tarball


def _sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
