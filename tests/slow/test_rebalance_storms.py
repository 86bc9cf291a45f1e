"""Consumers are stopped past their session, resume as zombies and are killed: events count once.

In each round some are stopped with records in their hands; the others are given their partitions
and take all that comes. Then one of these is killed, and those that were stopped go on, believing
that the partitions are still theirs. A single zombie is in tests/transports/test_kafka_faults.py,
so this is `make soak` alone: STRANDLINE_SOAK_ROUNDS (30), STRANDLINE_SOAK_SEED.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import Engine

from fixtures.kafka import PATIENCE, environ_of, make_topic, process, send, taken
from fixtures.waiting import wait_until
from worlds.simulation.stores import arrivals, check

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.soak]

ROUNDS = int(os.environ.get("STRANDLINE_SOAK_ROUNDS", "30"))
SEED = int(os.environ.get("STRANDLINE_SOAK_SEED", "1"))
CONSUMERS, STOPPED, PARTITIONS = 4, 2, 5
SESSION = "3"  # seconds after which a stopped consumer loses its partitions
NOTICED = ("fenced", "partitions lost", "partitions assigned", "records come again")


class Group:
    """Processes of `strandline consume`, each with a log of its own."""

    def __init__(self, stack: ExitStack, environ: dict[str, str], folder: Path) -> None:
        self._stack, self._environ, self._folder = stack, environ, folder
        self._started = 0
        self.running = [self._start() for _ in range(CONSUMERS)]

    def stop(self, chance: random.Random) -> list[tuple[subprocess.Popen[bytes], Path]]:
        """Stop some, whatever they are doing."""
        stopped = chance.sample(self.running, STOPPED)
        for one, _ in stopped:
            one.send_signal(signal.SIGSTOP)
        return stopped

    def kill(self, one: tuple[subprocess.Popen[bytes], Path]) -> None:
        """Kill one, which another one takes the place of."""
        one[0].kill()
        one[0].wait()
        self.running[self.running.index(one)] = self._start()

    def _start(self) -> tuple[subprocess.Popen[bytes], Path]:
        self._started += 1
        log = self._folder / f"consumer-{self._started}.log"
        return self._stack.enter_context(process(self._environ, log=log)), log


def storm(seed: int, rounds: int, engine: Engine, kafka: str, folder: Path) -> list[bytes]:
    """Send, stop, take over, kill, go on; what was sent.

    Each zombie has to notice that it is one, and to live.
    """
    chance, topic, sent, before = random.Random(seed), f"storm-{seed}-{os.getpid()}", 0, 0
    make_topic(kafka, topic, PARTITIONS)
    bodies = arrivals(seed, rounds)
    environ = environ_of(engine, kafka, topic, batch_records="5", kafka_session_seconds=SESSION)

    def all_is_taken() -> bool:
        return taken(engine) == sent

    def some_are_taken() -> bool:
        return taken(engine) > before

    with ExitStack() as stack:
        group = Group(stack, environ, folder)
        for number in range(rounds):
            part = bodies[number::rounds]
            halves = part[::2], part[1::2]
            before = sent
            send(kafka, topic, halves[0], PARTITIONS)
            sent += len(halves[0])
            wait_until(some_are_taken, PATIENCE)
            stopped = group.stop(chance)
            wait_until(all_is_taken, PATIENCE)
            send(kafka, topic, halves[1], PARTITIONS)
            sent += len(halves[1])
            group.kill(chance.choice([one for one in group.running if one not in stopped]))
            wake(stopped)
            wait_until(all_is_taken, PATIENCE)
        for one, _ in group.running:
            assert one.poll() is None
    return bodies


def wake(stopped: list[tuple[subprocess.Popen[bytes], Path]]) -> None:
    """Let zombies go on, and wait until each has noticed."""
    before = [noticed(log) for _, log in stopped]
    for one, _ in stopped:
        one.send_signal(signal.SIGCONT)
    wait_until(
        lambda: all(noticed(log) > count for (_, log), count in zip(stopped, before, strict=True)),
        PATIENCE,
    )


def noticed(log: Path) -> int:
    """Count the messages of a process that its partitions are others'."""
    return sum(log.read_text().count(f'"{words}') for words in NOTICED)


def test_soak_zombie_consumers_change_nothing(
    postgres_engine: Engine, kafka: str, sqlite_url: str, tmp_path: Path
) -> None:
    bodies = storm(SEED, ROUNDS, postgres_engine, kafka, tmp_path)
    print(f"seed {SEED}: {ROUNDS} rounds, {len(bodies)} events")

    check(postgres_engine, bodies, sqlite_url)
