"""Ends with an error if nothing of a project is installed, so that its tests would run against the bare source tree.

usage: python -I -c PROGRAM [--within FOLDER] DISTRIBUTION [NAME...]

A program of `specbuild.verify.programs` (see there). One package of the project, or its metadata, is enough: names that
were read from a source tree may be wrong, and an environment must not fail for that. `--within` asks further
whether the packages are imported from that folder, as those of editable installs are; exit status 1 if not.
"""

from __future__ import annotations

import importlib.util
import sys


def origins(names: list[str]) -> list[str]:
    """Where the packages are that can be imported; `-I` keeps the current folder out of the search."""
    specs = [importlib.util.find_spec(name) for name in names]
    return [str(spec.origin or next(iter(spec.submodule_search_locations or []), "")) for spec in specs if spec]


def has_metadata(distribution: str) -> bool:
    """Whether a distribution of that name is installed; said of any on Python 3.7, which cannot tell."""
    try:
        from importlib import metadata
    except ImportError:
        return True
    try:
        metadata.distribution(distribution or "-")
    except (metadata.PackageNotFoundError, ValueError):
        return False
    return True


def main() -> None:
    """Look, and say what is missing."""
    args, folder = sys.argv[1:], ""
    if args[0] == "--within":
        folder = args[1].rstrip("/") + "/"
        del args[:2]
    found = origins(args[1:])
    if not found and not has_metadata(args[0]):
        wanted = ", ".join(args[1:]) or args[0]
        sys.exit("specbuild: nothing of this project is installed in the environment (looked for " + wanted + ")")
    if folder:
        sys.exit(int(not any(origin.startswith(folder) for origin in found)))


if __name__ == "__main__":
    main()
