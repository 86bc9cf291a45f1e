"""Events kept on disk while the backend is away, and replayed later.

By this driver, or by the next one that uses the folder. One file per driver, appended to, locked
while its driver lives; one line per event, with its checksum. A torn or damaged line is passed over
and counted: it is never sent, and never the reason to lose those after it. What counts as kept has
been confirmed by the disk (fsync), so that it outlives a power cut too, as far as the disk keeps
its word.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import uuid
import zlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from strandline_spark.delivery.transport import Message

_SUFFIX = ".spool"
_UNLOCKED = ".new"  # of a file that is being made


class Spool:
    """The folder.

    Appends to a file of this driver's own; replays that one and those whose drivers are gone.

    All files that this driver began count against the limit until they are gone, also those that
    wait for their turn.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.damaged = 0
        self._folder = folder
        self._limit = limit
        self._own: SpoolFile | None = None
        self._aside: dict[
            Path, int
        ] = {}  # files that this driver began and no longer appends to, and their bytes

    def append(self, messages: Sequence[Message], *, anew: bool = False) -> int:
        """Write the messages and return how many are safe now.

        Fewer than all at the size limit or a disk fault.

        `anew`: they are on disk already, in a file that goes as soon as they are in this one; no
        limit is in the way.
        """
        count = 0
        if not messages:
            return count
        try:
            if self._own is None:
                self._own = _created(self._folder)
            for message in messages:
                line = _line(message)
                if not (anew or self._has_room(len(line))):
                    break
                self._own.write(line)
                count += 1
            self._own.confirm()
        except OSError:
            return self._confirmed(count)
        return count

    def _has_room(self, size: int) -> bool:
        if self._taken() + size > self._limit:  # another driver may have sent some of it
            self._aside = {path: bytes_ for path, bytes_ in self._aside.items() if path.exists()}
        return self._taken() + size <= self._limit

    def _taken(self) -> int:
        """Bytes of all files that this driver began."""
        return (self._own.size() if self._own is not None else 0) + sum(self._aside.values())

    def _confirmed(self, written: int) -> int:
        """Return how many of those that were written before a fault are safe.

        All, or none that anybody knows of.
        """
        try:
            if self._own is not None and written:
                self._own.confirm()
                return written
        except OSError:
            pass
        return 0

    def oldest(self, but: Collection[Path] = ()) -> SpoolFile | None:
        """A file to replay: one that a driver left behind, else this driver's own.

        None when no others wait.
        """
        for path in self._others():
            if path not in but and (file_found := _taken_over(path)) is not None:
                return file_found
        if self._own is not None and self.waits() and self._own.path not in but:
            return self._set_aside()
        return None

    def waits(self) -> bool:
        """Return whether events of this driver are on disk."""
        return self._own is not None and self._own.size() > 0

    def close(self) -> None:
        """Unlocks this driver's file for the next driver; an empty one is deleted."""
        if self._own is not None and self._own.size() == 0:
            self._own.delete()
            self._own = None
        elif self._own is not None:
            self._set_aside().release()

    def _set_aside(self) -> SpoolFile:
        """This driver's file, to which nothing more is appended."""
        assert self._own is not None
        self._aside[self._own.path] = self._own.size()
        own, self._own = self._own, None
        return own

    def abandon(self) -> None:
        """In a forked child: the files and the lock are the parent's."""
        self._aside = {}
        if self._own is not None:
            self._own.release()
            self._own = None

    def _others(self) -> list[Path]:
        try:
            paths = sorted(self._folder.glob("*" + _SUFFIX))
        except OSError:
            return []
        return [path for path in paths if self._own is None or path != self._own.path]


class SpoolFile:
    """One file, open and locked by this driver."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def size(self) -> int:
        """Bytes in it."""
        return os.fstat(self._descriptor).st_size

    def write(self, line: bytes) -> None:
        """Append the line of one event."""
        before = self.size()
        if os.write(self._descriptor, line) != len(line):
            os.ftruncate(
                self._descriptor, before
            )  # the next one is not to be joined to half of this one
            raise OSError("the event was written in part")

    def confirm(self) -> None:
        """Wait until the disk has what was written."""
        os.fsync(self._descriptor)

    def messages(self) -> Iterator[Message | None]:
        """The events in it, oldest first; None for each line that is not whole."""
        with open(self.path, "rb") as lines:  # noqa: PTH123 - `Path.open` is no shorter and slower to type-check
            for line in lines:
                yield _message(line)

    def delete(self) -> None:
        """All of it is sent."""
        self.path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Give the lock back."""
        with contextlib.suppress(OSError):
            os.close(self._descriptor)


def _created(folder: Path) -> SpoolFile:
    """A new file.

    It gets its name when it is locked: before that another driver could take it for one left
    behind.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{os.getpid()}-{uuid.uuid4().hex}{_SUFFIX}"
    new = path.with_suffix(_UNLOCKED)
    descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        new.rename(path)
        _confirm_folder(folder)
    except OSError:  # not every file system has locks
        os.close(descriptor)
        new.unlink(missing_ok=True)
        raise
    return SpoolFile(path, descriptor)


def _confirm_folder(folder: Path) -> None:
    """Wait until the disk has the file's name. Not every file system can tell of a folder."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _taken_over(path: Path) -> SpoolFile | None:
    """The file, locked; None if its driver lives, or another one was faster."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.stat().st_ino == os.fstat(descriptor).st_ino:
            return SpoolFile(path, descriptor)
    except OSError:
        pass
    os.close(descriptor)
    return None


def _line(message: Message) -> bytes:
    head = json.dumps(
        [message.key, message.vital, message.micro_batch], separators=(",", ":")
    ).encode()
    content = head + b"\t" + message.body
    return b"%08x %b\n" % (zlib.crc32(content), content)


def _message(line: bytes) -> Message | None:
    checksum, _, content = line.rstrip(b"\n").partition(b" ")
    try:
        if int(checksum, 16) != zlib.crc32(content):
            return None
        head, _, body = content.partition(b"\t")
        key, vital, micro_batch = json.loads(head)
    except ValueError:
        return None
    return Message(key, body, vital, tuple(micro_batch) if micro_batch else None)
