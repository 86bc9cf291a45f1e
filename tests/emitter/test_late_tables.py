"""A stream over several tables reports the table that it waits for, and times out."""

from __future__ import annotations

import logging

import pytest

from strandline_spark.consistency.aligned.inputs import InputsLateError
from strandline_spark.sources.late_tables import WARNED_AFTER, LateTables

BARE = {"lake.a.b": {1: "10"}, "lake.a.c": {}}
BEHIND = {"lake.a.b": {1: "10", 2: "11"}, "lake.a.c": {1: "20"}}
APART = {"lake.a.b": {1: "10", 2: "11"}, "lake.a.c": {1: "20", 3: "21"}}
IDLE = {"lake.a.b": {1: "10"}, "lake.a.c": {1: "20"}}


class Clock:
    """Seconds that pass when the test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("done", "reason"),
    [
        (
            BARE,
            "after barrier 1: none of the snapshots of lake.a.c states a barrier (no job with barriers writes it)",
        ),
        (
            BEHIND,
            "after barrier 1: lake.a.c is late (lake.a.b has barrier 2 as its newest, lake.a.c has barrier 1 as",
        ),
        (
            APART,
            "after barrier 1: no barrier is common to all tables (lake.a.b has barrier 2 as its newest, lake.a.c",
        ),
    ],
)
def test_waiting_stream_warns_once_and_then_fails(
    done: dict[str, dict[int, str]], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    wait = LateTables(100, clock)
    for clock.now in (0, WARNED_AFTER - 1, WARNED_AFTER, WARNED_AFTER + 1, 100):
        wait.check(done, 1)

    clock.now = 101
    with pytest.raises(InputsLateError) as error:
        wait.check(done, 1)

    assert reason in str(error.value)
    assert "has waited 101 s" in str(error.value)
    assert [one.levelno for one in caplog.records] == [logging.WARNING]
    assert reason in caplog.text


def test_advancing_or_idle_stream_is_not_waiting(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    wait = LateTables(100, clock)
    for clock.now in (0, 1000, 2000):
        wait.check(IDLE, 1)
    wait.check(BEHIND, 1)
    clock.now = 2090
    wait.end()
    wait.check(BEHIND, 1)
    clock.now = 2190
    wait.check(BEHIND, 1)
    clock.now = 2191
    with pytest.raises(InputsLateError):
        wait.check(BEHIND, 1)

    assert len(caplog.records) == 1


def test_stream_without_a_timeout_waits_and_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    wait = LateTables(None, clock)
    for clock.now in (0, 3600, 86400):
        wait.check(BARE, 1)

    assert len(caplog.records) == 1
