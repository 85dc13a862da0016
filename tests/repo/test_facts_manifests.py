"""Manifests of Python projects: requirements, constraints, factors, layouts, dates."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from specbuild.repo.facts import Facts
from specbuild.repo.inspect import inspect
from specbuild.repo.readers.docker import instructions
from specbuild.repo.readers.factors import applies, expand_names
from specbuild.repo.readers.requirement import from_poetry, is_pinned, poetry_python
from specbuild.repo.readers.requirements import requirement_of


def facts_of(root: Path, files: dict[str, str]) -> Facts:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return inspect(root)


def requirements(facts: Facts, group: str) -> list[str]:
    return [d.requirement for d in facts.dependencies if d.group == group]


@pytest.mark.parametrize(
    ("requirement", "pinned"),
    [
        ("a==1.0", True),
        ("a===1.0", True),
        ("a[x]==1.0 ; python_version < '3'", True),
        ("a==1.*", False),
        ("a>=1", False),
        ("a", False),
        ("a @ git+https://example.org/a.git@v1", True),
        ("a @ git+https://example.org/a.git", False),
        ("not a requirement", False),
    ],
)
def test_pins_are_told_from_ranges(requirement: str, pinned: bool) -> None:
    assert is_pinned(requirement) is pinned


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("^1.2.3", "a>=1.2.3,<2"),
        ("^0.2.3", "a>=0.2.3,<0.3"),
        ("^0.0.3", "a>=0.0.3,<0.0.4"),
        ("^1", "a>=1,<2"),
        ("~1.2.3", "a>=1.2.3,<1.3"),
        ("~1", "a>=1,<2"),
        ("1.*", "a==1.*"),
        ("*", "a"),
        (">=1,<2", "a>=1,<2"),
        (">= 1.0 < 3", "a>=1.0,<3"),
        ("1.2", "a==1.2"),
        ("^1.0 || ^2.0", "a>=1.0,<3"),
    ],
)
def test_poetry_constraints_become_specifiers(constraint: str, expected: str) -> None:
    assert from_poetry("a", constraint) == expected


def test_poetry_python_constraints_become_requires_python() -> None:
    assert poetry_python("~2.7 || ^3.6") == ">=2.7,<4"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a==1 --hash=sha256:x", "a==1"),
        ("-e git+https://example.org/a.git#egg=a&subdirectory=s", "a @ git+https://example.org/a.git"),
        ("-e .", ""),
        ("-r other.txt", ""),
        ("./local", ""),
        ("https://example.org/a.whl", "https://example.org/a.whl"),
        ("a ; python_version < '3'", "a ; python_version < '3'"),
    ],
)
def test_requirement_lines_lose_the_options_of_pip(line: str, expected: str) -> None:
    assert requirement_of(line) == expected


def test_generative_names_of_tox_are_expanded() -> None:
    assert expand_names("py{38,39}-django{3,4}, lint") == [
        "py38-django3",
        "py38-django4",
        "py39-django3",
        "py39-django4",
        "lint",
    ]
    assert expand_names("py3{8-10}") == ["py38", "py39", "py310"]


@pytest.mark.parametrize(
    ("condition", "name", "holds"),
    [
        ("py38,py39", "py39-x", True),
        ("py38-x", "py38", False),
        ("!lint", "py38", True),
        ("!lint", "lint", False),
        ("py{38,39}", "py39", True),
    ],
)
def test_factor_conditions(condition: str, name: str, holds: bool) -> None:
    assert applies(condition, name) is holds


def test_dockerfile_instructions_keep_heredocs_and_drop_inner_comments() -> None:
    text = "FROM a\nRUN one \\\n  # note\n  two\nRUN <<EOF\nthree\nEOF\nENV A=1\n"
    found = [(i.name, i.value, i.line) for i in instructions(text)]
    assert found == [("FROM", "a", 1), ("RUN", "one two", 2), ("RUN", "<<EOF\nthree\nEOF", 5), ("ENV", "A=1", 8)]


def test_setup_py_that_reads_its_requirements_in_a_function(tmp_path: Path) -> None:
    source = """
def load(name):
    return [line for line in open(name).read().splitlines() if line]
setup(install_requires=load("requirements.txt"), extras_require={"test": load("dev-requirements.txt")})
"""
    facts = facts_of(
        tmp_path, {"setup.py": source, "requirements.txt": "six\n# no\n", "dev-requirements.txt": "mock\n"}
    )
    assert requirements(facts, "") == ["six"]
    assert requirements(facts, "extra:test") == ["mock"]
    assert facts.dependencies[0].evidence.file == "requirements.txt"


def test_setup_py_that_computes_its_requirements_is_said_and_the_built_metadata_used(tmp_path: Path) -> None:
    files = {
        "setup.py": "setup(name='a', install_requires=compute())",
        "a.egg-info/requires.txt": "six\n\n[dev]\nmock\n\n[dev:python_version < '3']\nold\n",
    }
    facts = facts_of(tmp_path, files)
    assert requirements(facts, "") == ["six"]
    assert requirements(facts, "extra:dev") == ["mock", "old ; python_version < '3'"]
    assert [w.value for w in facts.warnings] == ["install_requires is computed in a way that cannot be read"]


def test_setup_py_arguments_from_a_mapping(tmp_path: Path) -> None:
    source = """
import setuptools
args = dict(name='a', install_requires='six\\nmock>=1')
args['version'] = '2'
setuptools.setup(**args)
"""
    facts = facts_of(tmp_path, {"setup.py": source})
    assert facts.version is not None
    assert facts.version.value == "2"
    assert requirements(facts, "") == ["six", "mock>=1"]


@pytest.mark.parametrize(
    ("files", "backend"),
    [
        ({"setup.py": ""}, "setuptools.build_meta:__legacy__"),
        ({"pyproject.toml": "[project]\nname = 'a'\n"}, "setuptools.build_meta:__legacy__"),
        (
            {"pyproject.toml": "[tool.ruff]\n", "setup.cfg": "[metadata]\nname = a\n"},
            "setuptools.build_meta:__legacy__",
        ),
        ({"pyproject.toml": "[build-system]\nrequires = ['x']\n"}, "setuptools.build_meta:__legacy__"),
        ({"pyproject.toml": "[build-system]\nrequires = ['x']\nbuild-backend = 'x.api'\n", "setup.py": ""}, "x.api"),
        ({"pyproject.toml": "[tool.ruff]\n"}, None),
    ],
)
def test_the_build_backend_is_the_one_that_a_frontend_would_call(
    tmp_path: Path, files: dict[str, str], backend: str | None
) -> None:
    fact = facts_of(tmp_path, files).build_backend
    assert (fact.value if fact else None) == backend


def test_dynamic_requirements_are_read_from_their_files(tmp_path: Path) -> None:
    toml = """
[project]
dynamic = ["dependencies", "optional-dependencies"]
[tool.setuptools.dynamic]
dependencies = { file = ["requirements.txt"] }
optional-dependencies.test = { file = "test.in" }
"""
    facts = facts_of(
        tmp_path, {"pyproject.toml": toml, "requirements.txt": "six\n", "test.in": "-r requirements.txt\nmock\n"}
    )
    assert requirements(facts, "") == ["six"]
    assert requirements(facts, "extra:test") == ["six", "mock"]


@pytest.mark.parametrize(
    ("files", "runner", "paths"),
    [
        ({"tests/test_a.py": "import pytest"}, "pytest", ("tests",)),
        ({"tests/test_a.py": "import unittest"}, "unittest", ("tests",)),
        ({"test_a.py": "def test_x(): pass"}, "pytest", ("test_a.py",)),
        ({"src/p/tests/test_a.py": "from twisted.trial import unittest"}, "trial", ("src/p/tests",)),
        ({"t/unit/test_a.py": "", "t/conftest.py": ""}, "pytest", ("t",)),
        ({"tests/check.py": "import unittest"}, "unittest", ("tests",)),
        ({"ptest.py": "import unittest\nclass A(unittest.TestCase): pass"}, "unittest", ("ptest.py",)),
        ({"tests/test_a.py": "x = 1"}, "none", ("tests",)),
        ({"setup.cfg": "[tool:pytest]\ntestpaths = checks\n", "checks/test_a.py": ""}, "pytest", ("checks",)),
        ({"tests/runtests.py": "import django", "tests/a/tests.py": "from django.test import X"}, "django", ("tests",)),
        ({"p/__init__.py": "", "p/a.py": "import doctest\ndoctest.testmod()"}, "doctest", ()),
        ({"examples/tests/test_a.py": "import pytest", "tests/test_b.py": "import unittest"}, "unittest", ("tests",)),
    ],
)  # fmt: skip
def test_layouts(tmp_path: Path, files: dict[str, str], runner: str, paths: tuple[str, ...]) -> None:
    layout = facts_of(tmp_path, files).tests[0]
    assert (layout.runner, layout.paths) == (runner, paths)


@pytest.mark.parametrize(
    ("files", "packages"),
    [
        ({"src/a/__init__.py": "", "src/b.py": "", "docs/__init__.py": ""}, ["a", "b"]),
        ({"a/__init__.py": "", "tests/__init__.py": "", "setup.py": ""}, ["a"]),
        ({"a.py": "", "setup.py": "", "test_a.py": ""}, ["a"]),
        ({"setup.py": "setup(py_modules=['x', 'y'])", "x.py": "", "y.py": "", "z.py": ""}, ["x", "y"]),
        ({"setup.py": "setup(packages=['p', 'p.q'], package_dir={'p': 'code'})", "code/__init__.py": ""}, ["p"]),
        ({"src/ns/part/__init__.py": ""}, ["ns"]),
        ({"pyproject.toml": "[project]\nname = 'utils'\n", "utils/__init__.py": "", "more/__init__.py": ""}, ["utils"]),
        ({"a.egg-info/top_level.txt": "thing\ntests\n", "thing/__init__.py": "", "extra/__init__.py": ""}, ["thing"]),
        ({"setup.py": "setup(name='x', py_modules=['made'])"}, ["made"]),
        ({"setup.py": "setup(ext_modules=[Extension('fast', ['fast.c'])])", "fast.c": ""}, ["fast"]),
        ({"pyproject.toml": "[tool.flit.metadata]\nmodule = 'm'\n", "m.py": "", "n.py": ""}, ["m"]),
    ],
)  # fmt: skip
def test_import_packages(tmp_path: Path, files: dict[str, str], packages: list[str]) -> None:
    assert [fact.value for fact in facts_of(tmp_path, files).packages] == packages


def test_the_given_date_wins(tmp_path: Path) -> None:
    date = datetime(2019, 3, 1, tzinfo=UTC)
    fact = inspect(tmp_path, revision_date=date).revision_date
    assert fact is not None
    assert fact.value == date


def test_the_newest_plausible_file_time_is_the_date(tmp_path: Path) -> None:
    for name, seconds in (("a", 1_500_000_000), ("b", 1_400_000_000), ("c", 1_580_601_600), ("d", 0)):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (seconds, seconds))
    fact = inspect(tmp_path).revision_date
    assert fact is not None
    assert (fact.value.timestamp(), fact.evidence.file) == (1_500_000_000, "a")


@pytest.mark.parametrize(
    "heading", ["1.0 (2016-05-04)", "Version 1.0, released May 4th, 2016", "## 1.0 - 4 May 2016", "1.0 -- 2016/05/04"]
)
def test_a_fresh_checkout_is_dated_by_its_changelog(tmp_path: Path, heading: str) -> None:
    fact = facts_of(tmp_path, {"CHANGES.md": f"{heading}\n\n0.9 (2012-01-01)\n"}).revision_date
    assert fact is not None
    assert fact.value == datetime(2016, 5, 4, tzinfo=UTC)
    assert fact.evidence.line == 1


def test_tags_are_seen_loose_and_packed(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "a").write_text("")
    git("init", "-q")
    git("add", "a")
    git("commit", "-q", "-m", "a")
    assert not inspect(tmp_path).has_tags
    git("tag", "v1")
    assert inspect(tmp_path).has_tags
    git("pack-refs", "--all")
    assert inspect(tmp_path).has_tags
    assert not inspect(tmp_path, has_git=False).has_tags
