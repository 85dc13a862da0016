"""Every way to end: the fixed table of exit codes, one message, one JSON object."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import click
import pytest

from specbuild import errors
from specbuild.cli import app
from specbuild.cli.build import EXIT_CODES
from specbuild.cli.failures import Interrupted
from specbuild.cli.output import output_options

TABLE = {
    errors.SpecBuildError: 1,
    errors.UsageError: 2,
    errors.LockError: 3,
    errors.SandboxError: 4,
    errors.BudgetSpentError: 5,
    errors.TransientError: 75,
}
"""The contract with scripts. A change here is a breaking change: say so in CHANGELOG.md."""

Ends = Callable[[BaseException], list[str]]


@pytest.fixture(name="command_that_raises")
def add_command_that_raises(monkeypatch: pytest.MonkeyPatch) -> Ends:
    """Adds a command to the real group that ends with a given error; returns how to call it."""

    def register(error: BaseException) -> list[str]:
        @click.command()
        @output_options()
        def end() -> None:
            raise error

        module = ModuleType("commands_of_a_test")
        module.__dict__["end"] = end
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(app.HOMES, "end", module.__name__)
        return ["end"]

    return register


def all_errors(base: type[errors.SpecBuildError]) -> set[type[errors.SpecBuildError]]:
    below = {kind for sub in base.__subclasses__() for kind in all_errors(sub)}
    return {kind for kind in {base, *below} if kind.__module__ == "specbuild.errors"}


def test_every_error_has_the_code_of_its_branch() -> None:
    for kind in all_errors(errors.SpecBuildError):
        branch = next(base for base in kind.__mro__ if base in TABLE)
        assert kind.exit_code == TABLE[branch], kind


@pytest.mark.parametrize(("kind", "code"), TABLE.items(), ids=lambda value: getattr(value, "__name__", str(value)))
def test_an_error_ends_with_its_code_and_says_what_to_try(
    kind: type[errors.SpecBuildError],
    code: int,
    command_that_raises: Ends,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert app.main(command_that_raises(kind("it broke", hint="mend it"))) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "error: it broke\nhint: mend it\n"


def test_json_gives_one_object_for_an_error(command_that_raises: Ends, capsys: pytest.CaptureFixture[str]) -> None:
    error = errors.TransientError("the index does not answer", hint="try later")
    assert app.main([*command_that_raises(error), "--json"]) == 75
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {
        "schema_version": 1,
        "outcome": "error",
        "error": {
            "class": "TransientError",
            "message": "the index does not answer",
            "hint": "try later",
            "exit_code": 75,
        },
    }
    assert "the index does not answer" in shown.err


def test_quiet_twice_prints_nothing(command_that_raises: Ends, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main([*command_that_raises(errors.StoreError("full")), "-qq"]) == 4
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Interrupted(), click.Abort()], ids=repr)
def test_an_interruption_ends_with_130(
    error: BaseException, command_that_raises: Ends, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(command_that_raises(error)) == 130
    assert "interrupted" in capsys.readouterr().err


def test_ours_is_found_in_a_group_of_errors(command_that_raises: Ends, capsys: pytest.CaptureFixture[str]) -> None:
    inner = ExceptionGroup("inner", [errors.SandboxError("no fork")])
    assert app.main(command_that_raises(ExceptionGroup("outer", [RuntimeError("first"), inner]))) == 4
    assert "error: no fork" in capsys.readouterr().err


@pytest.mark.parametrize("flag", [[], ["-v"]], ids=["short", "verbose"])
def test_a_bug_is_called_ours_and_its_traceback_is_kept(
    flag: list[str],
    command_that_raises: Ends,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert app.main([*command_that_raises(ZeroDivisionError("surprise")), *flag]) == 4
    shown = capsys.readouterr().err
    assert "SpecBuild has a bug here: ZeroDivisionError: surprise" in shown
    kept = re.search(r"report it with (\S+),", shown)
    assert kept is not None
    assert "raise error" in Path(kept[1]).read_text()
    assert ("Traceback" in shown) == bool(flag)


def test_outcomes_have_the_codes_of_the_table() -> None:
    assert EXIT_CODES == {"committed": 0, "failed": 1, "timeout": 5}


def test_help_documents_every_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["--help"]) == 0
    text = capsys.readouterr().out
    documented = {int(code) for code in re.findall(r"^    (\d+) +\S", text, re.MULTILINE)}
    assert documented == {0, 130, *TABLE.values()}
