"""Structurally mutated events over every input: invalid ones are rejected with their position."""

import pytest
from sqlalchemy import Engine

from worlds.builders import rows
from worlds.fuzzing import check_decoder, check_http, check_topic


@pytest.mark.parametrize("count", [5_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_fuzzed_bodies_are_refused_or_leave_rows(count: int) -> None:
    check_decoder(seed=1, count=count)


def test_fuzzed_records_become_events_or_dead_letters(sqlite_engine: Engine) -> None:
    check_topic(sqlite_engine, seed=1, count=500)

    assert rows(sqlite_engine, "SELECT count(*) FROM set_aside WHERE kind = 'dead'") > [(50,)]
    assert rows(sqlite_engine, "SELECT count(*) FROM event_keys") > [(50,)]


def test_fuzzed_http_bodies_are_stored_or_rejected_with_the_position(sqlite_url: str) -> None:
    statuses = check_http(sqlite_url, 200)

    assert statuses[201] > 20
    assert statuses[422] > 20
