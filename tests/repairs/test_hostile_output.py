"""What output says is nobody's promise: whatever names it brings up, repairs stay the shell text that we wrote."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal, get_args, get_origin

import pytest

from specbuild.failures import Failure, PermissionRefused, PrivilegeNeeded, SettingNeeded
from specbuild.knowledge.query import Knowledge
from specbuild.recipe import Level, StepKind
from specbuild.repairs import Case, Repair, registry, repairs_for
from specbuild.repairs.edits import InsertSteps, ReplaceWork, SetVariables, StartService, apply
from specbuild.repo.facts import CiJob, Evidence, Facts, Service, TestEnv, TestLayout
from specbuild.testing.proposals import fact, needs, revision
from specbuild.testing.python_cases import python_case
from specbuild.verify.checks import checks_for
from specbuild.verify.judge import telling

MARK = "zqx"
"""Is in every payload, and nowhere else."""

SHELL = (
    f"$(touch {MARK})",
    f"`touch {MARK}`",
    f"a;touch {MARK};b",
    f"a|touch {MARK}&",
    f"'; touch {MARK}; '",
    f'"; touch {MARK}; "',
    f"a > {MARK} < b",
    f"\\{MARK}' \\",
    f"a {MARK} # b",
    f"{{{MARK},b}}*?[a-z]~!",
    f"1.0;{MARK} $(true)",
)
"""Every one of them needs quotes."""

CONTROL = (f"a\n{MARK}", f"{MARK}\0b", f"a\r{MARK}", f"\x1b[31m{MARK}", f"{MARK}\u202eb", f"{MARK}\ud800", MARK * 5000)
"""No name of anything."""

OTHERS = (
    *(f"--index-url=https://{MARK}.example/simple", f"-e{MARK}", f"-r{MARK}", "--", "-", "", " ", "."),
    *(f"{MARK} @ https://{MARK}.example/x.tar.gz", f"git+https://{MARK}.example/x", f"https://{MARK}.example"),
    *(f"../../{MARK}", f"/repo/../{MARK}", f"~/../{MARK}", f"/root/../../repo/{MARK}", f"/tmp/../repo/{MARK}"),
    *(f"/x/site-packages/{MARK}é/y", f"/x/site-packages/../{MARK}", f"{MARK}é", f"{MARK}[extra]", f"_{MARK}_"),
    *(f"{MARK}==1.*", f">=1,{MARK}", f">=1 @ https://{MARK}.example", f"<9;python_version<'{MARK}'"),
    *(f"{MARK}-1 --pre.tar.gz", f"{MARK}:5432", f"/repo/{MARK}/.s.PGSQL.5432", f"/etc/{MARK}.sock", "PATH"),
    *("LD_PRELOAD", "GIT_SSH_COMMAND", "UV_INDEX_URL", "PIP_INDEX_URL", "SPECBUILD_CACHE_DIR", "UV_INDEX_PASSWORD"),
    *("PIP_EXTRA_INDEX_URL", "A=B_KEY", "MY KEY", f"{MARK}KEY;", "9KEY", "HTTPS_PROXY", "PYTHONPATH", "NODE_OPTIONS"),
)
HOSTILE = (*SHELL, *CONTROL, *OTHERS)

CI = Evidence(file=".github/workflows/ci.yml")
STEERING = {name: "https://evil.example/simple" for name in OTHERS if re.fullmatch(r"[A-Z_]+", name)}

FACTS = Facts(
    name=fact("thing"),
    version=fact("1.2"),
    build_backend=fact("setuptools.build_meta"),
    build_requires=(fact("setuptools"), fact("cython")),
    dependencies=(
        needs("requests>=2"),
        needs("flask"),
        needs("pytest-mock>=3", "extra:test"),
        needs("tomli", "file:ci/requirements-dev.txt"),
    ),
    packages=(fact("thing", "thing/__init__.py"),),
    make_targets=(fact("build"),),
    tests=(TestLayout(runner="pytest", paths=("tests",), files=3, settings_module="thing.settings"),),
    ci=(
        CiJob(
            provider="github",
            name="test",
            tests=True,
            env=tuple(STEERING.items()),
            services=(Service(name="db", image="postgres:15", evidence=CI),),
            evidence=CI,
        ),
    ),
    test_envs=(TestEnv(name="py", tool="tox", env=tuple(STEERING.items()), evidence=CI),),
    revision_date=revision(2021, 3, 1),
)

KINDS: dict[str, type[Any]] = {
    kind.model_fields["kind"].default: kind
    for one in get_args(get_args(Failure)[0])
    for kind in (get_args(one) or (one,))
}
MATTER = {
    # What a repairer looks at before it looks at the rest.
    "tool": ("python", "uv", "pip", "cmake", "pytest", "node", "rust"),
    "service": ("postgresql", "mysql", "redis", "rabbitmq", ""),
    "language": (),
    "because": ("", "distutils", "imp", "pkgutil.ImpImporter"),
    "module": ("cairo", "thing"),
    "need": (),
    "backend": ("setuptools.build_meta", "mesonpy"),
}


@pytest.fixture(name="all_rivals", autouse=True)
def offer_all_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the repairs that are too unlikely to be tried."""
    monkeypatch.setattr(registry, "MOST", 10_000)


def harmless(name: str, annotation: Any) -> tuple[Any, ...]:
    """What a field holds beside a payload in another one."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if annotation is float:
        return (1.0,)
    return MATTER.get(name) or (("x",) if annotation is str else ((),))


def failures_with(kind: type[Any], payload: str) -> Iterator[Failure]:
    """One of the kind for each of its fields with the payload in it, and with all that may stand beside it."""
    fields = {
        name: info.annotation
        for name, info in kind.model_fields.items()
        if name not in ("kind", "evidence", "weight", "building")
    }
    written = [name for name, annotation in fields.items() if annotation is str or get_origin(annotation) is tuple]
    for field in written or [""]:
        besides: list[dict[str, Any]] = [{}]
        for other, annotation in fields.items():
            value: tuple[Any, ...] = (payload if annotation is str else (payload,),)
            choices = value if other == field else harmless(other, annotation)
            besides = [{**beside, other: choice} for beside in besides for choice in choices]
        for beside in besides:
            yield kind(**beside, evidence=payload, building=payload)


def cases(debian: Knowledge) -> tuple[Case, ...]:
    places = (StepKind.TEST, StepKind.BUILD, StepKind.DEPENDENCIES)
    checks = checks_for(FACTS, level=Level.TESTS, test_command=None, network=False, timeout=60)
    return tuple(python_case(FACTS, at=at, knowledge=debian, checks=checks) for at in places)


def shell_texts(repair: Repair, case: Case) -> Iterator[str]:
    """What the edits bring into a recipe."""
    for edit in repair.edits:
        match edit:
            case InsertSteps():
                yield from (step.run for step in edit.steps)
            case ReplaceWork():
                yield from (work.run for work in (edit.step, edit.check.step if edit.check else None) if work)
            case StartService():
                yield edit.script
            case _:
                pass
    placed = apply(repair.edits, case.recipe, case.index).recipe
    yield telling(placed.check).run


def variables(repair: Repair) -> dict[str, str]:
    return {name: value for edit in repair.edits if isinstance(edit, SetVariables) for name, value in edit.env}


def offered(kind: type[Any], payloads: Iterable[str], debian: Knowledge) -> Iterator[tuple[str, Repair, Case]]:
    seen: set[str] = set()
    for payload in payloads:
        for failure in failures_with(kind, payload):
            for case in cases(debian):
                # As the mender makes them of a failure.
                for repair in repairs_for(failure, replace(case, subject=failure.building)):
                    key = repair.model_dump_json()
                    if key not in seen:
                        seen.add(key)
                        yield payload, repair, case


def unquoted(text: str) -> str:
    """What of a shell text is outside of single quotes: there alone the shell takes nothing for more than it is."""
    found: list[str] = []
    inside, place = [""], 0
    while place < len(text):
        sign, within = text[place], inside[-1]
        place += 1
        if within == "'":
            if sign == "'":
                inside.pop()
        elif sign == "\\" or text.startswith("$(", place - 1):
            if sign == "$":
                inside.append(")")
            found.append(text[place : place + 1])
            place += 1
        elif sign == within:
            inside.pop()
        elif sign == '"' or (sign == "'" and within != '"'):
            inside.append(sign)
        else:
            found.append(sign)
    return "".join(found)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_what_output_says_is_no_shell(name: str, debian: Knowledge) -> None:
    texts: set[str] = set()
    for payload, repair, case in offered(KINDS[name], SHELL, debian):
        for text in shell_texts(repair, case):
            assert MARK not in unquoted(text), f"{payload!r} in {text!r}"
            texts.add(text)
    for text in texts:
        done = subprocess.run(["/bin/sh", "-n", "-c", text], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{text!r}: {done.stderr}"


@pytest.mark.parametrize("name", sorted(KINDS))
def test_what_is_no_name_is_of_no_use(name: str, debian: Knowledge) -> None:
    for payload, repair, case in offered(KINDS[name], CONTROL, debian):
        for text in (*shell_texts(repair, case), *variables(repair).values(), *variables(repair), repair.title):
            assert MARK not in text, f"{payload!r} in {text!r}"


@pytest.mark.parametrize("name", sorted(KINDS))
def test_output_chooses_no_place_that_software_comes_from(name: str, debian: Knowledge) -> None:
    for payload, repair, case in offered(KINDS[name], OTHERS, debian):
        assert not {value for value in variables(repair).values() if "evil" in value}, f"{payload!r}: {repair}"
        assert not [each for each in variables(repair) if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", each)]
        for text in shell_texts(repair, case):
            for line in text.splitlines():
                if re.search(r"\b(?:install|wheel)\b|requirements|constraints|overrides|uv\.toml", line):
                    assert f"{MARK}.example" not in line, f"{payload!r} in {line!r}"
                    assert not re.search(rf"\.\./\S*{MARK}", line), f"{payload!r} in {line!r}"


@pytest.mark.parametrize("name", sorted(KINDS))
def test_output_gives_no_options(name: str, debian: Knowledge) -> None:
    options = [payload for payload in OTHERS if payload.startswith("-")]
    for payload, repair, case in offered(KINDS[name], options, debian):
        before = set(shlex.split(case.step.run))
        for text in shell_texts(repair, case):
            if "\n--" not in text:
                words = shlex.split(text)
                at = [place for place, word in enumerate(words) if word == payload and word not in ("--", "-")]
                assert not [place for place in at if words[place - 1] != "--" and payload not in before], text


@pytest.mark.parametrize("variable", sorted({"PATH", "LD_PRELOAD", "UV_INDEX_PASSWORD", *STEERING}))
def test_a_variable_that_steers_tools_is_not_set_because_output_asks_for_it(variable: str, debian: Knowledge) -> None:
    for case in cases(debian):
        assert repairs_for(SettingNeeded(variable=variable), case) == ()


def test_an_ordinary_user_s_tests_are_told_of_beside_services(debian: Knowledge) -> None:
    case = cases(debian)[0]
    check = case.recipe.check.model_copy(update={"services": (("redis", "redis-server --port 1 '&'"),)})
    case = replace(case, recipe=case.recipe.model_copy(update={"check": check}))
    (repair,) = repairs_for(PrivilegeNeeded(user="ordinary"), case)
    run = telling(apply(repair.edits, case.recipe, case.index).recipe.check).run
    script = shlex.split(run.rpartition("\n" + "setpriv ")[2])[-1]
    assert "specbuild-tally" in script
    for text in (run, script):
        subprocess.run(["/bin/sh", "-n", "-c", text], check=True)


def test_only_what_lies_in_the_tree_is_made_executable(debian: Knowledge) -> None:
    for case in cases(debian):
        for path in ("../bin/x", "/repo/../bin/x", "/usr/bin/x", "", "."):
            assert repairs_for(PermissionRefused(path=path), case) == ()
        assert repairs_for(PermissionRefused(path="run.sh"), case)


@pytest.mark.parametrize("level", [Level.TESTS, Level.COMMAND])
@pytest.mark.parametrize("name", sorted(KINDS))
def test_the_user_s_own_command_is_run_as_it_stands(name: str, level: Level, debian: Knowledge) -> None:
    command = "/opt/venv/bin/python -m pytest -r ci/requirements.txt 'my tests'"
    checks = checks_for(FACTS, level=level, test_command=command, network=False, timeout=60)
    case = python_case(FACTS, at=StepKind.TEST, knowledge=debian, checks=checks)
    for payload in ("tests", "requirements.txt", "ci/requirements.txt", "--cov", "PytestWarning", "async def", "x"):
        for failure in failures_with(KINDS[name], payload):
            for repair in repairs_for(failure, case):
                after = apply(repair.edits, case.recipe, case.index).recipe.check
                kept = dict(case.recipe.check.step.env).get("PYTEST_ADDOPTS")
                assert (after.level, after.runner, after.report) == (level, checks[0].runner, checks[0].report)
                assert dict(after.step.env).get("PYTEST_ADDOPTS") == kept, repair
                run = case.recipe.check.step.run
                assert after.step.run == run or after.step.run.endswith(f" sh -eu -c {shlex.quote(run)}"), repair


def test_every_kind_is_asked_for() -> None:
    assert len(KINDS) > 50
    assert all(next(failures_with(kind, "x")).kind == name for name, kind in KINDS.items())
