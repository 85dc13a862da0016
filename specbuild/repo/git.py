"""Run git on repositories that nobody vouches for, without writing to them, asking anyone or running their hooks."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from subprocess import DEVNULL, PIPE

import anyio
from anyio.abc import ByteReceiveStream, Process

from specbuild.errors import (
    NotARepositoryError,
    RepoAccessError,
    RepoError,
    RepoNotFoundError,
    RepoSchemeError,
    RepoToolMissingError,
    TransientError,
)
from specbuild.urls import without_credentials

# `git rev-parse --local-env-vars`, without those that hold configuration: they would point git at another repository.
_LOCAL_VARIABLES = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_NAMESPACE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)

_CONFIG = {
    "advice.detachedHead": "false",
    "core.fsmonitor": "false",  # would run what the repository names
    "core.hooksPath": os.devnull,
    "core.quotePath": "false",
    "gc.auto": "0",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
    "log.showSignature": "false",
    "maintenance.auto": "false",
}

_SSH = "ssh -o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=15"

_REFUSED = re.compile(
    "Authentication failed|could not read (Username|Password)|Permission denied|terminal prompts disabled|"
    "returned error: (401|403|407)|Host key verification failed|[Aa]ccess denied"
)
_ABSENT = re.compile(
    "repository '.*' not found|[Rr]epository not found|returned error: (404|410)|does not appear to be a git|"
    "is this a git repository|does not exist|No such file or directory|[Nn]o such repository"
)
_PASSING = re.compile(
    "Could not resolve (host|proxy)|[Cc]onnection (refused|reset|timed out|closed)|[Oo]peration t(imed|oo slow)|"
    "Failed to connect|Couldn't connect|Network is unreachable|name resolution|early EOF|RPC failed|"
    r"unexpected disconnect|hung up unexpectedly|returned error: (408|425|429|5\d\d)|unable to access|timed out"
)
_UNTRUSTED = re.compile("certificate (problem|verification failed)|unable to get local issuer")
_FOREIGN = re.compile("dubious ownership|unsafe repository")
_NO_TRANSPORT = re.compile("transport '.*' not allowed|[Uu]nable to find remote helper")
_NO_REPOSITORY = re.compile("[Nn]ot a git repository|not valid: ")

# In this order: git ends most of its complaints with a guess at the network.
_TROUBLE: tuple[tuple[re.Pattern[str], type[RepoError | TransientError], str], ...] = (
    (_FOREIGN, RepoAccessError, "let git trust it: git config --global --add safe.directory PATH"),
    (_REFUSED, RepoAccessError, "give git credentials for it (a credential helper, an ssh key, a known host key)"),
    (_UNTRUSTED, RepoAccessError, "name your proxy's certificates in GIT_SSL_CAINFO or http.sslCAInfo"),
    (_NO_TRANSPORT, RepoSchemeError, "use a transport that git allows"),
    (
        _ABSENT,
        RepoNotFoundError,
        "check the address; a private repository looks like this when credentials are missing",
    ),
    (_PASSING, TransientError, "try again later; behind a proxy set HTTPS_PROXY"),
    (_NO_REPOSITORY, NotARepositoryError, "name a folder, an archive or a git URL"),
)


class GitFailed(Exception):  # noqa: N818 - becomes one of our errors in `explain`
    """git ended with an error."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.words = words
        self.code = code


@dataclass(frozen=True, slots=True)
class Git:
    """git, run in one folder, with a scratch folder for its settings."""

    folder: Path
    scratch: Path
    """Emptied and filled by `prepare_scratch`."""
    config: tuple[tuple[str, str], ...] = ()
    """Further settings, for every call."""

    async def run(self, *arguments: str | bytes) -> bytes:
        """What git prints. Raises GitFailed, RepoToolMissingError."""
        settings = {**_CONFIG, **dict(self.config)}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return await _run(["git", *options, *arguments], self.folder, git_environment(self.scratch))

    async def line(self, *arguments: str) -> str:
        """The first line that git prints, without its end."""
        return os.fsdecode((await self.run(*arguments)).split(b"\n", 1)[0])

    async def names(self, *arguments: str) -> list[str]:
        """The names that git prints when told to end each with a zero byte."""
        return [os.fsdecode(name) for name in (await self.run(*arguments)).split(b"\0") if name]


def prepare_scratch(scratch: Path) -> None:
    """Write the settings file that makes git trust folders of other owners, on top of the user's own settings.

    `safe.directory` counts only in a file, and only there is it handed to the git that serves a local clone.
    """
    (scratch / "template").mkdir(parents=True, exist_ok=True)
    home = Path(os.environ.get("HOME") or Path.home())
    own = os.environ.get("GIT_CONFIG_GLOBAL")
    xdg = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config"
    files = [Path(own)] if own else [xdg, home / ".gitconfig"]
    # Before the user's own settings, so that they can have another.
    ssh = "" if os.environ.get("GIT_SSH") else f'[core]\n\tsshCommand = "{_SSH}"\n'
    lines = [f'[include]\n\tpath = "{_quoted(str(path))}"\n' for path in files]
    (scratch / "gitconfig").write_text(ssh + "".join(lines) + "[safe]\n\tdirectory = *\n")


def git_environment(scratch: Path) -> dict[str, str]:
    """The caller's variables, minus those that lead git elsewhere, plus those that keep it quiet and harmless."""
    env = {name: value for name, value in os.environ.items() if name not in _LOCAL_VARIABLES}
    return {
        **env,
        "GCM_INTERACTIVE": "never",
        "GIT_CONFIG_GLOBAL": str(scratch / "gitconfig"),
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TEMPLATE_DIR": str(scratch / "template"),
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def explain(failure: GitFailed, what: str) -> RepoError | TransientError:
    """The error that tells a user what became of `what`, an address or folder."""
    shown = without_credentials(what)
    words = re.sub(r"://[^/@\s]+@", "://", failure.words).strip()
    for pattern, kind, hint in _TROUBLE:
        if pattern.search(words):
            return kind(f"git cannot read {shown}: {_gist(words)}", hint=hint)
    return RepoError(f"git cannot read {shown} (exit {failure.code}): {_gist(words)}")


async def commit_date(git: Git, commit: str) -> datetime | None:
    """When the commit was made, UTC; None for a date that no calendar has."""
    try:
        return datetime.fromtimestamp(int(await git.line("log", "-1", "--format=%ct", commit)), UTC)
    except (ValueError, OverflowError, OSError):
        return None


async def tracked_files(git: Git) -> list[str]:
    """What git tracks in its folder and in the submodules that are there, relative to the folder."""
    found: list[str] = []
    for record in await git.names("ls-files", "--cached", "--stage", "-z"):
        about, _, path = record.partition("\t")
        if not about.startswith("160000 "):
            found.append(path)
        elif os.path.lexists(git.folder / path / ".git"):  # noqa: ASYNC240
            inner = Git(git.folder / path, git.scratch, git.config)
            found.extend(f"{path}/{name}" for name in await tracked_files(inner))
    return list(dict.fromkeys(found))


def _gist(words: str) -> str:
    """The lines that say what went wrong."""
    lines = [line for line in words.splitlines() if line.startswith(("fatal:", "error:", "ssh:", "remote:"))]
    return "; ".join(line.removeprefix("fatal: ") for line in (lines or words.splitlines())[-4:]) or "no reason given"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


async def _run(command: Sequence[str | bytes], folder: Path, env: Mapping[str, str]) -> bytes:
    if shutil.which("git", path=env.get("PATH")) is None:
        raise RepoToolMissingError("git is not installed", hint="install it: apt-get install git")
    process = await anyio.open_process(
        command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, cwd=folder, env=env, start_new_session=True
    )
    out, err = bytearray(), bytearray()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_drain, process.stdout, out, None)
            tasks.start_soon(_drain, process.stderr, err, 64 << 10)
        code = await process.wait()
    finally:
        await _end(process)
    if code != 0:
        raise GitFailed(code, err.decode("utf-8", "replace"))
    return bytes(out)


async def _drain(stream: ByteReceiveStream | None, into: bytearray, keep: int | None) -> None:
    """Read to the end, so that git never waits for us; of much output only the newest is kept."""
    if stream is None:
        return
    async for chunk in stream:
        into += chunk
        if keep is not None and len(into) > 2 * keep:
            del into[:-keep]


async def _end(process: Process) -> None:
    """Kill git and its helpers (ssh, git-remote-https), if any are left, and wait a bounded time for it."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(5):
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        await process.aclose()
