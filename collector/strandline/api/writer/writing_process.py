"""The process that decodes and stores events sent over HTTP.

The server hands on bytes, so no answer waits for an interpreter that decodes events.

Server and process exchange records and outcomes over a pair of sockets. The process ends when its
server closes them or dies. If the process dies, the senders of the current group are asked to try
again, and the next group starts another process.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import NamedTuple

import sqlalchemy
from structlog.typing import FilteringBoundLogger

from strandline.api.writer.group_commit import UnstorableError, complaining, faulty
from strandline.core.openlineage.events import decoded
from strandline.errors import InvalidEventError, NotJsonError, OverloadError, StrandlineError
from strandline.logs import Bugs, make_log
from strandline.runtime.follower import Follower
from strandline.runtime.heap import give_back_large_blocks, trim_heap
from strandline.settings import Settings
from strandline.store.ingest.take import Outcome, Record
from strandline.store.ingest.transactions import Batches
from strandline.store.sql.engine import make_engine

STOP_SECONDS = 30
NICE = 10  # the server that answers has priority
LARGE_BATCH = 4 << 20  # bytes after which what it took is given back


class Written(NamedTuple):
    """The outcomes of records; `facts` if facts about versions were stored with them."""

    outcomes: list[Outcome]
    facts: bool


Answer = Written | Exception
Write = Callable[[Sequence[Record]], list[Outcome]]


class WritingProcess:
    """The writing process, started when it is first needed; for use by one thread."""

    def __init__(
        self, settings: Settings, on_retry: Callable[[], None], after: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._on_retry = on_retry
        self._after = after
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process, if one was started."""
        return None if self._process is None else self._process.pid

    def write(self, records: Sequence[Record]) -> list[Outcome]:
        """Store the records in one transaction and return their outcomes after the commit.

        Call `after` first if the transaction stored facts about versions.
        """
        pipe = self._pipe or self.start()
        try:
            pipe.send([_unread(record) for record in records])
            answer = self._answer(pipe)
        except (EOFError, OSError) as error:
            self.stop()
            raise OverloadError("the process that writes has ended; another one starts") from error
        if isinstance(answer, Exception):
            raise answer
        if answer.facts:
            self._after()
        return answer.outcomes

    def _answer(self, pipe: Connection) -> Answer:
        while (answer := pipe.recv()) is None:
            self._on_retry()
        received: Answer = answer
        return received

    def start(self) -> Connection:
        """Start the process; the first write waits until it is ready."""
        self._pipe, theirs = Pipe()
        with theirs:
            command = [
                sys.executable,
                "-c",
                f"from {__name__} import main; main()",
                str(theirs.fileno()),
            ]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )
        self._pipe.send(
            (self._settings.database_url, self._settings.log_format, self._settings.log_level)
        )
        return self._pipe

    def stop(self) -> None:
        """Let the process finish its transaction, and wait for its end."""
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if self._process is not None:
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


def decode_and_write(records: Sequence[Record], write: Write) -> list[Outcome]:
    """Decode the records, store those that are events, and return an outcome for each record.

    An outcome "refused" has the path to the fault; a refused record costs no transaction.
    """
    outcomes: dict[int, Outcome] = {}
    events: dict[int, Record] = {}
    for index, record in enumerate(records):
        try:
            events[index] = record._replace(read=record.read or decoded(record.value))
        except InvalidEventError as error:
            is_json = not isinstance(error, NotJsonError)
            outcomes[index] = Outcome("refused", b"", error.reason, error.path, is_json)
    if events:
        outcomes.update(zip(events, write(list(events.values())), strict=True))
    return [outcomes[index] for index in range(len(records))]


def _unread(record: Record) -> Record:
    """Return the record without its decoded event: the process decodes it."""
    return record if record.read is None else record._replace(read=None)


class _News:
    """The news of transactions; `taken` is set once a transaction of the group had some."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.taken = False

    def take(self, connection: sqlalchemy.Connection) -> None:
        self.taken |= self._follower.take_news(connection)


def main() -> None:
    """Write each batch received until the server is gone.

    The first message has the database and the log settings, the others are batches.
    """
    os.nice(NICE)
    give_back_large_blocks()
    # Signals are meant for the server, which ends this process once all is written.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with Connection(int(sys.argv[1])) as pipe, suppress(EOFError, OSError):
        database, *how_to_log = pipe.recv()
        log, engine = make_log(*how_to_log), make_engine(database)
        state = _News(Follower(engine))
        batches = Batches(engine, lambda: pipe.send(None), state.take, on_bug=Bugs(log))
        complain = complaining(log)
        while True:
            records = pipe.recv()
            is_large = sum(len(record.value) for record in records) > LARGE_BATCH
            pipe.send(_answer(batches, state, records, log, complain))
            del records
            if is_large:
                trim_heap()


def _answer(
    batches: Batches,
    state: _News,
    records: Sequence[Record],
    log: FilteringBoundLogger,
    complain: Callable[[str], None],
) -> Answer:
    state.taken = False
    try:
        outcomes = decode_and_write(records, batches.write_or_keep)
        return Written(outcomes, state.taken)
    except StrandlineError as error:
        return error
    except Exception as error:
        if (fault := faulty(error, complain)) is not None:
            return fault
        log.error("events cannot be stored together", events=len(records), exc_info=error)
        return UnstorableError(type(error).__name__)
