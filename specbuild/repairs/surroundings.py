"""Repairs of what surrounds the tests: locale, time zones, git, variables, users, permissions, small data files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from specbuild.failures import (
    Failure,
    MissingData,
    MissingLocale,
    MissingTimezone,
    PermissionRefused,
    PrivilegeNeeded,
    SettingNeeded,
    VersionControlNeeded,
)
from specbuild.recipe import SOURCE_DIR, VENV_DIR, Step, StepKind
from specbuild.repairs import python_odds as odds
from specbuild.repairs.contract import Case, Repair
from specbuild.repairs.edits import Edit, InsertSteps, SetVariables
from specbuild.repairs.import_names import is_name
from specbuild.repairs.python_steps import fresh, installed, rerun
from specbuild.repairs.variables import is_settable
from specbuild.strategies import project, steps

USER = "builder"
"""The ordinary user that commands are run by which refuse to be run by root."""

_PRETEND = {
    "setuptools-scm": "SETUPTOOLS_SCM_PRETEND_VERSION",
    "hatch-vcs": "SETUPTOOLS_SCM_PRETEND_VERSION",
    "pbr": "PBR_VERSION",
}
_SECRET = re.compile(r"SECRET|KEY|TOKEN|PASSWORD|PASSWD|SALT")
_LOCALE = re.compile(r"[A-Za-z]{2,3}(?:_[A-Za-z]{2})?(?:\.[A-Za-z0-9-]{1,20})?(?:@[A-Za-z]{1,20})?")
_HOME = re.compile(r"(/root|/home/[^/]+|~)/")
_OWN_LOCALE = frozenset({"", "UTF-8", "C.UTF-8", "C", "POSIX"})


def repair_surroundings(failure: Failure, case: Case) -> Iterable[Repair]:
    """The repairs of this family that the recipe does not have yet."""
    return fresh(case, _repairs(failure, case))


def _repairs(failure: Failure, case: Case) -> Iterator[Repair]:
    match failure:
        case MissingLocale():
            yield from _locale(failure)
        case MissingTimezone():
            yield from _timezone(failure, case)
        case VersionControlNeeded():
            yield from _version_control(failure, case)
        case SettingNeeded():
            yield from _setting(failure, case)
        case PrivilegeNeeded(user="ordinary"):
            yield _ordinary_user(case)
        case PermissionRefused():
            yield from _permission(failure)
        case MissingData():
            yield from _data(failure, case)
        case _:
            return


def _variables(name: str, title: str, why: str, chance: float, *env: tuple[str, str], kept: bool = True) -> Repair:
    return Repair(
        name=name, title=title, why=why, edits=(SetVariables(env=tuple(sorted(env)), kept=kept),), probability=chance
    )


def _script(run: str, title: str, *, kind: StepKind = StepKind.SYSTEM, cwd: str = "/") -> Step:
    return Step(kind=kind, run=run, title=title, cwd=cwd, network=False)


# Locale and time zones


def _locale(failure: MissingLocale) -> Iterator[Repair]:
    yield _variables(
        "env:LC_ALL",
        "set the locale C.UTF-8",
        "every base has it, and it encodes everything",
        odds.ENCODING if failure.locale in _OWN_LOCALE else odds.WITHOUT_OPTIONS,
        ("LANG", "C.UTF-8"),
        ("LC_ALL", "C.UTF-8"),
        ("PYTHONUTF8", "1"),
    )
    if failure.locale not in _OWN_LOCALE and _LOCALE.fullmatch(failure.locale):
        yield _generated(failure.locale)
    if failure.locale != "UTF-8":
        yield Repair(
            name="apt:locales-all",
            title="install locales-all",
            why="it holds every locale",
            edits=(InsertSteps(steps=(steps.packages(["locales-all"]),)),),
            probability=odds.ANY_LOCALE,
        )


def _generated(locale: str) -> Repair:
    """The locale as `localedef` makes it: language, encoding and modifier apart."""
    name, _, rest = locale.partition(".")
    charset, _, modifier = rest.partition("@")
    if "@" in name:
        name, _, modifier = name.partition("@")
    source = f"{name}@{modifier}" if modifier else name
    run = f"localedef -i {shlex.quote(source)} -f {shlex.quote(_charset(charset))} {shlex.quote(locale)}"
    return Repair(
        name=f"locale:{locale}",
        title=f"generate the locale {locale}",
        why=f"the tests ask for {locale}, which no base has",
        edits=(InsertSteps(steps=(steps.packages(["locales"]), _script(run, f"generate the locale {locale}"))),),
        probability=odds.GENERATED,
    )


def _charset(text: str) -> str:
    if not text:
        return "ISO-8859-1"  # what glibc takes for a locale without an encoding, in most of the languages that have one
    return "UTF-8" if text.lower().replace("-", "") == "utf8" else text


def _timezone(failure: MissingTimezone, case: Case) -> Iterator[Repair]:
    """Beside Debian's own data of them, for which see `system`."""
    yield Repair(
        name="pip:tzdata",
        title="install tzdata from the package index",
        why=f"Python's zoneinfo falls back to it, and it has {failure.zone}",
        edits=(installed(case, ("tzdata",), newest=("tzdata",)),),
        probability=odds.ZONES_BY_PIP,
    )


# Version control


def _version_control(failure: VersionControlNeeded, case: Case) -> Iterator[Repair]:
    match failure.need:
        case "tags":
            yield from _pretended(failure.by, case, odds.PRETENDED)
            yield _repository(case, odds.REPOSITORY)
        case "repository":
            yield _repository(case, odds.REPOSITORY)
            yield from _pretended(failure.by, case, odds.REPOSITORY * odds.RIVAL)
        case "ownership":
            yield _git("safe.directory", "trust the source tree", ("safe.directory", "*"))
        case "identity":
            yield _git("identity", "tell git who commits", ("user.name", USER), ("user.email", f"{USER}@localhost"))
        case "file-protocol":
            yield _git("file-protocol", "let git clone from folders", ("protocol.file.allow", "always"))


def _pretended(by: str, case: Case, chance: float) -> Iterator[Repair]:
    """Variables that tell the version; of all tools that know one where nobody told which it is."""
    version = case.facts.version.value if case.facts.version else project.UNKNOWN_VERSION
    tool = by or (case.facts.scm_version.value if case.facts.scm_version else "")
    known = _PRETEND.get(tool.replace("_", "-")) or dict(project.version_env(case.facts)).keys()
    names = {known} if isinstance(known, str) else set(known) or set(_PRETEND.values())
    env = tuple((name, version) for name in sorted(names))
    yield _variables(
        f"env:{'+'.join(sorted(names))}",
        f"tell the version {version}",
        f"{tool or 'the build'} cannot read it from tags that are not there",
        chance,
        *env,
        kept=False,
    )


def _repository(case: Case, chance: float) -> Repair:
    """A repository of one commit with a tag of the version. Only `.git` is written, which is not tracked."""
    version = case.facts.version.value if case.facts.version else project.UNKNOWN_VERSION
    run = (
        "if ! git rev-parse --verify --quiet HEAD > /dev/null\nthen\n"
        "    git init --quiet\n    git add --all\n"
        f"    git -c user.name={USER} -c user.email={USER}@localhost commit --quiet --no-verify --message import\n"
        "fi\n"
        f"git describe --tags --exact-match > /dev/null 2>&1 || git tag {shlex.quote('v' + version)}"
    )
    made = _script(run, "make a git repository with a tag", cwd=SOURCE_DIR)
    trust = _script("git config --system --add safe.directory '*'", "trust the source tree")
    return Repair(
        name="git:init",
        title=f"make a git repository of the tree with the tag v{version}",
        why="the sources came without their history",
        edits=(InsertSteps(steps=(steps.packages(["git"]), trust, made)),),
        probability=chance,
    )


def _git(name: str, title: str, *settings: tuple[str, str]) -> Repair:
    """Settings of the whole system, which hold for any user and whatever HOME is."""
    run = "\n".join(f"git config --system --add {key} {shlex.quote(value)}" for key, value in settings)
    return Repair(
        name=f"git:{name}",
        title=title,
        why="git itself asks for this setting",
        edits=(InsertSteps(steps=(_script(run, title),)),),
        probability=odds.GIT_SETTING,
    )


# Variables


def _setting(failure: SettingNeeded, case: Case) -> Iterator[Repair]:
    variable = failure.variable
    if not is_settable(variable):
        return
    for rank, (value, where) in enumerate(dict.fromkeys(_noted(variable, case))):
        yield Repair(
            name=f"env:{variable}" if not rank else f"env:{variable}={value}",
            title=f"set {variable}={value}",
            why=f"{where} sets it",
            edits=(SetVariables(env=((variable, value),), kept=True),),
            probability=odds.NOTED_SETTING * odds.RIVAL**rank,
            source="facts",
        )
    if _SECRET.search(variable):
        why = "a secret that tests only need to be there"
        yield _variables(f"env:{variable}", f"set {variable}", why, odds.MADE_UP_SETTING, (variable, "not-a-secret"))
    elif variable in ("DATABASE_URL", "DB_URL"):
        why = "a database without a server will do for most tests"
        value = "sqlite:////tmp/test.sqlite"
        yield _variables(f"env:{variable}", f"set {variable}={value}", why, odds.MADE_UP_SETTING, (variable, value))


def _noted(variable: str, case: Case) -> Iterator[tuple[str, str]]:
    """Values that the project itself gives to a variable, and where."""
    facts = case.facts
    if variable == "DJANGO_SETTINGS_MODULE":
        for layout in facts.tests:
            if layout.settings_module:
                yield layout.settings_module, next((one.file for one in layout.evidence), "the project")
    for env in facts.test_envs:
        yield from ((value, env.evidence.file) for name, value in env.env if name == variable and _plain(value))
    for job in sorted(facts.ci, key=lambda job: not job.tests):
        yield from ((value, job.evidence.file) for name, value in job.env if name == variable and _plain(value))
    export = re.compile(rf"(?:^|\s|export ){re.escape(variable)}=(?P<value>[^\s;&|]+)", re.MULTILINE)
    for job in facts.ci:
        for fact in job.run:
            found = export.search(fact.value)
            if found and _plain(found["value"]):
                yield found["value"].strip("'\""), fact.evidence.file


def _plain(value: str) -> bool:
    """Whether a value is one, not an expression that only its own tool can expand."""
    return bool(value) and not re.search(r"\$|\{\{|\{[a-z]+:?", value)


# Users and permissions


def _ordinary_user(case: Case) -> Repair:
    """The command by an ordinary user; it owns the tree, the environment, and what checks write."""
    owned = f"{SOURCE_DIR} {VENV_DIR}"
    make = (
        f"id {USER} > /dev/null 2>&1 || useradd --create-home --shell /bin/sh {USER}\n"
        f"for folder in {owned}; do [ ! -e $folder ] || chown -R {USER}: $folder; done"
    )
    inner = shlex.quote(case.step.run)
    run = f"setpriv --reuid={USER} --regid={USER} --init-groups env HOME=/home/{USER} USER={USER} sh -eu -c {inner}"
    return Repair(
        name="user:ordinary",
        title="run it as an ordinary user",
        why="it refuses to be run by root",
        edits=(InsertSteps(steps=(_script(make, f"make the user {USER}"),)), rerun(case, run=run)),
        probability=odds.ORDINARY_USER,
    )


def _permission(failure: PermissionRefused) -> Iterator[Repair]:
    """Scripts of the tree that lost their bit; contents stay as they are, so the tree is not tainted."""
    path = failure.path
    outside = path.startswith("/") and not path.startswith(f"{SOURCE_DIR}/")
    if outside or not path.strip("./") or ".." in path.split("/"):
        return
    run = f"chmod a+x -- {shlex.quote(path)}"
    yield Repair(
        name=f"chmod:{path}",
        title=f"make {path} executable",
        why="archives and copies forget who may run what",
        edits=(InsertSteps(steps=(_script(run, f"make {path} executable", cwd=SOURCE_DIR),)),),
        probability=odds.EXECUTABLE,
    )


# Data


def _data(failure: MissingData, case: Case) -> Iterator[Repair]:
    """Files in a home that programs take for granted; files of a distribution that it should have brought."""
    found = re.search(r"/site-packages/(?P<package>[\w]+)/", failure.path)
    edits: tuple[Edit, ...]
    if ".." in failure.path.split("/"):
        return
    if found and is_name(found["package"]):
        edits = (installed(case, (found["package"],), "--reinstall-package", found["package"]),)
        title, why, chance = f"install {found['package']} anew", "its files are not complete", odds.REINSTALLED
        yield Repair(name=f"pip:again-{found['package']}", title=title, why=why, edits=edits, probability=chance)
    elif not found and _HOME.match(failure.path):
        path = shlex.quote(failure.path)
        if failure.path.startswith("~/"):
            path = f'"$HOME"/{shlex.quote(failure.path[2:])}'
        run = f'mkdir -p "$(dirname {path})"\ntouch {path}'
        edits = (InsertSteps(steps=(_script(run, f"make an empty {failure.path}"),)),)
        yield Repair(
            name=f"touch:{failure.path}",
            title=f"make an empty {failure.path}",
            why="the program takes it for granted that there is one",
            edits=edits,
            probability=odds.PLACEHOLDER,
        )
