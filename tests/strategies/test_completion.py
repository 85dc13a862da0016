"""The step that installs what tests import, run for real with programs that only note what they are asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from specbuild.recipe import UV, VENV_DIR
from specbuild.strategies.completion import complete
from specbuild.strategies.imported import Imported, distribution_of

INSTALLER = '#!/bin/sh\nfor last; do :; done\necho "$@" >> asked\ncase $last in *nope*) exit 1;; esac\n'


def run(folder: Path, *modules: str) -> tuple[list[str], str]:
    """What the installer was asked for, and what was said, where `modules` are imported."""
    (step,) = complete([Imported(module, distribution_of(module)) for module in modules], options="--flag")
    installer = folder / "installer"
    installer.write_text(INSTALLER)
    installer.chmod(0o755)
    script = step.run.replace(UV, str(installer)).replace(f"{VENV_DIR}/bin/python", sys.executable)
    done = subprocess.run(["/bin/sh", "-euc", script], cwd=folder, capture_output=True, text=True, check=True)
    notes = folder / "asked"
    return notes.read_text().splitlines() if notes.exists() else [], done.stderr


def test_what_is_there_is_not_asked_for_and_the_rest_one_by_one(tmp_path: Path) -> None:
    asked, _ = run(tmp_path, "json", "nosuch_a", "zope.nosuch")
    assert asked == ["pip install --flag nosuch-a", "pip install --flag zope-nosuch"]


def test_one_that_cannot_be_had_hinders_no_other_and_is_said(tmp_path: Path) -> None:
    asked, said = run(tmp_path, "nope_a", "nosuch_b")
    assert len(asked) == 2
    assert said == "could not be had: nope-a\n"


def test_names_with_comparisons_are_words_of_their_own(tmp_path: Path) -> None:
    (step,) = complete([Imported("pkg_resources", distribution_of("pkg_resources"))])
    assert step.run.splitlines()[-1] == "want pkg_resources 'setuptools<82'"


def test_without_modules_there_is_no_step() -> None:
    assert complete([]) == ()


def test_pip_installs_where_the_environment_shares_the_systems_packages() -> None:
    (step,) = complete([Imported("yaml", "pyyaml")], installer="pip")
    assert f"{VENV_DIR}/bin/pip install --quiet" in step.run
