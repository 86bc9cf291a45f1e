"""Events that fail through our own bugs are kept and stored after the next start."""

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from kafka import TopicPartition
from sqlalchemy import Engine

from fixtures.servers import post, serving
from fixtures.versions_server.process import served
from fixtures.waiting import wait_until
from strandline.cli import main
from strandline.core.changes.extract import EventChanges, changes_of
from strandline.core.openlineage.events import Event
from strandline.core.openlineage.times import micros_of
from strandline.logs import Bugs, make_log
from strandline.settings import Settings
from strandline.store.ingest.take import Record
from strandline.store.ingest.transactions import Batches
from strandline.transports.dead_letters import take_unread
from strandline.transports.partitions import Holdings
from worlds.builders import Json, dataset, encode, event, live, rows

Mend = Callable[[], None]
EVENTS = TopicPartition("events", 0)
GOOD, ODD = (
    event("START", 1, "good", inputs=[dataset("bank.a")]),
    event("START", 2, "odd", inputs=[dataset("bank.b")]),
)
NOW = datetime.now(UTC)


@pytest.fixture
def mend(monkeypatch: pytest.MonkeyPatch) -> Mend:
    """A fault that the events of one job bring about, until it is mended."""

    def faulty(one: Event, *more: Any) -> EventChanges:
        if one.job is not None and one.job.name == "odd":
            raise ZeroDivisionError("a fault of ours")
        return changes_of(one, *more)

    monkeypatch.setattr("strandline.store.ingest.take.changes_of", faulty)
    return monkeypatch.undo


def records(*events: Json) -> list[Record]:
    return [Record(encode(one), NOW, "events", 0, offset) for offset, one in enumerate(events)]


def test_unread_event_is_kept_and_stored_later(engine: Engine, mend: Mend) -> None:
    outcomes = Batches(engine).write(records(ODD, GOOD))

    assert [outcome.kind for outcome in outcomes] == ["unread", "stored"]
    assert live(engine) == {"good": ["< bank.a"]}
    assert rows(
        engine, "SELECT topic, record_offset, reason FROM set_aside WHERE kind = 'unread'"
    ) == [("events", 0, "cannot be read: ZeroDivisionError('a fault of ours')")]
    assert rows(engine, "SELECT count(*) FROM set_aside WHERE kind = 'dead'") == [(0,)]

    # a start of the same program changes nothing
    assert take_unread(engine, lambda _: None) == {"unread": 1}
    mend()

    assert take_unread(engine, lambda _: None) == {"stored": 1}
    assert live(engine) == {"good": ["< bank.a"], "odd": ["< bank.b"]}
    assert rows(engine, "SELECT count(*) FROM set_aside WHERE kind = 'unread'") == [(0,)]
    assert rows(engine, "SELECT DISTINCT received_at FROM raw_events") == [(micros_of(NOW),)]


def test_unread_events_are_listed_by_rest_and_command(
    engine: Engine, mend: Mend, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = [event("START", run, "odd", inputs=[dataset("bank.b")]) for run in (2, 3, 4)]
    Batches(engine).write(records(GOOD, *odd))
    with serving(engine) as url:
        first = httpx.get(f"{url}/api/v2/unread-events", params={"limit": 2}).json()
        rest = httpx.get(
            f"{url}/api/v2/unread-events", params={"cursor": first["nextCursor"]}
        ).json()
    database = engine.url.render_as_string(hide_password=False)
    assert main(["rejected", "--database-url", database], {}) == 0
    out = capsys.readouterr().out
    assert main(["rejected", "--json", "--database-url", database], {}) == 0
    as_json = json.loads(capsys.readouterr().out)

    items = [*first["items"], *rest["items"]]
    assert (len(first["items"]), rest["nextCursor"]) == (2, None)
    assert sorted(one["offset"] for one in items) == [1, 2, 3]
    assert {one["reason"] for one in items} == {
        "cannot be read: ZeroDivisionError('a fault of ours')"
    }
    assert {json.loads(one["body"])["job"]["name"] for one in items} == {"odd"}
    assert out.count("events[0]@") == 1  # one line a kind
    assert "unread events are kept because of a fault of the collector" in out
    (kind,) = as_json["items"]
    assert (kind["list"], kind["count"]) == ("unread", 3)


def test_unread_event_may_be_repeated_before_and_after_the_fix(engine: Engine, mend: Mend) -> None:
    kinds = [Batches(engine).write(records(ODD))[0].kind for _ in range(2)]
    mend()
    kinds.append(Batches(engine).write(records(ODD))[0].kind)

    assert kinds == ["unread", "unread", "stored"]
    assert take_unread(engine, lambda _: None) == {"duplicate": 1}
    assert rows(engine, "SELECT count(*) FROM set_aside WHERE kind = 'unread'") == [(0,)]


def test_unread_event_is_redacted_and_keeps_its_identity(engine: Engine, mend: Mend) -> None:
    secret = ODD | {"inputs": [dataset("a", "postgres://me:hunter2@db:5432")]}
    Batches(engine).write(records(secret))
    (kept,) = rows(engine, "SELECT body FROM set_aside WHERE kind = 'unread'")
    mend()

    assert b"hunter2" not in bytes(kept[0])
    assert take_unread(engine, lambda _: None) == {"stored": 1}
    assert [one.kind for one in Batches(engine).write(records(secret))] == ["duplicate"]


def test_stack_trace_is_logged_once(engine: Engine, mend: Mend) -> None:
    lines = io.StringIO()
    batches = Batches(engine, on_bug=Bugs(make_log(stream=lines)))
    for number in range(3):
        batches.write(
            records(*(ODD | {"eventTime": f"2026-11-20T12:00:{number}{one}Z"} for one in range(5)))
        )

    assert lines.getvalue().count("Traceback (most recent call last)") == 1
    assert lines.getvalue().count('raise ZeroDivisionError("a fault of ours")') == 1
    assert rows(engine, "SELECT count(*) FROM set_aside WHERE kind = 'unread'") == [(15,)]


def test_sender_of_an_unread_event_gets_success(engine: Engine, mend: Mend) -> None:
    with serving(engine) as address:
        one = post(f"{address}/api/v1/lineage", json=ODD)
        several = post(f"{address}/api/v1/lineage/batch", json=[GOOD, ODD])
        metrics = httpx.get(f"{address}/metrics").text

    assert (one.status_code, several.status_code) == (201, 204)
    assert 'strandline_events_total{outcome="unread",source="http"} 2.0' in metrics


def failing(*_: object) -> None:
    raise ZeroDivisionError("a fault of ours")


def test_records_that_fail_to_be_written_are_kept_unread(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records are kept one by one without inspection; the dead letter limit does not apply."""
    monkeypatch.setattr("strandline.store.ingest.transactions.take", failing)
    owner = Holdings(
        engine,
        Settings(max_dead_in_row=2),
        make_log(level="critical"),
        lambda: None,
        lambda _: False,
    )
    owner.claim({EVENTS: (0, 9)})
    many = records(*(ODD | {"eventTime": f"2026-11-20T12:00:0{one}Z"} for one in range(9)))

    assert {outcome.kind for outcome in owner.write({EVENTS: many})} == {"unread"}
    assert owner.positions() == {EVENTS: 9}
    assert [kind for kind, *_ in Batches(engine).write_or_keep(many)] == ["unread"] * 9
    monkeypatch.undo()

    assert take_unread(engine, lambda _: None) == {"stored": 9}


@pytest.mark.slow
def test_starting_server_stores_unread_events(
    own_engine: Engine, tmp_path: Path, mend: Mend
) -> None:
    Batches(own_engine).write(records(ODD))
    mend()
    url = own_engine.url.render_as_string(hide_password=False)
    with served(url, tmp_path):
        wait_until(
            lambda: (
                rows(own_engine, "SELECT count(*) FROM set_aside WHERE kind = 'unread'") == [(0,)]
            )
        )

    assert live(own_engine) == {"odd": ["< bank.b"]}
