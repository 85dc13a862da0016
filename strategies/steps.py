"""The canonical Steps: written in one way only, so that candidates share as much of their prefix as they can."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from specbuild.recipe import SOURCE_DIR, UV, VENV_DIR, BaseRef, Step, StepKind

UV_VERSION = "0.13.9"
"""The uv that does the resolving and installing; pinned, since it is part of what a Recipe promises."""

PATH = f"{VENV_DIR}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""`PATH` of the finished environment."""

ACTIVE: tuple[tuple[str, str], ...] = (("PATH", PATH), ("VIRTUAL_ENV", VENV_DIR))
"""What makes the project's virtual environment the current one."""

BASICS = ("ca-certificates", "python3", "python3-venv", "tzdata")
"""An interpreter and what its standard library takes for granted: trusted certificates and the time zones."""

_UV_TOLD = (("RUST_LOG", "uv_build_frontend=debug"),)
"""uv passes on what builds print while they run; else it is told at the end of those that fail, too late to act on."""

_UV_ENV = (*ACTIVE, ("UV_LINK_MODE", "copy"), ("UV_NO_PROGRESS", "1"), ("UV_PYTHON_DOWNLOADS", "never"), *_UV_TOLD)
_UV_ALONE = (("UV_NO_CONFIG", "1"),)
"""uv as an installer alone: settings that developers keep for their own uv may refuse this one (`required-version`).
What the host says of indexes comes by variables and holds."""

_WHEELS = "/usr/share/python-wheels"
"""Where Debian, Ubuntu and Fedora keep the wheels that `ensurepip` installs, and those that their pip is made of."""

_INSTALL = "apt-get install -y -qq --no-install-recommends"
_APT_ENV = (("DEBIAN_FRONTEND", "noninteractive"),)


def words(items: Iterable[str]) -> str:
    """Shell words, quoted where needed."""
    return " ".join(shlex.quote(item) for item in items)


def system(base: BaseRef) -> Step:
    """The Step that brings the base's own interpreter."""
    run = f"apt-get update -qq\n{_INSTALL} {words(BASICS)}"
    if not base.portable:
        # `host` has an interpreter, which must not get a second one beside it.
        run = f"python3 -c 'import ensurepip, venv' || {{\n{run}\n}}"
    elif not base.name.startswith(("debian:", "ubuntu:")):
        # So have images such as `python:3.12`, which come without package lists, or have no apt at all.
        lists = "! command -v apt-get >/dev/null || apt-get update -qq"
        run = f"{lists}\npython3 -c 'import ensurepip, venv' || {_INSTALL} {words(BASICS)}"
    return _apt(run, "install Python")


def packages(names: Iterable[str]) -> Step:
    """The Step that installs further system packages; the package lists are there since `system`."""
    chosen = sorted(set(names))
    return _apt(f"{_INSTALL} {words(chosen)}", f"install {', '.join(chosen)}")


def fresh_packages(names: Iterable[str]) -> Step:
    """The same for names that may differ between releases: those that the release lacks are named and left out."""
    chosen = sorted(set(names))
    run = (
        f"for name in {words(chosen)}; do\n"
        '  if apt-cache policy "$name" | grep -q "Candidate: [^(]"; then set -- "$@" "$name"\n'
        '  else echo "no such package: $name" >&2; fi\n'
        "done\n"
        f'if [ "$#" -gt 0 ]; then {_INSTALL} "$@"; fi'
    )
    return _apt(run, f"install {', '.join(chosen)} where there")


def toolchain() -> Step:
    """The Step that brings uv, in an environment of its own, and makes the project's virtual environment."""
    install = f"pip install --quiet --disable-pip-version-check --no-compile uv=={UV_VERSION}"
    run = (
        # The distribution's pip is run from its wheel, which saves the second or two that installing pip itself takes.
        f"if ls {_WHEELS}/pip-*.whl >/dev/null 2>&1; then\n"
        "  python3 -m venv --without-pip /opt/uv\n"
        f'  PYTHONPATH="$(echo {_WHEELS}/*.whl | tr " " :)" /opt/uv/bin/python -m {install}\n'
        "else\n"
        "  python3 -m venv /opt/uv\n"
        f"  /opt/uv/bin/{install}\n"
        "fi\n"
        f'{UV} venv --quiet --clear --python "$(command -v python3)" {VENV_DIR}'
    )
    env = (("UV_PYTHON_DOWNLOADS", "never"),)
    return Step(kind=StepKind.TOOLCHAIN, run=run, title=f"install uv {UV_VERSION}", cwd="/", env=env, caches=("pip",))


def uv(
    run: str,
    title: str,
    *,
    kind: StepKind = StepKind.DEPENDENCIES,
    env: Iterable[tuple[str, str]] = (),
    settings: bool = False,
    outside: bool = False,
) -> Step:
    """A Step of uv commands inside the source tree, without uv's own `settings` of the project unless they are asked.

    With `outside` it wants nothing of the tree, so that what it installs serves other revisions too.

    Builds of the tree itself must keep out of the shared cache: uv names them by path and modification time, and the
    path is the same in every sandbox. They say `--no-cache`.
    """
    caches = () if kind is StepKind.BUILD else ("uv",)
    alone = () if settings else _UV_ALONE
    cwd = "/" if outside else SOURCE_DIR
    return Step(kind=kind, run=run, title=title, cwd=cwd, env=(*_UV_ENV, *alone, *env), caches=caches)


def end_of(moment: datetime) -> str:
    """The end of that day in UTC, for `--exclude-newer`; a bare date would be read in the sandbox's local time zone."""
    following = moment.astimezone(UTC) + timedelta(days=1)
    return following.strftime("%Y-%m-%dT00:00:00Z")


def _apt(run: str, title: str) -> Step:
    return Step(kind=StepKind.SYSTEM, run=run, title=title, cwd="/", env=_APT_ENV, caches=("apt",))
