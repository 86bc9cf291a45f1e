"""A process that sends by a transport when it is told to: what kafka-python forgets to close dies with it."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class Sender:
    """Such a process."""

    process: subprocess.Popen[str]

    def send(self, name: str, seconds: float) -> dict[str, Any]:
        """Sends one message: whether it went, why not, and how many threads and files are open after that."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([name, seconds]) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@contextmanager
def sender(settings: Mapping[str, str]) -> Iterator[Sender]:
    """A process over the transport of that conf."""
    roots = [str(Path(__file__).parents[3] / "spark_integration"), str(Path(__file__).parents[1])]
    command = [sys.executable, "-c", f"import sys; sys.path[:0] = {roots}; from emitter_world import sending"]
    command[-1] += "; sending.serve(sys.argv[1])"
    with subprocess.Popen(
        [*command, json.dumps(dict(settings))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Sender(process)
        finally:
            process.kill()


def serve(settings: str) -> None:
    """What the process does."""
    from emitter_world.builders import message
    from strandline_spark.delivery.transports.registry import transport_of

    transport = transport_of(json.loads(settings))
    for line in sys.stdin:
        name, seconds = json.loads(line)
        delivery = transport.send([message(name)], seconds)
        if delivery.unsent:  # what was given up may still be on its way out
            for thread in set(threading.enumerate()) - {threading.main_thread()}:
                thread.join(10)
        gc.collect()
        left_open = [threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))]
        print(json.dumps({"sent": not delivery.unsent, "reason": delivery.reason, "open": left_open}), flush=True)
