"""Run inside a sandbox: prints the packages of the poetry.lock that is given as pinned requirements.

Needs a TOML reader: the standard library's, or tomli. Packages that are fetched from elsewhere are said and left out.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any, cast

toml: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


def lines(lock: dict[str, Any]) -> list[str]:
    """A requirement a package, with its markers where the lock has them (2.1 and later)."""
    result: list[str] = []
    for package in lock.get("package", []):
        if package.get("source", {}).get("type", "legacy") != "legacy":
            print(f"left out, not from an index: {package['name']}", file=sys.stderr)
            continue
        markers: Any = package.get("markers", "")
        if isinstance(markers, dict):
            markers = " or ".join(f"({marker})" for marker in cast("dict[str, str]", markers).values())
        result.append(f"{package['name']}=={package['version']}" + (f" ; {markers}" if markers else ""))
    return result


if __name__ == "__main__":
    print("\n".join(lines(toml.loads(Path(sys.argv[1]).read_text("utf-8")))))
