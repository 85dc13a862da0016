"""Where the tests are, and what runs them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from posixpath import basename, commonpath, dirname

from specbuild.repo.facts import Evidence, TestLayout
from specbuild.repo.readers import ini
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.requirement import name_of
from specbuild.repo.readers.toml import load
from specbuild.repo.readers.tree import Tree

TEST_FOLDERS = re.compile(
    r"(unit|functional|integration|regression)?[-_]?(tests?|testing|testsuite|t)[-_]?(unit|suite)?$|tests?[-_](?!data|files|utils)[\w-]+$",
    re.IGNORECASE,
)
_TEST_FILE = re.compile(r"^(test[\w-]*|[\w-]+[-_]tests?|[a-z]\w*tests?|tests?)\.py$", re.IGNORECASE)
_HELPERS = frozenset(
    {
        "testing.py",
        "conftest.py",
        "testutils.py",
        "test_utils.py",
        "testcase.py",
        "latest.py",
        "runtests.py",
        "pytest.py",
        "unittest.py",
        "doctest.py",
    }
)
_ASIDE = frozenset(
    {
        "examples",
        "example",
        "docs",
        "doc",
        "bench",
        "benchmarks",
        "vendor",
        "_vendor",
        "third_party",
        "subprojects",
        "node_modules",
        "templates",
        "cookiecutter",
        "data",
        "fixtures",
        "testdata",
        "scripts",
        "tools",
    }
)
MAX_SAMPLED = 60
MAX_PATHS = 12
MAX_COMPARED = 300
MAX_SEPARATE = 5
"""More test folders than these below one package are named by their common parent."""


@dataclass
class _Score:
    """What speaks for one runner."""

    points: int = 0
    evidence: list[Evidence] = field(default_factory=list[Evidence])

    def add(self, points: int, evidence: Evidence) -> None:
        self.points += points
        if len(self.evidence) < 6:
            self.evidence.append(evidence)


def read(tree: Tree, found: Findings) -> None:
    """Runners with something to say for them, best first; the dependencies, CI and tox readers come before this one."""
    files = test_files(tree)
    scores = {name: _Score() for name in ("pytest", "unittest", "django", "trial", "nose", "doctest")}
    testpaths = _pytest_config(tree, scores["pytest"])
    _other_config(tree, scores)
    _sampled(tree, files, scores)
    _commands(found, scores)
    _dependencies(found, scores)
    settings = _django(tree, scores["django"])
    if not files:
        _doctests(tree, scores)
    paths = tuple(testpaths or _paths(files))[:MAX_PATHS]
    ranked = sorted((s for s in scores.items() if s[1].points > 0), key=lambda item: -item[1].points)
    if not files and not testpaths:
        ranked = [item for item in ranked if item[0] in ("doctest", "django")]
    for runner, score in ranked:
        module = settings if runner in ("django", "pytest") else None
        found.tests.append(
            TestLayout(
                runner=runner, paths=paths, files=len(files), settings_module=module, evidence=tuple(score.evidence)
            )
        )
    if files and not found.tests:
        found.tests.append(
            TestLayout(runner="none", paths=paths, files=len(files), evidence=(Evidence(file=files[0]),))
        )


def test_files(tree: Tree) -> list[str]:
    """Python files that hold tests by their names; those of examples and documents only if there are no others."""
    named = [path for path in tree.files if path.endswith(".py") and _is_test_file(path)]
    own = [path for path in named if not _ASIDE.intersection(path.lower().split("/")[:-1])]
    if own or named:
        return own or named
    # Nothing is named like a test: whatever stands in a folder for tests, or else has test cases in it.
    inside = [p for p in tree.files if p.endswith(".py") and TEST_FOLDERS.match(p.split("/")[0]) and "/" in p]
    near = [p for p in tree.files if p.endswith(".py") and "test" in basename(p).lower() and p.count("/") <= 3][:50]
    return inside or [p for p in near if re.search(r"^class \w+\(.*TestCase\)", tree.text(p) or "", re.MULTILINE)]


def _is_test_file(path: str) -> bool:
    name, folder = basename(path), dirname(path)
    if not _TEST_FILE.match(name) or name in _HELPERS:
        return False
    if re.match(r"(test_.*|.*_test|tests?)\.py$", name):
        return True
    return not folder or any(TEST_FOLDERS.match(part) for part in folder.split("/"))


def _paths(files: list[str]) -> list[str]:
    """The topmost test folders, by number of files; files that stand in no such folder, by themselves."""
    counts: Counter[str] = Counter()
    for path in files:
        parts = path.split("/")
        index = next((n for n, part in enumerate(parts[:-1]) if TEST_FOLDERS.match(part)), None)
        counts["/".join(parts[: index + 1]) if index is not None else path] += 1
    counts = Counter(dict(counts.most_common(MAX_COMPARED)))
    # A folder inside another adds nothing.
    kept = [path for path in counts if not any(path != other and path.startswith(f"{other}/") for other in counts)]
    ranked = sorted(kept, key=lambda path: (-counts[path], path))
    # Beside a folder that has most of the tests, stray files are helpers or modules that happen to be named so.
    if ranked and counts[ranked[0]] >= 0.6 * len(files):
        return [path for path in ranked if counts[path] >= 0.05 * len(files)]
    if len(ranked) > MAX_SEPARATE and (common := commonpath(ranked)) not in ("", "src", "lib"):
        return [common]
    return ranked


def _pytest_config(tree: Tree, score: _Score) -> list[str]:
    """Points for a configuration of pytest, and the `testpaths` in it that exist."""
    paths: list[str] = []
    toml = load(tree, "pyproject.toml")
    for table in ("ini_options",), ():
        if toml and toml.get("tool", "pytest", *table) is not None:
            score.add(5, toml.evidence("tool", "pytest", *table))
            for value in toml.strings("tool", "pytest", *table, "testpaths"):
                paths += value.split()
            break
    for file, sections in (
        ("pytest.ini", ("pytest",)), (".pytest.ini", ("pytest",)), ("tox.ini", ("pytest",)),
        ("setup.cfg", ("tool:pytest", "pytest")),
    ):  # fmt: skip
        config = ini.parse(tree.text(file) or "")
        for section in sections:
            if section in config:
                score.add(5, _section(tree, file, section))
                paths += [part for line in config[section].get("testpaths", []) for part in line.text.split()]
    for path in tree.files:
        if basename(path) == "conftest.py" and not _ASIDE.intersection(path.split("/")[:-1]):
            score.add(4, Evidence(file=path))
            break
    existing = [path.rstrip("/").removeprefix("./") for path in paths]
    return [path for path in dict.fromkeys(existing) if path in tree.folders or tree.has(path)]


def _section(tree: Tree, file: str, section: str) -> Evidence:
    number = next((n for n, line in enumerate(tree.lines(file), 1) if line.strip().startswith(f"[{section}]")), None)
    return tree.evidence(file, number)


def _other_config(tree: Tree, scores: dict[str, _Score]) -> None:
    if "nosetests" in ini.parse(tree.text("setup.cfg") or ""):
        scores["nose"].add(2, _section(tree, "setup.cfg", "nosetests"))
    for number, line in enumerate(tree.lines("setup.py"), start=1):
        if match := re.search(r"test_suite\s*=\s*['\"]([^'\"]+)", line):
            runner = "nose" if match[1].startswith("nose") else "unittest"
            scores[runner].add(2, tree.evidence("setup.py", number))


def _sampled(tree: Tree, files: list[str], scores: dict[str, _Score]) -> None:
    """What the test files import, weighed by how many do; some are enough."""
    patterns = {
        "pytest": re.compile(r"^\s*(import pytest|from pytest\b|import py\.test)"),
        "trial": re.compile(r"^\s*from twisted\.trial\b"),
        "nose": re.compile(r"^\s*(from nose\b|import nose\b)"),
        "unittest": re.compile(r"^\s*(import unittest2?\b|from unittest2?\b|from django\.test\b)"),
        "django": re.compile(r"^\s*from django\.test\b"),
    }
    step = max(1, len(files) // MAX_SAMPLED)
    sample = files[::step][:MAX_SAMPLED]
    seen: Counter[str] = Counter()
    first: dict[str, Evidence] = {}
    plain = 0
    for file in sample:
        hits = _imports(tree, file, patterns)
        plain += not hits and any(re.match(r"\s*def test", line) for line in tree.lines(file))
        for runner, number in hits.items():
            seen[runner] += 1
            first.setdefault(runner, tree.evidence(file, number))
    for runner, count in seen.items():
        scores[runner].add(1 + round(3 * count / max(1, len(sample))), first[runner])
    if plain:
        scores["pytest"].add(1, Evidence(file=sample[0]))


def _imports(tree: Tree, file: str, patterns: dict[str, re.Pattern[str]]) -> dict[str, int]:
    hits: dict[str, int] = {}
    for number, line in enumerate(tree.lines(file)[:2_000], start=1):
        if "import" not in line or len(line) > 500:
            continue
        for runner, pattern in patterns.items():
            if runner not in hits and pattern.match(line):
                hits[runner] = number
    return hits


_COMMANDS = {
    "pytest": re.compile(r"(?<![\w-])(pytest|py\.test)(?![\w-])"),
    "unittest": re.compile(r"-m\s+unittest|setup\.py\s+test"),
    "django": re.compile(r"manage\.py\s+test|django-admin\s+test|runtests\.py"),
    "trial": re.compile(r"(?<![\w./-])trial\s|-m\s+twisted\.trial"),
    "nose": re.compile(r"(?<![\w-])nosetests|-m\s+nose\b"),
}


def _commands(found: Findings, scores: dict[str, _Score]) -> None:
    """What CI, tox and nox run."""
    commands = [(fact.value, fact.evidence) for job in found.ci if job.tests for fact in job.run]
    commands += [(command, env.evidence) for env in found.test_envs for command in env.commands]
    for runner, pattern in _COMMANDS.items():
        hit = next((e for c, e in commands if pattern.search(c) and not re.match(r"\s*(python\S* -m )?pip\s", c)), None)
        if hit is not None:
            scores[runner].add(3, hit)


def _dependencies(found: Findings, scores: dict[str, _Score]) -> None:
    names = {"pytest": "pytest", "nose": "nose", "pytest-django": "pytest", "pytest-cov": "pytest", "nose2": "nose"}
    given: set[str] = set()
    for dependency in found.dependencies:
        runner = names.get(name_of(dependency.requirement))
        if runner and runner not in given and dependency.group not in ("", "build"):
            given.add(runner)
            scores[runner].add(2, dependency.evidence)


def _django(tree: Tree, score: _Score) -> str | None:
    """Points for manage.py or a runtests.py, and the settings module if one is named."""
    settings: str | None = None
    for file in [p for p in tree.files if basename(p) in ("manage.py", "runtests.py") and p.count("/") <= 2][:6]:
        text = tree.text(file) or ""
        if "django" not in text.lower() or _ASIDE.intersection(file.split("/")[:-1]):
            continue
        score.add(3, Evidence(file=file))
        settings = settings or _settings_in(text)
    for file in ("pytest.ini", "setup.cfg", "tox.ini", "pyproject.toml", "tests/conftest.py", "conftest.py"):
        settings = settings or _settings_in(tree.text(file) or "", alone=not file.endswith(".py"))
    return settings


def _settings_in(text: str, *, alone: bool = False) -> str | None:
    """The module that is set; with `alone` only at the start of a line, where INI files have no condition before it."""
    start = r"^\s*[\"']?" if alone else ""
    match = re.search(
        start + r"DJANGO_SETTINGS_MODULE[\"']?\s*\]?\s*[=,:]\s*[\"']?([A-Za-z_][\w.]*)", text, re.MULTILINE
    )
    return match[1] if match else None


def _doctests(tree: Tree, scores: dict[str, _Score]) -> None:
    """Without any test file, modules with a doctest hook are all there is."""
    for path in [p for p in tree.files if p.endswith((".py", ".rst", ".txt")) and p.count("/") <= 3][:300]:
        for number, line in enumerate(tree.lines(path), start=1):
            if (
                "doctest.testmod" in line
                or "doctest.testfile" in line
                or (path.endswith(".rst") and line.startswith(">>> "))
            ):
                scores["doctest"].add(1, tree.evidence(path, number))
                return
