"""Events that are bent in their structure, over every way in: what is no event is refused with its place, and nothing breaks."""

from sqlalchemy import Engine

from worlds.builders import rows
from worlds.fuzzing import check_decoder, check_http, check_topic


def test_twenty_thousand_bodies_are_refused_or_leave_rows() -> None:
    check_decoder(seed=1, count=20_000)


def test_records_of_a_topic_are_events_or_dead_letters(sqlite_engine: Engine) -> None:
    check_topic(sqlite_engine, seed=1, count=500)

    assert rows(sqlite_engine, "SELECT count(*) FROM dead_letters") > [(50,)]
    assert rows(sqlite_engine, "SELECT count(*) FROM event_keys") > [(50,)]


def test_bodies_over_http_are_stored_or_refused_with_their_place(sqlite_url: str) -> None:
    statuses = check_http(sqlite_url, 200)

    assert statuses[201] > 20
    assert statuses[422] > 20
