"""How much longer a whole Spark job takes while the emitter's backend is at fault: twelve faults on three transports.

Job, faults and backends are those of the suite, which looks at the results; here only the time counts, from the start
of the process to its end. A short run tries one fault of one transport.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from statistics import median

from bench import report
from deploy import kafka

TESTS = Path(__file__).resolve().parent.parent / "tests"
FILE = {"type": "file", "location": "/dev/null"}


def run(short: bool) -> None:
    """Measure and record."""
    sys.path.insert(0, str(TESTS))
    from emitter_world.faulted import TRANSPORTS
    from emitter_world.relay import FAULTS

    off = median(seconds_of(FILE, "false") for _ in range(1 if short else 5))
    report.record("emitter.faults.wall.off", off, "s", note="a job of a batch and a streaming query, process and all")
    with broker() as bootstrap:
        for transport in ("http",) if short else TRANSPORTS:
            found = {fault: seconds_under(fault, transport, bootstrap) for fault in (FAULTS[2:3] if short else FAULTS)}
            worst, bound = max(found, key=lambda fault: found[fault]), max(2.0, off / 100)
            added = found[worst] - off
            met = None if short else added <= bound
            report.record(
                f"emitter.faults.{transport}.wall.added", added, "s", f"<= {bound:.2f}", met, f"worst: {worst}"
            )


def seconds_under(fault: str, transport: str, bootstrap: Callable[[], str]) -> float:
    """How long the job takes under a fault."""
    from emitter_world.backends import backend, broken
    from emitter_world.relay import relay

    with (
        tempfile.TemporaryDirectory() as folder,
        backend(transport, Path(folder), bootstrap) as behind,
        relay(fault, behind.address) as port,
    ):
        host = "nowhere.invalid" if fault == "name unresolved" else "127.0.0.1"
        return seconds_of(broken(fault, behind.conf(host, port.port)), "true")


def seconds_of(transport: dict[str, str], enabled: str) -> float:
    """How long the job takes with that transport."""
    from emitter_world.faulted import JOB, driver

    with tempfile.TemporaryDirectory() as folder:
        job = driver(Path(folder), JOB, transport, enabled)
        begun = time.perf_counter()
        ran = job.run()
        took = time.perf_counter() - begun
    if ran.code:
        raise RuntimeError(f"the job ended with code {ran.code}: {ran.err[-1000:]}")
    return took


@contextmanager
def broker() -> Iterator[Callable[[], str]]:
    """A broker that starts when it is asked for."""
    started: list[kafka.Broker] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:

        @cache
        def bootstrap() -> str:
            started.append(kafka.start(Path(folder)))
            return started[0].bootstrap

        try:
            yield bootstrap
        finally:
            for one in started:
                one.stop()
