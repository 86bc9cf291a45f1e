"""The first process' part in the others: it starts them, starts another for one that dies, ends them, and adds up their metrics."""

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Pipe

from structlog.typing import FilteringBoundLogger

from strandline.api.answering.asking import Asking, answer_all, faults_to
from strandline.api.answering.merged import Families, Merged, counts, merged
from strandline.api.answering.serving import STOP_SECONDS
from strandline.errors import StrandlineError
from strandline.metrics import Metrics
from strandline.settings import Settings

PAUSE_SECONDS = 1  # before another process is started for one that died
TOLD_SECONDS = 2  # how long a question waits for one process
SILENT = (StrandlineError, EOFError, OSError)  # it failed, takes too long, or is gone
MODULE = "strandline.api.answering.process"


class _Started:
    """One process, and what it counted when it was last asked."""

    def __init__(self, listening: socket.socket) -> None:
        questions, answering = Pipe()
        self.questions, asking = Pipe()
        handles = [listening.fileno(), answering.fileno(), asking.fileno()]
        with answering, asking:
            self.process = subprocess.Popen(
                [sys.executable, "-c", f"from {MODULE} import main; main()", *map(str, handles)],
                stdin=subprocess.DEVNULL,
                pass_fds=handles,
                process_group=0,  # a terminal's Ctrl-C is for the first one, which ends the others
            )
        self._asking = Asking(questions)
        self.last_metrics: Families = []

    def metrics(self) -> Families:
        """Its metrics now, or, where it does not say, as they were."""
        with suppress(*SILENT):
            self.last_metrics = self._asking.ask("metrics", TOLD_SECONDS)
        return self.last_metrics

    def flush_refusals(self) -> None:
        """Let it write down what it has refused; where it does not say that it has, it will within a second."""
        with suppress(*SILENT):
            self._asking.ask("refusals", TOLD_SECONDS)

    def close(self) -> None:
        """Let go of a process that has ended."""
        self._asking.close()
        self.questions.close()


class AnsweringProcesses:
    """One process for each socket, while in a `with`. answers: to what they ask the first process, but for settings and metrics."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        settings: Settings,
        metrics: Metrics,
        log: FilteringBoundLogger,
        answers: Mapping[str, Callable[[], object]],
    ) -> None:
        self._sockets = sockets
        self._memory = metrics.memory
        self._log = log
        self._stopping = threading.Event()
        self._started: dict[int, _Started] = {}
        self._ended: Families = []
        self._lock = threading.Lock()
        everything = Merged(metrics.registry, self._others)
        if sockets:
            metrics.scraped.register(everything)
        self._answers: Mapping[str, Callable[[], object]] = {
            **answers,
            "settings": lambda: settings,
            "metrics": lambda: list(everything.collect()),
        }
        self._threads = [
            threading.Thread(target=self._keep, args=(place,), name=f"answering {place}", daemon=True)
            for place in range(len(sockets))
        ]

    def __enter__(self) -> None:
        """Start the processes; each answers some time later."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Ask all processes to answer what they have begun and to end. Waits for nobody."""
        self._stopping.set()
        for one in list(self._started.values()):
            one.process.send_signal(signal.SIGTERM)

    def __exit__(self, *_: object) -> None:
        """End all processes and wait until they are gone."""
        self.end()
        for one in list(self._started.values()):
            try:
                one.process.wait(STOP_SECONDS + 10)
            except subprocess.TimeoutExpired:
                one.process.kill()
        for thread in self._threads:
            thread.join()
        for listening in self._sockets:
            listening.close()

    def _keep(self, place: int) -> None:
        while not self._stopping.is_set():
            one = self._started[place] = _Started(self._sockets[place])
            self._memory.apart.add(one.process.pid)
            if self._stopping.is_set():  # it was set before this process could be seen
                one.process.terminate()
            self._answer(one)
            code = one.process.wait()
            self._bury(place, one)
            if not self._stopping.is_set():
                self._log.error(
                    "a process that answers has ended; another one starts", process=one.process.pid, code=code
                )
                self._stopping.wait(PAUSE_SECONDS)

    def _answer(self, one: _Started) -> None:
        """Answer what the process asks, until it is gone."""
        with suppress(EOFError, OSError):
            answer_all(one.questions, self._answers, faults_to(self._log))

    def _bury(self, place: int, one: _Started) -> None:
        with self._lock:
            del self._started[place]
            self._ended = merged(counts(one.last_metrics), [self._ended]) if one.last_metrics else self._ended
        self._memory.apart.discard(one.process.pid)
        one.close()

    def flush_refusals(self) -> None:
        """Let all write down what they have refused."""
        with self._lock:
            started = list(self._started.values())
        for one in started:
            one.flush_refusals()

    def _others(self) -> list[Families]:
        with self._lock:
            started, ended = list(self._started.values()), self._ended
        return [*(one.metrics() for one in started), ended]
