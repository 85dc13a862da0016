# ruff: noqa: PTH103, PTH123, PTH208
"""The helper process: small, single-threaded, standard library only; it forks, mounts and kills for the engine.

It lives in the user namespace of its store and in a mount namespace of its own. For each Command it forks a process
that makes one more mount namespace, mounts the layers in it and becomes bubblewrap; forking the engine, which can be
large, would cost more than all of that. Work on files is done in workers that it forks.

Each request brings a socket on which it is answered and on which the engine says "kill". When the engine dies, its
sockets close: every Command is killed, and the helper ends. Requests, by `op`:

run         mount the stack, start bubblewrap; answers {"status", "ran", "cpu_seconds", "peak_memory_bytes",
            "mount_seconds"} when every process and mount of the Command is gone, or {"error"}
work        call a function of `workers` in a forked process; answers {"result"} or {"error"}
trash       remove trees one after the other in the background; no answer
settle      answered with {"result": None} once all trash is gone
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import selectors
import signal
import socket
import sys
import tarfile
import time
import traceback
from collections.abc import Callable
from typing import Any

from specbuild.sandbox.overlay import isolation, kernel, stage, trees, wire, workers

OPTIONS_FD, STATUS_FD, SECCOMP_FD = 3, 4, 5
_RESERVED = 10
"""Descriptors below are for programs that are started; whatever is received gets a higher number."""
_TOOLS = f"{stage.STAGE}/tools"
_LIBRARIES = f"{_TOOLS}/lib"


class Helper:
    """The loop and what it waits for."""

    def __init__(self, control: socket.socket, covered_tmp: int) -> None:
        self.control = control
        self.covered_tmp = covered_tmp
        self.home = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        self.store = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.libraries = bool(os.listdir(_LIBRARIES))
        """Whether bubblewrap came with libraries of its own."""
        self.selector = selectors.EpollSelector()
        self.jobs: set[Job] = set()
        self.trash: list[str] = []
        self.trash_job: Job | None = None
        self.trash_answers = control
        self.settling: list[socket.socket] = []
        self.serving = True

    def serve(self) -> None:
        """Work until the engine is gone and every process of ours too."""
        self.watch(self.control, self._on_request)
        while self.serving or self.jobs:
            for key, _ in self.selector.select():
                if self.selector.get_map().get(key.fd) is key:  # not closed, or opened anew, earlier in this round
                    key.data()

    def watch(self, file: Any, callback: Callable[[], None]) -> None:
        """Call `callback` whenever `file` can be read."""
        self.selector.register(file, selectors.EVENT_READ, callback)

    def unwatch(self, file: Any) -> None:
        """No longer; fine if it was not watched."""
        with contextlib.suppress(KeyError, ValueError):
            self.selector.unregister(file)

    def _on_request(self) -> None:
        received = wire.receive(self.control)
        if received is None:
            self._stop()
            return
        message, fds = received
        if message["op"] == "trash":
            self.trash += message["paths"]
            self.empty_trash()
            return
        reply = socket.socket(fileno=fds[0])
        try:
            self._dispatch(message, reply, fds[1:])
        except Exception as error:  # noqa: BLE001 - whatever went wrong is the engine's to report
            answer(reply, failure(error))
            reply.close()
        finally:
            for fd in fds[1:]:
                os.close(fd)

    def _stop(self) -> None:
        self.unwatch(self.control)
        self.control.close()
        self.serving = False
        self.trash.clear()
        for job in list(self.jobs):
            job.kill()

    def _dispatch(self, message: wire.Message, reply: socket.socket, fds: list[int]) -> None:
        match message["op"]:
            case "run":
                start_command(self, message, reply, fds)
            case "work":
                start_work(self, message, reply, fds)
            case "settle":
                self.settling.append(reply)
                self.empty_trash()
            case op:
                raise ValueError(f"unknown request {op!r}")

    def empty_trash(self) -> None:
        """Remove what is to be removed, one worker at a time, and answer those who wait for the end of it."""
        if self.trash_job is None and self.serving:
            self.trash = [path for path in self.trash if not trees.remove_hollow(path)]
        if self.trash_job is None and self.trash and self.serving:
            paths, self.trash = self.trash, []
            self.trash_answers, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.trash_job = start_work(self, {"name": "remove", "arguments": {"paths": paths}}, its, [])
        elif self.trash_job is None:
            for waiting in self.settling:
                answer(waiting, {"result": None})
                waiting.close()
            self.settling.clear()

    def ended(self, job: Job) -> None:
        """A job is over."""
        self.jobs.discard(job)
        if job is self.trash_job:
            self.trash_job = None
            self.trash_answers.close()
            self.empty_trash()


class Job:
    """Something that runs for the engine: its processes, as pidfds, and the socket it is answered on."""

    def __init__(self, helper: Helper, reply: socket.socket, pid: int) -> None:
        self.helper = helper
        self.reply = reply
        self.pid = pid
        self.pidfd = os.pidfd_open(pid)
        self.killed = False
        helper.jobs.add(self)
        helper.watch(self.pidfd, self.on_exit)
        helper.watch(reply, self.on_message)

    def on_message(self) -> None:
        """The engine has one thing to say, or is gone, which means the same."""
        if wire.receive(self.reply) is None:  # what is left unread when a socket closes is an error to its other end
            self.helper.unwatch(self.reply)
        self.kill()

    def kill(self) -> None:
        """End it at once."""
        self.killed = True
        signal_pidfd(self.pidfd)

    def on_exit(self) -> None:
        """Its process has ended."""
        self.helper.unwatch(self.pidfd)
        os.close(self.pidfd)
        os.waitpid(self.pid, 0)
        self.finish()

    def finish(self) -> None:
        """Nothing of it is left. Closing the socket tells the engine so when nothing else did."""
        self.helper.unwatch(self.reply)
        self.reply.close()
        self.helper.ended(self)


class CommandJob(Job):
    """A running bubblewrap: its monitor, whose exit status counts, and the init of its process namespace."""

    def __init__(self, helper: Helper, reply: socket.socket, pid: int, status: int, work: str) -> None:
        self.work = work
        self.status_fd = status
        self.status = b""
        self.init: int | None = None
        self.init_fd: int | None = None
        self.outcome: int | None = None
        self.cpu_seconds = 0.0
        self.peak_memory = 0
        super().__init__(helper, reply, pid)
        helper.watch(status, self.on_status)

    def kill(self) -> None:
        """Kill the init: the kernel ends all else in its namespace, and the monitor follows.

        Before the init is known, wait for it: a monitor that dies first would leave it waiting for a word to go on.
        """
        self.killed = True
        if self.init_fd is not None:
            signal_pidfd(self.init_fd)

    def on_status(self) -> None:
        """bubblewrap tells the init's process id at the start and the exit status at the end."""
        if not self.read_status():
            self.helper.unwatch(self.status_fd)

    def read_status(self) -> bool:
        """Whether there may be more. Raises BlockingIOError when not yet."""
        chunk = os.read(self.status_fd, 4096)
        self.status += chunk
        if self.init_fd is None and "child-pid" in self.said:
            self._meet_init(self.said["child-pid"])
        return bool(chunk)

    @property
    def said(self) -> wire.Message:
        """`mount_seconds` or `error` from the process that was to become bubblewrap, then what that has told."""
        together: wire.Message = {}
        for line in self.status[: self.status.rfind(b"\n") + 1].splitlines():
            together |= json.loads(line)
        return together

    def _meet_init(self, pid: int) -> None:
        try:
            self.init_fd = os.pidfd_open(pid)
        except ProcessLookupError:  # so short-lived that the monitor has reaped it already
            return
        self.init = pid
        if self.killed:
            signal_pidfd(self.init_fd)

    def on_exit(self) -> None:
        """The monitor is gone, because the Command's first process is: end whatever else it has started."""
        self.helper.unwatch(self.pidfd)
        os.close(self.pidfd)
        _, status, usage = os.wait4(self.pid, 0)
        self.outcome = os.waitstatus_to_exitcode(status)
        self._add_usage(usage)
        with contextlib.suppress(BlockingIOError):
            while self.read_status():
                pass
        self.helper.unwatch(self.status_fd)
        os.close(self.status_fd)
        if self.init_fd is None:
            self.finish()
        else:
            signal_pidfd(self.init_fd)
            self.helper.watch(self.init_fd, self.on_init_exit)

    def _add_usage(self, usage: resource.struct_rusage) -> None:
        """What a process and those that it has waited for have used."""
        self.cpu_seconds += usage.ru_utime + usage.ru_stime
        self.peak_memory = max(self.peak_memory, usage.ru_maxrss * 1024)

    def on_init_exit(self) -> None:
        """The last process of the namespace, and with it the last mount."""
        if self.init is not None and self.init_fd is not None:
            self.helper.unwatch(self.init_fd)
            os.close(self.init_fd)
            with contextlib.suppress(ChildProcessError):  # ours by now, unless the monitor has reaped it
                self._add_usage(os.wait4(self.init, 0)[2])
        self.finish()

    def finish(self) -> None:
        """Tell how it ended. Its work folder is of no use to anybody, and mostly holds a mark of `volatile` only."""
        trees.remove_hollow(self.work)
        if self.outcome is not None:
            end = {
                "status": self.outcome,
                "ran": "exit-code" in self.said,
                "mount_seconds": self.said.get("mount_seconds"),
            }
            use = {"cpu_seconds": self.cpu_seconds, "peak_memory_bytes": self.peak_memory}
            answer(self.reply, {"error": self.said["error"]} if "error" in self.said else {**end, **use})
        super().finish()


def start_command(helper: Helper, message: wire.Message, reply: socket.socket, fds: list[int]) -> None:
    """Fork the process that becomes bubblewrap."""
    status_read, status_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    pid = os.fork()
    if pid:
        os.close(status_write)
        CommandJob(helper, reply, pid, status_read, message["stack"]["work"])
        return
    try:
        os.set_blocking(status_write, True)
        _become_command(helper, message, status_write, fds)
    except BaseException as error:  # noqa: BLE001 - nothing may return into the helper's loop
        os.write(status_write, json.dumps(failure(error)).encode() + b"\n")
    finally:
        os._exit(1)


def _become_command(helper: Helper, message: wire.Message, status: int, fds: list[int]) -> None:
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    groups: list[int] = message["join"]
    for number in groups:
        os.write(fds[number], b"0")
    bounds: list[tuple[int, int, int]] = message["rlimits"]
    for what, soft, hard in bounds:
        resource.setrlimit(what, (soft, hard))
    told: list[dict[str, Any]] = message["binds"]
    binds: list[int] = [
        fds[bind["fd"]] if "fd" in bind else stage.copy_mount(bind["path"], helper.covered_tmp, writable=bind["rw"])
        for bind in told
    ]
    kernel.unshare(kernel.CLONE_NEWNS)
    began = time.monotonic()
    stage.mount_stack(stage.Stack(**message["stack"]))
    os.write(status, json.dumps({"mount_seconds": time.monotonic() - began}).encode() + b"\n")
    for path, source in message["cover"]:
        stage.cover_file(path, source)
    stage.place_binds(binds)
    roles: dict[str, int] = {name: fds[number] for name, number in message["fds"].items()}
    moves = {0: roles["stdin"], 1: roles["output"], 2: roles["output"], OPTIONS_FD: roles["options"], STATUS_FD: status}
    if "seccomp" in roles:
        moves[SECCOMP_FD] = roles["seccomp"]
    for target, source in moves.items():
        os.dup2(source, target)
    for handled in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(handled, signal.SIG_DFL)
    os.chdir("/")
    program = f"{_TOOLS}/bwrap"
    env = {"LD_LIBRARY_PATH": _LIBRARIES} if helper.libraries else {}
    os.execve(program, [program, "--args", str(OPTIONS_FD), "--", *message["argv"]], env)  # noqa: S606


def start_work(helper: Helper, message: wire.Message, reply: socket.socket, fds: list[int]) -> Job:
    """Fork a worker that calls a function and answers itself."""
    pid = os.fork()
    if pid:
        return Job(helper, reply, pid)
    code = 1
    try:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        _close_all_but({reply.fileno(), helper.store, *fds})
        answer(reply, _worked(message, fds))
        code = 0
    except BaseException:  # noqa: BLE001 - nothing may return into the helper's loop
        traceback.print_exc()
    finally:
        os._exit(code)


def _worked(message: wire.Message, fds: list[int]) -> wire.Message:
    try:
        return {"result": workers.WORKERS[message["name"]](fds, **message["arguments"])}
    except Exception as error:  # noqa: BLE001 - told to the engine
        if not isinstance(error, OSError | OverflowError | tarfile.TarError):
            traceback.print_exc()
        return failure(error)


def _close_all_but(keep: set[int]) -> None:
    low = 3
    for fd in sorted(keep):
        os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, 1 << 20)


def signal_pidfd(pidfd: int) -> None:
    """SIGKILL, unless it has ended."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def answer(sock: socket.socket, message: wire.Message) -> None:
    """Answer the engine, which may have gone or no longer want to know."""
    with contextlib.suppress(OSError):
        wire.send(sock, message)


def failure(error: BaseException) -> wire.Message:
    """An exception as a message."""
    return {
        "error": {
            "kind": type(error).__name__,
            "number": error.errno if isinstance(error, OSError) else None,
            "text": f"{type(error).__name__}: {error}",
        }
    }


def _set_up(control: socket.socket) -> int:
    """Make the namespaces, with the engine writing the id maps in between; returns the covered /tmp."""
    received = wire.receive(control)
    if received is None:
        sys.exit(0)
    options, tools = received
    if options["userns"]:
        kernel.unshare(kernel.CLONE_NEWUSER)
        wire.send(control, {"step": "unshared"})
        if wire.receive(control) is None:
            sys.exit(0)
        with contextlib.suppress(PermissionError):  # a single id: setgroups is denied
            os.setgroups([])
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # changing ids cleared it, and /proc/self with it
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    kernel.unshare(kernel.CLONE_NEWNS)
    covered_tmp = stage.prepare(isolation.MASKED_IN_SYS)
    _copy_tools(dict(zip(options["tools"], tools, strict=True)))
    return covered_tmp


def _copy_tools(files: dict[str, int]) -> None:
    """Put bubblewrap on the stage: where it was installed may be in a home that we may not enter."""
    os.makedirs(_LIBRARIES, 0o755, exist_ok=True)
    for name, fd in files.items():
        with os.fdopen(fd, "rb") as source, open(f"{_TOOLS}/{name}", "wb") as target:
            target.write(source.read())
            os.fchmod(target.fileno(), 0o755)
    for name, text in workers.STAGED_FILES.items():
        with open(f"{stage.STAGE}/{name}", "w") as target:
            target.write(text())


def main(fd: int) -> None:
    """Serve on the socket `fd` until the other side is gone."""
    while os.open(os.devnull, os.O_RDWR) < _RESERVED - 1:  # without O_CLOEXEC nothing is lost: they are dup2 targets
        pass
    control = socket.socket(fileno=os.dup(fd))
    control.set_inheritable(False)
    os.close(fd)
    os.umask(0o022)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the engine's to handle
    try:
        covered_tmp = _set_up(control)
        helper = Helper(control, covered_tmp)
    except Exception as error:  # noqa: BLE001 - the engine explains it
        answer(control, failure(error))
        return
    gc.freeze()  # a collection in a child would copy every page
    gc.disable()  # there are no cycles, but for those of exceptions
    wire.send(control, {"step": "ready"})
    helper.serve()
