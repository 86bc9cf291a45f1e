"""Events as JSON lines, appended to a file or printed on standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlparse

from strandline_spark.delivery.transport import Delivery, Message, TransportConfError


class FileTransport:
    """Appends one line per event.

    Several drivers may share the file: a line is one write with O_APPEND.
    """

    def __init__(self, location: Path) -> None:
        self._location = location
        self._torn = False  # whether half a line stands at the end

    def send(self, messages: Sequence[Message], seconds: float) -> Delivery:
        """Write the lines; a full or missing disk leaves them unsent."""
        for position, message in enumerate(messages):
            try:
                self._append(message.body + b"\n")
            except OSError as error:
                return Delivery(
                    unsent=tuple(messages[position:]), reason=f"{self._location}: {error}"
                )
        return Delivery()

    def _append(self, line: bytes) -> None:
        self._location.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._location, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            written = os.write(descriptor, b"\n" + line if self._torn else line)
            self._torn = written < len(line) + self._torn
            if self._torn:
                raise OSError("the line was written in part")
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Nothing is held open."""


class ConsoleTransport:
    """Prints one line per event on standard output."""

    def send(self, messages: Sequence[Message], seconds: float) -> Delivery:
        """Print the lines."""
        try:
            for message in messages:
                print(message.body.decode(), file=sys.stdout, flush=True)
        except (OSError, ValueError) as error:  # a closed standard output will not come back
            return Delivery(refused=tuple(messages), reason=f"standard output: {error}")
        return Delivery()

    def close(self) -> None:
        """Nothing is held open."""


def file_of(conf: Mapping[str, str]) -> FileTransport | ConsoleTransport:
    """The transport for type `file` (needs `location`) or `console`."""
    if conf.get("type", "console") == "console":
        return ConsoleTransport()
    location = conf.get("location")
    if not location:
        raise TransportConfError("transport.location: the file transport needs it")
    return FileTransport(
        Path(unquote(urlparse(location).path) if location.startswith("file:") else location)
    )
