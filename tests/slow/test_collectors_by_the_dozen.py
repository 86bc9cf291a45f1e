"""Four consumers and two servers, killed and stopped: each event counts once.

`make soak` runs longer stories: STRANDLINE_SOAK_SLICES (60), STRANDLINE_SOAK_SEED (the first one).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.kafka import PATIENCE, environ_of, make_topic, process, send, taken
from fixtures.versions_server.process import Served, served
from fixtures.waiting import wait_until
from worlds.simulation.stores import arrivals, check

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

CONSUMERS, SERVERS, PARTITIONS = 4, 2, 4
SESSION = "3"  # seconds after which a killed consumer is missed
SLICES = int(os.environ.get("STRANDLINE_SOAK_SLICES", "60"))
SEED = int(os.environ.get("STRANDLINE_SOAK_SEED", "1"))


class Consumers:
    """Processes of `strandline consume`; whoever is killed is started again."""

    def __init__(self, stack: ExitStack, environ: dict[str, str]) -> None:
        self._stack, self._environ = stack, environ
        self._running = [self._start() for _ in range(CONSUMERS)]
        self._asleep: list[subprocess.Popen[bytes]] = []

    def kill(self, chance: random.Random) -> None:
        """End one in the middle of whatever it does."""
        place = chance.randrange(CONSUMERS)
        self._running[place].send_signal(signal.SIGCONT)
        self._running[place].kill()
        self._running[place].wait()
        self._running[place] = self._start()

    def stop(self, chance: random.Random) -> None:
        """Let one sleep with records in its hands; it wakes up with the next one that does."""
        self.wake()
        self._asleep = [chance.choice(self._running)]
        self._asleep[0].send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let all go on."""
        for one in self._asleep:
            if one.poll() is None:
                one.send_signal(signal.SIGCONT)
        self._asleep = []

    def _start(self) -> subprocess.Popen[bytes]:
        return self._stack.enter_context(process(self._environ))


def post(server: Served, bodies: Sequence[bytes]) -> None:
    """Send until each is taken, as a client with a spool does."""
    waiting = list(bodies)
    while waiting:
        try:
            if server.client.post("/api/v1/lineage", content=waiting[0]).status_code < 300:
                waiting.pop(0)
        except httpx.TransportError:
            continue


def disturb(
    number: int, chance: random.Random, consumers: Consumers, servers: Sequence[Served]
) -> None:
    """Something breaks: each kind in turn, so that none is left out."""
    match number % 4:
        case 0:
            consumers.kill(chance)
        case 1:
            consumers.stop(chance)
        case 2:
            server = chance.choice(servers)
            server.kill()
            server.start()
        case _:
            chance.choice(servers).kill_who_writes()


def play(seed: int, slices: int, engine: Engine, kafka: str, folder: Path) -> list[bytes]:
    """Send a slice, break something, and so on; then wait until all is taken.

    Gives what was sent, each once.
    """
    chance, topic, sent = random.Random(seed), f"dozen-{seed}-{os.getpid()}", 0
    make_topic(kafka, topic, PARTITIONS)
    bodies = arrivals(seed, slices)
    environ = environ_of(engine, kafka, topic, batch_records="20", kafka_session_seconds=SESSION)
    url = engine.url.render_as_string(hide_password=False)
    with ExitStack() as stack:
        servers = stack.enter_context(served(url, folder, SERVERS))
        consumers = Consumers(stack, environ)
        for number in range(slices):
            part = bodies[number::slices]
            on_topic = [one for one in part if chance.random() < 0.7]
            over_http = [one for one in part if one not in on_topic or chance.random() < 0.2]
            again = chance.choices(on_topic, k=len(on_topic) // 5)
            send(kafka, topic, [*on_topic, *again], PARTITIONS)
            sent += len(on_topic) + len(again)
            disturb(number, chance, consumers, servers)
            for place, server in enumerate(servers):
                post(server, over_http[place::SERVERS])
        consumers.wake()
        wait_until(lambda: taken(engine) == sent, PATIENCE)
        one, other = lineages(servers)
        assert one == other
    return bodies


def lineages(servers: Sequence[Served]) -> list[object]:
    """Return each server's answer about the bank, whenever it is asked."""
    asked = {"node": "bank.balance", "direction": "both"}
    answers = [server.client.get("/api/v2/lineage", params=asked).json() for server in servers]
    return [(answer["nodes"], answer["edges"]) for answer in answers]


@pytest.mark.parametrize(
    ("seed", "slices"),
    [
        pytest.param(1, 4, id="4 slices"),
        pytest.param(SEED, SLICES, id="soak", marks=pytest.mark.soak),
    ],
)
def test_killed_and_stopped_collectors_change_nothing(
    seed: int, slices: int, postgres_engine: Engine, kafka: str, sqlite_url: str, tmp_path: Path
) -> None:
    bodies = play(seed, slices, postgres_engine, kafka, tmp_path)

    check(postgres_engine, bodies, sqlite_url)
