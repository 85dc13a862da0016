"""Which client leads to the user's engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbuild.config import Settings
from specbuild.errors import SandboxUnavailableError
from specbuild.export.engine import find_engine


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


async def test_the_first_that_answers_is_taken(programs: Path) -> None:
    program(programs, "docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    program(programs, "podman", "exit 0")
    assert (await find_engine()).name == "podman"
    program(programs, "docker", "exit 0")
    assert (await find_engine()).name == "docker"


async def test_a_client_that_was_asked_for_is_taken_and_no_other(programs: Path) -> None:
    program(programs, "docker", "exit 0")
    program(programs, "podman", "exit 0")
    assert (await find_engine(Settings(client="podman").client)).name == "podman"
    program(programs, "podman", "echo 'no such connection' >&2; exit 125")
    with pytest.raises(SandboxUnavailableError, match=r"(?s)podman info failed.*no such connection"):
        await find_engine("podman")


async def test_no_client_is_told_by_name(programs: Path) -> None:
    with pytest.raises(SandboxUnavailableError, match="no program here is called docker or podman"):
        await find_engine()
    program(programs, "docker", "exit 0")
    with pytest.raises(SandboxUnavailableError, match="no program here is called podman") as caught:
        await find_engine("podman")
    assert "start podman" in str(caught.value.hint)
