"""Which backend is taken: overlay where it works, else a container engine, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbuild.config import Settings
from specbuild.errors import ConfigError, EngineNotRunningError, SandboxUnavailableError
from specbuild.sandbox.backends import choose_backend, open_backend

pytestmark = pytest.mark.sandbox


@pytest.fixture
def broken_overlay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder on which no overlay can be, and an engine that nobody has started."""
    (tmp_path / "store").write_text("in the way")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/engine.sock")
    return tmp_path


async def test_overlay_is_preferred_and_looked_at_once(tmp_path: Path) -> None:
    settings = Settings(cache_dir=tmp_path)
    async with open_backend(settings) as backend:
        assert backend.name == "overlay"
    mark = tmp_path / "store" / "forks"
    written = mark.stat().st_mtime_ns
    opening = open_backend(settings)
    async with opening as backend:
        assert backend.name == "overlay"
    assert opening.reason == ""
    assert mark.stat().st_mtime_ns == written


async def test_an_engine_takes_the_place_of_what_does_not_work_and_says_why(broken_overlay: Path) -> None:
    choice = await choose_backend(Settings(cache_dir=broken_overlay))
    assert choice.name == "docker"
    assert "engine.sock" in choice.reason
    assert "store" in choice.reason
    with pytest.raises(EngineNotRunningError):
        await open_backend(Settings(cache_dir=broken_overlay)).__aenter__()


async def test_without_either_both_reasons_are_told(broken_overlay: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST")
    monkeypatch.setenv("DOCKER_CONTEXT", "missing")
    monkeypatch.setenv("DOCKER_CONFIG", str(broken_overlay))
    with pytest.raises(SandboxUnavailableError, match="missing") as caught:
        await choose_backend(Settings(cache_dir=broken_overlay))
    assert "store" in caught.value.message
    assert caught.value.hint


async def test_a_named_backend_is_taken_whether_it_works_or_not(broken_overlay: Path) -> None:
    for name in ("overlay", "docker"):
        choice = await choose_backend(Settings(cache_dir=broken_overlay, backend=name))
        assert (choice.name, choice.backend.name, choice.reason) == (name, name, "")


def test_an_unknown_backend_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        open_backend(Settings(cache_dir=tmp_path, backend="wishes"))
    assert "docker" in caught.value.hint
