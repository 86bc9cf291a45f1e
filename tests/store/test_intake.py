"""Intake of good, repeated, bad and hostile records; none stops the others."""

import json

import pytest
from sqlalchemy import Engine

from strandline.core.openlineage.names import naming_of
from strandline.errors import InvalidEventError
from strandline.store.ingest.raw_events import events_of
from strandline.store.ingest.take import Caches, Record, take, validated
from strandline.store.sql.compression import expand
from strandline.transports.dead_letters import take_letters
from worlds.builders import NOON, Json, dataset, encode, event, live, rows, run_id, store

A = dataset("bank.a")


def kinds(engine: Engine, *bodies: bytes) -> list[str]:
    return [outcome.kind for outcome in store(engine, bodies)]


def test_byte_equal_events_are_one(engine: Engine) -> None:
    body = encode(event("START", inputs=[A]))

    assert kinds(engine, body, body) == ["stored", "duplicate"]
    assert kinds(engine, body) == ["duplicate"]
    assert rows(engine, "SELECT count(*) FROM raw_events") == [(1,)]


def test_dead_letter_has_reason_and_position_and_spares_the_batch(engine: Engine) -> None:
    records = [
        Record(b'{"eventTime": "2026-01-01T00:00:00Z"}', NOON, "openlineage.events", 0, 17),
        Record(encode(event("START", inputs=[A])), NOON, "openlineage.events", 0, 18),
    ]
    with engine.begin() as connection:
        outcomes = take(connection, records, Caches())

    assert [outcome.kind for outcome in outcomes] == ["dead", "stored"]
    reason = "not an OpenLineage event: producer: Field required (at openlineage.events[0]@17)"
    assert outcomes[0].reason == reason
    assert rows(
        engine, "SELECT kind, topic, partition_id, record_offset, reason FROM set_aside"
    ) == [("dead", "openlineage.events", 0, 17, reason)]


def test_duplicate_of_an_unread_record_is_unread_too(engine: Engine) -> None:
    body = encode(event(facets={"x": {}}))
    records = [Record(body, NOON, "openlineage.events", 0, offset) for offset in (17, 18)]
    caches = Caches()
    caches.memory.facet = None  # type: ignore[assignment, method-assign]
    with engine.begin() as connection:
        outcomes = take(connection, records, caches)

    assert [outcome.kind for outcome in outcomes] == ["unread", "unread"]
    assert rows(engine, "SELECT record_offset FROM set_aside WHERE kind = 'unread'") == [(18,)]
    assert rows(engine, "SELECT count(*) FROM event_keys") == [(0,)]


def test_quoted_secret_in_a_reason_is_redacted(engine: Engine) -> None:
    store(engine, [b'{"eventType": "password=hunter2"}'])
    take_letters(engine)

    ((reason, body),) = rows(engine, "SELECT reason, body FROM set_aside WHERE kind = 'dead'")
    assert reason == "not an OpenLineage event: eventType: Invalid enum value 'password=[redacted]'"
    assert json.loads(body) == {"eventType": "password=[redacted]"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("eventTime", "yesterday"),
        ("eventType", "DONE"),
        ("run", {"facets": {}}),
        ("run", {"runId": ""}),
        ("job", {"namespace": "n"}),
        ("inputs", {"namespace": "n"}),
        ("inputs", [{"namespace": "n", "name": "a", "facets": []}]),
        ("producer", None),
    ],
)
def test_error_names_the_path_of_the_fault(path: str, value: object) -> None:
    with pytest.raises(InvalidEventError) as told:
        validated(encode({**event(), path: value}), NOON)

    assert told.value.path.startswith(path)


HOSTILE = {
    "depth in a facet": encode(event(facets={"x": "HERE"})).replace(
        b'"HERE"', b"[" * 100_000 + b"]" * 100_000
    ),
    "depth outside": b"[" * 100_000,
    "no JSON": b"\xff\xfe\x00",
    "empty": b"",
    "not a number": encode(event() | {"eventTime": "HERE"}).replace(b'"HERE"', b"NaN"),
    "a number": b"7",
    "invalid UTF-8 in a facet": encode(event(facets={"x": {"n": "HERE"}})).replace(
        b"HERE", b"\xff"
    ),
}


def test_hostile_bytes_are_dead_letters(engine: Engine) -> None:
    outcomes = store(engine, [*HOSTILE.values(), event("START", inputs=[A])])

    kinds = dict(zip([*HOSTILE, "a good one"], (outcome.kind for outcome in outcomes), strict=True))
    assert kinds == {**dict.fromkeys(HOSTILE, "dead"), "a good one": "stored"}


ODD = {
    "lone surrogate": encode(event(inputs=[dataset("bank.\ud800")])),
    "not a number": encode(event(facets={"x": {"NaN": "HERE"}})).replace(
        b'"HERE"', b'[NaN, -Infinity, "is NaN"]'
    ),
    "not a number for a facet": encode(event(facets={"x": "HERE"})).replace(b'"HERE"', b"Infinity"),
    "NUL in names": encode(event(job="a\0b", inputs=[dataset("bank.\0")])),
    "NUL in facets": encode(
        event(inputs=[dataset("bank.x", schema={"fields": [{"name": "a\0"}]})])
    ),
    "long names": encode(event(job="j" * 200_000, inputs=[dataset("bank." + "n" * 200_000)])),
    "long facet key": encode(event(facets={"k" * 5_000: {}})),
    "far year": encode({**event(), "eventTime": "+294277-01-01T00:00:00Z"}),
    "year before all": encode({**event(), "eventTime": "0001-01-01T00:00:00+14:00"}),
    "odd fraction": encode({**event(), "eventTime": "2026-01-01T00:00:00.123456789+00:00"}),
    "big numbers": encode(
        event(facets={"strandline_barrier": {"barrierId": 2**80}, "x": {"n": 10**400}})
    ),
    "huge double": encode(event(facets={"x": "HERE"})).replace(b'"HERE"', b'{"n": 1e999}'),
    "NUL in the key of a bad facet": encode(event(facets={"a\0b": 5})),
    "a batch that is a digit and no number": encode(
        event(
            facets={
                "spark_properties": {
                    "properties": {"sql.streaming.queryId": "q", "streaming.sql.batchId": "\u00b2"}
                }
            }
        )
    ),
    "the last batch that a number can name": encode(
        event(facets={"strandline_barrier": {"batchId": 2**63 - 1}})
    ),
    "null facets": encode({**event(), "run": {"runId": "1", "facets": None}}),
    "null datasets": encode(event(inputs=None, outputs=None)),
    "no facets at all": encode({**event(), "inputs": [{"namespace": "n", "name": "a"}]}),
    "a double version": encode(
        event(inputs=[dataset("bank.a", own={"icebergScanReport": {"snapshotId": 1e300}})])
    ),
    "column lineage among output facets": encode(
        event(outputs=[dataset("bank.a", own={"columnLineage": {"fields": {}}})])
    ),
    "a scan report among a dataset's own": encode(
        event(inputs=[dataset("bank.a", icebergScanReport={"snapshotId": 1})])
    ),
    "emoji": encode(event(job="\U0001f600")),
}


def test_odd_content_is_stored(engine: Engine) -> None:
    outcomes = store(engine, [*ODD.values()])

    assert dict(zip(ODD, (outcome.kind for outcome in outcomes), strict=True)) == dict.fromkeys(
        ODD, "stored"
    )
    assert {outcome.kind for outcome in store(engine, [*ODD.values()])} == {"duplicate"}


SECRET = b'{"password": "hunter2"}'


@pytest.mark.parametrize(
    "facet", [b"[" * 600 + b"]" * 600, b'{"key": ' * 600 + b"1" + b"}" * 600, b"9" * 5000, b"1e400"]
)
def test_secret_beside_odd_content_is_removed_and_the_event_stored(
    engine: Engine, facet: bytes
) -> None:
    body = encode(event(facets={"x": "ODD", "y": "SECRET"})).replace(b'"ODD"', b'{"a": %s}' % facet)
    secret, harmless = (
        body.replace(b'"SECRET"', SECRET),
        body.replace(b'"SECRET"', b'{"password": "[redacted]"}'),
    )

    assert kinds(engine, secret) == ["stored"]
    with engine.connect() as connection:
        (stored,) = events_of(connection)
    assert without_spaces(stored.body) == without_spaces(harmless)


def without_spaces(document: bytes) -> bytes:
    """A document with a secret is written anew: its spaces may differ."""
    return document.replace(b" ", b"")


def test_secret_in_a_repeated_facet_is_not_stored(engine: Engine) -> None:
    body = encode(event(inputs=[dataset("bank.a", x={"first": 1}, y={"b": 1})]))
    twice = body.replace(b'"x": {"first": 1}', b'"x": %s, "x": {"a": 1}' % SECRET)

    assert (twice != body, kinds(engine, twice)) == (True, ["stored"])
    with engine.connect() as connection:
        assert not [one.body for one in events_of(connection) if b"hunter2" in one.body]
    assert rows(engine, "SELECT key, body FROM facets WHERE kind = 3 ORDER BY key") == [
        ("x", b'{"a": 1}'),
        ("y", b'{"b": 1}'),
    ]


def test_secret_in_a_numeric_facet_is_removed_from_facet_and_event(engine: Engine) -> None:
    """A replay reads the stored event, so facet and event must agree."""
    body = encode(
        event(
            outputs=[
                dataset("bank.a", own={"outputStatistics": {"rowCount": 1, "password": "hunter2"}})
            ]
        )
    )

    assert kinds(engine, body) == ["stored"]
    with engine.connect() as connection:
        (stored,) = events_of(connection)
    assert json.loads(stored.body) == json.loads(body.replace(b"hunter2", b"[redacted]"))
    ((facet,),) = rows(engine, "SELECT body FROM facets WHERE key = 'outputStatistics'")
    assert json.loads(facet) == {"rowCount": 1, "password": "[redacted]"}


def test_replayed_run_keeps_its_identity(engine: Engine) -> None:
    """The run id is stored in its redacted form; otherwise a replay would create another run."""
    told = {**event(), "run": {"runId": "https://ann:pw@ci/build?id=5&token=pw"}}
    store(engine, [told])
    first = rows(engine, "SELECT run_id, id FROM runs")
    with engine.connect() as connection:
        (stored,) = events_of(connection)

    store(engine, [{**json.loads(stored.body), "eventType": "COMPLETE"}])

    assert [row[0] for row in first] == ["https://ci/build?id=5&token=[redacted]"]
    assert rows(engine, "SELECT run_id, id FROM runs") == first


def test_unpaired_surrogates_are_not_stored(engine: Engine) -> None:
    store(
        engine,
        [event(inputs=[dataset("bank.\ud800", x={"half": "\udc00\ud800", "whole": "\U0001f600"})])],
    )

    with engine.connect() as connection:
        (stored,) = (json.loads(one.body) for one in events_of(connection))
    assert stored["inputs"][0]["name"] == "bank.\ufffd"
    assert stored["inputs"][0]["facets"] == {"x": {"half": "\ufffd\ufffd", "whole": "\U0001f600"}}


def test_duplicate_json_keys_are_accepted_and_the_last_wins(engine: Engine) -> None:
    body = encode(event(job="HERE")).replace(b'"name": "HERE"', b'"name": "first", "name": "last"')

    assert kinds(engine, body) == ["stored"]
    assert rows(engine, "SELECT name FROM jobs") == [("last",)]


def test_bad_facet_is_quarantined_but_its_event_is_stored(engine: Engine) -> None:
    bad = dataset(
        "bank.a",
        symlinks={"identifiers": "none"},
        schema={"fields": [{"name": "id"}]},
        own={"x": 5},
    )
    store(engine, [event("START", inputs=[bad])])

    assert live(engine) == {"etl": ["< bank.a"]}
    assert rows(engine, "SELECT key FROM facets WHERE problem <> ''") == [("symlinks",), ("x",)]
    assert rows(engine, "SELECT key FROM facets WHERE problem = ''") == [("schema",)]


@pytest.mark.parametrize(
    ("told", "bad"), [("12", 0), ("12.0", 0), ("1.2e1", 0), ("1.5", 1), ("1e30", 1), ("{}", 1)]
)
def test_row_counts_are_integers_in_any_notation(engine: Engine, told: str, bad: int) -> None:
    body = encode(
        event(outputs=[dataset("bank.a", own={"outputStatistics": {"rowCount": 77}})])
    ).replace(b"77", told.encode())

    assert kinds(engine, body) == ["stored"]
    assert rows(engine, "SELECT count(*) FROM facets WHERE problem <> ''") == [(bad,)]


def test_newest_facet_wins_and_deleted_ones_are_marked(engine: Engine) -> None:
    old, new = ({"fields": [{"name": name}]} for name in ("old", "new"))
    gone = {"_deleted": True}
    store(engine, [event(seconds=2, inputs=[dataset("bank.a", schema=new, documentation=gone)])])
    store(
        engine,
        [
            event(
                seconds=1,
                inputs=[dataset("bank.a", schema=old, documentation={"description": "x"})],
            )
        ],
    )

    found = [
        (key, json.loads(body), deleted)
        for key, body, deleted in rows(engine, "SELECT key, body, deleted FROM facets")
    ]
    assert found == [("documentation", gone, 1), ("schema", new, 0)]


def test_similar_events_leave_their_first_and_newest_times(engine: Engine) -> None:
    """Four events of one job and two runs in a batch differ only in run and time."""
    ends = [(1, 30), (2, 20), (1, 10), (2, 40)]
    store(
        engine,
        [
            event("RUNNING", run, seconds=at, inputs=[A], outputs=[dataset("bank.b")])
            for run, at in ends
        ],
    )

    def seconds(query: str) -> list[tuple[int, ...]]:
        noon = int(NOON.timestamp())
        return [tuple(at // 10**6 - noon for at in row) for row in rows(engine, query)]

    assert seconds("SELECT first_at, newest_at FROM jobs") == [(10, 40)]
    assert seconds("SELECT first_at, newest_at FROM datasets") == [(10, 40), (10, 40)]
    assert seconds("SELECT first_at, newest_at FROM run_relations") == [
        (10, 30),
        (10, 30),
        (20, 40),
        (20, 40),
    ]
    assert rows(
        engine, "SELECT DISTINCT run.run_id FROM job_relations r JOIN runs run ON run.id = r.run_id"
    ) == [(run_id(2),)]


def test_stored_bodies_equal_received_ones(engine: Engine) -> None:
    bodies = [encode(event("START", run=n, inputs=[dataset(f"bank.t{n}")])) for n in range(30)]
    store(engine, bodies, size=10)

    with engine.connect() as connection:
        assert {one.body for one in events_of(connection)} == set(bodies)
    assert rows(engine, "SELECT count(*) FROM body_references") == [(1,)]


def test_partitions_in_paths_can_be_stripped(engine: Engine) -> None:
    paths = [dataset(f"/lake/t/day=2026-11-{day}/hour={day}", "hdfs://lake") for day in (20, 21)]
    store(engine, [event("START", inputs=paths)], naming=naming_of([r"(?:/[^/=]+=[^/]*)+/?$"]))

    assert live(engine) == {"etl": ["< /lake/t"]}


def test_rolled_back_batch_is_written_again_despite_another_writer(engine: Engine) -> None:
    """A was rolled back and B committed, so A's rows are written again with A's retry."""
    caches = Caches()
    first, second = (
        Record(
            encode(event("START", number, inputs=[dataset(f"bank.{number}", f"hive://{number}")])),
            NOON,
        )
        for number in (1, 2)
    )
    with engine.connect() as connection:
        take(connection, [first], caches)
        connection.rollback()
    caches.discard()
    for record in (second, first):
        with engine.begin() as connection:
            take(connection, [record], caches)
        caches.commit()

    assert rows(engine, "SELECT name FROM namespaces") == [("hive://1",), ("hive://2",), ("tests",)]


@pytest.mark.parametrize("size", [499, 500, 501, 1001, 1700])
def test_duplicates_are_found_in_batches_of_any_length(sqlite_engine: Engine, size: int) -> None:
    """SQLite is queried for known events one page at a time."""
    bodies = [encode(event("START", number)) for number in range(size)]
    store(sqlite_engine, bodies, size=2000)
    again = [
        outcome.kind
        for outcome in store(sqlite_engine, [*bodies, encode(event("FAIL"))], size=2000)
    ]

    assert (again.count("duplicate"), again.count("stored")) == (size, 1)
    assert rows(sqlite_engine, "SELECT count(*) FROM raw_events") == [(size + 1,)]


QUARANTINED: dict[str, Json] = {
    "of a run": {"facets": {"nominalTime": {"password": "hunter2", "nominalStartTime": 5}}},
    "of a job": {"job_facets": {"sql": {"password": "hunter2", "query": 5}}},
    "of a dataset": {"inputs": [dataset("bank.a", schema={"password": "hunter2", "fields": 5})]},
    "of an input": {
        "inputs": [
            dataset("bank.a", own={"inputStatistics": {"password": "hunter2", "rowCount": "x"}})
        ]
    },
    "that is large": {
        "inputs": [dataset("bank.a", schema={"password": "hunter2", "fields": "x" * 5000})]
    },
}


@pytest.mark.parametrize("where", QUARANTINED)
def test_quarantined_facet_is_redacted(engine: Engine, where: str) -> None:
    store(engine, [event("START", **QUARANTINED[where])])
    found = rows(engine, "SELECT problem, body FROM facets WHERE problem <> ''")
    bodies = [expand(bytes(body)) for (body,) in rows(engine, "SELECT body FROM facet_bodies")]

    assert len(found) == 1
    assert b"[redacted]" in b"".join(
        [*bodies, *(bytes(body) for _, body in found if body is not None)]
    )
    assert "hunter2" not in str([found, bodies])
    with engine.connect() as connection:
        assert not [one.body for one in events_of(connection) if b"hunter2" in one.body]
