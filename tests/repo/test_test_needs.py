"""What tests need by what their configuration and their files use."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbuild.repo.inspect import inspect


def needs(root: Path, files: dict[str, str]) -> list[str]:
    """Kinds and names, of a tree with these files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [f"{need.kind} {need.name}" for need in inspect(root).test_needs]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pytest.ini", "[pytest]\naddopts = --benchmark-skip --reruns 2 -n4\n"),
        ("setup.cfg", "[tool:pytest]\naddopts = --benchmark-skip\n  --reruns 2 -n=auto\n"),
        ("tox.ini", "[pytest]\naddopts = '--benchmark-skip' --reruns=2 -n 4\n"),
        ("pyproject.toml", '[tool.pytest.ini_options]\naddopts = ["--benchmark-skip", "--reruns=2", "-n", "2"]\n'),
        ("pytest.toml", '[pytest]\naddopts = "--benchmark-skip --reruns=2 -nlogical"\n'),
    ],
)
def test_options_of_the_configuration_are_those_of_their_plugins(tmp_path: Path, file: str, text: str) -> None:
    expected = ["option pytest-benchmark", "option pytest-rerunfailures", "option pytest-xdist"]
    assert needs(tmp_path, {file: text}) == expected


def test_options_of_pytest_itself_and_comments_need_nothing(tmp_path: Path) -> None:
    text = "[pytest]\n# addopts = --cov\naddopts = -ra --strict-markers -p no:randomly --import-mode=append\n"
    assert needs(tmp_path, {"pytest.ini": text}) == []


def test_keys_of_the_configuration_are_those_of_their_plugins(tmp_path: Path) -> None:
    text = "[pytest]\nasyncio_mode = auto\nDJANGO_SETTINGS_MODULE = x\ntestpaths = tests\n"
    assert needs(tmp_path, {"pytest.ini": text}) == ["option pytest-asyncio", "option pytest-django"]


def test_only_the_configuration_that_pytest_would_take_counts(tmp_path: Path) -> None:
    first, second = "[pytest]\naddopts = -n 2\n", "[tool:pytest]\naddopts = --cov=x\n"
    assert needs(tmp_path, {"pytest.ini": first, "setup.cfg": second}) == ["option pytest-xdist"]


def test_required_plugins_keep_their_bounds(tmp_path: Path) -> None:
    text = "[pytest]\nrequired_plugins = pytest-nosuch>=2 pytest-other\ntestpaths = tests\n"
    assert needs(tmp_path, {"pytest.ini": text}) == ["plugin pytest-nosuch>=2", "plugin pytest-other"]


def test_plugins_are_named_by_options_and_files(tmp_path: Path) -> None:
    conftest = "pytest_plugins = ('pytester', 'helpers.plugin', 'pytest_httpserver')\n"
    ini = "[pytest]\naddopts = -p xdist.plugin -p no:cacheprovider -ppytest_cov -p helpers\n"
    files = {"pytest.ini": ini, "tests/conftest.py": conftest, "helpers/__init__.py": ""}
    assert needs(tmp_path, files) == ["plugin pytest-xdist", "plugin pytest-cov", "plugin pytest-httpserver"]


def test_unguarded_imports_at_the_top_are_needed(tmp_path: Path) -> None:
    files = {
        "tests/conftest.py": "import os, nosuch_a.inner\nfrom nosuch_b import x\n",
        "tests/test_x.py": "import helpers\nimport nosuch_a\n",
        "tests/helpers.py": "import nosuch_c\n",
        "tests/unused.py": "import nosuch_d\n",
    }
    found = needs(tmp_path, files)
    assert found == ["import nosuch_a", "import nosuch_b", "import nosuch_c"]


def test_guarded_relative_own_and_standard_imports_are_not(tmp_path: Path) -> None:
    text = (
        "try:\n    import nosuch_a\nexcept ImportError:\n    pass\n"
        "if 1:\n    import nosuch_b\n"
        "def f():\n    import nosuch_c\n"
        "from . import other\nimport shiny.inner\nimport pytest\nimport asyncore, distutils, ConfigParser, _socket\n"
    )
    (tmp_path / "shiny").mkdir()
    (tmp_path / "shiny" / "__init__.py").write_text("")
    assert needs(tmp_path, {"tests/test_x.py": text}) == []


def test_what_a_guard_and_its_remedy_both_import_is_needed(tmp_path: Path) -> None:
    text = (
        "try:\n    from nosuch_a import x\nexcept ImportError:\n    from nosuch_a.old import x\n"
        "try:\n    import nosuch_b\nexcept ImportError:\n    import json as nosuch_b\n"
    )
    assert needs(tmp_path, {"tests/test_x.py": text}) == ["import nosuch_a"]


def test_what_follows_a_module_without_which_the_file_is_skipped_is_not(tmp_path: Path) -> None:
    text = "import nosuch_a\nimport pytest\nnumpy = pytest.importorskip('numpy')\nimport nosuch_b\n"
    assert needs(tmp_path, {"tests/test_x.py": text}) == ["import nosuch_a"]


def test_a_module_inside_of_a_package_does_not_stand_for_one_of_its_name(tmp_path: Path) -> None:
    for path in ("shiny/__init__.py", "shiny/flask.py", "examples/celery/__init__.py", "scripts/tool.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    text = "import flask\nimport celery\nimport tool\n"
    assert needs(tmp_path, {"tests/test_x.py": text}) == ["import flask", "import celery"]


def test_of_namespaces_the_second_name_is_told_too(tmp_path: Path) -> None:
    text = "from zope import interface\nimport zope.event.x\nfrom google.cloud.storage import Client\n"
    expected = ["import zope.interface", "import zope.event", "import google.cloud.storage"]
    assert needs(tmp_path, {"tests/test_x.py": text}) == expected


def test_fixtures_that_nobody_defines_are_those_of_their_plugins(tmp_path: Path) -> None:
    conftest = "import pytest\n@pytest.fixture\ndef benchmark(): pass\n@pytest.fixture\ndef httpbin(httpbin): pass\n"
    text = (
        "import pytest\n"
        "def test_x(mocker, benchmark): pass\n"
        "@pytest.mark.parametrize('freezer, n', [])\ndef test_y(freezer, n): pass\n"
        "def helper(qtbot): pass\n"
    )
    found = needs(tmp_path, {"tests/conftest.py": conftest, "tests/test_x.py": text})
    assert found == ["fixture pytest-httpbin", "fixture pytest-mock"]


def test_marks_without_whose_plugin_a_test_cannot_run_are_needed(tmp_path: Path) -> None:
    text = "import pytest\n@pytest.mark.asyncio\nasync def test_x(): pass\n@pytest.mark.slow\ndef test_y(): pass\n"
    assert needs(tmp_path, {"tests/test_x.py": text}) == ["marker pytest-asyncio"]


def test_files_that_are_no_python_hinder_no_others_and_are_no_warning(tmp_path: Path) -> None:
    for name, text in (("test_x.py", "def (:"), ("test_y.py", "import nosuch_b\n")):
        (tmp_path / name).write_text(text)
    facts = inspect(tmp_path)
    assert [need.name for need in facts.test_needs] == ["nosuch_b"]
    assert facts.warnings == ()


def test_the_evidence_is_the_line(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text("import os\n\nimport nosuch_a\n")
    evidence = inspect(tmp_path).test_needs[0].evidence
    assert (evidence.file, evidence.line, evidence.text) == ("test_x.py", 3, "import nosuch_a")
