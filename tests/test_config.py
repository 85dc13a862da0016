"""Settings: where they come from, and what is said of those that make no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbuild.config import Settings, load_settings
from specbuild.errors import ConfigError


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("written", ["host,debian:bookworm", " host, debian:bookworm ", '["host", "debian:bookworm"]'])
def test_a_variable_holds_a_list_with_commas_or_as_json(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECBUILD_BASES", written)
    assert load_settings().bases == ("host", "debian:bookworm")


def test_one_name_is_a_list_of_one(tmp_path: Path) -> None:
    assert load_settings(bases="host").bases == ("host",)
    (tmp_path / "specbuild.toml").write_text('strategies = "declared"\nbases = ["host"]\n')
    assert load_settings().strategies == ("declared",)


@pytest.mark.parametrize("variable", ["SPECBUILD_BASES", "SPECBUILD_JOBS", "SPECBUILD_TIME_LIMIT", "SPECBUILD_REPLAY"])
def test_an_empty_variable_is_not_set(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = load_settings()
    monkeypatch.setenv(variable, "")
    assert load_settings() == plain


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("specbuild.toml", b"jobs = "),
        ("specbuild.toml", b"\xff\xfe"),
        ("specbuild.toml", b"nonsense = 1"),
        ("specbuild.toml", b"jobs = 'x'"),
        ("specbuild.toml", b"bases = '[1'"),
        ("pyproject.toml", b"[tool.specbuild"),
        ("pyproject.toml", b"[tool]\nspecbuild = 3"),
        ("pyproject.toml", b"[tool.specbuild]\njobs = 0"),
    ],
)
def test_a_file_that_makes_no_sense_is_named(file: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / file).write_bytes(content)
    with pytest.raises(ConfigError) as told:
        load_settings()
    assert told.value.hint


@pytest.mark.parametrize("content", [b"[project\n", b"\xff\xfe", b"[project]\nname = 'x'\n"])
def test_a_project_that_says_nothing_of_specbuild_may_be_broken(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(content)
    assert load_settings().jobs is None


def test_the_home_folder_is_found_in_a_path() -> None:
    assert Settings(cache_dir=Path("~/elsewhere")).cache_dir == Path.home() / "elsewhere"


@pytest.mark.parametrize("setting", ["memory_bytes", "disk_bytes"])
def test_a_size_that_has_lost_its_unit_is_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match=setting):
        load_settings(**{setting: 8})
