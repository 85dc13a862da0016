"""Imports the packages of a project and all their submodules, and reports which imports resolve.

usage: python -I -c PROGRAM REPORT [--path FOLDER]... NAME...

A program of `specbuild.verify.programs` (see there). A NAME that does not import blocks; submodules only count.
Submodules that are not meant to be imported here are left out: `__main__`, tests, examples, those for other systems.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
import traceback
from pathlib import Path

NAMES_KEPT = 50
NOT_FOR_IMPORT = {"__main__", "test", "tests", "testing", "conftest", "setup", "example", "examples", "benchmarks"}
APPLE = {"darwin", "mac", "macos", "macosx", "osx", "ios"}
ELSEWHERE = APPLE | {"nt", "msvc", "cygwin", "bsd", "java", "jython", "ironpython", "emscripten", "pyodide", "android"}


def left_out(name: str) -> bool:
    """Whether a submodule is not meant to be imported on this system."""
    last = name.rpartition(".")[2].lower()
    words = last.strip("_").split("_")
    return last in NOT_FOR_IMPORT or any(word in ELSEWHERE or word.startswith("win") for word in words)


class Imports:
    """What was tried and what came of it."""

    def __init__(self) -> None:
        self.passed = 0
        self.skipped = 0
        self.failing: list[str] = []
        self.blocking: list[str] = []
        self.first_message = ""

    def attempt(self, name: str) -> bool:
        """Import one module; a module that ends the interpreter on import has not resolved either."""
        print("importing", name, flush=True)
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a module raises is the finding
            traceback.print_exc()
            self.failing.append(name)
            self.first_message = self.first_message or f"{type(error).__name__}: {error}"
            return False
        self.passed += 1
        return True

    def walk(self, package: str) -> None:
        """Import everything below a package that is there."""
        path = getattr(sys.modules.get(package), "__path__", None)
        if path is None:
            return
        for found in sorted(pkgutil.iter_modules(path), key=lambda item: item.name):
            name = package + "." + found.name
            if left_out(name):
                self.skipped += 1
            elif self.attempt(name) and found.ispkg:
                self.walk(name)


def main() -> None:
    """Import all, then write the report."""
    report, names = sys.argv[1], sys.argv[2:]
    while names[:1] == ["--path"]:
        sys.path.insert(0, names[1])
        del names[:2]
    imports = Imports()
    for name in names:
        if imports.attempt(name):
            imports.walk(name)
        else:
            imports.blocking.append(name)
    found = {
        "schema_version": 1,
        "passed": imports.passed,
        "failed": len(imports.failing),
        "skipped": imports.skipped,
        "failing": imports.failing[:NAMES_KEPT],
        "blocking": imports.blocking[:NAMES_KEPT],
        "first_message": imports.first_message[:500],
    }
    Path(report).write_text(json.dumps(found), encoding="utf-8")
    sys.stdout.flush()
    # Threads that a module has started on import must not keep the check from ending.
    os._exit(int(bool(imports.failing)))


if __name__ == "__main__":
    main()
