"""Questions of one process to another over a pipe. What goes wrong over an answer ends neither: who asked gets an error.

Either end sees EOFError or OSError where the other one is gone.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from structlog.typing import FilteringBoundLogger

from strandline.errors import StrandlineError, WaitedError

UNANSWERED = "another process of this server failed over a question of this one; the log has its trace"


@dataclass(frozen=True, slots=True)
class _Failed:
    """Stands for an answer that could not be given."""


class Asking:
    """The end that asks, one question at a time; for several threads."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self._asked = 0

    def ask(self, question: str, seconds: float | None = None) -> Any:
        """The answer. StrandlineError: the other end failed over it; WaitedError: it took longer than so many seconds."""
        with self._lock:
            self._asked += 1
            self._pipe.send((self._asked, question))
            while self._pipe.poll(seconds):
                number, answer = self._pipe.recv()
                if number != self._asked:  # a late answer to a question before
                    continue
                if isinstance(answer, _Failed):
                    raise StrandlineError(UNANSWERED)
                return answer
        raise WaitedError(f"another process of this server has not answered within {seconds} seconds")

    def close(self) -> None:
        """Let go of the pipe."""
        self._pipe.close()


def answer_all(
    pipe: Connection, answers: Mapping[str, Callable[[], object]], on_fault: Callable[[str, Exception], object]
) -> None:
    """Answer question after question until the other end is gone; `on_fault` gets the question that failed, and why."""
    while True:
        number, question = pipe.recv()
        pipe.send_bytes(_answer(number, question, answers, on_fault))


def _answer(
    number: int,
    question: str,
    answers: Mapping[str, Callable[[], object]],
    on_fault: Callable[[str, Exception], object],
) -> memoryview:
    try:
        return ForkingPickler.dumps((number, answers[question]()))  # what cannot be sent is a fault like any other
    except Exception as error:  # noqa: BLE001 - whatever it is, the other end waits
        on_fault(question, error)
        return ForkingPickler.dumps((number, _Failed()))


def faults_to(log: FilteringBoundLogger) -> Callable[[str, Exception], None]:
    """Logs each fault with its trace."""

    def on_fault(question: str, error: Exception) -> None:
        log.error("a question of another process of this server has no answer", question=question, exc_info=error)

    return on_fault
