"""How much longer a whole Spark job takes while the emitter's backend is at fault.

Twelve faults on three transports.

Job, faults and backends are those of the suite, which looks at the results; here only the time
counts, from the start of the process to its end. Jobs under faults alternate with jobs without
emitter, and each fault has the median of its rounds: one job differs from the next by more than a
fault adds. A short run tries one fault of one transport.
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
    from fixtures.emitter.faulted import TRANSPORTS
    from fixtures.emitter.faulty_proxy import FAULTS

    with broker() as bootstrap:
        for transport in ("http",) if short else TRANSPORTS:
            faults, rounds = (FAULTS[2:3], 1) if short else (FAULTS, 3)
            off, under = measured(faults, transport, bootstrap, rounds)
            added = {fault: took - off for fault, took in under.items()}
            worst, bound = max(added, key=lambda fault: added[fault]), max(2.0, off / 100)
            met = None if short else added[worst] <= bound
            name, note = (
                f"emitter.faults.{transport}.wall",
                f"worst of {len(faults)}: {worst}; {rounds} rounds each",
            )
            report.record(
                f"{name}.off",
                off,
                "s",
                note="a job of a batch and a streaming query, process and all",
            )
            report.record(f"{name}.added", added[worst], "s", f"<= {bound:.2f}", met, note)
            report.record(f"{name}.added.median", median(added.values()), "s", note="of the faults")


def measured(
    faults: tuple[str, ...], transport: str, bootstrap: Callable[[], str], rounds: int
) -> tuple[float, dict[str, float]]:
    """How long the job takes without emitter and under each fault, medians in seconds.

    A job without before every third.
    """
    off: list[float] = []
    under: dict[str, list[float]] = {fault: [] for fault in faults}
    for _ in range(rounds):
        for at, fault in enumerate(faults):
            if at % 3 == 0:
                off.append(seconds_of(FILE, "false"))
            under[fault].append(seconds_under(fault, transport, bootstrap))
    return median(off), {fault: median(seconds) for fault, seconds in under.items()}


def seconds_under(fault: str, transport: str, bootstrap: Callable[[], str]) -> float:
    """How long the job takes under a fault."""
    from fixtures.emitter.backends import backend, broken
    from fixtures.emitter.faulty_proxy import faulty_proxy

    with (
        tempfile.TemporaryDirectory() as folder,
        backend(transport, Path(folder), bootstrap) as behind,
        faulty_proxy(fault, behind.address) as port,
    ):
        host = "nowhere.invalid" if fault == "name unresolved" else "127.0.0.1"
        return seconds_of(broken(fault, behind.conf(host, port.port)), "true")


def seconds_of(transport: dict[str, str], enabled: str) -> float:
    """How long the job takes with that transport."""
    from fixtures.emitter.faulted import JOB, driver

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
