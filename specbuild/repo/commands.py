"""Shell commands that fetch an archive anew, for exported recipes."""

from __future__ import annotations

from shlex import quote

_PYTHON_GET = "import sys, urllib.request; urllib.request.urlretrieve(sys.argv[1], sys.argv[2])"
_PYTHON_UNPACK = "import shutil, sys; shutil.unpack_archive(sys.argv[1], sys.argv[2])"


def download_commands(url: str, name: str, sha256: str, top: str) -> str:
    """Commands that put the content of the archive at `url` into the present folder.

    They need curl, wget or python3; and tar or unzip, or python3 in their place (for bzip2 and xz, which small systems
    lack). `top` is the folder in the archive that holds everything, empty when there is none.
    """
    packed, folder = f".fetch-{name}", ".fetch"
    source = f"{folder}/{top}" if top else folder
    file = quote(packed)
    opener = f"unzip -q {file} -d {folder}" if name.lower().endswith(".zip") else f"tar -xf {file} -C {folder}"
    address = quote(url)
    getters = (
        f"curl -fsSL --retry 3 -o {file} {address}",
        f"wget -qO {file} {address}",
        f"python3 -c {quote(_PYTHON_GET)} {address} {file}",
    )
    commands = (
        " || ".join(getters),
        f"echo {quote(f'{sha256}  {packed}')} | sha256sum -c -",
        f"mkdir {folder}",
        f"{opener} || python3 -c {quote(_PYTHON_UNPACK)} {file} {folder}",
        f"cp -a {quote(source)}/. .",
        f"rm -r {folder} {file}",
    )
    return "\n".join(commands)
