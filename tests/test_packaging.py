"""Three folders make up one import tree; these guards keep the packaging true to what lies on disk."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
MAPPED = {"specbuild": "specbuild", "strategies": "specbuild.strategies", "predictors": "specbuild.predictors"}


@pytest.fixture(name="pyproject")
def read_pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def own_files(folder: str, pattern: str) -> list[Path]:
    """Files below a top-level folder, those behind links left out."""
    found = (ROOT / folder).rglob(pattern)
    return [path for path in found if not any(parent.is_symlink() for parent in path.parents)]


def package_of(folder: str, path: Path) -> str:
    return ".".join([MAPPED[folder], *path.parent.relative_to(ROOT / folder).parts])


def test_every_package_is_listed(pyproject: dict[str, Any]) -> None:
    on_disk = {package_of(folder, init) for folder in MAPPED for init in own_files(folder, "__init__.py")}
    assert set(pyproject["tool"]["setuptools"]["packages"]) == on_disk


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for folder in MAPPED for path in own_files(folder, "*.py")}
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_data_files_are_declared(pyproject: dict[str, Any]) -> None:
    declared = pyproject["tool"]["setuptools"]["package-data"]
    files = [(folder, path) for folder in MAPPED for path in own_files(folder, "*") if path.is_file()]
    others = [(folder, path) for folder, path in files if path.suffix not in {".py", ".pyc"}]
    missing = [
        str(path.relative_to(ROOT))
        for folder, path in others
        if not any(path.match(pattern) for pattern in declared.get(package_of(folder, path), []))
    ]
    assert missing == []


@pytest.mark.parametrize("name", ["strategies", "predictors"])
def test_links_let_type_checkers_find_the_top_level_folders(name: str) -> None:
    assert (ROOT / "specbuild" / name).readlink() == Path("..", name)


def test_version_is_a_literal_that_needs_no_import() -> None:
    import specbuild

    line = (ROOT / "specbuild" / "_version.py").read_text().splitlines()[-1]
    assert line == f'__version__ = "{specbuild.__version__}"'


def test_public_names_are_sorted_and_importable() -> None:
    import specbuild

    assert list(specbuild.__all__) == sorted(specbuild.__all__)
    assert all(getattr(specbuild, name) is not None for name in specbuild.__all__)


def test_changelog_tells_of_this_version() -> None:
    import specbuild

    assert f"## [{specbuild.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_ci_runs_the_very_test_command_of_the_readme() -> None:
    commands = [line for line in (ROOT / "README.md").read_text().splitlines() if "-m pytest" in line]
    assert len(commands) == 1
    assert commands[0] in (ROOT / ".ci" / "run").read_text().splitlines()


def test_readme_documents_every_setting() -> None:
    from specbuild.config import Settings

    text = (ROOT / "README.md").read_text()
    assert [name for name in Settings.model_fields if f"| `{name}` |" not in text] == []


def test_ci_script_is_valid_shell() -> None:
    subprocess.run(["bash", "-n", str(ROOT / ".ci" / "run")], check=True)


@pytest.mark.parametrize("document", ["README.md", "SECURITY.md", "CONTRIBUTING.md", "docs/architecture.md"])
def test_links_in_documents_lead_somewhere(document: str) -> None:
    path = ROOT / document
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", path.read_text())
    assert [target for target in targets if not (path.parent / target).exists()] == []


@pytest.mark.slow
@pytest.mark.network
def test_wheel_holds_every_module_in_its_place(tmp_path: Path) -> None:
    names = [line for line in _git("ls-files").splitlines() if (ROOT / line).is_file()]
    for name in names:
        target = tmp_path / "source" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target, follow_symlinks=False)
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), "./source"]
    subprocess.run(wheel, cwd=tmp_path, check=True)
    [built] = tmp_path.glob("*.whl")
    modules = {
        name.replace(folder, MAPPED[folder].replace(".", "/"), 1)
        for folder in MAPPED
        for name in names
        if name.startswith(f"{folder}/") and Path(name).suffix in {".py", ".typed"}
    }
    with zipfile.ZipFile(built) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == modules


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout
