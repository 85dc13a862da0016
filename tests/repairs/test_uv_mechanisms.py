"""The uv that recipes pin does with the notes of repairs what they are written for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from specbuild.failures import DriftedBackend, Failure, MissingBuildDependency, MissingModule, UnsatisfiableResolution
from specbuild.recipe import StepKind
from specbuild.repairs import Case, repairs_for
from specbuild.repairs.edits import apply
from specbuild.repo.facts import Facts
from specbuild.strategies.steps import UV_VERSION
from specbuild.testing.proposals import fact
from specbuild.testing.python_cases import python_case, repaired

pytestmark = [pytest.mark.network, pytest.mark.slow]

DEMJSON = "demjson==2.2.4"
"""Asks setuptools for `use_2to3`, which release 58 dropped."""


@pytest.fixture(name="uv", scope="module")
def make_uv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("uv")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "pip", "install", "-q", f"uv=={UV_VERSION}"], check=True)
    return folder / "bin" / "uv"


class Place:
    """A folder that stands for the sandbox: commands run with its paths in place of a recipe's."""

    def __init__(self, folder: Path, uv: Path) -> None:
        self._folder, self._uv = folder, uv
        subprocess.run([uv, "venv", "-q", folder / "venv"], check=True)

    def moved(self, text: str) -> str:
        notes = text.replace("/opt/specbuild", str(self._folder / "notes"))
        return notes.replace("/opt/uv/bin/uv", str(self._uv)).replace("/opt/venv", str(self._folder / "venv"))

    def run(self, case: Case, *, since: int) -> subprocess.CompletedProcess[str]:
        """The Steps from `since` to the failing one."""
        done = subprocess.CompletedProcess[str]([], 0)
        for step in case.recipe.steps[since : case.index + 1]:
            env = {name: self.moved(value) for name, value in step.env}
            env |= {"HOME": str(self._folder), "UV_CACHE_DIR": str(self._folder / "cache")}
            run = ["sh", "-eu", "-c", self.moved(step.run)]
            done = subprocess.run(run, cwd=self._folder, env=_surroundings() | env, capture_output=True, text=True)
            if done.returncode:
                break
        return done


def _surroundings() -> dict[str, str]:
    """What tells this machine's way to the index."""
    kept = ("UV_", "PIP_", "SSL_", "HTTP", "http", "ALL_PROXY", "NO_PROXY", "no_proxy", "REQUESTS_")
    return {name: value for name, value in os.environ.items() if name.startswith(kept)}


def mended(case: Case, failure: Failure, name: str) -> Case:
    repair = next(one for one in repairs_for(failure, case) if one.name == name)
    placed = apply(repair.edits, case.recipe, case.index)
    return repaired(case, placed.recipe, placed.index)


def test_a_bound_on_builds_cures_a_backend_that_drifted(tmp_path: Path, uv: Path) -> None:
    place, case = Place(tmp_path, uv), python_case(at=StepKind.DEPENDENCIES, requirements=DEMJSON)
    before = place.run(case, since=case.index)
    assert "use_2to3 is invalid" in before.stderr
    failure = DriftedBackend(backend="setuptools", name="use_2to3", below="58")
    cured = mended(case, failure, "build-constraint:setuptools<58")
    after = place.run(cured, since=case.index)
    assert (after.returncode, "demjson==2.2.4" in after.stderr) == (0, True)


def test_requirements_are_added_to_the_builds_of_one_distribution_beside_a_bound(tmp_path: Path, uv: Path) -> None:
    (tmp_path / "pyx").mkdir()
    (tmp_path / "pyx" / "pyproject.toml").write_text('[project]\nname = "pyx"\nversion = "1"\n')
    (tmp_path / "pyx" / "setup.py").write_text(
        "import tomli_w, attr, setuptools\n"
        "assert int(setuptools.__version__.split('.')[0]) < 70, setuptools.__version__\n"
        "setuptools.setup(py_modules=[])\n"
    )
    place, case = Place(tmp_path, uv), python_case(at=StepKind.DEPENDENCIES, requirements="./pyx")
    assert "tomli_w" in place.run(case, since=case.index).stderr
    since = case.index
    for module in ("tomli_w", "attr"):
        name = {"tomli_w": "tomli-w", "attr": "attrs"}[module]
        case = mended(case, MissingBuildDependency(module=module, of="pyx"), f"build-requires:{name}")
    case = mended(case, DriftedBackend(backend="setuptools", name="x", below="70"), "build-constraint:setuptools<70")
    after = place.run(case, since=since)
    assert after.returncode == 0, after.stderr


def test_a_pin_that_no_index_can_serve_is_lifted_whoever_asks(tmp_path: Path, uv: Path) -> None:
    place, case = Place(tmp_path, uv), python_case(at=StepKind.DEPENDENCIES, requirements="iniconfig==99")
    assert place.run(case, since=case.index).returncode
    failure = UnsatisfiableResolution(tool="uv", requirement="iniconfig==99")
    cured = mended(case, failure, "pip:any-iniconfig")
    assert place.run(cured, since=case.index).returncode == 0


def test_a_tree_without_a_declared_name_is_built_without_isolation(tmp_path: Path, uv: Path) -> None:
    (tmp_path / "setup.py").write_text("import tomli_w, setuptools\nsetuptools.setup(name='old', py_modules=[])\n")
    facts = Facts(name=fact("old", "setup.py"))
    place, case = Place(tmp_path, uv), python_case(facts, at=StepKind.BUILD, build="/opt/uv/bin/uv pip install .")
    assert place.run(case, since=case.index).returncode
    (cured, *_) = repairs_for(MissingModule(language="python", module="tomli_w"), case)
    assert cured.name == "no-isolation:tomli-w"
    fixed = mended(case, MissingModule(language="python", module="tomli_w"), cured.name)
    assert place.run(fixed, since=case.index).returncode == 0
