"""Start-up costs what click costs: heavy libraries are imported where they are used."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = (
    "aiodocker",
    "aiohttp",
    "anyio",
    "httpx",
    "networkx",
    "pydantic",
    "pydantic_settings",
    "rich",
    "uvloop",
    "yaml",
)

PROBE = """
import json, sys
from specbuild.cli import main
code = main({arguments!r})
sys.stderr.write(json.dumps([code, [name for name in {heavy!r} if name in sys.modules]]))
"""


def probe(arguments: list[str]) -> tuple[int, list[str]]:
    """Exit code, and the heavy modules that were imported for it."""
    script = PROBE.format(arguments=arguments, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    code, imported = json.loads(done.stderr.splitlines()[-1])
    return code, imported


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["build", "--help"], ["plan", "--help"], ["run", "--help"], ["explain", "--help"]],
    ids=" ".join,
)
def test_help_imports_click_only(arguments: list[str]) -> None:
    assert probe(arguments) == (0, [])


def test_a_mistyped_command_imports_click_only() -> None:
    assert probe(["bulid", "."]) == (2, [])


def test_importing_the_package_imports_nothing_heavy() -> None:
    script = f"import specbuild, sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
