"""An engine in a process of its own, perhaps another user's: for tests of what an engine's death or rights mean.

    with Remote.start(store, base, user="sbtest") as engine:
        assert engine.run("id -u").tail.strip() == "0"

Each `run` is one Command in a fresh fork of the base. The two sides speak lines of JSON over the child's pipes.
"""

from __future__ import annotations

import base64
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from specbuild.errors import SandboxError
from specbuild.sandbox.contract import (
    Backend,
    BaseSource,
    Bind,
    Command,
    Completed,
    End,
    HostRoot,
    ImageLayer,
    ImageLayers,
    Limits,
    RootfsTar,
)
from specbuild.testing.trial import ENVIRONMENT

_BASE_KEY = "0" * 63 + "e"


@dataclass(frozen=True, slots=True)
class Ended:
    """What the other side tells of a `Completed`."""

    end: End
    exit_code: int
    tail: str
    note: str


class Remote:
    """The near side: a handle of the engine's process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    @staticmethod
    @contextmanager
    def start(
        store: Path,
        base: BaseSource | Sequence[tuple[str, Path]],
        *,
        user: str | None = None,
        env: dict[str, str] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> Generator[Remote]:
        """An engine on the store; ended with the `with`, by closing its input.

        Layers of an image are given by digest and file.
        """
        source = _told(base)
        python, path = interpreter(user)
        command = [python, "-m", "specbuild.testing.remote", str(store), json.dumps(source)]
        account = pwd.getpwnam(user) if user else None
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
            env={**_environment(account.pw_dir if account else None, path), **(env or {})},
            pass_fds=pass_fds,
        )
        engine = Remote(process)
        try:
            engine.receive()
            yield engine
        except BaseException:
            process.kill()
            raise
        finally:
            with process:  # closes its input, which ends it, and waits
                pass

    def run(
        self,
        script: str,
        *words: str,
        network: bool = False,
        timeout: float = 60.0,
        limits: Limits | None = None,
        binds: Sequence[Bind] = (),
    ) -> Ended:
        """Run a script by /bin/sh in a fresh fork of the base."""
        self.begin(script, *words, network=network, timeout=timeout, limits=limits, binds=binds)
        return self.result()

    def begin(
        self,
        script: str,
        *words: str,
        network: bool = False,
        timeout: float = 60.0,
        limits: Limits | None = None,
        binds: Sequence[Bind] = (),
    ) -> None:
        """Start a script without waiting for its `result`."""
        shown = [[str(bind.source), bind.target, bind.writable] for bind in binds]
        bounds = asdict(limits or Limits())
        argv = ["/bin/sh", "-c", script, "sh", *words]
        self._send(op="run", argv=argv, network=network, timeout=timeout, limits=bounds, binds=shown)

    def result(self) -> Ended:
        """How the script that was begun has ended."""
        answer = self.receive()
        return Ended(End(answer["end"]), answer["exit_code"], answer["tail"], answer["note"])

    def read(self, setup: str, path: str) -> bytes | str:
        """`read_file` after a script: the bytes, or the name of the error."""
        self._send(op="read", setup=setup, path=path)
        answer = self.receive()
        return answer["error"] if "error" in answer else base64.b64decode(answer["data"])

    def write(self, setup: str, path: str, data: bytes) -> str:
        """`write_file` after a script: the name of the error, or nothing."""
        self._send(op="write", setup=setup, path=path, data=base64.b64encode(data).decode())
        return str(self.receive().get("error", ""))

    def copy(self, setup: str, source: Path, target: str) -> str:
        """`copy_in` after a script: the name of the error, or nothing."""
        self._send(op="copy", setup=setup, source=str(source), target=target)
        return str(self.receive().get("error", ""))

    def receive(self) -> dict[str, Any]:
        """The next answer. Raises SandboxError when the engine has ended instead."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SandboxError(f"the engine has ended with status {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "broken" in answer:
            raise SandboxError(answer["broken"])
        return answer

    def _send(self, **request: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()


def interpreter(user: str | None) -> tuple[str, str]:
    """An interpreter that the user can execute, and the PYTHONPATH with which it finds what this one finds."""
    path = os.pathsep.join(dict.fromkeys([str(Path(__file__).parents[2]), *filter(_is_packages, sys.path)]))
    account = pwd.getpwnam(user) if user else None
    for python in (sys.executable, shutil.which("python3", path="/usr/local/bin:/usr/bin")):
        if python and _works(python, path, account):
            return python, path
    raise SandboxError(f"no Python interpreter here can be used by {user}", hint="install python3 outside of any home")


def _told(base: BaseSource | Sequence[tuple[str, Path]]) -> dict[str, Any]:
    match base:
        case RootfsTar(path):
            return {"tar": str(path)}
        case HostRoot(masked):
            return {"masked": list(masked)}
        case ImageLayers():
            raise TypeError("what fetches layers cannot be told to another process")
        case files:
            return {"layers": [[diff_id, str(path)] for diff_id, path in files]}


def _source(told: dict[str, Any]) -> BaseSource:
    if "layers" in told:
        return ImageLayers(tuple(ImageLayer(diff_id, _there(Path(path))) for diff_id, path in told["layers"]))
    return RootfsTar(Path(told["tar"])) if "tar" in told else HostRoot(tuple(told["masked"]))


def _there(path: Path) -> Callable[[], Awaitable[Path]]:
    async def fetch() -> Path:
        return path

    return fetch


def _works(python: str, path: str, account: pwd.struct_passwd | None) -> bool:
    try:
        tried = subprocess.run(
            [python, "-c", "import specbuild.testing.remote"],
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
            env=_environment(None, path),
            cwd="/",
            capture_output=True,
            check=False,
        )
    except OSError:  # in a folder that the user may not enter
        return False
    return tried.returncode == 0


def _is_packages(entry: str) -> bool:
    return entry.endswith("site-packages")


def _environment(home: str | None, path: str) -> dict[str, str]:
    return {"PATH": ENVIRONMENT["PATH"], "HOME": home or os.environ.get("HOME", "/"), "PYTHONPATH": path}


class _Far:
    """The far side: serves requests until its input ends."""

    def __init__(self, make: Callable[[], Backend], source: BaseSource) -> None:
        self._make = make
        self._source = source

    async def serve(self) -> None:
        async with self._make() as backend:
            base = await backend.import_base(_BASE_KEY, self._source)
            _tell(ready=True)
            while line := await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
                request: dict[str, Any] = json.loads(line)
                limits = Limits(**request["limits"]) if "limits" in request else None
                try:
                    async with backend.fork(base, limits=limits) as box:
                        if setup := request.get("setup"):
                            await box.run(Command(["/bin/sh", "-c", setup], env=ENVIRONMENT, network=False))
                        match request["op"]:
                            case "run":
                                _tell_end(await box.run(_command(request)))
                            case "read":
                                _tell(data=base64.b64encode(await box.read_file(request["path"])).decode())
                            case "write":
                                await box.write_file(request["path"], base64.b64decode(request["data"]))
                                _tell()
                            case "copy":
                                await box.copy_in(Path(request["source"]), request["target"])
                                _tell()
                            case unknown:
                                _tell(broken=f"unknown request {unknown}")
                except SandboxError as error:
                    _tell(**{"broken" if request["op"] == "run" else "error": f"{type(error).__name__}: {error}"})
                except OSError as error:
                    _tell(error=type(error).__name__)


def _command(request: dict[str, Any]) -> Command:
    binds = tuple(Bind(Path(source), target, writable) for source, target, writable in request["binds"])
    return Command(
        request["argv"], env=ENVIRONMENT, network=request["network"], timeout=request["timeout"], binds=binds
    )


def _tell_end(done: Completed) -> None:
    _tell(end=done.end, exit_code=done.exit_code, tail=done.tail, note=done.note)


def _tell(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


def main() -> None:
    """Serve on stdin and stdout: `python -m specbuild.testing.remote STORE BASE`."""
    from specbuild.sandbox.overlay import OverlayBackend

    # Whoever runs in the background of a shell script has inherited that SIGINT is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    store, source = Path(sys.argv[1]), json.loads(sys.argv[2])
    anyio.run(_Far(lambda: OverlayBackend(store), _source(source)).serve)


if __name__ == "__main__":
    main()
