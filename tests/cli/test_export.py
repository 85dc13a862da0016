"""`specbuild export`: what it refuses before it does anything, and that its help is what the formats are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specbuild.cli import app
from specbuild.cli.export import FORMATS
from specbuild.export.targets import WORDS


def test_the_help_knows_every_format() -> None:
    listed = [line.split()[0] for line in FORMATS.splitlines() if line.startswith("  ")]
    assert listed == [kind.value for kind in WORDS]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["export", "last"], "--to"),
        (["export", "last", "--to", "dokerfile"], "there is no export format 'dokerfile'"),
        (["export", "nothing-of-that-name", "--to", "sbom"], "there is no environment"),
        (["replay", "last", "--base-image", "x"], "are for --docker"),
        (["replay", "last", "--docker", "--build-arg", "=x"], "write it as NAME=VALUE"),
        (["build", "--locked", "no/such/lock"], "cannot be read"),
    ],
)
def test_what_makes_no_sense_ends_with_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPECBUILD_CACHE_DIR", str(tmp_path))
    assert app.main(arguments) == 2
    assert said in capsys.readouterr().err


def test_errors_are_objects_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPECBUILD_CACHE_DIR", str(tmp_path))
    assert app.main(["export", "last", "--to", "ocy", "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert told["error"]["class"] == "UsageError"
    assert "'oci'" in told["error"]["hint"]
