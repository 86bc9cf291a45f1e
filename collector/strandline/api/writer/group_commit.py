"""A process of its own that writes what was sent over HTTP.

No answer waits for an interpreter that takes events apart.

Server and process speak over a pair of sockets: records there, outcomes back. The process ends when
its server closes them or dies; if the process dies instead, the next group starts another, and its
senders hear that they may come again.
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

from strandline.api.writer.decoding import decode_and_write
from strandline.api.writer.process import UnstorableError, complaining, faulty
from strandline.errors import OverloadError, StrandlineError
from strandline.logs import Bugs, make_log
from strandline.runtime.follower import Follower
from strandline.settings import Settings
from strandline.store.ingest.take import Outcome, Record
from strandline.store.ingest.transactions import Batches
from strandline.store.sql.engine import make_engine

STOP_SECONDS = 30
NICE = 10  # who answers goes first


class Written(NamedTuple):
    """What became of records, and whether facts about versions were written with them."""

    outcomes: list[Outcome]
    facts: bool


Answer = Written | Exception


class WritingProcess:
    """Starts the process when it is first needed. For use by one thread."""

    def __init__(
        self, settings: Settings, on_retry: Callable[[], None], after: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._on_retry = on_retry
        self._after = after
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None

    def write(self, records: Sequence[Record]) -> list[Outcome]:
        """Store the records in one transaction.

        Returns after the commit, and after `after` where it brought facts.
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
        """Start the process; it is ready some time later, and whoever writes waits for it."""
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
        """Let the process finish what it writes, and wait for its end."""
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


def _unread(record: Record) -> Record:
    """The record as it is sent: what it holds is decoded where it is written."""
    return record if record.read is None else record._replace(read=None)


class _News:
    """Turns news into facts at the end of each transaction; `taken`: one of a group's had some."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.taken = False

    def take(self, connection: sqlalchemy.Connection) -> None:
        self.taken |= self._follower.take_news(connection)


def main() -> None:
    """Write what comes until the other side is gone.

    The first message says where, the others are batches.
    """
    os.nice(NICE)
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # meant for the server, which ends this when all is written
        signal.signal(number, signal.SIG_IGN)
    with Connection(int(sys.argv[1])) as pipe, suppress(EOFError, OSError):
        database, *how_to_log = pipe.recv()
        log, engine = make_log(*how_to_log), make_engine(database)
        news = _News(Follower(engine))
        batches = Batches(engine, lambda: pipe.send(None), news.take, on_bug=Bugs(log))
        complain = complaining(log)
        while True:
            pipe.send(_answer(batches, news, pipe.recv(), log, complain))


def _answer(
    batches: Batches,
    news: _News,
    records: Sequence[Record],
    log: FilteringBoundLogger,
    complain: Callable[[str], None],
) -> Answer:
    news.taken = False
    try:
        outcomes = decode_and_write(records, batches.write_or_keep)
        return Written(outcomes, news.taken)
    except StrandlineError as error:
        return error
    except Exception as error:
        if (fault := faulty(error, complain)) is not None:
            return fault
        log.error("events cannot be stored together", events=len(records), exc_info=error)
        return UnstorableError(type(error).__name__)
