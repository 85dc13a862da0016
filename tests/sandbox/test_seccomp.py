"""The system call filter, judged by a reader of its instructions and, where possible, by the kernel."""

from __future__ import annotations

import errno
import platform
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from specbuild.errors import SandboxUnavailableError
from specbuild.sandbox.overlay.seccomp import program

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
I386, ARM = 0x40000003, 0x40000028
NEWUSER, NEWNET, CLONE_VM_AND_THREAD = 0x10000000, 0x40000000, 0x00010100
CALLS = {  # as in the headers of each architecture
    "x86_64": {"read": 0, "ioctl": 16, "socket": 41, "clone": 56, "execve": 59, "ptrace": 101, "mount": 165}
    | {"unshare": 272, "setns": 308, "bpf": 321, "clone3": 435, "keyctl": 250, "iopl": 172},
    "aarch64": {"read": 63, "ioctl": 29, "socket": 198, "clone": 220, "execve": 221, "ptrace": 117, "mount": 40}
    | {"unshare": 97, "setns": 268, "bpf": 280, "clone3": 435, "keyctl": 219},
}
ARCHES = sorted(CALLS)

LOADER = r"""
import ctypes, os, sys
code = sys.stdin.buffer.read()
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
buffer = ctypes.create_string_buffer(code)
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
assert libc.prctl(38, 1, 0, 0, 0) == 0
loaded = Program(len(code) // 8, ctypes.addressof(buffer))
assert libc.prctl(22, 2, ctypes.addressof(loaded), 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execvp(sys.argv[1], sys.argv[1:])
"""

CALL = r"""
import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
number, *arguments = [int(word, 0) for word in sys.argv[1:]]
result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_ulong, arguments))
print("done" if result != -1 else errno.errorcode[ctypes.get_errno()])
"""


def judge(code: bytes, arch: int, number: int, *arguments: int) -> int:
    """Run the filter as the kernel does, over the instructions that it is made of."""
    data = struct.pack("=IIQ6Q", number, arch, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    words: list[tuple[int, int, int, int]] = [
        struct.unpack_from("=HBBI", code, offset) for offset in range(0, len(code), 8)
    ]
    at = accumulator = 0
    while True:
        kind, if_true, if_false, constant = words[at]
        at += 1
        match kind:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, constant)
            case 0x15:
                at += if_true if accumulator == constant else if_false
            case 0x35:
                at += if_true if accumulator >= constant else if_false
            case 0x45:
                at += if_true if accumulator & constant else if_false
            case 0x06:
                return constant
            case _:
                pytest.fail(f"unknown instruction {kind:#x}")


def verdict(arch: str, call: str, *arguments: int) -> int:
    return judge(program(arch), AUDIT[arch], CALLS[arch][call], *arguments)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("call", ["read", "execve", "ptrace"])
def test_everyday_calls_are_allowed(arch: str, call: str) -> None:
    assert verdict(arch, call) == ALLOW


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("call", ["mount", "setns", "bpf", "keyctl"])
def test_calls_beyond_the_sandbox_are_refused(arch: str, call: str) -> None:
    assert verdict(arch, call) == ERRNO | errno.EPERM


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("call", ["clone", "unshare"])
def test_threads_and_processes_are_made_but_no_namespaces(arch: str, call: str) -> None:
    assert verdict(arch, call, CLONE_VM_AND_THREAD) == ALLOW
    assert verdict(arch, call, NEWUSER) == ERRNO | errno.EPERM
    assert verdict(arch, call, NEWNET | CLONE_VM_AND_THREAD) == ERRNO | errno.EPERM


@pytest.mark.parametrize("arch", ARCHES)
def test_clone3_is_unknown_so_that_the_c_library_uses_clone(arch: str) -> None:
    assert verdict(arch, "clone3") == ERRNO | errno.ENOSYS


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("high_half", [0, 1 << 32])
def test_terminal_input_is_refused_whatever_the_high_half_says(arch: str, high_half: int) -> None:
    assert verdict(arch, "ioctl", 0, 0x5412 | high_half) == ERRNO | errno.EPERM
    assert verdict(arch, "ioctl", 0, 0x5401 | high_half) == ALLOW


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(
    ("family", "allowed"), [(1, True), (2, True), (10, True), (16, True), (40, False), (38, False)]
)
def test_sockets_are_made_of_ordinary_families_only(arch: str, family: int, allowed: bool) -> None:
    assert verdict(arch, "socket", family) == (ALLOW if allowed else ERRNO | errno.EAFNOSUPPORT)


@pytest.mark.parametrize(("arch", "other"), [("x86_64", I386), ("aarch64", ARM), ("x86_64", AUDIT["aarch64"])])
def test_calls_of_another_architecture_kill(arch: str, other: int) -> None:
    assert judge(program(arch), other, 0) == KILL


def test_x32_calls_kill_but_a_skipped_call_does_not() -> None:
    assert judge(program("x86_64"), AUDIT["x86_64"], 0x40000000 | 165) == KILL
    assert judge(program("x86_64"), AUDIT["x86_64"], 0xFFFFFFFF) == ALLOW


def test_an_unknown_processor_is_named_with_a_way_out() -> None:
    with pytest.raises(SandboxUnavailableError, match="riscv64") as caught:
        program("riscv64")
    assert "docker" in caught.value.hint


def filtered(*argv: str) -> subprocess.CompletedProcess[bytes]:
    """Run a program under the filter, as the kernel applies it."""
    return subprocess.run([sys.executable, "-c", LOADER, *argv], input=program(), capture_output=True, check=False)


def outcome(call: str, *arguments: int) -> str:
    number = CALLS[platform.machine()][call]
    done = filtered(sys.executable, "-c", CALL, str(number), *map(str, arguments))
    return done.stdout.decode().strip() or f"status {done.returncode}: {done.stderr.decode()}"


def test_the_kernel_takes_the_filter_and_refuses_by_it() -> None:
    assert outcome("unshare", NEWUSER) == "EPERM"
    assert outcome("unshare", 0x200) == "done"  # CLONE_FS
    assert outcome("clone3", 0, 0) == "ENOSYS"
    assert outcome("bpf", 0, 0, 0) == "EPERM"
    assert outcome("keyctl", 0, 0) == "EPERM"
    assert outcome("socket", 40, 1, 0) == "EAFNOSUPPORT"
    assert outcome("socket", 1, 1, 0) == "done"


def test_ordinary_programs_do_not_notice(tmp_path: Path) -> None:
    script = (
        "import asyncio, multiprocessing, socket, subprocess, sys, threading\n"
        "thread = threading.Thread(target=print, args=['thread']); thread.start(); thread.join()\n"
        "print(subprocess.run(['sh', '-c', 'echo child | cat'], capture_output=True, text=True).stdout.strip())\n"
        "print(asyncio.run(asyncio.sleep(0, 'loop')))\n"
        "context = multiprocessing.get_context('fork')\n"
        "with context.Pool(1) as pool: print(pool.apply(abs, (-5,)))\n"
        "print(len(socket.getaddrinfo('localhost', 80)) > 0)\n"
    )
    done = filtered(sys.executable, "-W", "ignore", "-c", script)
    assert done.stdout.decode().split() == ["thread", "child", "loop", "5", "True"], done.stderr.decode()
    environment = filtered(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv"))
    assert environment.returncode == 0, environment.stderr.decode()
