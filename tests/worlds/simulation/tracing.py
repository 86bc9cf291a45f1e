"""A child of this process, killed at one of its writes to disk or syncs.

By ptrace, so before the very system call is done.

What a power cut leaves behind is known as well: of each file what was there at its last sync, and
of later writes some sectors.
"""

import ctypes
import os
import platform
import signal
import struct
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

TRACEME, CONT, SYSCALL, SETOPTIONS, GET_SYSCALL_INFO = 0, 7, 24, 0x4200, 0x420E
TRACESYSGOOD, TRACESECCOMP, EXITKILL = 1, 0x80, 0x100000
AT_EXIT, AT_CALL = (
    signal.SIGTRAP | 0x80,
    signal.SIGTRAP | 7 << 8,
)  # what a stop says: a call is done, or is about to be done
SET_NO_NEW_PRIVS, SET_SECCOMP, MODE_FILTER = 38, 22, 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
TRACE, ALLOW = 0x7FF00000, 0x7FFF0000
INFO = struct.Struct(
    "=B3xI2Q7Q"
)  # operation, architecture, instruction, stack; number and arguments of the call
CALLS = {
    "x86_64": {18: "write", 77: "truncate", 74: "sync", 75: "sync"},
    "aarch64": {68: "write", 46: "truncate", 82: "sync", 83: "sync"},
}
SECTOR = 512
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
libc.ptrace.restype = ctypes.c_long


class Filter(ctypes.Structure):
    """A program for the kernel, as `sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_char_p))


@dataclass(frozen=True)
class Point:
    """The n-th call of a kind from now, or of any kind."""

    kind: str
    after: int


@dataclass
class Disk:
    """The content of a folder's files at their last sync, and the writes since."""

    folder: Path
    synced: dict[Path, bytes] = field(default_factory=dict)
    later: dict[Path, list[tuple[int, bytes | None]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def look(self) -> None:
        """Everything that is there now will be there after a cut."""
        self.later.clear()
        self.synced = {
            file: file.read_bytes()
            for file in self.folder.iterdir()
            if not file.name.endswith("-shm")
        }

    def note(self, kind: str, file: Path, size: int, offset: int) -> None:
        """A call was done."""
        if kind == "sync":
            self.synced[file] = file.read_bytes()
            self.later.pop(file, None)
        elif kind == "write":
            with file.open("rb") as opened:
                opened.seek(offset)
                self.later[file].append((offset, opened.read(size)))
        else:
            self.later[file].append((size, None))

    def cut(self, chance: Random) -> None:
        """Make the folder what the power cut left.

        Of the writes since the last sync some, perhaps in part.
        """
        for file in self.folder.iterdir():
            content = bytearray(self.synced.get(file, b""))
            for place, data in self.later.get(file, ()):
                if chance.random() < 0.5:
                    _change(content, place, data, chance)
            if content and not file.name.endswith("-shm"):
                file.write_bytes(content)
            else:
                file.unlink()
        self.look()


def _change(content: bytearray, place: int, data: bytes | None, chance: Random) -> None:
    if data is None:
        del content[place:]
        return
    if chance.random() < 0.3:
        data = data[: SECTOR * chance.randint(0, len(data) // SECTOR)]
    if len(content) < place:
        content.extend(bytes(place - len(content)))
    content[place : place + len(data)] = data


@dataclass(frozen=True)
class Ended:
    """The end of a child.

    Its report, the call at which it was killed ('' if none), and its status then.
    """

    said: bytes
    point: str
    status: int


def may_trace() -> bool:
    """Return true if this machine lets a process trace its child, and its calls are known here."""
    if platform.system() != "Linux" or platform.machine() not in CALLS:
        return False
    child = os.fork()
    if child == 0:
        os._exit(libc.ptrace(TRACEME, 0, None, None) != 0 or not _stop_at_calls())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _stop_at_calls() -> bool:
    """Let this process stop before the calls of CALLS, and at no other one.

    A story has thrice as many others. False where it may not.
    """
    numbers = sorted(CALLS[platform.machine()])
    steps = [
        (LOAD, 0, 0, 0),
        *((JUMP_IF_EQUAL, len(numbers) - place, 0, number) for place, number in enumerate(numbers)),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, TRACE),
    ]
    program = Filter(len(steps), b"".join(struct.pack("=HBBI", *step) for step in steps))
    found: int = libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        SET_SECCOMP, MODE_FILTER, ctypes.byref(program), 0, 0
    )
    return found == 0


def traced(
    work: Callable[[Callable[[bytes], object]], None], disk: Disk, point: Point | None
) -> Ended:
    """Do the work in a child, which is killed at the point if it comes there.

    `work` is given what it may say it with.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            libc.ptrace(TRACEME, 0, None, None)
            os.kill(os.getpid(), signal.SIGSTOP)
            _stop_at_calls()
            work(lambda said: os.write(writer, said))
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    try:
        found, status = _follow(child, disk, point)
        return Ended(os.read(reader, 1 << 16), found, status)
    finally:
        os.close(reader)


def _follow(child: int, disk: Disk, point: Point | None) -> tuple[str, int]:
    """Let the child go from call to call.

    At which one it was killed, and its exit status (or the signal's, negative).
    """
    calls, left, pending = CALLS[platform.machine()], point.after if point else -1, None
    os.waitpid(child, 0)
    libc.ptrace(SETOPTIONS, child, None, TRACESYSGOOD | TRACESECCOMP | EXITKILL)
    signal_ = 0
    while True:
        libc.ptrace(SYSCALL if pending else CONT, child, None, signal_)
        status = os.waitpid(child, 0)[1]
        if not os.WIFSTOPPED(status):
            return "", os.waitstatus_to_exitcode(status)
        if status >> 8 not in (AT_EXIT, AT_CALL):
            signal_ = os.WSTOPSIG(status)
            continue
        signal_, done, pending = 0, pending, None
        if done:
            disk.note(*done)
            continue
        info = ctypes.create_string_buffer(INFO.size)
        libc.ptrace(GET_SYSCALL_INFO, child, INFO.size, info)
        _, _, _, _, number, *arguments = INFO.unpack(info.raw)
        kind = calls.get(number)
        file = _file(child, arguments[0]) if kind else None
        if not kind or file is None or file.parent != disk.folder or file.name.endswith("-shm"):
            continue
        if point and point.kind in (kind, "any"):
            if left == 0:
                os.kill(child, signal.SIGKILL)
                return f"{kind} {file.name}", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            left -= 1
        pending = (kind, file, arguments[1 if kind == "truncate" else 2], arguments[3])


def _file(child: int, descriptor: int) -> Path | None:
    try:
        return Path(f"/proc/{child}/fd/{descriptor}").readlink()
    except OSError:
        return None
