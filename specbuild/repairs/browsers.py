"""Browsers that tests drive: the distribution's own, and the variables by which test tools find them."""

from __future__ import annotations

from collections.abc import Iterator

from specbuild.recipe import Step, StepKind
from specbuild.repairs import apt
from specbuild.repairs.contract import Case, Repair
from specbuild.repairs.edits import Edit, InsertSteps, SetVariables

_CHROMIUM = ("chromium", "chromium-driver")
_CHROMIUM_ENV = (
    ("CHROME_BIN", "/usr/bin/chromium"),
    ("PUPPETEER_EXECUTABLE_PATH", "/usr/bin/chromium"),
    ("PUPPETEER_SKIP_DOWNLOAD", "true"),
)
_FIREFOX = ("firefox-esr",)
_FIREFOX_ENV = (("FIREFOX_BIN", "/usr/bin/firefox-esr"),)
_BROWSERS: dict[str, tuple[str, ...]] = {
    "chrome": _CHROMIUM,
    "chromium": _CHROMIUM,
    "puppeteer": _CHROMIUM,
    "playwright": _CHROMIUM,
    "firefox": _FIREFOX,
    "geckodriver": _FIREFOX,
}
_DRIVEN = 0.6
_OWN_BUILDS = 0.25
"""Probability for tools that want builds of their own (Playwright)."""

_NO_SANDBOX = """\
mkdir -p /etc/chromium.d
echo 'CHROMIUM_FLAGS="$CHROMIUM_FLAGS --no-sandbox"' > /etc/chromium.d/container
"""
"""Chromium refuses to run as root with its own sandbox; Debian's launcher reads such files."""


def browser(name: str, case: Case) -> Iterator[Repair]:
    """Repairs for tests that find no browser; none once it is installed."""
    packages = _BROWSERS.get(name)
    if packages is None or not apt.missing(packages, case):
        return
    edits: tuple[Edit, ...] = (SetVariables(env=_FIREFOX_ENV, kept=True),)
    if packages is _CHROMIUM:
        title = "let Chromium run as root"
        step = Step(kind=StepKind.SYSTEM, run=_NO_SANDBOX, title=title, cwd="/", network=False)
        edits = (InsertSteps(steps=(step,)), SetVariables(env=_CHROMIUM_ENV, kept=True))
    why = f"{' and '.join(packages)} of {case.release} are for what drives {name}"
    probability = _OWN_BUILDS if name == "playwright" else _DRIVEN
    yield from apt.install(packages, case, why=why, probability=probability, source="rule", then=edits)
