"""Forgetting removes a subject everywhere; the rest equals a store that never had it."""

import json
import signal
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
import zstandard
from sqlalchemy import Engine, inspect, text

from fixtures.servers import client_of, serving
from fixtures.sqlite_first import database_url, own_database_url  # noqa: F401 - PostgreSQL is slow here
from strandline.cli import main
from strandline.core.openlineage.events import trimmed
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.names import id_of
from strandline.errors import RefusedError
from strandline.history.compare import WAYS_OF_FACETS
from strandline.runtime.follower import Follower
from strandline.store.audit import Entry, note
from strandline.store.backup import back_up
from strandline.store.forgetting.forget import Forgotten, Requester, Subject, forget
from strandline.store.forgetting.subjects import Target
from strandline.store.ingest.raw_events import events_of
from strandline.store.ingest.retention import UNUSED
from strandline.store.ingest.take import Caches, Record, take
from strandline.store.marquez.annotations import TAG, Author, Note, annotate
from strandline.store.schema.relation_tables import RUN_VIEWS
from strandline.store.schema.version_tables import alerts, reader_leases
from strandline.store.sql.engine import reading
from worlds.builders import (
    QUERY,
    Json,
    batch,
    dataset,
    encode,
    event,
    job_event,
    newest_facets,
    parent,
    rows,
    run_id,
    snapshot,
    symlink,
)
from worlds.sought_words import sought
from worlds.stored_rows import stored_rows

NOW = datetime(2026, 11, 21, tzinfo=UTC)
ASKED = Requester(NOW, "tests")
GONE = "[forgotten]"
SECRET = "shop.zzsecretzz"  # what no table may have afterwards
LAKE = "hive://lake"
# Which event came, not what it said: it does not come again. What was asked, and how far the logs
# are.
OWN = {
    "event_keys",
    "body_references",
    "store_settings",
    "audit_log",
    "alembic_version",
    "numbers",
    "version_news",
}
OWN |= {"graph_news"}
# are read in ways of their own
APART = {"raw_events", "search_names", "search_texts", "sqlite_sequence", "facets", *WAYS_OF_FACETS}
Without = set[str]
HOLDING = {
    SECRET: ("run_edges", "datasets", "version_facts"),
    "sums": ("run_edges", "runs"),
    "stream": ("job_barriers", "version_facts"),
    "totals": ("run_queries", "jobs"),
}


def columns(*names: str) -> Json:
    """A columnLineage facet: a column of the sink from one of each of these."""
    made = [{"namespace": LAKE, "name": name, "field": "amount"} for name in names]
    return {"columnLineage": {"fields": {"sum": {"inputFields": made}}}}


def world(without: Without = frozenset()) -> Iterator[Json | None]:  # type: ignore[assignment]
    """Some forty events of jobs, streams and people, with a table, a job, a run and a namespace to forget; None: not sent."""
    table = SECRET not in without
    kept = [SECRET] if table else []
    sql = (
        f"INSERT INTO lake.shop.sums SELECT * FROM lake.{SECRET if table else GONE} JOIN shop.items"
    )
    for run in range(1, 6):
        inputs = [
            dataset(name, schema={"fields": [{"name": "amount"}]}) for name in (*kept, "shop.items")
        ]
        sums = dataset(
            "shop.sums", **columns(*kept, "shop.items"), symlinks=symlink("lake.sums", "s3://lake")
        )
        for place, kind in enumerate(("START", "COMPLETE")):
            facets = parent(50 + run, "dag", (900, "root")) | {
                "custom": {"note": f"reads {SECRET if table else GONE}"}
            }
            one = event(
                kind, run, "sums", run * 10 + place, inputs, [sums], facets, {"sql": {"query": sql}}
            )
            yield None if "sums" in without else one
    for run in range(51, 56):
        yield event(
            "START", run, "dag", run, facets={"plan": {"text": f"runs {SECRET if table else GONE}"}}
        )
    made = dataset(
        SECRET, symlinks=symlink("/lake/zzsecretzz", "file"), own=snapshot("7", barrierId="1")
    )
    yield event("COMPLETE", 10, "load", 5, [dataset("shop.raw")], [made] if table else [])
    yield event(
        "COMPLETE", 11, "load", 6, [dataset("shop.raw")], [dataset("shop.items", own=snapshot("9"))]
    )
    yield job_event(
        "design",
        7,
        inputs=[dataset(name) for name in (*kept, "shop.raw")],
        outputs=[dataset("shop.plans")],
    )
    for barrier in range(1, 4):
        read = [dataset(name, own=snapshot(str(barrier))) for name in (*kept, "shop.clicks")]
        group = {"group": "shop"}
        one = batch(
            barrier,
            20,
            "stream",
            barrier_facet=group,
            inputs=read,
            outputs=[dataset("shop.counts", own=snapshot(str(100 + barrier)))],
        )
        yield None if "stream" in without else one
    for number in range(3):
        details = {
            "spark_jobDetails": {
                "jobDescription": f"totals<br/>id = {QUERY}<br/>runId = {run_id(7)}<br/>batch = {number}"
            }
        }
        stream = {"jobType": {"processingType": "STREAMING", "integration": "SPARK"}}
        clicks = [dataset(name) for name in (*kept, "shop.clicks")]
        totals = [dataset("shop.totals")]
        above = details | parent(39, "app")
        one = event(
            "COMPLETE", 30 + number, "app.batch", 40 + number, clicks, totals, above, stream
        )
        yield None if "totals" in without else one
    foreign = [dataset(SECRET, "hive://other"), dataset("shop.items", "hive://other")]
    told = {"sql": {"query": f"SELECT * FROM {SECRET}"}}
    for run in (40, 41):
        one = event(
            "COMPLETE",
            run,
            "theirs",
            run,
            foreign,
            [dataset("shop.out", "hive://other")],
            job_facets=told,
        )
        yield one | {"job": one["job"] | {"namespace": "others"}}


def received(without: Without = frozenset()) -> list[Record]:  # type: ignore[assignment]
    """The events as they come, each known by the hash that it has with everything in it."""
    whole = [encode(one) for one in world() if one is not None]
    said = [None if one is None else encode(one) for one in world(without)]
    pairs = zip(whole, said, strict=True)
    return [
        Record(body, NOW, hash=content_hash(trimmed(own)))
        for own, body in pairs
        if body is not None
    ]


def write(engine: Engine, records: list[Record], caches: Caches | None = None) -> None:
    """Take records in, a few a transaction, and make the facts of them."""
    caches = caches or Caches()
    for start in range(0, len(records), 7):
        with engine.begin() as connection:
            take(connection, records[start : start + 7], caches)
        caches.commit()
    with Follower(engine).model():
        pass


def shown(engine: Engine) -> dict[str, list[str]]:
    """Every row of every table but what is a store's own, unpacked.

    Without content that nobody refers to.
    """
    with engine.begin() as connection:
        for where in UNUSED:
            connection.execute(text(f"DELETE FROM {where}"))
    found: dict[str, list[str]] = defaultdict(list)
    with reading(engine).connect() as connection:
        tables = sorted({*inspect(connection).get_table_names(), *RUN_VIEWS} - OWN - APART)
        for table in tables:
            if table.startswith("raw_events_"):
                continue  # partitions: their events are read below
            for row in connection.execute(text(f"SELECT * FROM {table}")).mappings():
                values = {
                    key: _plain(value)
                    for key, value in row.items()
                    if (table, key) != ("version_facts", "seq")
                }
                values.pop("at", None) if table == "version_facts" else None
                found[table].append(repr(values))
        found["search"] = sorted(map(repr, sought(connection)))
        found["facets"] = [repr(row) for row in newest_facets(connection)]
        found["raw_events"] = [
            repr((one.hash, json.loads(one.body))) for one in events_of(connection)
        ]
    return {table: sorted(held) for table, held in found.items()}


def _plain(value: Any) -> Any:
    raw = bytes(value) if isinstance(value, bytes | memoryview) else None
    if raw is None:
        return value
    return zstandard.decompress(raw) if raw[:4] == zstandard.FRAME_HEADER else raw


@pytest.mark.parametrize(
    ("subject", "without"),
    [
        pytest.param(Subject("dataset", LAKE, SECRET), {SECRET}, id="a dataset"),
        pytest.param(
            Subject("dataset", "file", "/lake/zzsecretzz"),
            {SECRET},
            id="a dataset by another name",
            marks=pytest.mark.slow,
        ),
        pytest.param(Subject("job", "tests", "sums"), {"sums"}, id="a job"),
        pytest.param(
            Subject("job", "tests", "stream"),
            {"stream"},
            id="a tracked job",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            Subject("job", "tests", "totals"), {"totals"}, id="a query", marks=pytest.mark.slow
        ),
    ],
)
def test_store_after_forgetting_equals_one_that_never_had_the_subject(
    engine: Engine, plain_engine: Engine, subject: Subject, without: Without
) -> None:
    write(engine, received())
    write(plain_engine, received(without))
    whole = shown(engine)
    counted = forget(engine, subject, ASKED, execute=False)
    untouched = shown(engine)
    taken = forget(engine, subject, ASKED, execute=True)

    assert untouched == whole
    assert taken == counted
    changed = {table for table, held in whole.items() if held != shown(engine).get(table)}
    assert changed >= {
        "raw_events",
        "run_relations",
        "job_relations",
        "facets",
        *HOLDING[min(without)],
    }
    assert shown(engine) == shown(plain_engine)
    assert forget(engine, subject, ASKED, execute=True) == Forgotten({}, {})


def test_runs_events_and_namespaces_can_be_forgotten(engine: Engine, plain_engine: Engine) -> None:
    whole = received()
    run, one = run_id(3), whole[-1]
    theirs = [record for record in whole if b'"namespace": "others"' in record.value]
    write(engine, whole)
    write(
        plain_engine,
        [record for record in whole if run.encode() not in record.value and record not in theirs],
    )
    assert one.hash is not None
    counted = forget(engine, Subject("run", id=run.upper()), ASKED, execute=True)
    forget(engine, Subject("event", id=one.hash.hex()), ASKED, execute=True)
    known = rows(engine, "SELECT count(*) FROM event_keys")
    forget(engine, Subject("namespace", "others"), ASKED, execute=True)
    forget(engine, Subject("namespace", "hive://other"), ASKED, execute=True)
    write(engine, whole)

    assert counted.gone["raw_events"] == 2
    assert counted.gone["runs"] == 1
    assert known == [(len(whole),)]
    assert shown(engine) == shown(plain_engine)


def planted(number: int) -> Json:
    """An event that has the name in most places where a text may stand."""
    inner = json.dumps({"plan": f"Scan {SECRET}", SECRET: json.dumps([SECRET])})
    return event(
        "COMPLETE",
        run=number,
        job="sums",
        seconds=number,
        inputs=[
            dataset(
                SECRET, schema={"fields": [{"name": "a", "description": f"of {SECRET.upper()}"}]}
            )
        ],
        outputs=[dataset("shop.sums", **columns(SECRET))],
        facets={
            "custom": {"inner": inner, SECRET: number},
            "errorMessage": {"message": f"`shop`.`zzsecretzz` {number}"},
        },
        job_facets={"sql": {"query": f"SELECT * FROM {SECRET} -- " + "x" * 2000}},
    )


def holding(engine: Engine) -> set[str]:
    """The tables that have the name in a row."""
    return {name.split()[0] for name, row in stored_rows(engine) if "zzsecretzz" in row.lower()}


def test_forgotten_name_is_in_no_column_and_no_file(own_engine: Engine) -> None:
    caches = Caches()
    write(own_engine, [Record(encode(planted(number)), NOW) for number in range(60)], caches)
    broken = [
        encode(planted(1))[:-1],
        encode({"eventType": "START", "inputs": [{"namespace": LAKE, "name": SECRET}]}),
    ]
    write(own_engine, [Record(body, NOW) for body in broken], caches)
    entity = id_of("dataset", LAKE, SECRET), f"dataset:{LAKE}:{SECRET}"
    with own_engine.begin() as connection:
        annotate(connection, Note(*entity, TAG, name="pii"), Author(1))
        annotate(
            connection,
            Note(*entity, TAG, field=f"{SECRET}_id", name=f"{SECRET} of {LAKE}"),
            Author(1),
        )
        path = f"DELETE /api/v1/namespaces/{quote(LAKE, safe='')}/datasets/{SECRET}"
        note(connection, Entry(NOW, "ann", path, "", 204, ""))
        lease = {"id": "l", "created_at": 1, "expires_at": 2, "holder": ""}
        named = json.dumps([{"namespace": LAKE, "name": SECRET, "snapshotId": "1"}]).encode()
        connection.execute(reader_leases.insert().values(lease | {"body": named}))
        about = json.dumps({"dataset": {"namespace": LAKE, "name": SECRET}}).encode()
        connection.execute(alerts.insert().values(key=f"late {LAKE} {SECRET}", since=1, body=about))
    before = holding(own_engine)
    forget(own_engine, Subject("dataset", LAKE, SECRET), ASKED, execute=True)
    write(
        own_engine,
        [Record(encode(event(run=number, seconds=number)), NOW) for number in range(1000, 1020)],
        caches,
    )

    assert before >= {
        "raw_events",
        "datasets",
        "facets",
        "facet_bodies",
        "body_references",
        "set_aside",
    }
    assert before >= {"annotations", "annotation_log", "audit_log", "reader_leases", "alerts"}
    assert holding(own_engine) == set()
    assert rows(own_engine, "SELECT what FROM audit_log ORDER BY id")[0][0].startswith(
        "DELETE /api/v1/namespaces/"
    )
    with own_engine.connect() as connection:
        assert len([json.loads(one.body) for one in events_of(connection)]) == 80
    if own_engine.dialect.name == "sqlite":
        file = Path(str(own_engine.url.database))
        assert not [
            one.name
            for one in file.parent.glob("strandline.db*")
            if b"zzsecretzz" in one.read_bytes()
        ]


OTHER_LAKE = "hive://zzlakezz"
PLAIN = "zzplainzz"  # a namespace of names that are single words
CANARIES = {
    "dataset": (Subject("dataset", OTHER_LAKE, "zzdbzz.orders"), ["zzdbzz"]),
    "plain dataset": (Subject("dataset", PLAIN, "zztablezz"), ["zztablezz"]),
    "job": (Subject("job", "tests", "zzjobzz.load"), ["zzjobzz", run_id(3)]),
    "plain job": (Subject("job", PLAIN, "zztaskzz"), ["zztaskzz", run_id(779)]),
    "namespace": (Subject("namespace", OTHER_LAKE), ["zzdbzz", "zzlakezz"]),
    "plain namespace": (
        Subject("namespace", PLAIN),
        [PLAIN, "zztablezz", "zztaskzz", run_id(779)],
    ),
    "run": (Subject("run", id=run_id(777)), ["zzrunzz", run_id(777)]),
    "event": (Subject("event", id="(of the event that names it)"), ["zzeventzz"]),
}
ANSWERS = (
    ("jobs", "--json"),
    ("datasets", "--json"),
    ("runs", "--json"),
    ("events", "--json"),
    ("rejected", "--json"),
    ("namespaces", "--json"),
    ("search", "zz", "--json"),
)
PATHS = (
    *("/metrics", "/api/v2/jobs", "/api/v2/datasets", "/api/v2/runs", "/api/v2/events?limit=100"),
    *("/api/v2/search?q=zz", "/api/v2/lineage/map", "/api/v2/namespaces", "/api/v1/namespaces"),
    *("/api/v2/rejected-events", "/api/v2/dead-letters", "/api/v2/audit", "/api/v1/jobs"),
    *("/api/v1/events/lineage", "/api/v1/search?q=orders", "/api/v1/tags"),
)


def named_everywhere() -> Iterator[Json]:
    """Events that name a job, a table and its namespace in places and in texts, and others."""
    table = {"namespace": OTHER_LAKE, "name": "zzdbzz.orders", "facets": {}}
    sql = {
        "sql": {
            "query": "INSERT INTO t SELECT orders FROM cat.`zzdbzz`.`orders`, zzdbzz.orders"
            f" -- {OTHER_LAKE}/zzdbzz.orders"
        }
    }
    for number in range(1, 9):
        yield event("START", number, "zzjobzz.load", number, outputs=[table])
        yield event("COMPLETE", number, "zzjobzz.load", number + 1, outputs=[table])
        error = {"errorMessage": {"message": "Table ZZDBZZ.orders of zzjobzz.load is missing"}}
        facets = parent(number, "zzjobzz.load") | error
        yield event("FAIL", 100 + number, "reader", number, [table], [dataset("shop.orders")],
                    facets, sql)  # fmt: skip
        kept = {"sql": {"query": "SELECT orders, count(*) FROM shop.orders"}}
        yield event(
            "COMPLETE", 200 + number, "other", number, [dataset("shop.orders")], [], {}, kept
        )

    plain = {"namespace": PLAIN, "name": "zztablezz", "facets": {}}
    inserted = {"sql": {"query": "INSERT INTO zztablezz SELECT 1 -- by zztaskzz"}}
    task = {"namespace": PLAIN, "name": "zztaskzz"}
    yield event("COMPLETE", 779, "zztaskzz", 9, [], [plain], {}, inserted) | {
        "job": task | {"facets": inserted}
    }
    above = {"parent": {"run": {"runId": run_id(779)}, "job": task}}
    failed = {"errorMessage": {"message": f"ZZTABLEZZ of zztaskzz, run {run_id(779)}, is missing"}}
    yield event("FAIL", 780, "plain reader", 10, [plain], [], above | failed, inserted)
    log = {"log": {"url": f"http://logs/{run_id(3)}/{run_id(777)}?retry={run_id(779).upper()}"}}
    yield event("COMPLETE", 781, "watcher", 11, [dataset("shop.orders")], [], log)
    broken = {"errorMessage": {"message": "zzrunzz is full", "programmingLanguage": "JAVA"}}
    yield event("FAIL", 777, "other", 20, [dataset("shop.orders")], [], broken)
    custom = {"custom": {"note": "zzeventzz", "zzeventzz": [{"zzeventzz": 1}]}}
    yield event("COMPLETE", 888, "other", 30, [dataset("shop.orders")], [], custom)


def texts_of(engine: Engine, folder: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """Every row, answer and file of a store, and a backup of it, as lower-case texts."""
    yield from (row for _, row in stored_rows(engine))
    url = engine.url.render_as_string(hide_password=False)
    for answer in ANSWERS:
        main([*answer, "--database-url", url], {})
        yield capsys.readouterr().out
    with serving(engine) as address, client_of(address, "") as client:
        yield from (client.get(path).text for path in PATHS)
    copy = folder / f"copy-{uuid4().hex}"
    back_up(engine, copy)
    if engine.dialect.name == "sqlite":
        files = [copy, *Path(str(engine.url.database)).parent.glob("strandline.db*")]
    else:
        with zipfile.ZipFile(copy) as parts:
            yield from (parts.read(name).decode("latin-1") for name in parts.namelist())
        files = list(folder_of(engine).iterdir())
    yield from (file.read_bytes().decode("latin-1") for file in files)


def folder_of(engine: Engine) -> Path:
    """The folder of a PostgreSQL database, after everything was written to it."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("CHECKPOINT"))
        data = connection.scalar(text("SHOW data_directory"))
        oid = connection.scalar(
            text("SELECT oid FROM pg_database WHERE datname = current_database()")
        )
    return Path(str(data)) / "base" / str(oid)


def note_everything(engine: Engine) -> None:
    """Name the subjects in notes of people, in lists and in what was set aside."""
    names = {"dataset": [(OTHER_LAKE, "zzdbzz.orders"), (PLAIN, "zztablezz")],
             "job": [("tests", "zzjobzz.load"), (PLAIN, "zztaskzz")]}  # fmt: skip
    other = id_of("dataset", LAKE, "shop.orders"), f"dataset:{LAKE}:shop.orders"
    logged = f"GET /api/v2/runs/{run_id(3)} {run_id(777)} {run_id(779)}"
    with engine.begin() as connection:
        for kind, named in names.items():
            for namespace, name in named:
                own = id_of(kind, namespace, name), f"{kind}:{namespace}:{name}"
                annotate(connection, Note(*own, TAG, name="pii"), Author(1))
                text = f"copied from {name} of {namespace}"
                annotate(connection, Note(*other, TAG, name=f"copy {name}", value=text), Author(1))
                path = f"PUT /api/v1/namespaces/{quote(namespace, safe='')}/{kind}s/{name}"
                note(connection, Entry(NOW, "ann", path, "", 204, logged))
    cut = [encode(one)[:-1] for one in named_everywhere() if "zzeventzz" not in str(one)]
    write(engine, [Record(body, NOW) for body in cut])


@pytest.mark.parametrize("kind", CANARIES)
def test_no_canary_of_a_forgotten_subject_is_left(
    own_engine: Engine, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine, (subject, words) = own_engine, CANARIES[kind]
    records = [Record(encode(one), NOW) for one in named_everywhere()]
    write(engine, records)
    note_everything(engine)
    if kind == "event":
        subject = subject._replace(id=content_hash(records[-1].value).hex())
    if engine.dialect.name == "postgresql":
        with engine.begin() as connection:
            connection.execute(text("ANALYZE"))  # as the server does by itself in time

    def left() -> set[str]:
        found = [one.lower() for one in texts_of(engine, tmp_path, capsys)]
        return {word for word in words if any(word in one for one in found)}

    before = left()
    forget(engine, subject, ASKED, execute=True)

    assert before == set(words)
    assert left() == set()
    queries = {row for _, row in stored_rows(engine) if "SELECT orders" in row}
    assert any("SELECT orders, count(*) FROM shop.orders" in row for row in queries)


def test_of_texts_of_strangers_only_the_uuid_of_a_run_goes(engine: Engine) -> None:
    """The job is called `load`, and its run stands in paths and ids of another job."""
    run = run_id(1)
    ids = "strandline-{0} checkpoint_{0} {0}_0 dag%3A{0} data{0} {1}"
    told = f"LOAD DATA INPATH 'x/{{0}}' INTO TABLE t -- of tests.load; {ids}"
    sql = {"sql": {"query": told.format(run, run_id(3))}}
    stranger = encode(event("COMPLETE", 2, "stranger", 5, job_facets=sql))
    child = event("COMPLETE", 4, "child", 6, facets=parent(1, "load"), job_facets=sql)
    own = [event("COMPLETE", 1, "load", 5), child]
    write(engine, [Record(body, NOW) for body in (*map(encode, own), stranger, stranger[:-1])])
    with engine.begin() as connection:
        note(connection, Entry(NOW, "ann", "load of a file", "", 204, f"run {run}"))
    forget(engine, Subject("job", "tests", "load"), ASKED, execute=True)
    with engine.connect() as connection:
        kept = [json.loads(one.body)["job"] for one in events_of(connection)]

    assert {job["name"]: job["facets"]["sql"]["query"] for job in kept} == {
        "stranger": told.format(GONE, run_id(3)),
        "child": told.format(GONE, run_id(3)).replace("LOAD", GONE),
    }
    assert rows(engine, "SELECT what, details FROM audit_log ORDER BY id LIMIT 1") == [
        ("load of a file", f"run {GONE}")
    ]


def test_events_are_parsed_only_if_they_hold_a_name_or_one_of_many_runs() -> None:
    names = frozenset(run_id(number) for number in range(150))
    naming = Target(words=("load",), run_names=names | {"nightly"}).naming
    run = run_id(149)
    held = [run, run.upper(), run.replace("-", ""), f"dag_{run}_0", "LOAD", "nightly"]

    assert [naming.may_be_in(f'{{"a": "{text}"}}'.encode()) for text in held] == [True] * 6
    assert not naming.may_be_in(encode(event("COMPLETE", 150, "other")))


def test_running_server_refolds_the_log_after_forgetting(engine: Engine) -> None:
    write(engine, received())
    follower = Follower(engine)
    with follower.model() as model:
        before = set(model.writers)
    forget(engine, Subject("dataset", LAKE, "shop.counts"), ASKED, execute=True)
    with follower.model() as model:
        after = set(model.writers)

    assert before - after == {(LAKE, "shop.counts")}


def killed_at(url: str, step: int) -> int:
    """Forget in a process that is killed at a step: a statement, or the beginning of a transaction.

    How many it came to.
    """
    command = [sys.executable, "-c", FORGETTING, url, str(step)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return int(done.stdout.split()[-1]) if done.returncode == 0 else step


FORGETTING = f"""
import os, signal, sys
from datetime import datetime, UTC
from sqlalchemy import event
from strandline.store.backup import back_up
from strandline.store.forgetting.forget import Requester, Subject, forget
from strandline.store.sql.engine import make_engine
engine, last, steps = make_engine(sys.argv[1]), int(sys.argv[2]), 0
def step(*_):
    global steps
    steps += 1
    if steps == last:
        os.kill(os.getpid(), signal.SIGKILL)
event.listen(engine, "after_cursor_execute", step)
event.listen(engine, "begin", step)
event.listen(engine, "commit", step)
forget(engine, Subject("dataset", {LAKE!r}, {SECRET!r}), Requester(datetime.now(UTC), "tests"), execute=True)
print(steps)
"""


@pytest.mark.slow
def test_killed_forget_is_atomic_and_the_next_one_completes_it(
    own_engine: Engine, plain_engine: Engine
) -> None:
    write(own_engine, received())
    write(plain_engine, received({SECRET}))
    whole, wanted = shown(own_engine), shown(plain_engine)
    url = own_engine.url.render_as_string(hide_password=False)
    counted = forget(own_engine, Subject("dataset", LAKE, SECRET), ASKED, execute=False)
    seen = []
    for step in (3, 40, 150):
        killed_at(url, step)
        seen.append(shown(own_engine))
    left = forget(own_engine, Subject("dataset", LAKE, SECRET), ASKED, execute=True)

    assert seen == [whole] * 3
    assert left == counted
    assert shown(own_engine) == wanted


def test_next_forget_releases_space_owed_by_a_killed_one(
    own_sqlite_engine: Engine, plain_engine: Engine
) -> None:
    for engine in (own_sqlite_engine, plain_engine):
        write(engine, [Record(encode(planted(number)), NOW) for number in range(10)])
    steps = killed_at(str(plain_engine.url), 10**9)
    killed_at(str(own_sqlite_engine.url), steps - 4)
    owed = rows(own_sqlite_engine, "SELECT value FROM store_settings WHERE key = 'space_owed'")
    again = forget(own_sqlite_engine, Subject("dataset", LAKE, SECRET), ASKED, execute=True)

    assert "raw_events" in owed[0][0]
    assert again == Forgotten({}, {})
    assert rows(own_sqlite_engine, "SELECT value FROM store_settings WHERE key = 'space_owed'") == [
        ("",)
    ]
    file = Path(str(own_sqlite_engine.url.database))
    assert not [
        one.name for one in file.parent.glob("strandline.db*") if b"zzsecretzz" in one.read_bytes()
    ]


def test_command_counts_before_it_forgets(
    sqlite_engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    write(sqlite_engine, received())
    command = ["forget", "--dataset", LAKE, SECRET, "--database-url", str(sqlite_engine.url)]

    assert main(command, {}) == 0
    counted = capsys.readouterr().out
    assert "rows of run_relations to delete\n" in counted
    assert "nothing was changed" in counted
    assert main([*command, "--execute", "--json"], {}) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["executed"] is True
    assert f"{answer['gone']['run_relations']} rows of run_relations to delete\n" in counted
    assert main(command, {}) == 0
    assert "nothing in the store names it" in capsys.readouterr().out
    noted = rows(sqlite_engine, "SELECT who, what, details FROM audit_log")
    assert len(noted) == 1
    assert noted[0][0].startswith("command ")
    assert "raw_events " in noted[0][2]
    assert "zz" not in repr(noted)


def test_invalid_hash_and_ambiguous_run_are_rejected(sqlite_engine: Engine) -> None:
    write(
        sqlite_engine,
        [Record(encode(event(run="nightly", job=job)), NOW) for job in ("etl", "other")],
    )

    with pytest.raises(RefusedError, match="not the hash"):
        forget(sqlite_engine, Subject("event", id="x"), ASKED, execute=True)
    with pytest.raises(RefusedError, match="2 jobs have a run nightly"):
        forget(sqlite_engine, Subject("run", id="nightly"), ASKED, execute=True)
    assert (
        forget(sqlite_engine, Subject("run", "tests", "etl", "nightly"), ASKED, execute=True).gone[
            "runs"
        ]
        == 1
    )
    assert rows(sqlite_engine, "SELECT name FROM jobs") == [("other",)]
