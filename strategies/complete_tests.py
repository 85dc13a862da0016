"""Run inside a sandbox: installs what the test configuration and the test files need and nobody declares.

Usage: python - MODE UV_ARGUMENT...    in the root of the source tree, MODE being `plugins` or `imports`

`plugins` looks at the options of the pytest configuration (`--cov` wants pytest-cov). `imports` looks besides at the
imports that stand unguarded at the top of test files, without which these files cannot be collected, and at well-known
fixtures. A module that is missing is asked for under its own name. Each is installed by itself, so that an unknown one
hinders no other; what could not be had is said, and shows in the test results.

Needs nothing but the standard library of Python 3.8 or newer.
"""

from __future__ import annotations

import ast
import configparser
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

OPTIONS = (
    (r"--cov\b|--no-cov\b", "pytest-cov"),
    (r"(?<!\S)-n[ =]?(\d|auto|logical)|--numprocesses|--dist[ =]", "pytest-xdist"),
    (r"(?m)^asyncio_mode|--asyncio-mode", "pytest-asyncio"),
    (r"(?m)^timeout\b|--timeout\b", "pytest-timeout"),
    (r"--benchmark-", "pytest-benchmark"),
    (r"--reruns\b", "pytest-rerunfailures"),
    (r"--randomly-|-p no:randomly", "pytest-randomly"),
    (r"(?m)^DJANGO_SETTINGS_MODULE|--ds=", "pytest-django"),
    (r"--mypy-", "pytest-mypy-plugins"),
    (r"--snapshot-|--inline-snapshot", "inline-snapshot"),
)
FIXTURES = (
    ("mocker", "pytest-mock"),
    ("httpbin", "pytest-httpbin"),
    ("benchmark", "pytest-benchmark"),
    ("requests_mock", "requests-mock"),
    ("freezer", "pytest-freezer"),
    ("subtests", "pytest-subtests"),
    ("xprocess", "pytest-xprocess"),
)
SKIPPED = {".git", ".tox", ".nox", ".venv", "venv", "build", "dist", "node_modules", "docs", "doc", "examples"}


def configuration() -> str:
    """The pytest section of whichever file has one, as text."""
    for name, section in (("pytest.ini", "pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
        try:
            parser.read(name, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue
        if parser.has_section(section):
            return "\n".join(f"{key} = {value}" for key, value in parser.items(section))
    if Path("pyproject.toml").exists():
        text = Path("pyproject.toml").read_text("utf-8", "replace")
        found = re.search(r"(?ms)^\[tool\.pytest[^\]\n]*\]$(.*?)(?=^\[|\Z)", text)
        return found.group(1) if found else ""
    return ""


def plugins(text: str) -> Iterator[str]:
    """Distributions of the pytest plugins that the configuration asks for."""
    text = re.sub(r"(?m)^\s*#.*$", "", text)
    for pattern, name in OPTIONS:
        if re.search(pattern, text):
            yield name
    required = re.search(r"(?ms)^required_plugins\s*=\s*(.*?)(?=^\w+\s*=|\Z)", text)
    yield from re.findall(r"pytest[\w.-]*", required.group(1) if required else "")


def test_files() -> Iterator[Path]:
    """Test modules and conftest files, in order."""
    for folder, folders, files in os.walk("."):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith("."))
        inside = re.search(r"(^|/)tests?(ing)?(/|$)", folder[2:])
        for name in sorted(files):
            if name.endswith(".py") and (inside or re.match(r"conftest\.py|tests?(_|\.)|.*_tests?\.py", name)):
                yield Path(folder, name)


def top_imports(tree: ast.Module) -> Iterator[str]:
    """Modules imported at the top of a file, outside of any `if`, `try` or function."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def fixtures(tree: ast.Module) -> Iterator[str]:
    """Distributions whose fixtures are arguments of functions in a file that does not define them."""
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    defined = {node.name for node in functions}
    asked = {argument.arg for node in functions for argument in node.args.args} - defined
    for fixture, name in FIXTURES:
        if fixture in asked:
            yield name


def local(module: str) -> bool:
    """Whether the source tree has a module of that name, wherever it lies."""
    for _, folders, files in os.walk("."):
        folders[:] = [name for name in folders if name not in SKIPPED]
        if module in folders or module + ".py" in files:
            return True
    return False


def missing(module: str) -> bool:
    """Whether nobody provides a module."""
    try:
        return importlib.util.find_spec(module) is None and not local(module)
    except (ImportError, ValueError, AttributeError):
        return True


def installed(name: str) -> bool:
    """Whether a distribution is installed."""
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def wanted(mode: str) -> list[str]:
    """Names of distributions to install, in order."""
    names = [name for name in plugins(configuration()) if not installed(name)]
    for path in test_files() if mode == "imports" else ():
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        names += [name for name in fixtures(tree) if not installed(name)]
        modules = [module.split(".")[0] for module in top_imports(tree)]
        names += [module for module in modules if not module.startswith("_") and missing(module)]
    return list(dict.fromkeys(names))


def main(mode: str, arguments: Sequence[str]) -> None:
    """Install them one by one."""
    names = wanted(mode)
    print("not declared, but needed by the tests: " + (", ".join(names) or "nothing"), flush=True)
    for name in names:
        if subprocess.call([*arguments, name]):
            print("could not be had: " + name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
