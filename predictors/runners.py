"""pytest, unittest and Django: plugins, settings, versions, and suites of which nothing ran."""

from __future__ import annotations

from specbuild.failures import (
    DriftedTestTool,
    Failure,
    HollowPass,
    MissingModule,
    MissingProjectFile,
    MissingTestExtra,
    SettingNeeded,
    StageFailed,
    TestCollision,
    TimedOut,
    VersionOutOfRange,
    Weight,
)
from specbuild.predictors import plugins
from specbuild.predictors.phrases import OUTCOME
from specbuild.predictors.signature import always, signature


def _option(options: str, evidence: str) -> tuple[Failure, ...]:
    found: dict[str, str] = {}
    for option in options.split()[:20]:
        name = option.partition("=")[0]
        if not name.startswith("-"):
            continue
        found.setdefault(plugins.plugin_of_option(name), name)
    return tuple(MissingTestExtra(distribution=one, name=name, evidence=evidence) for one, name in found.items())


def _fixture(name: str, evidence: str) -> Failure:
    known = plugins.FIXTURES.get(name, "")
    weight = Weight.CAUSE if known else Weight.SYMPTOM
    return MissingTestExtra(distribution=known, name=name, evidence=evidence, weight=weight)


def _plugins(names: str, evidence: str) -> tuple[Failure, ...]:
    plain = (name.strip().partition(">")[0].partition("=")[0] for name in names.split(","))
    return tuple(MissingTestExtra(distribution=name, name="required_plugins", evidence=evidence) for name in plain)


def _removed(name: str, version: str, evidence: str) -> Failure:
    """A warning of what release N removes is raised by releases from N - 1 on."""
    return DriftedTestTool(tool="pytest", name=name, below=str(int(version) - 1), evidence=evidence)


def _driver(first: str, evidence: str, second: str = "") -> Failure:
    return MissingModule(language="python", module=first, alternatives=(second,) if second else (), evidence=evidence)


def _collision(evidence: str, module: str = "") -> Failure:
    return TestCollision(module=module, evidence=evidence)


def _conftest(stage: str, evidence: str) -> Failure:
    return StageFailed(stage=stage.rsplit("/", 1)[-1], evidence=evidence, weight=Weight.SYMPTOM)


def _mark(name: str, evidence: str) -> Failure:
    known = plugins.MARKS.get(name.partition("_")[0], "")
    weight = Weight.CAUSE if known else Weight.SYMPTOM
    return MissingTestExtra(distribution=known, name=name, evidence=evidence, weight=weight)


def _unknown(name: str, evidence: str) -> Failure:
    distribution = plugins.MARKS.get(name.partition("_")[0], "")
    return MissingTestExtra(distribution=distribution, name=name, evidence=evidence, weight=Weight.WARNING)


SIGNATURES = (
    signature(
        "error: unrecognized arguments: ",
        r"(?:pytest|py\.test|\S{1,60}pytest(?:\.py)?|__main__\.py): error: "
        r"unrecognized arguments: (?P<options>.{1,500})",
        _option,
        (
            "pytest: error: unrecognized arguments: --benchmark-disable --strict-x",
            (
                MissingTestExtra(distribution="pytest-benchmark", name="--benchmark-disable"),
                MissingTestExtra(distribution="pytest-strict-x", name="--strict-x"),
            ),
        ),
        (
            "__main__.py: error: unrecognized arguments: -n4",
            MissingTestExtra(distribution="pytest-xdist", name="-n4"),
        ),
        near=("mytool: error: unrecognized arguments: --cov",),
    ),
    signature(
        "' not found",
        r"fixture '(?P<name>\w{1,80})' not found$",
        _fixture,
        ("E       fixture 'qtbot' not found", MissingTestExtra(distribution="pytest-qt", name="qtbot")),
        (
            "E       fixture 'own' not found",
            MissingTestExtra(distribution="", name="own", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "functions are not natively supported",
        OUTCOME
        + r"(?:(?:pytest\.)?PytestUnhandled\w{1,20}Warning: )?(?:Failed: )?async def functions are not natively "
        r"supported",
        always(MissingTestExtra, distribution="pytest-asyncio", name="async def"),
        (
            "async def functions are not natively supported.",
            MissingTestExtra(distribution="pytest-asyncio", name="async def"),
        ),
    ),
    signature(
        "issing required plugins: ",
        r"ERROR: Missing required plugins: (?P<names>.{1,200})",
        _plugins,
        (
            "ERROR: Missing required plugins: pytest-env>=1, pytest-x",
            (
                MissingTestExtra(distribution="pytest-env", name="required_plugins"),
                MissingTestExtra(distribution="pytest-x", name="required_plugins"),
            ),
        ),
    ),
    signature(
        "requires pytest-",
        r"ERROR: \S{1,200}: 'minversion' requires pytest-"
        r"(?P<required>[\d.]{1,10}), actual pytest-(?P<found>[\d.\w]{1,16})",
        always(VersionOutOfRange, tool="pytest"),
        (
            "ERROR: /w/tox.ini: 'minversion' requires pytest-8.0, actual pytest-7.4.4'",
            VersionOutOfRange(tool="pytest", required="8.0", found="7.4.4"),
        ),
    ),
    signature(
        "ImportError while loading",
        r"ImportError while loading conftest '(?P<stage>[^']{1,300})'",
        _conftest,
        (
            "ImportError while loading conftest '/w/tests/conftest.py'.",
            StageFailed(stage="conftest.py", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        "import file mismatch:",
        r"import file mismatch:$",
        _collision,
        (
            "import file mismatch:\nimported module 'test_a' has this __file__ attribute:",
            TestCollision(module="test_a"),
        ),
        follow=r"imported module '(?P<module>[\w.]{1,100})' has this __file__ attribute",
        within=2,
    ),
    signature(
        ("no tests ran", "no tests to run"),
        r"(?:={2,80} )?(?P<what>no tests (?:ran|to run))\b(?: in [\d.]{1,10}s)?",
        HollowPass,
        ("============ no tests ran in 0.02s ============", HollowPass(what="no tests ran")),
        near=("There were no tests ran yesterday",),
    ),
    signature(
        "NO TESTS RAN",
        r"NO TESTS RAN",
        always(HollowPass, what="no tests ran"),
        ("NO TESTS RAN", HollowPass(what="no tests ran")),
    ),
    signature(
        "No tests found",
        r"(?P<what>No tests found)\b",
        HollowPass,
        ("No tests found, exiting with code 1", HollowPass(what="No tests found")),
    ),
    signature(
        "Warning: ",
        r"(?:pytest\.)?(?P<name>PytestRemovedIn(?P<version>\d{1,2})Warning): ",
        _removed,
        (
            "E   pytest.PytestRemovedIn9Warning: The (path: py.path.local) argument is deprecated",
            DriftedTestTool(tool="pytest", name="PytestRemovedIn9Warning", below="8"),
        ),
        near=("  tests/a.py:3: PytestRemovedIn9Warning: the hook is deprecated",),
    ),
    signature(
        "environment variable ",
        r"(?:django\.core\.exceptions\.)?ImproperlyConfigured: .{0,160}"
        r"(?:define the environment variable |environment variable )(?P<variable>[A-Z][A-Z0-9_]{1,60})",
        SettingNeeded,
        (
            (
                "django.core.exceptions.ImproperlyConfigured: Requested setting CACHE, but settings are not "
                "configured. You must either define the environment variable DJANGO_SETTINGS_MODULE or call"
            ),
            SettingNeeded(variable="DJANGO_SETTINGS_MODULE"),
        ),
    ),
    signature(
        ("environment variable", "nvironment variable"),
        r"(?:[\w.]{1,80}(?:Error|Exception|Configured): )?(?:The |Missing )?(?:required )?(?:[Ee]nvironment variable )?"
        r"['\"`]?(?P<variable>[A-Z][A-Z0-9_]{2,60})['\"`]?(?: environment variable)? (?:is |must be |was |has )?"
        r"(?:not (?:been )?(?:set|defined)|set|required|missing)\.?$",
        always(SettingNeeded, weight=Weight.SYMPTOM),
        (
            "ValueError: DATABASE_URL environment variable is not set",
            SettingNeeded(variable="DATABASE_URL", weight=Weight.SYMPTOM),
        ),
        (
            "RuntimeError: Environment variable 'API_KEY' must be set.",
            SettingNeeded(variable="API_KEY", weight=Weight.SYMPTOM),
        ),
        near=("The PATH was shown", "Set the environment variable in your shell to fix errors"),
    ),
    signature(
        "KeyError: '",
        OUTCOME + r"KeyError: '(?P<variable>[A-Z][A-Z0-9]{1,20}_[A-Z0-9_]{1,40})'$",
        always(SettingNeeded, weight=Weight.SYMPTOM),
        (
            "E   KeyError: 'DATABASE_URL'",
            SettingNeeded(variable="DATABASE_URL", weight=Weight.SYMPTOM),
        ),
        near=("KeyError: 'name'",),
    ),
    signature(
        "rror loading ",
        r"(?:[\w.]{1,60}ImproperlyConfigured: )?Error loading (?P<first>\w{1,40})(?: or (?P<second>\w{1,40}))? module",
        _driver,
        (
            "django.core.exceptions.ImproperlyConfigured: Error loading MySQLdb module.",
            MissingModule(language="python", module="MySQLdb"),
        ),
    ),
    signature(
        ("Timeout (>", "Timeout >"),
        r"(?:Failed: )?Timeout (?:\(>|>)(?P<seconds>[\d.]{1,10})s\)?",
        TimedOut,
        ("E   Failed: Timeout (>60.0s) from pytest-timeout.", TimedOut(seconds="60.0")),
    ),
    signature(
        "not found in `markers` configuration option",
        OUTCOME + r"(?:Failed: )?'(?P<name>\w{1,60})' not found in `markers` configuration option",
        _mark,
        (
            "'asyncio' not found in `markers` configuration option",
            MissingTestExtra(distribution="pytest-asyncio", name="asyncio"),
        ),
        (
            "E   Failed: 'own' not found in `markers` configuration option",
            MissingTestExtra(distribution="", name="own", weight=Weight.SYMPTOM),
        ),
    ),
    signature(
        ("Unknown pytest.mark.", "nknown config option: "),
        r"(?:\S{1,300}:\d{1,6}: )?(?:pytest\.)?Pytest(?:UnknownMark|Config)Warning: Unknown "
        r"(?:pytest\.mark\.|config option: )(?P<name>\w{1,60})",
        _unknown,
        (
            "  t.py:3: PytestUnknownMarkWarning: Unknown pytest.mark.asyncio - is this a typo?",
            MissingTestExtra(distribution="pytest-asyncio", name="asyncio", weight=Weight.WARNING),
        ),
        (
            "PytestConfigWarning: Unknown config option: own",
            MissingTestExtra(distribution="", name="own", weight=Weight.WARNING),
        ),
    ),
    signature(
        ("Ran 0 tests in", "collected 0 items"),
        r"(?:collecting \.\.\. )?(?P<what>Ran 0 tests|collected 0 items)(?: in [\d.]{1,10}s)?$",
        HollowPass,
        ("Ran 0 tests in 0.000s", HollowPass(what="Ran 0 tests")),
        near=("collected 0 items / 1 error",),
    ),
    signature(
        "ile or directory not found: ",
        r"ERROR: (?:file or directory not found: |not found: )(?P<path>[^\s:]{1,200})",
        always(MissingProjectFile, tool="pytest"),
        (
            "ERROR: file or directory not found: tests/unit",
            MissingProjectFile(path="tests/unit", tool="pytest"),
        ),
    ),
    signature(
        "nknown marker",
        OUTCOME + r"(?:pytest\.)?(?:UsageError: )?[Uu]nknown marker:? '?(?P<name>\w{1,60})'?",
        _mark,
        (
            "pytest.UsageError: unknown marker 'asyncio'",
            MissingTestExtra(distribution="pytest-asyncio", name="asyncio"),
        ),
    ),
)
"""What test runners say."""
