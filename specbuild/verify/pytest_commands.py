"""Shell commands that make pytest report what happened, and write nothing into the source tree."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from specbuild.recipe import SOURCE_DIR
from specbuild.verify.programs import PYTHON, program_command

REPORT_DIR = "/tmp/specbuild"  # noqa: S108 - a path in the sandbox, made anew by each check
"""Where checks put their reports and caches: outside of the source tree."""

JUNIT_REPORT = f"{REPORT_DIR}/report.xml"
JSON_REPORT = f"{REPORT_DIR}/report.json"

FRESH_REPORT_DIR = f"rm -rf {REPORT_DIR}\nmkdir -p {REPORT_DIR}\n"
"""A report that was there before is gone, so that it cannot be taken for the one of this run."""

_TIDY = ("-o", f"cache_dir={REPORT_DIR}/cache", "-p", "no:randomly")
"""pytest's cache outside of the tree; tests in the order that the project wrote them, so that runs can be compared."""

_REPORTING = (f"--junitxml={JUNIT_REPORT}", "-o", "junit_logging=no", "--maxfail=0")
"""A report of every test: `--maxfail=0` undoes `-x` and `--maxfail` of the project's own options."""

_BARE = ("-o", "addopts=")
"""Without the options that the project configures, which may need plugins that are not there."""

_LENIENT = (*_BARE, "-o", "filterwarnings=", "-o", "required_plugins=", "-o", "xfail_strict=false")
"""Also without what turns warnings of newer dependencies into errors."""


def in_tree(paths: Sequence[str]) -> str:
    """pytest in the source tree with the project's configuration; if pytest refuses its options, without them."""
    first = shlex.join([PYTHON, "-m", "pytest", *_REPORTING, *_TIDY, *paths])
    again = shlex.join([PYTHON, "-m", "pytest", *_BARE, *_REPORTING, *_TIDY, *paths])
    return _with_second_try(first, again, JUNIT_REPORT)


def lenient(paths: Sequence[str]) -> str:
    """pytest in the source tree without the project's options and warning filters."""
    return shlex.join([PYTHON, "-m", "pytest", *_LENIENT, *_REPORTING, *_TIDY, *paths])


def installed(paths: Sequence[str], packages: Sequence[str]) -> str:
    """pytest from an empty folder against what is installed: the source tree comes last on the import path.

    Tests that belong to a package are taken from the installed package, if they were installed with it.
    """
    options = ["--import-mode=append", f"--rootdir={SOURCE_DIR}", "--pyargs"]
    # pytest asserts that there is a configuration file when `pythonpath` is given: projects without one go without.
    first = [PYTHON, "-m", "pytest", "-o", "pythonpath=", *options, *_BARE, *_REPORTING, *_TIDY]
    again = [PYTHON, "-m", "pytest", *options, *_BARE, *_REPORTING, *_TIDY]
    return "\n".join(
        (
            f"mkdir {REPORT_DIR}/elsewhere",
            f"cd {REPORT_DIR}/elsewhere",
            "set --",
            *(_add_target(path, packages) for path in paths or (".",)),
            _with_second_try(f'{shlex.join(first)} "$@"', f'{shlex.join(again)} "$@"', JUNIT_REPORT),
        )
    )


def _add_target(path: str, packages: Sequence[str]) -> str:
    """Adds to the shell's arguments where tests are: a module that is installed, or else a place in the tree."""
    place = shlex.quote("/".join([SOURCE_DIR, *_parts(path)]))
    module = _module(path, packages)
    if not module:
        return f'set -- "$@" {place}'
    look = (
        f"import importlib.util as u; s = u.find_spec({module!r}); "
        f"print('' if s is None else {module!r} if s.origin else list(s.submodule_search_locations)[0])"
    )
    command = shlex.join([PYTHON, "-Ic", look.replace("'", '"')])
    # A folder without an __init__.py is installed all the same, and pytest takes it by its path only.
    return f'found=$({command} 2> /dev/null || true)\nset -- "$@" "${{found:-{place}}}"'


def collect(paths: Sequence[str]) -> str:
    """pytest collecting in the source tree, counted by a program."""
    first = program_command("collect", JSON_REPORT, *_TIDY, *paths)
    again = program_command("collect", JSON_REPORT, *_BARE, *_TIDY, *paths)
    return _with_second_try(first, again, JSON_REPORT)


def collect_lenient(paths: Sequence[str]) -> str:
    """pytest collecting without the project's options and warning filters."""
    return program_command("collect", JSON_REPORT, *_LENIENT, *_TIDY, *paths)


def addopts_for_report() -> str:
    """The value of PYTEST_ADDOPTS that makes any pytest run write its report where checks look for it."""
    return shlex.join([*_REPORTING, *_TIDY])


def _with_second_try(first: str, again: str, report: str) -> str:
    """Run `again` if `first` did nothing for want of a plugin or an option (exit 4 or 1, and no report)."""
    return (
        f"{first} || {{\n"
        f"    status=$?\n"
        f'    case "$status" in 1|4) ;; *) exit "$status" ;; esac\n'
        f'    [ ! -e {report} ] || exit "$status"\n'
        f'    echo "specbuild: pytest did not start; once more with fewer options"\n'
        f"    {again}\n"
        f"}}"
    )


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _module(path: str, packages: Sequence[str]) -> str:
    """The module that tests at `path` are once they are installed; empty where they belong to no package."""
    parts = _parts(path)
    if parts[:1] in (["src"], ["lib"]) and parts[1:2] and parts[1] in packages:
        del parts[0]
    return ".".join(parts).removesuffix(".py") if parts and parts[0] in packages else ""
