"""Writes what a build leaves for the user: Dockerfile, setup.sh, specbuild.lock, environment.json, journal.jsonl."""

from __future__ import annotations

import shutil
from pathlib import Path

from specbuild.environment import Artifacts, Environment
from specbuild.errors import UsageError
from specbuild.export.dockerfile import dockerfile
from specbuild.export.script import setup_script
from specbuild.lockfile import lock_of
from specbuild.repo.digest import LOCK_FILE


def write_artifacts(environment: Environment, folder: Path, *, journal: Path, logs: Path) -> Environment:
    """Write all files of an Environment to `folder` (made if missing); the Environment with their paths.

    Without a committed Recipe there is no Dockerfile, no setup script and no lock. Raises UsageError if the folder
    takes none.
    """
    try:
        return _write(environment, folder, journal, logs)
    except OSError as error:
        raise UsageError(
            f"the result cannot be written to {folder}: {error.strerror}",
            hint=f"it is kept in the cache all the same: specbuild run {environment.id} -- COMMAND",
        ) from error


def _write(environment: Environment, folder: Path, journal: Path, logs: Path) -> Environment:
    folder.mkdir(parents=True, exist_ok=True)
    committed = environment.recipe is not None
    paths = Artifacts(
        dockerfile=str(folder / "Dockerfile") if committed else None,
        setup_sh=str(folder / "setup.sh") if committed else None,
        lock=str(folder / LOCK_FILE) if committed else None,
        environment=str(folder / "environment.json"),
        journal=str(folder / "journal.jsonl"),
        logs=str(logs),
    )
    full = environment.model_copy(update={"artifacts": paths})
    if committed:
        (folder / "Dockerfile").write_text(dockerfile(full), encoding="utf-8")
        script = folder / "setup.sh"
        script.write_text(setup_script(full), encoding="utf-8")
        script.chmod(0o755)
        (folder / LOCK_FILE).write_text(lock_of(full).dump(), encoding="utf-8")
    (folder / "environment.json").write_text(full.model_dump_json(indent=2) + "\n", encoding="utf-8")
    if journal != folder / "journal.jsonl":
        shutil.copyfile(journal, folder / "journal.jsonl")
    return full
