"""Rejected HTTP events leave a trace.

How often, by producer and reason, and the newest of each.
"""

import gzip
import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.servers import client_of, serving
from strandline.api.writer.refusals import MOST_PENDING, TOO_MANY, Refusals
from strandline.cli import main
from strandline.errors import InvalidEventError
from strandline.store.ingest.refused import MOST_KINDS, Refused, add_refused, refused_page
from strandline.store.ingest.set_aside import keep_dead
from strandline.store.ingest.take import Record
from worlds.builders import NOON, encode, event, rows

AGENT = {"User-Agent": "openlineage-java/1.53"}


def post(client: httpx.Client, body: bytes, path: str = "") -> int:
    url = str(client.base_url).replace("/api/v2/", f"/api/v1/lineage{path}")
    return client.post(url, content=body, headers=AGENT).status_code


def counts(client: httpx.Client) -> list[tuple[str | None, str, int]]:
    """(producer, reason, count) of all that the API lists, sorted."""
    page = client.get("/rejected-events").json()
    return sorted((one["producer"], one["reason"], one["count"]) for one in page["items"])


def faulty(**more: Any) -> bytes:
    return encode(
        {name: value for name, value in event("START").items() if name != "eventTime"} | more
    )


def test_rejected_event_is_counted_by_producer_and_reason(client: httpx.Client) -> None:
    other = faulty(producer="https://example.com/other")
    statuses = [
        post(client, body)
        for body in (faulty(), faulty(), other, b"no JSON", encode(event("START")))
    ]

    assert statuses == [422, 422, 422, 400, 201]
    found = counts(client)
    assert found[:2] == [
        ("https://example.com/other", "not an OpenLineage event: eventTime: Field required", 1),
        ("https://example.com/tests", "not an OpenLineage event: eventTime: Field required", 2),
    ]
    assert [(producer, count) for producer, _, count in found[2:]] == [("openlineage-java/1.53", 1)]


def test_newest_rejection_of_each_kind_is_shown_redacted(client: httpx.Client) -> None:
    post(client, faulty(job={"namespace": "x", "name": "old"}))
    post(client, faulty(job={"namespace": "x", "name": "new"}, password="hunter2"))

    (one,) = client.get("/rejected-events").json()["items"]
    assert json.loads(one["body"])["job"]["name"] == "new"
    assert "hunter2" not in one["body"]
    assert one["firstAt"] < one["newestAt"]


def test_truncated_bodies_count_as_one_kind_wherever_they_end(client: httpx.Client) -> None:
    assert [
        post(client, body) for body in (b'{"job"', b'{"job": {"name"', b"{", b'{"a": \xff}')
    ] == [400] * 4

    assert [(reason, count) for _, reason, count in counts(client)] == [
        ("not an OpenLineage event: Input data was truncated", 3),
        ("not an OpenLineage event: not UTF-8: invalid start byte", 1),
    ]


def test_rejected_array_elements_count_without_their_index(client: httpx.Client) -> None:
    good, bad = json.dumps(event("START")).encode(), faulty(inputs=[])

    assert post(client, b"[" + b",".join([bad, good, bad]) + b"]", "/batch") == 200
    assert counts(client) == [
        ("https://example.com/tests", "not an OpenLineage event: eventTime: Field required", 2)
    ]


@pytest.mark.parametrize(
    ("body", "path", "status"),
    [(b"{", "/batch", 400), (gzip.compress(faulty())[:-9], "", 400), (b"x" * 40_000_000, "", 413)],
)
def test_unreadable_body_is_counted_too(
    client: httpx.Client, body: bytes, path: str, status: int
) -> None:
    assert post(client, body, path) == status

    ((producer, _, count),) = counts(client)
    assert (producer, count) == ("openlineage-java/1.53", 1)


def test_counts_outlive_the_server(engine: Engine) -> None:
    for _ in range(2):
        with serving(engine) as address, client_of(address, "/api/v2/") as client:
            post(client, faulty())

    assert rows(engine, "SELECT producer, count FROM refused_events") == [
        ("https://example.com/tests", 2)
    ]


def test_failed_write_does_not_replace_newer_rejections(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = Refusals(engine, lambda why: None)

    def fails(*_: object) -> None:
        refusals.add(b'{"n": 2}', "agent", InvalidEventError("bad"), NOON + timedelta(hours=1))
        raise RuntimeError("the database is away")

    refusals.add(b'{"n": 1}', "agent", InvalidEventError("bad"), NOON)
    with monkeypatch.context() as patch:
        patch.setattr("strandline.api.writer.refusals.add_refused", fails)
        with pytest.raises(RuntimeError):
            refusals.flush()
    refusals.flush()

    with engine.connect() as connection:
        ((one,), _) = refused_page(connection, 2)
    assert (one["count"], one["body"]) == (2, '{"n": 2}')
    assert (one["firstAt"], one["newestAt"]) == (NOON, NOON + timedelta(hours=1))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_processes_may_store_their_counts_in_any_order(
    engine: Engine, order: tuple[int, int]
) -> None:
    counted = (Refused("p", "bad", 2, 10, 30, b"earlier"), Refused("p", "bad", 1, 20, 40, b"later"))
    for place in order:
        with engine.begin() as connection:
            add_refused(connection, [counted[place]])

    found = rows(engine, "SELECT count, first_at, newest_at, body FROM refused_events")
    assert [(*numbers, bytes(body)) for *numbers, body in found] == [(3, 10, 40, b"later")]


def test_invented_producers_cannot_fill_memory_or_table(engine: Engine) -> None:
    complaints: list[str] = []
    refusals = Refusals(engine, complaints.append)
    for number in range(MOST_PENDING + 7):
        refusals.add(b"{}", f"agent {number}", InvalidEventError("bad"), NOON)
    refusals.stop()

    assert rows(engine, f"SELECT count FROM refused_events WHERE reason = '{TOO_MANY}'") == [(7,)]
    with engine.begin() as connection:
        add_refused(connection, many(MOST_KINDS))
        page, cursor = refused_page(connection, 2)
    assert rows(engine, "SELECT count(*) FROM refused_events") == [(MOST_KINDS,)]
    assert [one["producer"] for one in page] == [f"p{MOST_KINDS - 1}", f"p{MOST_KINDS - 2}"]
    assert cursor is not None
    assert complaints == []


def many(number: int) -> Sequence[Refused]:
    later = int(NOON.timestamp() * 1_000_000) + 1
    return [Refused(f"p{one}", "bad", 1, later + one, later + one, b"{}") for one in range(number)]


def test_command_lists_rejected_events(
    client: httpx.Client, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {"STRANDLINE_DATABASE_URL": database_url}
    assert main(["rejected"], environ) == 0
    assert capsys.readouterr().out == "nothing was rejected, and there is no dead letter\n"

    post(client, faulty())
    newest = client.get("/rejected-events").json()["items"][0]["newestAt"]
    assert main(["rejected"], environ) == 0
    told = capsys.readouterr().out.splitlines()
    assert main(["rejected", "--url", str(client.base_url).removesuffix("/api/v2/")], environ) == 0

    assert capsys.readouterr().out.splitlines() == told
    assert told[0].split() == [
        *("LIST", "COUNT", "FIRST", "NEWEST", "PRODUCER", "REASON", "EXAMPLE")
    ]
    time = f"{newest[:10]} {newest[11:19]}"
    assert told[1].startswith(f"rejected  1      {time}  {time}  https://example.com/tests  not an")
    assert len(told) == 2


def test_values_in_reasons_are_one_kind(client: httpx.Client, engine: Engine) -> None:
    times = ("tomorrow", "yesterday", "some day")
    assert [post(client, faulty(eventTime=time)) for time in times] == [422] * 3
    letter = "Expected `str`, got '{0}'"
    with engine.begin() as connection:
        for number in range(3):
            body = b'{"producer": "spark", "n": %d}' % number
            at = NOON + timedelta(minutes=number)
            keep_dead(connection, Record(body, at, "events", 0, number), letter.format(number))

    answer = client.get("/rejected").json()

    assert [
        (one["list"], one["producer"], one["reason"], one["count"], one["place"])
        for one in sorted(answer["items"], key=lambda one: str(one["list"]))
    ] == [
        ("deadLetters", "spark", "Expected `str`, got '…'", 3, "events[0]@2"),
        (
            *("rejected", "https://example.com/tests"),
            *("not an OpenLineage event: eventTime: not an ISO 8601 time: '…'", 3, None),
        ),
    ]
    (letters,) = (one for one in answer["items"] if one["list"] == "deadLetters")
    assert (letters["firstAt"], letters["newestAt"]) == (
        "2026-11-20T12:00:00Z",
        "2026-11-20T12:02:00Z",
    )
    assert letters["body"] == '{"producer": "spark", "n": 2}'
    assert answer["complete"] is True
    assert client.get("/rejected", params={"limit": 1}).json()["complete"] is False
