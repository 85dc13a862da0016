"""Plugins of pytest by what gives them away: options, fixtures, marks and settings."""

from __future__ import annotations

OPTIONS = {
    "--numprocesses": "pytest-xdist",
    "--dist": "pytest-xdist",
    "--forked": "pytest-forked",
    "--cov": "pytest-cov",
    "--no-cov": "pytest-cov",
    "--benchmark": "pytest-benchmark",
    "--reruns": "pytest-rerunfailures",
    "--timeout": "pytest-timeout",
    "--ds": "pytest-django",
    "--reuse-db": "pytest-django",
    "--nbval": "nbval",
    "--snapshot-update": "syrupy",
    "--alluredir": "allure-pytest",
    "--doctest-plus": "pytest-doctestplus",
    "--hypothesis": "hypothesis",
    "--random-order": "pytest-random-order",
    "--randomly": "pytest-randomly",
    "--json-report": "pytest-json-report",
    "--asyncio-mode": "pytest-asyncio",
    "--spec": "pytest-spec",
    "--pep8": "pytest-pep8",
}
"""The beginning of an option → the plugin that has it, where the name does not tell."""

FIXTURES = {
    "mocker": "pytest-mock",
    "class_mocker": "pytest-mock",
    "event_loop": "pytest-asyncio",
    "benchmark": "pytest-benchmark",
    "httpx_mock": "pytest-httpx",
    "requests_mock": "requests-mock",
    "respx_mock": "respx",
    "aiohttp_client": "pytest-aiohttp",
    "aiohttp_server": "pytest-aiohttp",
    "httpserver": "pytest-httpserver",
    "django_user_model": "pytest-django",
    "django_assert_num_queries": "pytest-django",
    "db": "pytest-django",
    "rf": "pytest-django",
    "qtbot": "pytest-qt",
    "snapshot": "syrupy",
    "data_regression": "pytest-regressions",
    "file_regression": "pytest-regressions",
    "datadir": "pytest-datadir",
    "shared_datadir": "pytest-datadir",
    "freezer": "pytest-freezer",
    "faker": "Faker",
    "fs": "pyfakefs",
    "xprocess": "pytest-xprocess",
    "postgresql": "pytest-postgresql",
    "subtests": "pytest-subtests",
    "fake_process": "pytest-subprocess",
    "fp": "pytest-subprocess",
    "anyio_backend": "anyio",
    "testdir": "pytest",
    "script_runner": "pytest-console-scripts",
    "worker_id": "pytest-xdist",
    "mpl_image_compare": "pytest-mpl",
    "celery_app": "pytest-celery",
}
"""A fixture → the distribution that has it."""


MARKS = {
    "asyncio": "pytest-asyncio",
    "django": "pytest-django",
    "DJANGO": "pytest-django",
    "timeout": "pytest-timeout",
    "benchmark": "pytest-benchmark",
    "flaky": "pytest-rerunfailures",
    "xdist": "pytest-xdist",
    "vcr": "pytest-recording",
    "freeze": "pytest-freezer",
    "qt": "pytest-qt",
    "mpl": "pytest-mpl",
    "trio": "pytest-trio",
    "env": "pytest-env",
    "datafiles": "pytest-datafiles",
}
"""The beginning of a mark or setting → the plugin that has it."""


def plugin_of_option(option: str) -> str:
    """The plugin of an option; those that are not listed are mostly called like the beginning of their options."""
    if option.startswith(("-n", "--tx")):
        return "pytest-xdist"
    starts = (plugin for start, plugin in OPTIONS.items() if option == start or option.startswith(f"{start}-"))
    return next(starts, f"pytest-{option.lstrip('-')}")
