"""Dockerfile and setup.sh: complete, strict, deterministic, and safe for any content."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specbuild.environment import Environment, RepoInfo, Seconds
from specbuild.errors import UsageError
from specbuild.export.dockerfile import dockerfile
from specbuild.export.script import setup_script
from specbuild.export.text import heredoc
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind, source_step
from specbuild.verify.verdict import Verdict

DEBIAN = BaseRef(name="debian:bookworm", digest="sha256:" + "a" * 64, release="bookworm")
IMAGE = BaseRef(name="python:3.12", digest="sha256:" + "b" * 64)
HOST = BaseRef(name="host", digest="sha256:" + "c" * 64, release="trixie", portable=False)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=60)
NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True)


def environment(
    *steps: Step,
    base: BaseRef = DEBIAN,
    test: str = "pytest -x",
    fetch: str = "",
    origin: str = "/home/me/demo",
    **env: str,
) -> Environment:
    check = Check(level=Level.TESTS, runner="pytest", step=Step(kind=StepKind.TEST, run=test), reason="run the tests")
    return Environment(
        id="demo-1",
        outcome="committed",
        specbuild_version="0.1",
        created="2026-01-02T03:04:05Z",
        repo=RepoInfo(origin=origin, kind="git", revision="abc", digest="d" * 64, date=None, fetch=fetch),
        base=base,
        strategy="declared",
        reason="it is declared",
        recipe=Recipe(base=base, steps=steps, check=check, test_env=tuple(env.items())),
        verdict=Verdict(level=Level.TESTS, ok=True, reason="3 of 3 tests passed", passed=3),
        seconds=Seconds(total=1, to_commit=1),
    )


def step(run: str, **given: object) -> Step:
    return Step.model_validate({"kind": StepKind.BUILD, "run": run, "cwd": "/", **given})


def instructions(text: str) -> list[tuple[str, str]]:
    """(name, the rest) of each instruction, its lines put together."""
    found: list[tuple[str, str]] = []
    pending = ""
    for line in text.split("\n"):
        if not pending and (line.startswith("#") or not line):
            continue
        pending += line.removesuffix("\\")
        if not line.endswith("\\"):
            name, _, rest = pending.partition(" ")
            found.append((name, rest))
            pending = ""
    assert not pending
    return found


def scripts(text: str, name: str = "RUN") -> list[str]:
    """What the instructions of that name run."""
    return [json.loads(rest)[-1] for found, rest in instructions(text) if found == name]


@given(TEXT, st.sampled_from(["STEP", "TESTS"]))
def test_a_heredoc_ends_nowhere_but_at_its_end(body: str, word: str) -> None:
    body = f"{body}\n{word}\n{word}_1"
    delimiter, text = heredoc(body, word)
    assert delimiter not in text.split("\n")
    assert text == body + "\n"


@settings(deadline=None, max_examples=50)
@given(TEXT, TEXT, NAMES, TEXT)
def test_what_a_step_runs_is_in_the_dockerfile_as_it_is(run: str, title: str, name: str, value: str) -> None:
    text = dockerfile(environment(step(f"{run}\nSTEP\nlast", title=title, env=((name, value),))))
    (script,) = scripts(text)
    assert script.endswith(f"{run}\nSTEP\nlast\n")
    assert f"export {name}={shlex.quote(value)}\n" in script
    assert scripts(text, "CMD") == ["pytest -x\n"]
    known = {"ARG", "FROM", "ENV", "WORKDIR", "RUN", "LABEL", "CMD"}
    assert {found for found, _ in instructions(text)} <= known


@settings(deadline=None, max_examples=30)
@given(TEXT, TEXT, NAMES, TEXT)
def test_a_setup_script_with_any_content_is_valid_shell(run: str, title: str, name: str, value: str) -> None:
    text = setup_script(environment(step(run, title=title, env=((name, value),), cwd=f"/a b/{title.strip() or 'c'}")))
    parsed = subprocess.run(["sh", "-n"], input=text.encode(), capture_output=True, check=False)
    assert parsed.returncode == 0, parsed.stderr


def test_exports_are_the_same_each_time() -> None:
    made = environment(step("make"), source_step("d" * 64), PATH="/opt/venv/bin:/bin")
    again = Environment.model_validate_json(made.model_dump_json())
    assert dockerfile(made) == dockerfile(again)
    assert setup_script(made) == setup_script(again)


def test_a_failed_environment_is_not_exported() -> None:
    failed = environment().model_copy(update={"recipe": None, "base": None})
    for export in (dockerfile, setup_script):
        with pytest.raises(UsageError, match="no candidate was verified"):
            export(failed)


@pytest.mark.parametrize(
    ("base", "image"),
    [(DEBIAN, "debian:bookworm"), (IMAGE, f"python:3.12@{IMAGE.digest}"), (HOST, "debian:trixie")],
    ids=["ours", "registry", "host"],
)
def test_the_dockerfile_starts_from_what_the_base_is_elsewhere(base: BaseRef, image: str) -> None:
    text = dockerfile(environment(base=base))
    assert f"\nARG BASE={image}\n" in text
    assert "\nFROM ${BASE}\n" in text
    assert ("not verified on it" in text) is (base is HOST)
    assert (base.digest in text) is (base is not HOST)


def test_a_local_tree_is_copied_where_the_recipe_places_it() -> None:
    text = dockerfile(environment(step("first"), source_step("d"), step("second")))
    assert text.index("first") < text.index("\nCOPY . /repo\n") < text.index("second")


def test_a_tree_that_can_be_fetched_needs_no_context() -> None:
    fetch = "git clone -- https://example.org/demo.git .\ngit checkout abc"
    made = environment(step("first"), source_step("d"), fetch=fetch, origin="https://example.org/demo.git")
    text = dockerfile(made)
    assert "docker build -t NAME - < Dockerfile" in text
    assert "COPY . " not in text
    assert text.index("git clone -- https://example.org/demo.git .") < text.index("\nCOPY --from=source /repo /repo\n")
    assert any(fetch in script for script in scripts(text))
    assert fetch in setup_script(made)


def test_an_address_on_this_machine_is_not_fetched_elsewhere() -> None:
    text = dockerfile(environment(source_step("d"), fetch="git clone -- file:///srv/demo .", origin="file:///srv/demo"))
    assert "git clone" not in text
    assert "COPY . /repo" in text


def test_no_password_gets_into_exports() -> None:
    made = environment(source_step("d"), origin="https://me:hunter2@example.org/demo.git")
    assert "hunter2" not in dockerfile(made)
    assert "hunter2" not in setup_script(made)


def test_failures_are_never_hidden() -> None:
    text = dockerfile(environment(step("make")))
    assert "|| true" not in text
    runs = [json.loads(rest) for name, rest in instructions(text) if name in {"RUN", "CMD"}]
    assert all(words[:3] == ["/bin/sh", "-eu", "-c"] for words in runs)


def test_nothing_is_needed_that_only_some_builders_know() -> None:
    text = dockerfile(
        environment(step("cat <<EOF\nEOF", title="x", caches=("uv", "apt", "pip")), step("b", network=False))
    )
    assert not re.search(r"<<|^(RUN|COPY) --(?!from)|^SHELL|^# *syntax", text, re.MULTILINE)


def test_downloads_are_not_kept() -> None:
    script = scripts(dockerfile(environment(step("a", caches=("uv", "apt", "pip")))))[0]
    assert "export UV_NO_CACHE=1\n" in script
    assert "export PIP_NO_CACHE_DIR=1\n" in script
    assert script.endswith("\na\napt-get clean\n")


def test_only_steps_with_a_network_are_told_of_other_certificates() -> None:
    first, second = scripts(dockerfile(environment(step("a"), step("b", network=False))))
    assert "CA_CERTIFICATE" in first
    assert second == "b\n"


def test_values_of_the_environment_are_not_expanded() -> None:
    text = dockerfile(environment(A='x "y" $HOME \\'))
    assert 'ENV A="x \\"y\\" \\$HOME \\\\"' in text


# --- setup.sh, run for real on folders of this machine ------------------------------------------------------------


def localized(text: str, root: Path) -> str:
    """The script with the places of the sandbox moved below `root`, and the release of this machine."""
    return text.replace("/opt/venv", f"{root}/venv").replace("/repo", f"{root}/repo")


def run_script(made: Environment, root: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    script = root / "setup.sh"
    script.write_text(localized(setup_script(made), root))
    return subprocess.run(
        ["sh", str(script), *args],
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
        env={"PATH": os.environ["PATH"], **env},
    )


ANYWHERE = DEBIAN.model_copy(update={"release": None})


def demo(root: Path, *steps: Step, **given: str) -> Environment:
    (root / "src").mkdir(exist_ok=True)
    (root / "src" / "file").write_text("content")
    return environment(*steps, base=ANYWHERE, **given)


@pytest.mark.root
def test_the_script_places_the_tree_and_runs_the_steps_in_order(tmp_path: Path) -> None:
    steps = (
        step(f'mkdir -p {tmp_path}/out; printf %s "$A" > {tmp_path}/out/a', env=(("A", 'it\'s "$HOME" `x`\nand'),)),
        source_step("d"),
        step("cp file ../out/b; env > ../out/env", cwd="/repo"),
    )
    done = run_script(
        demo(tmp_path, *steps, test="cat file"), tmp_path, "--test", "src", https_proxy="http://p", SECRET="s"
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/a").read_text() == 'it\'s "$HOME" `x`\nand'
    assert (tmp_path / "out/b").read_text() == "content"
    assert done.stdout.endswith("content")
    env = (tmp_path / "out/env").read_text()
    assert "https_proxy=http://p" in env
    assert "SECRET" not in env


@pytest.mark.root
def test_the_script_stops_at_the_first_step_that_fails(tmp_path: Path) -> None:
    done = run_script(
        demo(tmp_path, step("false; true"), step(f"touch {tmp_path}/late"), source_step("d")), tmp_path, "src"
    )
    assert done.returncode == 1
    assert "this step failed with exit code 1" in done.stderr
    assert not (tmp_path / "late").exists()


@pytest.mark.root
def test_the_tests_decide_the_exit_of_the_script(tmp_path: Path) -> None:
    made = demo(tmp_path, source_step("d"), test="exit 3")
    assert run_script(made, tmp_path, "src").returncode == 0
    done = run_script(made, tmp_path, "--only-test")
    assert (done.returncode, "exit code 3" in done.stderr) == (1, True)


REFUSALS: dict[str, tuple[list[str], dict[str, str], str]] = {
    "another release": (["src"], {"release": "sarge"}, "not sarge"),
    "a strange release": (["src"], {"release": "$(touch done) '\"`"}, "not $(touch done) '\"`"),
    "no source": ([], {}, "source tree is missing"),
    "a source that is no folder": (["setup.sh"], {}, "is not a folder"),
    "two sources": (["src", "src"], {}, "only one SOURCE"),
    "an unknown option": (["--what", "src"], {}, "unknown option"),
}


@pytest.mark.root
@pytest.mark.parametrize("name", REFUSALS)
def test_the_script_refuses_with_a_reason_before_it_does_anything(tmp_path: Path, name: str) -> None:
    args, base, why = REFUSALS[name]
    made = demo(tmp_path, step(f"touch {tmp_path}/done"), source_step("d"))
    done = run_script(made.model_copy(update={"base": ANYWHERE.model_copy(update=base)}), tmp_path, *args)
    assert done.returncode == 2
    assert why in done.stderr
    assert not (tmp_path / "done").exists()


@pytest.mark.root
def test_force_goes_on_and_says_so(tmp_path: Path) -> None:
    made = demo(tmp_path, source_step("d")).model_copy(update={"base": DEBIAN.model_copy(update={"release": "sarge"})})
    done = run_script(made, tmp_path, "--force", "src")
    assert done.returncode == 0, done.stderr
    assert "going on, although" in done.stderr


@pytest.mark.root
def test_the_script_fetches_the_tree_when_none_is_given(tmp_path: Path) -> None:
    made = demo(
        tmp_path, source_step("d"), fetch="echo fetched > file", origin="https://example.org/x", test="cat file"
    )
    done = run_script(made, tmp_path, "--test")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("fetched\n")


def test_help_prints_the_usage(tmp_path: Path) -> None:
    done = run_script(demo(tmp_path), tmp_path, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: sh setup.sh")


@pytest.mark.parametrize("shell", ["sh", "dash", "bash", "busybox sh"])
def test_every_shell_can_read_the_script(tmp_path: Path, shell: str) -> None:
    words = shell.split()
    if shutil.which(words[0]) is None:
        assert shell != "sh"
        return
    script = tmp_path / "setup.sh"
    script.write_text(setup_script(environment(step("make"), source_step("d"))))
    assert subprocess.run([*words, "-n", str(script)], check=False).returncode == 0
