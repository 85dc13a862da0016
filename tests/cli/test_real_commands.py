"""The commands as a user runs them: a real build in real sandboxes, and what can be done with its result."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.sandbox, pytest.mark.network, pytest.mark.slow]

PROJECT = {
    "pyproject.toml": """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "tiny"
version = "1.0"

[tool.setuptools]
py-modules = ["tiny"]
""",
    "tiny.py": "def one() -> int:\n    return 1\n",
    "tests/test_tiny.py": "import tiny\n\n\ndef test_one():\n    assert tiny.one() == 1\n",
}


@dataclass(frozen=True, slots=True)
class User:
    """Somebody with a folder, a project in it, and a cache of their own."""

    folder: Path

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "SPECBUILD_CACHE_DIR": str(self.folder / "cache"), "SPECBUILD_BASES": '["host"]'}

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "specbuild", *arguments]

    def runs(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments), cwd=self.folder, env=self.env, capture_output=True, text=True, check=False
        )

    def gets_json(self, *arguments: str) -> Any:
        """What is on stdout, which must be one object and nothing else."""
        return json.loads(self.runs(*arguments).stdout)


@pytest.fixture(name="user", scope="module")
def user_with_project(tmp_path_factory: pytest.TempPathFactory) -> User:
    user = User(tmp_path_factory.mktemp("user"))
    for name, text in PROJECT.items():
        (user.folder / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (user.folder / "project" / name).write_text(text)
    return user


@pytest.fixture(name="built", scope="module")
def build_once(user: User) -> Generator[dict[str, Any]]:
    done = user.runs("build", "project", "--json", "--no-replay", "-o", "out")
    assert done.returncode == 0, done.stderr
    yield json.loads(done.stdout)
    user.runs("cache", "clean")


def test_json_says_what_was_made(built: dict[str, Any]) -> None:
    assert (built["schema_version"], built["outcome"]) == (1, "committed")
    assert (built["repo"]["origin"], built["base"]["name"]) == ("project", "host")
    assert (built["verdict"]["level"], built["verdict"]["passed"], built["verdict"]["ratio"]) == ("tests", 1, 1.0)
    assert built["seconds"]["total"] >= built["seconds"]["to_commit"] > 0
    assert [candidate["end"] for candidate in built["candidates"]].count("committed") == 1
    assert {"strategy", "recipe", "waste", "lock", "facts", "timeline"} <= set(built)


def test_the_files_are_where_it_says(user: User, built: dict[str, Any]) -> None:
    for name in ("dockerfile", "setup_sh", "environment", "journal"):
        assert (user.folder / built["artifacts"][name]).is_file(), name
    assert (user.folder / "out" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("ref", ["out", "out/environment.json", "last", "{id}", "{id:.5}"])
def test_an_environment_has_many_names(user: User, built: dict[str, Any], ref: str) -> None:
    done = user.runs("run", ref.format(id=built["id"]), "--", "python", "-c", "import tiny; print(tiny.one())")
    assert (done.returncode, done.stdout) == (0, "1\n")


@pytest.mark.usefixtures("built")
def test_run_ends_with_the_exit_code_of_the_command(user: User) -> None:
    assert user.runs("run", "out", "exit 7").returncode == 7


@pytest.mark.usefixtures("built")
def test_what_a_run_writes_is_gone_in_the_next(user: User) -> None:
    assert user.runs("run", "out", "touch /marker && test -e /marker").returncode == 0
    assert user.runs("run", "out", "test -e /marker").returncode == 1


@pytest.mark.usefixtures("built")
def test_run_with_json_keeps_stdout_for_the_object(user: User) -> None:
    done = user.gets_json("run", "--json", "out", "--", "sh", "-c", "echo seen; exit 3")
    assert (done["outcome"], done["exit_code"], done["tail"]) == ("ran", 3, "seen\n")


@pytest.mark.usefixtures("built")
def test_a_shell_has_a_terminal(user: User) -> None:
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        user.command("shell", "out"), cwd=user.folder, env=user.env, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    try:
        shown = b""
        while b"# " not in shown:
            shown += os.read(ours, 4096)
        os.write(ours, b'test -t 0 && echo "a terminal: $(tty)"; exit 5\n')
        while b"a terminal: /dev/pts/" not in shown:
            shown += os.read(ours, 4096)
        assert shell.wait() == 5
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)


@pytest.mark.usefixtures("built")
def test_a_replay_compares(user: User) -> None:
    done = user.runs("replay", "out", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["reproducible"] is True


@pytest.mark.usefixtures("built")
def test_no_candidate_ends_with_1_and_says_why_once(user: User) -> None:
    done = user.runs("build", "project", "-o", "failed", "--test-command", "echo no luck; false", "--level", "command")
    assert done.returncode == 1
    assert done.stdout == ""
    explanation = done.stderr[done.stderr.index("error: project:") :]
    assert explanation.count("no luck") == 1
    assert "hint: " in explanation


@pytest.mark.usefixtures("built")
def test_time_that_is_spent_ends_with_5(user: User) -> None:
    done = user.runs("build", "project", "-o", "late", "--test-command", "sleep 60", "--time-limit", "8s", "--json")
    assert done.returncode == 5
    assert json.loads(done.stdout)["outcome"] == "timeout"


def test_a_plan_runs_nothing_and_tells_candidates(user: User) -> None:
    made = user.gets_json("plan", "project", "--json")
    assert made["candidates"][0]["recipe"]["base"]["name"] == "host"
    assert "declared" in user.runs("plan", "project").stdout


@pytest.mark.usefixtures("built")
def test_an_interrupted_build_leaves_no_sandbox(user: User) -> None:
    command = user.command("build", "project", "-o", "stopped", "--test-command", "echo begun; sleep 60", "-v")
    with subprocess.Popen(command, cwd=user.folder, env=user.env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "begun" in line:
                process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    assert [*(user.folder / "cache" / "store").glob("*/live/*")] == []
