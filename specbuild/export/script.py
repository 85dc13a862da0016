"""The Environment as a POSIX shell script that builds it on a machine or in a container of its base."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from specbuild.environment import Environment
from specbuild.export.text import comment, committed, fetchable, headline, heredoc, one_line, title_of
from specbuild.recipe import SOURCE_DIR, VENV_DIR, BaseRef, Check, Step, StepKind
from specbuild.sandbox.passthrough import base_environment

_PASSED_ON = (
    "http_proxy https_proxy ftp_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY "
    "SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO PIP_CERT PIP_CONFIG_FILE "
    "PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST UV_CONFIG_FILE UV_DEFAULT_INDEX UV_INDEX UV_INDEX_URL "
    "UV_EXTRA_INDEX_URL UV_SYSTEM_CERTS UV_NATIVE_TLS"
)
"""Variables of the caller that steps get: how to reach package indexes, and nothing else."""

_USAGE = """
Usage: sh setup.sh [--force] [--test] [SOURCE]
  SOURCE       folder with the source tree{source}
  --force      go on where this script would refuse: not root, another release, folders that exist
  --test       run the tests when the environment is ready
  --only-test  run the tests of an environment that is ready
"""

_ARGUMENTS = """
usage() {
    sed -n 's/^# \\{0,1\\}//p' "$0" | sed -n '/^Usage:/,/^$/p'
}

fail() {
    printf 'setup.sh: %s\\n' "$1" >&2
    exit "${2:-1}"
}

force=no test=no setup=yes source=
while [ $# -gt 0 ]; do
    case "$1" in
        --force) force=yes ;;
        --test) test=yes ;;
        --only-test) test=yes setup=no ;;
        -h|--help) usage; exit 0 ;;
        -*) usage >&2; fail "unknown option $1" 2 ;;
        *) [ -z "$source" ] || fail "only one SOURCE can be given" 2; source=$1 ;;
    esac
    shift
done

refuse() {
    [ "$force" = yes ] || fail "$1 (--force goes on)" 2
    printf 'setup.sh: going on, although %s\\n' "$1" >&2
}
"""

_STEP = """
# step TITLE FOLDER NAME=VALUE... < COMMANDS: runs COMMANDS with these variables and no others
step() {{
    number=$((number + 1))
    printf '\\n== %s of %s: %s\\n' "$number" "$steps" "$1"
    folder=$2
    shift 2
    for name in {passed_on}
    do
        eval "given=\\${{$name-}}"
        [ -z "$given" ] || set -- "$name=$given" "$@"
    done
    commands=$(cat)
    (cd "$folder" && exec env -i {base} "$@" /bin/sh -eu -c "$commands" < /dev/null) ||
        fail "this step failed with exit code $?"
}}
number=0 steps={count}
"""


def setup_script(environment: Environment) -> str:
    """The text of `setup.sh`: places the source tree, runs every Step, and says how to run the tests.

    Raises UsageError for an Environment without a verified Recipe.
    """
    base, recipe, check = committed(environment)
    own = [step for step in recipe.steps if step.kind is not StepKind.SOURCE]
    source = " (default: it is fetched)" if fetchable(environment) else ""
    parts = [
        "#!/bin/sh\n" + comment("\n".join(headline(environment))),
        comment(_base_remark(base)),
        comment(_USAGE.format(source=source).strip()),
        "set -eu",
        _ARGUMENTS.strip(),
        _checks(base, environment),
        _runner(base, len(own) + fetchable(environment)),
        "setup() {\n" + "\n\n".join(_step(step, environment) for step in recipe.steps) + "\n}",
        _tests(check),
        _ending(),
    ]
    return "\n\n".join(parts) + "\n"


def _runner(base: BaseRef, count: int) -> str:
    variables = " ".join(_pairs(base_environment(base).items()))
    return _STEP.format(passed_on=_words(_PASSED_ON), base=variables, count=count).strip()


def _base_remark(base: BaseRef) -> str:
    if base.portable:
        return f"For {base.name}: run it as root in a fresh container or machine of that release."
    return (
        f"Verified on the running system of one machine ({base.name}), which cannot be had elsewhere: packages that\n"
        "were installed there beforehand may be missing on another machine."
    )


def _checks(base: BaseRef, environment: Environment) -> str:
    """Refuses where the steps would do something else than what was verified."""
    lines = ['if [ "$setup" = yes ]', "then"]
    lines += ['    [ "$(id -u)" -eq 0 ] || refuse "this is not root, and steps install packages"']
    if base.release:
        lines += [
            f"    wanted={shlex.quote(base.release)}",
            '    release=$(. /etc/os-release 2>/dev/null && printf %s "${VERSION_CODENAME-}") || release=unknown',
            """    [ "$release" = "$wanted" ] || refuse "this is the release ${release:-unknown}, not $wanted\"""",
        ]
    lines += [
        f'    [ ! -e {VENV_DIR} ] || refuse "{VENV_DIR} exists already"',
        f'    [ ! -e {SOURCE_DIR} ] || [ "$source" = {SOURCE_DIR} ] || refuse "{SOURCE_DIR} exists already"',
        '    [ -z "$source" ] || [ -d "$source" ] || fail "$source is not a folder" 2',
    ]
    if not fetchable(environment):
        lines += ['    [ -n "$source" ] || { usage >&2; fail "the folder with the source tree is missing" 2; }']
    return "\n".join([*lines, "fi"])


def _step(step: Step, environment: Environment) -> str:
    if step.kind is StepKind.SOURCE:
        return _source(environment)
    words = [shlex.quote(title_of(step)), shlex.quote(step.cwd), *_pairs(step.env)]
    delimiter, text = heredoc(step.run, "STEP")
    return f"step {' '.join(words)} <<'{delimiter}'\n{text}{delimiter}"


def _source(environment: Environment) -> str:
    """Copies the given folder, or fetches the tree; owned by root, as it was when it was verified."""
    copy = (
        f"    mkdir -p {SOURCE_DIR}\n"
        f'    [ "$source" = {SOURCE_DIR} ] || cp -a "$source/." {SOURCE_DIR}/\n'
        f'    chown -R "$(id -u):$(id -g)" {SOURCE_DIR}'
    )
    if not fetchable(environment):
        return f"{{\n{copy}\n}}"
    delimiter, text = heredoc(environment.repo.fetch, "FETCH")
    fetch = f"step 'fetch the source tree' {SOURCE_DIR} <<'{delimiter}'\n{text}{delimiter}"
    return f'if [ -n "$source" ]\nthen\n{copy}\nelse\n    mkdir -p {SOURCE_DIR}\n{fetch}\nfi'


def _tests(check: Check) -> str:
    step = check.whole
    words = [shlex.quote(one_line(check.reason or "run the tests")), shlex.quote(step.cwd), *_pairs(step.env)]
    delimiter, text = heredoc(step.run, "TESTS")
    return f"run_tests() {{\nnumber=0 steps=1\nstep {' '.join(words)} <<'{delimiter}'\n{text}{delimiter}\n}}"


def _ending() -> str:
    return (
        'if [ "$setup" = yes ]\nthen\n    setup\n'
        f"    printf '\\n== ready: the source tree is {SOURCE_DIR}, the environment {VENV_DIR}\\n'\nfi\n"
        'if [ "$test" = yes ]\nthen\n    run_tests\nelse\n'
        "    printf 'Run the tests with: sh %s --only-test\\n' \"$0\"\nfi"
    )


def _pairs(env: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, value in env:
        yield shlex.quote(f"{name}={value}")


def _words(names: str) -> str:
    return " \\\n        ".join(" ".join(names.split()[start : start + 6]) for start in range(0, len(names.split()), 6))
