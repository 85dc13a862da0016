"""Bad input is answered with what is wrong and where to look."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from specbuild.breadth import Breadth
from specbuild.cli import main
from specbuild.cli.app import HOMES, cli
from specbuild.cli.build import build
from specbuild.cli.settings import LEVELS, settings_from
from specbuild.cli.types import to_age, to_bytes, to_seconds
from specbuild.config import Reuse, Settings
from specbuild.recipe import Level


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bulid", "."], "Did you mean 'build'?"),
        (["https://example.org/x.git"], "specbuild build https://example.org/x.git"),
        (["build"], "name a repository"),
        (["build", ".", "--jobs", "none"], "'none' is not a valid integer"),
        (["build", ".", "--jobs", "0"], "0 is not in the range x>=1"),
        (["build", ".", "--level", "all"], "'all' is not one of 'imports', 'collect', 'build', 'tests', 'command'"),
        (["build", ".", "--min-pass-ratio", "90"], "90.0 is not in the range 0<=x<=1"),
        (["build", ".", "--memory", "much"], "'much' is no size; write it as 512M or 8G"),
        (["build", ".", "--disk", "0"], "'0' is no size"),
        (["build", ".", "--time-limit", "soon"], "'soon' is no duration; write it as 90s, 10m, 1h30m or 7d"),
        (["build", ".", "--progress", "fancy"], "'fancy' is not one of"),
        (["build", ".", "--pursue", "everything"], "'everything' is not one of 'recipe', 'strategy', 'all'"),
        (["build", ".", "--reuse", "always"], "'always' is not one of 'builds', 'build', 'none'"),
        (["build", ".", "--colour", "always"], "No such option '--colour'"),
        (["run", "last"], "Missing argument"),
        (["shell", "last"], "a shell needs a terminal"),
        (["cache"], "cache"),
        (["schema", "everything"], "'everything' is not one of"),
    ],
    ids=str,
)
def test_usage_errors_end_with_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err


def test_a_shell_has_no_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shell", "last", "--json"]) == 2
    assert "has no JSON result" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_json_holds_for_options_that_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", ".", "--nonsense", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["exit_code"] == 2


def test_json_behind_the_dashes_belongs_to_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--nonsense", "last", "--", "pytest", "--json"]) == 2
    assert capsys.readouterr().out == ""


def test_settings_that_make_no_sense_are_all_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECBUILD_JOBS", "many")
    (tmp_path / "specbuild.toml").write_text("level = 'most'\n")
    assert main(["build", "."]) == 2
    shown = capsys.readouterr().err
    assert "jobs" in shown
    assert "level" in shown


def test_options_win_over_variables_and_variables_over_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specbuild.toml").write_text("jobs = 1\nmax_candidates = 5\nlevel = 'imports'\n")
    monkeypatch.setenv("SPECBUILD_JOBS", "2")
    monkeypatch.setenv("SPECBUILD_MAX_CANDIDATES", "6")
    settings = settings_from({"jobs": 3, "level": None, "bases": ()})
    assert (settings.jobs, settings.max_candidates, settings.level) == (3, 6, Level.IMPORTS)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], (Breadth.ALL, True, Reuse.BUILDS)),
        (["--sequential"], (Breadth.RECIPE, True, Reuse.BUILDS)),
        (["--pursue", "strategy", "--no-ahead"], (Breadth.STRATEGY, False, Reuse.BUILDS)),
        (["--ahead", "--reuse", "build"], (Breadth.ALL, True, Reuse.BUILD)),
        (["--reuse", "none"], (Breadth.ALL, True, Reuse.NONE)),
    ],
    ids=str,
)
def test_options_say_how_much_is_pursued_what_is_forked_ahead_and_whose_checkpoints_are_taken(
    arguments: list[str], expected: tuple[Breadth, bool, Reuse], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    context = build.make_context("build", [".", *arguments])
    given = {name: value for name, value in context.params.items() if name in Settings.model_fields}
    settings = settings_from(given)
    assert (settings.breadth, settings.ahead, settings.reuse) == expected


def test_an_option_says_that_nothing_is_repaired(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert settings_from({"repair": None}).repair
    assert build.make_context("build", [".", "--no-repair"]).params["repair"] is False
    assert not settings_from({"repair": False}).repair


def test_a_variable_says_that_nothing_is_learned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert settings_from({}).learn
    monkeypatch.setenv("SPECBUILD_LEARN", "false")
    assert not settings_from({}).learn


def test_an_output_folder_with_other_files_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    assert main(["build", ".", "-o", str(tmp_path)]) == 2
    assert "holds files that SpecBuild did not write" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "amount"), [("512M", 512 << 20), ("8g", 8 << 30), ("1.5GiB", 3 << 29), ("4KB", 4096), ("77", 77)]
)
def test_sizes(text: str, amount: int) -> None:
    assert to_bytes(text) == amount


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("1.5", 1.5), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("1d12h", 129600)]
)
def test_durations(text: str, seconds: float) -> None:
    assert to_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "-1", "1w", "h", "5m4h", "2h1d", "inf", "nan"])
def test_no_durations(text: str) -> None:
    for read in (to_seconds, to_age):
        with pytest.raises(click.BadParameter, match="is no duration"):
            read(text)


@pytest.mark.parametrize("text", ["0", "0s", "0h0m"])
def test_nothing_is_an_age_but_no_time_to_wait(text: str) -> None:
    assert to_age(text) == 0
    with pytest.raises(click.BadParameter, match="is no time at all"):
        to_seconds(text)


def test_levels_are_those_of_recipes() -> None:
    assert [level.value for level in Level] == list(LEVELS)


def test_every_command_is_found_and_has_help() -> None:
    context = click.Context(cli)
    for name in HOMES:
        command = cli.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert command.get_short_help_str(limit=60)


@pytest.mark.parametrize("what", ["environment", "event", "plan", "settings", "story"])
def test_schemas_are_json(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", what]) == 0
    assert "$defs" in json.loads(capsys.readouterr().out)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("specbuild 0.")


def test_completion_of_bash_is_printed() -> None:
    import os
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-c", "from specbuild.cli import main; main()"],
        env={**os.environ, "_SPECBUILD_COMPLETE": "bash_source"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "complete -o nosort" in done.stdout
