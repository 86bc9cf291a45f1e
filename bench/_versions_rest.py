"""The decision call and strong answers over REST, while another process sends 1,000 commits a second to the same server."""

import http.client
import json
import multiprocessing
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path

from bench import _components as world
from bench.report import record
from strandline.api.listening import listen
from strandline.settings import Settings

RATE = 1000
BATCH = 50
SENDERS = 2
ASKED_A_SECOND = 50
PATIENCE = 60


def over_rest(short: bool) -> None:
    """Measure against a `strandline serve` of its own on SQLite."""
    components, seconds = (10, 6) if short else (100, 40)
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as port:
        send(
            port, [world.start_event(c, n) for c in range(components) for n in range(world.TABLES)]
        )
        for barrier in (1, 2):
            commits = [
                world.commit_event(c, n, barrier)
                for c in range(components)
                for n in range(world.TABLES)
            ]
            send(port, commits)
        with commits_coming_in(port, components) as sent:
            decisions, strongs = _asked(port, components, seconds)
            rate = sent.value / seconds  # type: ignore[attr-defined]
    note = f"{components * world.TABLES} tables, {rate:.0f} commits/s coming in"
    _tell("versions.rest.decision", decisions, note, 10)
    _tell("versions.rest.strong", strongs, note, None)


def _tell(name: str, taken: Sequence[float], note: str, bound: float | None) -> None:
    ordered = sorted(taken)
    p50, p99 = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
    record(f"{name}.p50", p50, "ms", note=note)
    record(
        f"{name}.p99",
        p99,
        "ms",
        f"<= {bound} ms" if bound else "",
        p99 <= bound if bound else None,
        note,
    )


@contextmanager
def server(folder: Path) -> Iterator[int]:
    """`strandline serve` in a process of its own; its port."""
    free = listen(Settings(host="127.0.0.1", port=0))
    port = int(free.getsockname()[1])
    free.close()
    command = [
        sys.executable,
        "-m",
        "strandline",
        "serve",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    process = subprocess.Popen(
        [*command, "--database-url", f"sqlite:///{folder / 'bench.db'}", "--log-level", "error"]
    )
    try:
        _wait(port)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)


def _wait(port: int) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            http.client.HTTPConnection("127.0.0.1", port, timeout=5).request("GET", "/healthz")
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def send(port: int, events: Sequence[world.JSON]) -> None:
    """Events as fast as they are taken."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    for start in range(0, len(events), 500):
        ask(connection, "/api/v1/lineage/batch", events[start : start + 500])
    connection.close()


def ask(connection: http.client.HTTPConnection, path: str, body: object) -> bytes:
    """POST; the answer's body."""
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    if answer.status >= 300:
        raise RuntimeError(f"{path}: {answer.status} {content[:300]!r}")
    return content


def _asked(port: int, components: int, seconds: float) -> tuple[list[float], list[float]]:
    """Milliseconds of decisions and of strong answers, asked in turn at a steady rate."""
    connection, random_ = (
        http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE),
        random.Random(3),
    )
    decisions: list[float] = []
    strongs: list[float] = []
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < seconds:
        component, number = random_.randrange(components), random_.randrange(1, world.TABLES)
        asked = dict(zip(("namespace", "name"), world.job(component, number), strict=True)) | {
            "position": 2
        }
        decisions.append(_millis(connection, "/api/v2/jobs/decision", asked))
        named = [
            dict(zip(("namespace", "name"), world.table(component, n), strict=True))
            for n in (0, number)
        ]
        strongs.append(
            _millis(connection, "/api/v2/versions", {"tables": named, "consistency": "strong"})
        )
        time.sleep(max(0.0, len(decisions) / ASKED_A_SECOND - elapsed))
    return decisions, strongs


def _millis(connection: http.client.HTTPConnection, path: str, body: object) -> float:
    began = time.perf_counter()
    ask(connection, path, body)
    return (time.perf_counter() - began) * 1000


@contextmanager
def commits_coming_in(port: int, components: int) -> Iterator[object]:
    """Other processes send commits at a steady rate, each of its share of the components.

    How many so far.
    """
    context = multiprocessing.get_context("spawn")
    sent, stop = context.Value("l", 0), context.Event()
    shares = [range(share, components, SENDERS) for share in range(SENDERS)]
    processes = [
        context.Process(target=_load, args=(port, share, sent, stop), daemon=True)
        for share in shares
    ]
    for process in processes:
        process.start()
    while sent.value == 0 and all(process.is_alive() for process in processes):
        time.sleep(0.05)
    sent.value = 0
    try:
        yield sent
        if not all(process.is_alive() for process in processes):
            raise RuntimeError("a process that sends commits has died")
    finally:
        stop.set()
        for process in processes:
            process.join(PATIENCE)


def _load(
    port: int,
    components: range,
    sent: "multiprocessing.sharedctypes.Synchronized[int]",
    stop: Event,
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    began, total, batch = time.monotonic(), 0, list[world.JSON]()
    for barrier in range(3, 10**6):
        for component in components:
            for number in range(world.TABLES):
                batch.append(world.commit_event(component, number, barrier))
                if len(batch) < BATCH:
                    continue
                ask(connection, "/api/v1/lineage/batch", batch)
                total += len(batch)
                with sent.get_lock():
                    sent.value += len(batch)
                batch = []
                if stop.wait(max(0.0, total * SENDERS / RATE - (time.monotonic() - began))):
                    return
