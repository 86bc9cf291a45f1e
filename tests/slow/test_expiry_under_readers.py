"""Expiry carried out again and again while queries restart and readers hold leased answers.

Each round commits barriers at the base table, lets all jobs start, work and end, takes a leased
answer, expires every table by `strandline expire --execute`, and reads again what all readers hold.
`make soak` does so for STRANDLINE_SOAK_EXPIRY_ROUNDS (60).
"""

import os
from functools import partial

import pytest

from fixtures.waiting import wait_until
from worlds.driven_lake import Driven, driven

pytestmark = [pytest.mark.spark]

ROUNDS = int(os.environ.get("STRANDLINE_SOAK_EXPIRY_ROUNDS", "60"))
BARRIERS_OF_A_ROUND = 2
TABLES = ("transfers", "credits", "balance", "copy")


@pytest.mark.parametrize(
    "rounds", [pytest.param(3), pytest.param(ROUNDS, id="soak", marks=pytest.mark.soak)]
)
def test_expiry_breaks_neither_restarts_nor_leased_answers(rounds: int, iceberg_jars: str) -> None:
    barrier = expired = 0
    with driven(iceberg_jars) as lake:
        for _ in range(rounds):
            for _ in range(BARRIERS_OF_A_ROUND):
                barrier += 1
                lake.tell("commit", barrier)
                lake.tell("copy", barrier)
                lake.tell("work", 1)
            # What the lease holds has to be known first, the copy's events before those of the work.
            wait_until(partial(stands_at, lake, barrier))
            lake.tell("lease")
            expired += sum(expire(lake, table) for table in TABLES)
            held = lake.tell("read")
            assert held["read"] > 0
            assert held["same"] == held["read"]
    assert expired > 0


def stands_at(lake: Driven, barrier: int) -> bool:
    """Return whether a strong read of the aligned chain shows the barrier."""
    return lake.ask("strong").get("barrier") == barrier


def expire(lake: Driven, table: str) -> int:
    """Expire a table; gives how many snapshots went."""
    before = lake.tell("snapshots")[table]
    done = lake.run(["expire", f"lake.h.{table}", "--execute", "--keep-barriers", "2"])
    assert done.returncode == 0, done.stderr
    return int(before - lake.tell("snapshots")[table])
