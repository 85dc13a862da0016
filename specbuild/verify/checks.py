"""Which checks can verify a Repo at a wanted level, most telling first."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from posixpath import basename, dirname, join

from specbuild.errors import ConfigError
from specbuild.recipe import SOURCE_DIR, UV, VENV_DIR, Check, Level, Step, StepKind
from specbuild.repo.facts import Facts, TestLayout
from specbuild.verify import pytest_commands
from specbuild.verify.programs import program_command
from specbuild.verify.pytest_commands import FRESH_REPORT_DIR, JSON_REPORT, JUNIT_REPORT, REPORT_DIR

_ACTIVE = (
    ("PATH", f"{VENV_DIR}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("VIRTUAL_ENV", VENV_DIR),
)
"""The project's environment is active: tests and users' commands call its programs by name."""

OWN = "run the user's own command"
"""The reason of a Check that is a command of the user's."""

_NO_LAYOUT = TestLayout(runner="none")
_PYTEST_NATIVE = ("pytest", "doctest", "none")
"""Layouts whose first check is pytest because it is theirs, not because it can run the suites of others too."""

_SUITE_SCRIPTS = frozenset({"runtests.py", "run_tests.py", "run_all.py", "test_all.py", "alltests.py", "selftest.py"})
_JUNIT_OPTION = re.compile(r"--junit-?xml(?:=|\s+)(?P<path>\"[^\"]+\"|'[^']+'|[^\s;|&]+)")


def checks_for(
    facts: Facts, *, level: Level, test_command: str | None, network: bool, timeout: float
) -> tuple[Check, ...]:
    """Ways to verify at `level`, most telling first, at least one.

    A `test_command` of the user's own takes the place of the tests that were found. `timeout` is in seconds and holds
    for each check; `network` says whether the tests may use it.

    Raises ConfigError for the level `command` without a command.
    """
    plan = _Plan(facts, level, network, timeout)
    if level is Level.COMMAND and not test_command:
        raise ConfigError("the level `command` needs a command to run", hint="give one with --test-command")
    if test_command and level in (Level.TESTS, Level.COMMAND):
        return (plan.own(test_command),)
    found = _PLANNERS[level](plan)
    return tuple({check.digest: check for check in found}.values())


@dataclass(frozen=True, slots=True)
class _Plan:
    """What every check of one Repo has in common."""

    facts: Facts
    level: Level
    network: bool
    timeout: float

    def check(
        self,
        runner: str,
        run: str,
        report: str | None,
        reason: str,
        *,
        cwd: str = SOURCE_DIR,
        env: Sequence[tuple[str, str]] = (),
        network: bool | None = None,
    ) -> Check:
        step = Step(
            kind=StepKind.TEST,
            run=run,
            title=reason,
            cwd=cwd,
            env=(*_ACTIVE, *env),
            network=self.network if network is None else network,
            timeout=self.timeout,
        )
        return Check(level=self.level, runner=runner, step=step, report=report, reason=reason)

    def own(self, command: str) -> Check:
        """The user's command as it is; at the level `tests`, pytest is told by its environment to write a report."""
        if self.level is Level.COMMAND:
            return self.check("command", command, _report_option(command), OWN)
        env = [("PYTEST_ADDOPTS", pytest_commands.addopts_for_report())]
        return self.check("pytest", FRESH_REPORT_DIR + command, JUNIT_REPORT, OWN, env=env)

    @property
    def packages(self) -> tuple[str, ...]:
        return tuple(fact.value for fact in self.facts.packages)

    @property
    def installable(self) -> bool:
        """Whether the Repo is something that gets installed, not an application run from its tree."""
        return self.facts.build_backend is not None

    @property
    def distribution(self) -> str:
        return self.facts.name.value if self.facts.name else ""

    @property
    def prologue(self) -> str:
        """Removes old reports; a project that can be installed must be, or its tests prove nothing about that."""
        if not self.installable or not (self.packages or self.distribution):
            return FRESH_REPORT_DIR
        look = program_command("installed", self.distribution, *self.packages, isolated=True)
        return f"{FRESH_REPORT_DIR}{look}\n"

    @property
    def shadowed(self) -> bool:
        """Whether the source tree hides the compiled modules of what is installed: extensions in a flat layout."""
        flat = not any(fact.evidence.file.startswith(("src/", "lib/")) for fact in self.facts.packages)
        return self.installable and bool(self.facts.extensions and self.packages) and flat

    def unshadowed(self, in_tree: str, layout: TestLayout) -> str:
        """In the tree after an editable install; else from outside, for the tree lacks what was compiled."""
        args = ("--within", SOURCE_DIR, self.distribution, *self.packages)
        outside = pytest_commands.installed(layout.paths, self.packages)
        return f"if {program_command('installed', *args, isolated=True)}\nthen\n{in_tree}\nelse\n{outside}\nfi"


def _tests(plan: _Plan) -> Iterator[Check]:
    """The likeliest layout's first check, then what differs from it the least, then the rest."""
    layouts = plan.facts.tests or (_NO_LAYOUT,)
    first = list(_layout_checks(plan, layouts[0]))
    yield first[0]
    if first[0].runner == "pytest" and layouts[0].runner in _PYTEST_NATIVE:
        yield _lenient(plan, layouts[0])
    yield from first[1:]
    for layout in layouts[1:]:
        yield from _layout_checks(plan, layout)
    yield _lenient(plan, layouts[0])


def _lenient(plan: _Plan, layout: TestLayout) -> Check:
    """The cure for options and warning filters that newer or missing tools do not bear."""
    run = plan.prologue + pytest_commands.lenient(_pytest_arguments(layout))
    reason = "run the tests with pytest, without the project's own options and warning filters"
    return plan.check("pytest", run, JUNIT_REPORT, reason, env=_settings(layout))


def _pytest_arguments(layout: TestLayout) -> tuple[str, ...]:
    """Paths; for documentation tests what makes pytest find them, wherever they are."""
    if layout.runner == "doctest":
        return ("--doctest-modules", "--doctest-glob=*.rst", "--doctest-continue-on-failure", *(layout.paths or (".",)))
    return layout.paths


def _layout_checks(plan: _Plan, layout: TestLayout) -> Iterator[Check]:
    match layout.runner:
        case "django":
            yield from _django(plan, layout)
            yield from _pytest(plan, layout)
        case "unittest":
            yield from _suite_scripts(plan, layout)
            yield from _pytest(plan, layout)
            yield _discover(plan, layout)
        case "nose":
            yield from _pytest(plan, layout)
            yield _nose(plan, layout)
            yield _discover(plan, layout)
        case "trial":
            yield from _pytest(plan, layout)
            yield _trial(plan, layout)
        case _:
            yield from _pytest(plan, layout)


def _pytest(plan: _Plan, layout: TestLayout) -> Iterator[Check]:
    env = _settings(layout)
    run, reason = pytest_commands.in_tree(_pytest_arguments(layout)), "run the tests with pytest in the source tree"
    if plan.shadowed:
        run, reason = plan.unshadowed(run, layout), "run the tests with pytest against what is installed"
    yield plan.check("pytest", plan.prologue + run, JUNIT_REPORT, reason, env=env)
    if plan.installable and plan.facts.extensions:
        run = pytest_commands.installed(layout.paths, plan.packages)
        reason = "run the tests with pytest from outside of the source tree"
        yield plan.check("pytest", plan.prologue + run, JUNIT_REPORT, reason, env=env)


def _discover(plan: _Plan, layout: TestLayout) -> Check:
    run = plan.prologue + program_command("unittest", JSON_REPORT, "discover", *layout.paths)
    return plan.check("unittest", run, JSON_REPORT, "run the tests with unittest", env=_settings(layout))


def _suite_scripts(plan: _Plan, layout: TestLayout) -> Iterator[Check]:
    """A script that the project runs its suite with comes first: it knows what the suite needs."""
    for script in _named(layout, _SUITE_SCRIPTS):
        run = plan.prologue + program_command("unittest", JSON_REPORT, "script", basename(script))
        reason = f"run the project's own {script}"
        yield plan.check("unittest", run, JSON_REPORT, reason, cwd=_folder_of(script))


def _django(plan: _Plan, layout: TestLayout) -> Iterator[Check]:
    for script in _named(layout, {"manage.py", "runtests.py"}):
        name = basename(script)
        args = ["test", "--noinput"] if name == "manage.py" else []
        run = plan.prologue + program_command("unittest", JSON_REPORT, "script", name, *args)
        yield plan.check(
            "django", run, JSON_REPORT, f"run the project's own {script}", cwd=_folder_of(script), env=_settings(layout)
        )
    if layout.settings_module:
        target = ["module", "django", "test", "--noinput", *layout.paths]
        run = plan.prologue + program_command("unittest", JSON_REPORT, *target)
        yield plan.check("django", run, JSON_REPORT, "run the tests with Django's runner", env=_settings(layout))


def _nose(plan: _Plan, layout: TestLayout) -> Check:
    words = [f"{VENV_DIR}/bin/python", "-m", "nose", "--with-xunit", f"--xunit-file={JUNIT_REPORT}", *layout.paths]
    return plan.check("nose", plan.prologue + shlex.join(words), JUNIT_REPORT, "run the tests with nose")


def _trial(plan: _Plan, layout: TestLayout) -> Check:
    args = ["--temp-directory", f"{REPORT_DIR}/trial", *(layout.paths or plan.packages)]
    run = plan.prologue + program_command("unittest", JSON_REPORT, "module", "twisted.trial", *args)
    return plan.check("trial", run, JSON_REPORT, "run the tests with trial")


def _collect(plan: _Plan) -> Iterator[Check]:
    layout = (plan.facts.tests or (_NO_LAYOUT,))[0]
    for run, how in (
        (pytest_commands.collect(layout.paths), "collect the tests with pytest"),
        (
            pytest_commands.collect_lenient(layout.paths),
            "collect the tests with pytest, without the project's own options",
        ),
    ):
        yield plan.check("collect", plan.prologue + run, JSON_REPORT, how, env=_settings(layout))


def _imports(plan: _Plan) -> Iterator[Check]:
    """Without known packages the name of the distribution is the best guess."""
    fallback = (re.sub(r"[^A-Za-z0-9_]+", "_", plan.facts.name.value),) if plan.facts.name else ()
    paths = [] if plan.installable else ["--path", SOURCE_DIR]
    run = program_command("imports", JSON_REPORT, *paths, *(plan.packages or fallback), isolated=True)
    reason = "import the project's own packages"
    yield plan.check("imports", FRESH_REPORT_DIR + run, JSON_REPORT, reason, cwd="/")


def _build(plan: _Plan) -> Iterator[Check]:
    """Builds a wheel from a copy of the tree, so that the tree stays as it is, and looks into it."""
    if not plan.installable:
        yield from _imports(plan)
        return
    copy, wheels = f"{REPORT_DIR}/tree", f"{REPORT_DIR}/wheels"
    build = shlex.join([UV, "build", "--wheel", "--python", f"{VENV_DIR}/bin/python", "--out-dir", wheels, copy])
    compiled = ["--compiled"] if any(not extension.optional for extension in plan.facts.extensions) else []
    look = program_command("wheel", JSON_REPORT, wheels, *compiled, *plan.packages, isolated=True)
    run = f"{FRESH_REPORT_DIR}cp -a {SOURCE_DIR} {copy}\n{build}\n{look}"
    yield plan.check("build", run, JSON_REPORT, "build a wheel and look into it", network=True)


_PLANNERS: dict[Level, Callable[[_Plan], Iterator[Check]]] = {
    Level.IMPORTS: _imports,
    Level.COLLECT: _collect,
    Level.BUILD: _build,
    Level.TESTS: _tests,
}


def _settings(layout: TestLayout) -> list[tuple[str, str]]:
    return [("DJANGO_SETTINGS_MODULE", layout.settings_module)] if layout.settings_module else []


def _folder_of(file: str) -> str:
    """Where the folder of a file of the Repo is in the sandbox."""
    return join(SOURCE_DIR, dirname(file)).rstrip("/")


def _named(layout: TestLayout, names: Iterable[str]) -> list[str]:
    """Files with one of these names among what the layout mentions."""
    mentioned = [*layout.paths, *(evidence.file for evidence in layout.evidence)]
    return list(dict.fromkeys(file for file in mentioned if basename(file) in names))


def _report_option(command: str) -> str | None:
    """Where a command says that it writes a JUnit report, absolute in the sandbox."""
    found = _JUNIT_OPTION.search(command)
    return join(SOURCE_DIR, found["path"].strip("\"'")) if found else None
