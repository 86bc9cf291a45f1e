"""A process that answers HTTP beside the first one of its server. It shares the store with it, and nothing else.

It follows the store's logs and keeps its own graph, pages of the search and process that writes, as another server on the same
database would. The first process is asked for what only that knows, and ends this one by a signal or by its own death.
"""

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from typing import Any

from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from structlog.typing import FilteringBoundLogger

from strandline.api.answering.asking import Asking, answer_all, faults_to
from strandline.api.answering.serving import SWITCH_SECONDS, Server
from strandline.api.app import create_app
from strandline.logs import adopt_library_logs, make_log
from strandline.metrics import Metrics
from strandline.store.sql.engine import make_engine

LOST = 1  # exit code of a process whose first one is gone


class First:
    """The first process, asked a question at a time."""

    def __init__(self, pipe: Connection) -> None:
        self._asking = Asking(pipe)

    def ask(self, question: str) -> Any:
        """Its answer; StrandlineError where it failed over it. Where it is gone, this process ends."""
        try:
            return self._asking.ask(question)
        except (EOFError, OSError):
            os._exit(LOST)


class AllMetrics(Collector):
    """The metrics of the whole server, which the first process puts together."""

    def __init__(self, ask: Callable[[str], Any]) -> None:
        self._ask = ask

    def collect(self) -> Iterator[Metric]:
        """All families."""
        yield from self._ask("metrics")


def main() -> None:
    """Answer until a signal. Arguments: the socket to listen on, the pipe to answer the first process, the one to ask it."""
    listening, answering, asking = map(int, sys.argv[1:])
    sys.setswitchinterval(SWITCH_SECONDS)
    first = First(Connection(asking))
    settings = first.ask("settings")
    log, metrics = make_log(settings.log_format, settings.log_level), Metrics(several=True)
    adopt_library_logs(settings.log_format)
    metrics.scraped.register(AllMetrics(first.ask))
    engine = make_engine(settings.database_url)
    checks = {"consumer": lambda: first.ask("consumer")}
    app = create_app(engine, settings, log=log, metrics=metrics, checks=checks, in_process=False)
    refusals = app.state.refusals
    refusals.flush_others = lambda: first.ask("refusals")
    answers = {"metrics": lambda: list(metrics.registry.collect()), "refusals": refusals.flush}
    threading.Thread(target=_tell, args=(Connection(answering), answers, log), name="first", daemon=True).start()
    server = Server(app, settings)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: server.end())
    log.info("answering", process=os.getpid())
    server.run(sockets=[socket.socket(fileno=listening)])
    engine.dispose()
    log.info("stopped answering", process=os.getpid(), events=metrics.events.total())


def _tell(pipe: Connection, answers: Mapping[str, Callable[[], object]], log: FilteringBoundLogger) -> None:
    """Answer the first process. Where it is gone, nobody may be answered any more."""
    try:
        answer_all(pipe, answers, faults_to(log))
    except (EOFError, OSError):
        os._exit(LOST)
