"""Looks into the wheels of a folder, and reports whether they hold what the project promises.

usage: python -I -c PROGRAM REPORT FOLDER [--compiled] NAME...

A program of `specbuild.verify.programs` (see there). With `--compiled` a wheel without any compiled module is a
failure: some projects build a pure wheel without a word when there is no compiler.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

NAMES_KEPT = 50


def contents(folder: str) -> list[str]:
    """Names of the files in all wheels; an archive with a wrong checksum raises."""
    names: list[str] = []
    for path in sorted(Path(folder).glob("*.whl")):
        with zipfile.ZipFile(str(path)) as wheel:
            broken = wheel.testzip()
            if broken:
                sys.exit("specbuild: " + path.name + " is damaged at " + broken)
            names += wheel.namelist()
    return names


def holds(files: list[str], package: str) -> bool:
    """Whether a package or module of that name is among the files, purelib and platlib folders included."""
    stems = (package + "/", package + ".py", package + ".")
    return any(part.startswith(stems) for file in files for part in (file, file.partition(".data/")[2][8:]))


def main() -> None:
    """Look, then write the report."""
    report, folder, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
    files = contents(folder)
    findings = {"a wheel": bool(files)}
    if wanted[:1] == ["--compiled"]:
        del wanted[0]
        findings["a compiled module"] = any(file.endswith(".so") for file in files)
    if wanted:
        findings["one of the packages " + ", ".join(wanted)] = any(holds(files, name) for name in wanted)
    missing = [name for name, there in findings.items() if not there]
    for name, there in findings.items():
        print("there is" if there else "MISSING:", name)
    found = {
        "schema_version": 1,
        "passed": len(findings) - len(missing),
        "failed": len(missing),
        "failing": missing[:NAMES_KEPT],
        "blocking": missing[:NAMES_KEPT],
        "first_message": "the build did not give " + missing[0] if missing else "",
    }
    Path(report).write_text(json.dumps(found), encoding="utf-8")
    sys.exit(int(bool(missing)))


if __name__ == "__main__":
    main()
