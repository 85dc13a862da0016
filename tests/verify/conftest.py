"""A real project in a private root: bubblewrap shows a source tree as /repo and an environment as /opt/venv."""

from __future__ import annotations

import shutil
import sys
import sysconfig
import time
import venv
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from pathlib import Path
from subprocess import PIPE, STDOUT

import anyio
import pytest
from anyio.streams.text import TextReceiveStream

from specbuild.recipe import SOURCE_DIR, VENV_DIR, Check, Level, Step
from specbuild.repo.facts import Facts, TestLayout
from specbuild.sandbox.contract import Checkpoint, Command, Completed, End, LineSink, Spent
from specbuild.verify import Verdict, checks_for, verify


class LocalSandbox:
    """Runs Commands one after another on folders of this machine, without any limit but time."""

    def __init__(self, root: Path, environment: Path) -> None:
        self.id = root.name
        self.parent = Checkpoint(key="local", parent=None, depth=1, size_bytes=0)
        self.spent = Spent()
        self.root = root
        for name in ("repo", "tmp"):
            (root / name).mkdir(parents=True, exist_ok=True)
        self._mounts = {SOURCE_DIR: root / "repo", "/tmp": root / "tmp", VENV_DIR: environment}

    def outside(self, path: str) -> Path:
        """Where a path of the sandbox lies on this machine."""
        for target, source in self._mounts.items():
            if path == target or path.startswith(target + "/"):
                return source / path[len(target) :].lstrip("/")
        raise FileNotFoundError(path)

    def _argv(self, command: Command) -> list[str]:
        bwrap = shutil.which("bwrap") or str(Path(sysconfig.get_path("scripts")) / "bwrap")
        words = [bwrap, "--die-with-parent", "--unshare-pid", "--proc", "/proc", "--dev", "/dev"]
        shared = [f"/{name}" for name in ("usr", "bin", "sbin", "lib", "lib64", "etc") if Path(f"/{name}").exists()]
        for path in shared:
            words += ["--ro-bind", path, path]
        for target, source in self._mounts.items():
            words += ["--bind", str(source), target]
        for path in {sys.base_prefix, sys.prefix} - {"/usr"}:  # last: they may lie below /tmp
            words += ["--ro-bind", path, path]
        return [*words, "--chdir", command.cwd, "--clearenv", *self._env(command), *command.argv]

    def _env(self, command: Command) -> list[str]:
        return [word for name, value in command.env.items() for word in ("--setenv", name, value)]

    async def run(self, command: Command, *, on_line: LineSink | None = None, log: Path | None = None) -> Completed:
        began, timed_out, output = time.monotonic(), False, ""
        async with await anyio.open_process(self._argv(command), stdin=PIPE, stdout=PIPE, stderr=STDOUT) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            with anyio.move_on_after(command.timeout) as scope:
                await process.stdin.send(command.stdin) if command.stdin else None
                await process.stdin.aclose()
                async for chunk in TextReceiveStream(process.stdout, errors="replace"):
                    output += chunk
            timed_out = scope.cancelled_caught
            if timed_out:
                process.kill()
            code = await process.wait()
        for line in output.splitlines():
            if on_line is not None:
                on_line(line)
        if log is not None:
            await anyio.Path(log).write_text(output)
        end = End.TIMEOUT if timed_out else End.EXITED if code >= 0 else End.SIGNALLED
        return Completed(
            end=end,
            exit_code=code if code >= 0 else 128 - code,
            seconds=time.monotonic() - began,
            cpu_seconds=0.0,
            peak_memory_bytes=None,
            written_bytes=0,
            tail=output[-65536:],
            log=log,
        )

    async def read_file(self, path: str, *, limit: int = 64 << 20) -> bytes:
        return await anyio.Path(self.outside(path)).read_bytes()

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        target = anyio.Path(self.outside(path))
        await target.parent.mkdir(parents=True, exist_ok=True)
        await target.write_bytes(data)
        await target.chmod(mode)

    async def copy_in(self, source: Path, target: str) -> None:
        shutil.copytree(source, self.outside(target), symlinks=True, dirs_exist_ok=True)

    async def set_cpu_weight(self, weight: int) -> None:
        del weight

    async def freeze(self, key: str) -> Checkpoint:
        raise NotImplementedError(key)


def to_command(step: Step) -> Command:
    """A Step as the engine would run it."""
    env = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", **dict(step.env)}
    return Command(argv=("/bin/sh", "-eu", "-c", step.run), cwd=step.cwd, env=env, timeout=step.timeout)


def make_environment(folder: Path, *, borrow: bool) -> Path:
    """A virtual environment; with `borrow` it also sees what is installed where these tests run."""
    venv.create(folder, symlinks=True)
    if borrow:
        site = next(folder.glob("lib/python*/site-packages"))
        (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the pytest that runs these tests."""
    return make_environment(tmp_path_factory.mktemp("environments") / "venv", borrow=True)


@pytest.fixture
def local_sandbox(tmp_path: Path, environment: Path) -> LocalSandbox:
    return LocalSandbox(tmp_path / "sandbox", environment)


Judge = Callable[..., Awaitable[Verdict]]


@pytest.fixture
def judge(local_sandbox: LocalSandbox) -> Judge:
    """Put files into /repo, verify by a check (or the first one for some facts), and give the Verdict."""

    async def run(
        files: Mapping[str, str],
        check: Check | None = None,
        *,
        facts: Facts | None = None,
        level: Level = Level.TESTS,
        min_pass_ratio: float = 0.9,
        tracked: Mapping[str, str] | None = None,
        on_line: LineSink | None = None,
    ) -> Verdict:
        for name, text in files.items():
            await local_sandbox.write_file(f"{SOURCE_DIR}/{name}", text.encode())
        facts = facts or Facts(tests=(TestLayout(runner="pytest", paths=("tests",)),))
        check = check or checks_for(facts, level=level, test_command=None, network=False, timeout=60)[0]
        digests = {name: sha256(text.encode()).hexdigest() for name, text in files.items()}
        return await verify(
            local_sandbox,
            check,
            command=to_command,
            tracked=digests if tracked is None else tracked,
            min_pass_ratio=min_pass_ratio,
            on_line=on_line,
        )

    return run
