"""What of pytest belongs to which plugin: options, configuration keys, fixtures and marks, by their documentations."""

from __future__ import annotations

OPTIONS: tuple[tuple[str, str], ...] = (
    ("--allow-hosts", "pytest-socket"),
    ("--arraydiff", "pytest-arraydiff"),
    ("--asyncio-mode", "pytest-asyncio"),
    ("--beartype-packages", "pytest-beartype"),
    ("--benchmark-", "pytest-benchmark"),
    ("--black", "pytest-black"),
    ("--codspeed", "pytest-codspeed"),
    ("--cov", "pytest-cov"),
    ("--create-db", "pytest-django"),
    ("--disable-socket", "pytest-socket"),
    ("--dist", "pytest-xdist"),
    ("--doctest-plus", "pytest-doctestplus"),
    ("--doctest-rst", "pytest-doctestplus"),
    ("--ds", "pytest-django"),
    ("--flake8", "pytest-flake8"),
    ("--forked", "pytest-forked"),
    ("--html", "pytest-html"),
    ("--hypothesis-", "hypothesis"),
    ("--inline-snapshot", "inline-snapshot"),
    ("--instafail", "pytest-instafail"),
    ("--isort", "pytest-isort"),
    ("--maxprocesses", "pytest-xdist"),
    ("--memray", "pytest-memray"),
    ("--mpl", "pytest-mpl"),
    ("--mypy-ini-file", "pytest-mypy-plugins"),
    ("--mypy", "pytest-mypy"),
    ("--nbval", "nbval"),
    ("--no-cov", "pytest-cov"),
    ("--no-migrations", "pytest-django"),
    ("--nomigrations", "pytest-django"),
    ("--numprocesses", "pytest-xdist"),
    ("--parallel-threads", "pytest-run-parallel"),
    ("--pylint", "pytest-pylint"),
    ("--randomly-", "pytest-randomly"),
    ("--random-order", "pytest-random-order"),
    ("--record-mode", "pytest-recording"),
    ("--remote-data", "pytest-remotedata"),
    ("--reruns", "pytest-rerunfailures"),
    ("--reuse-db", "pytest-django"),
    ("--ruff", "pytest-ruff"),
    ("--snapshot-", "syrupy"),
    ("--splits", "pytest-split"),
    ("--timeout", "pytest-timeout"),
    ("--typeguard-packages", "typeguard"),
    ("--xdoctest", "xdoctest"),
    ("-n", "pytest-xdist"),
)
"""Beginnings of options and the distributions that add them; of two that fit the first one counts."""

KEYS = {
    "asyncio_default_fixture_loop_scope": "pytest-asyncio",
    "asyncio_default_test_loop_scope": "pytest-asyncio",
    "asyncio_mode": "pytest-asyncio",
    "django_find_project": "pytest-django",
    "django_settings_module": "pytest-django",
    "doctest_plus": "pytest-doctestplus",
    "env": "pytest-env",
    "env_files": "pytest-dotenv",
    "mock_use_standalone_module": "pytest-mock",
    "qt_api": "pytest-qt",
    "remote_data_strict": "pytest-remotedata",
    "timeout": "pytest-timeout",
    "timeout_func_only": "pytest-timeout",
    "timeout_method": "pytest-timeout",
    "trio_mode": "pytest-trio",
}
"""Keys of the configuration."""

FIXTURES = {
    "admin_client": "pytest-django",
    "aiohttp_client": "pytest-aiohttp",
    "benchmark": "pytest-benchmark",
    "data_regression": "pytest-regressions",
    "datadir": "pytest-datadir",
    "django_assert_num_queries": "pytest-django",
    "django_db_setup": "pytest-django",
    "file_regression": "pytest-regressions",
    "freezer": "pytest-freezer",
    "httpbin": "pytest-httpbin",
    "httpserver": "pytest-httpserver",
    "httpx_mock": "pytest-httpx",
    "mocker": "pytest-mock",
    "num_regression": "pytest-regressions",
    "nursery": "pytest-trio",
    "qtbot": "pytest-qt",
    "requests_mock": "requests-mock",
    "respx_mock": "respx",
    "script_runner": "pytest-console-scripts",
    "shared_datadir": "pytest-datadir",
    "subtests": "pytest-subtests",
    "worker_id": "pytest-xdist",
    "xprocess": "pytest-xprocess",
}
"""Fixtures whose names only one plugin uses."""

MARKERS = {
    "asyncio": "pytest-asyncio",
    "django_db": "pytest-django",
    "trio": "pytest-trio",
}
"""Marks without whose plugin a test cannot run; others are only unknown names."""

PLUGIN_MODULES = {
    "cov": "pytest-cov",
    "celery.contrib.pytest": "celery",
    "xdist": "pytest-xdist",
    "asyncio": "pytest-asyncio",
    "django": "pytest-django",
    "hypothesispytest": "hypothesis",
    "timeout": "pytest-timeout",
    "benchmark": "pytest-benchmark",
    "xprocess": "pytest-xprocess",
    "randomly": "pytest-randomly",
}
"""Names that `-p` and `pytest_plugins` take (entry points, modules) and that do not tell the distribution."""

INCLUDED = frozenset(
    {
        "assertion", "cacheprovider", "capture", "debugging", "doctest", "faulthandler", "fixtures", "junitxml",
        "legacypath", "logging", "mark", "monkeypatch", "nose", "pastebin", "pytester", "pytester_assertions",
        "python", "recwarn", "reports", "runner", "setuponly", "skipping", "stepwise", "terminal",
        "threadexception", "tmpdir", "unittest", "unraisableexception", "warnings",
    }
)  # fmt: skip
"""Plugins that come with pytest."""
