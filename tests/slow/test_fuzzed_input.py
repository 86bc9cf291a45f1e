"""More bent events than tests/store/test_fuzzed_input.py sends, into both databases.

`make soak` bends more: STRANDLINE_SOAK_INPUTS (10,000,000) for the decoder, STRANDLINE_SOAK_RECORDS
(200,000) for a topic, by STRANDLINE_SOAK_SEED.
"""

import os

import pytest
from sqlalchemy import Engine

from worlds.fuzzing import check_decoder, check_http, check_topic

INPUTS = int(os.environ.get("STRANDLINE_SOAK_INPUTS", "10000000"))
RECORDS = int(os.environ.get("STRANDLINE_SOAK_RECORDS", "200000"))
SEED = int(os.environ.get("STRANDLINE_SOAK_SEED", "1000"))


@pytest.mark.parametrize(
    ("seed", "count"),
    [
        pytest.param(2, 200_000, id="200,000 bodies"),
        pytest.param(SEED, INPUTS, id="soak", marks=pytest.mark.soak),
    ],
)
def test_fuzzed_bodies_are_rejected_or_leave_rows(seed: int, count: int) -> None:
    check_decoder(seed, count)


@pytest.mark.parametrize(
    ("seed", "count"),
    [
        pytest.param(2, 3_000, id="3,000 records"),
        pytest.param(SEED, RECORDS, id="soak", marks=pytest.mark.soak),
    ],
)
def test_fuzzed_records_become_events_or_dead_letters(
    engine: Engine, seed: int, count: int
) -> None:
    check_topic(engine, seed, count)


def test_fuzzed_http_bodies_are_stored_or_rejected_with_the_position(sqlite_url: str) -> None:
    statuses = check_http(sqlite_url, 1_000)

    assert statuses[201] > 100
    assert statuses[422] > 100
