"""The programs that checks run inside of sandboxes, as text.

A check's command holds all that it needs: a program travels as one quoted word and nothing is put into the sandbox
beforehand. Programs are modules of this package, so that they are linted, typed and tested like the rest. They
import the standard library only and run on Python 3.7 and newer.
"""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path

from specbuild.recipe import VENV_DIR

PYTHON = f"{VENV_DIR}/bin/python"
"""The interpreter of the environment under test."""


@cache
def program_text(name: str) -> str:
    """The source of the program `name`, with the first line of its docstring as a comment."""
    source = Path(__file__).with_name(f"program_{name}.py").read_text(encoding="utf-8")
    _, docstring, code = source.split('"""', maxsplit=2)
    return f"# {docstring.partition(chr(10))[0]}\n{code.lstrip()}"


def program_command(name: str, *args: str, isolated: bool = False) -> str:
    """The shell command that runs a program with `args`.

    `isolated` keeps the current folder, `PYTHONPATH` and the user's site out of the import path.
    """
    flag = "-Ic" if isolated else "-c"
    return shlex.join([PYTHON, flag, program_text(name), *args])
