"""The Step that installs what tests need and nobody declares, found inside the sandbox by `complete_tests`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from specbuild.recipe import UV, VENV_DIR, Step
from specbuild.strategies import steps

Mode = Literal["plugins", "imports"]

_PROGRAM = Path(__file__).with_name("complete_tests.py")


def complete(mode: Mode, *, options: str = "", installer: str = "uv") -> Step:
    """Look at the pytest configuration (`plugins`), or at the imports of the test files too (`imports`).

    `options` are given to each install, such as a date or a constraints file. `installer` is `uv`, or `pip` where
    the environment shares the system's packages, which uv does not see.
    """
    install = f"{UV} pip install" if installer == "uv" else f"{VENV_DIR}/bin/pip install --quiet"
    call = " ".join(part for part in (f"{VENV_DIR}/bin/python - {mode} {install}", options) if part)
    run = f"{call} <<'COMPLETE_TESTS'\n{_PROGRAM.read_text('utf-8')}COMPLETE_TESTS"
    title = "install the test plugins that are configured" if mode == "plugins" else "install what the tests import"
    return steps.uv(run, title)
