"""Structured logs on stderr, for people (console) or machines (json); nothing global is configured.

Whoever starts a process makes one with `make_log` and hands it to its parts; libraries' own records
are taken in too.
"""

import logging
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor

from strandline.escaping import escaped, escaped_lines

SPARED_SECONDS = 60


def make_log(
    log_format: str = "console", level: str = "info", stream: TextIO | None = None
) -> FilteringBoundLogger:
    """Return a logger that writes lines to `stream` (stderr unless given)."""
    stream = stream or sys.stderr
    logger = structlog.wrap_logger(
        structlog.PrintLogger(stream),
        processors=[*_shared(), _renderer(log_format, stream)],
        wrapper_class=structlog.make_filtering_bound_logger(_number(level)),
        context_class=dict,
    )
    log: FilteringBoundLogger = logger.bind()
    return log


def adopt_library_logs(log_format: str) -> None:
    """Let warnings of the libraries appear in the same form.

    Called once by commands that run until stopped.
    """
    handler = logging.StreamHandler(sys.stderr)
    processors = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        _renderer(log_format, sys.stderr),
    ]
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(processors=processors, foreign_pre_chain=_shared())
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("kafka").setLevel(
        logging.CRITICAL
    )  # what matters of it reaches us as an exception


def _shared() -> list[Processor]:
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    trace = structlog.processors.format_exc_info
    return [structlog.processors.add_log_level, stamp, trace, _escape_values]


def _escape_values(_logger: Any, _method: str, line: EventDict) -> EventDict:
    """Let no text of a producer steer the terminal; line breaks of traces stay."""
    for name, value in line.items():
        if isinstance(value, str):
            line[name] = escaped_lines(value) if name == "exception" else escaped(value)
    return line


def _renderer(log_format: str, stream: TextIO) -> Any:
    if log_format == "json":
        return structlog.processors.JSONRenderer()
    return structlog.dev.ConsoleRenderer(colors=stream.isatty())


def _number(level: str) -> int:
    return logging.getLevelNamesMapping()[level.upper()]


class Bugs:
    """Logs faults of our own: the trace of each once, by the line that raised it."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log
        self._seen: set[tuple[object, ...]] = set()

    def __call__(self, error: Exception) -> None:
        """Log the fault, unless the same line raised it before."""
        frames = traceback.extract_tb(error.__traceback__)[-1:]
        where = (type(error), *((frame.filename, frame.lineno) for frame in frames))
        if where not in self._seen:
            self._seen.add(where)
            self._log.error(
                "a fault of Strandline's own: events that cannot be read are kept, "
                "and read again after the next start",
                exc_info=error,
            )


class Sparing:
    """A writer of lines that repeats a line after a minute only, with how often it came meanwhile.

    What is tried twice a second fails twice a second while a database is away. Not for several
    threads at once.
    """

    def __init__(
        self,
        write: Callable[[str], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._clock = clock
        self._written: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def __call__(self, line: str) -> None:
        """Write the line, unless it was written within the last minute."""
        now = self._clock()
        self._written = {
            message: at for message, at in self._written.items() if now - at < SPARED_SECONDS
        }
        if line in self._written:
            self._left_out[line] = self._left_out.get(line, 0) + 1
            return
        self._written[line] = now
        times = self._left_out.pop(line, 0)
        self._write(f"{line} ({times} times more since it was written last)" if times else line)
