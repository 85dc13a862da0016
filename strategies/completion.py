"""The Step that installs what test files import and what did not come with anything that is declared."""

from __future__ import annotations

from collections.abc import Sequence

from specbuild.recipe import UV, VENV_DIR, Step
from specbuild.strategies import steps
from specbuild.strategies.imported import Imported, some


def complete(modules: Sequence[Imported], *, options: str = "", installer: str = "uv") -> tuple[Step, ...]:
    """The Step for these modules; none if there are none.

    Each is looked for first, since it may have come under another distribution's name, and installed by itself, so
    that an unknown name hinders no other; what could not be had is said, and shows in the verification.
    `options` are given to each install, such as a date or a constraints file. `installer` is `uv`, or `pip` where
    the environment shares the system's packages, which uv does not see.
    """
    if not modules:
        return ()
    program = f"{UV} pip install" if installer == "uv" else f"{VENV_DIR}/bin/pip install --quiet"
    install = " ".join(part for part in (program, options, '"$2"') if part)
    lines = (
        "want() {",
        f'    {VENV_DIR}/bin/python -c "import $1" 2> /dev/null || {install} || echo "could not be had: $2" >&2',
        "}",
        *(f"want {steps.words((one.module, one.requirement))}" for one in modules),
    )
    return (steps.uv("\n".join(lines), f"install what the tests import: {some(modules)}"),)
