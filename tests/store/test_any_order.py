"""Any order, repetition and batching leaves the rows of a slow oracle."""

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine

from strandline.core.changes.extraction import SINK
from strandline.core.changes.rows import FOLDS
from strandline.core.openlineage.times import micros_of, moment_of
from strandline.core.walk import Direction
from strandline.store.ingest.take import Caches, Record, take
from strandline.store.lineage.job_steps import stated_sources
from strandline.store.lineage.known_jobs import KnownJobs
from strandline.store.lineage.recent_runs import JobEdge
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import TableGraph
from strandline.store.schema.relation_tables import RUN_VIEWS, TEMPLATES, table_or_view
from worlds.builders import LONG_AGO, Json, dataset, encode, event, folded_rows, rows, run_id
from worlds.oracle import APART, Oracle
from worlds.scenarios.corpus import corpus_lines

KEYS = {fold.table: fold.key for fold in FOLDS.values()}
FOLDED = sorted(KEYS.keys() - RUN_VIEWS.keys() | {table.name for table in TEMPLATES})
NOW = datetime.now(UTC)
RUNS = 1  # known before a job's newest application
Arrival = tuple[Json, datetime]


def take_all(engine: Engine, arrivals: Sequence[Arrival], cuts: Sequence[int] = ()) -> None:
    """Empty the tables, then take the events in, cut into batches."""
    caches = Caches()
    with engine.begin() as connection:
        for table in (*FOLDED, "raw_events", "event_keys", "body_references", "shared_runs"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
    records = [Record(encode(one), received) for one, received in arrivals]
    places = sorted({0, len(records), *(cut % (len(records) + 1) for cut in cuts)})
    for start, end in pairwise(places):
        with engine.begin() as connection:
            take(connection, records[start:end], caches)
        caches.commit()


# `job_relations` only leads to runs: what a micro-batch's replaced edges named may lead its query's
# answers to it, or not.
LEADING = """SELECT * FROM job_relations WHERE EXISTS (
  SELECT 1 FROM run_relations touched WHERE touched.run_id = job_relations.run_id
     AND touched.direction = job_relations.direction AND touched.dataset_id = job_relations.dataset_id) OR direction = 0 AND EXISTS (
  SELECT 1 FROM run_edges JOIN edge_columns ON edge_columns.set_hash = run_edges.set_hash
   WHERE run_edges.run_id = job_relations.run_id AND edge_columns.source_id = job_relations.dataset_id)"""


def folded(engine: Engine) -> dict[str, list[Any]]:
    """Every row of every table that is a fold over the events, facets as they are read.

    And how runs are split into templates.
    """
    others = {"job_relations": LEADING, "run_templates": "SELECT * FROM run_templates"}
    with engine.connect() as connection:
        return folded_rows(connection) | {
            name: rows(connection, query) for name, query in others.items()
        }


def shown(engine: Engine) -> dict[str, list[Any]]:
    """Return the public tables and the graph, in the oracle's form."""
    with engine.connect() as connection:
        found = tables_shown(connection)
        found["stated"] = stated(connection)
        found["steps"] = steps(connection)
        found["known"] = known(connection)
    return found


def tables_shown(connection: Connection) -> dict[str, list[Any]]:
    """Return the public tables alone."""
    found: dict[str, list[Any]] = {}
    for side, view in (("inputs", "source"), ("outputs", "sink")):
        found[f"live {side}"] = rows(connection, f'SELECT job, "table" FROM {view}_job_lineage')
        ended = rows(
            connection,
            f'SELECT job, "table", state, valid_from, valid_to FROM {view}_job_lineage_history',
        )
        found[f"history {side}"] = sorted(
            {(*one[:3], one[3] // 1000, one[4] // 1000) for one in ended}
        )
        query = f'SELECT job, barrier_id, "table", snapshot_id FROM {view}_snapshot_lineage'
        found[f"snapshots {side}"] = sorted(rows(connection, query))
    return found


def steps(connection: Connection) -> list[Any]:
    """Return the edges of running jobs, by names."""
    datasets = dict(rows(connection, "SELECT id, name FROM datasets"))
    names = {None: None, **datasets, **dict(rows(connection, "SELECT id, name FROM jobs"))}
    graph = TableGraph(KnownJobs(connection, View(micros_of(NOW), live=True)))
    found = graph.steps(list(datasets), Direction.UPSTREAM, 10_000)
    return sorted(
        ((names[one.source], names[one.via], names[one.target]) for one in found), key=str
    )


def known(connection: Connection) -> list[Any]:
    """Return the edges of each job's last runs, by names.

    When it was last seen, in how many of them, and in the newest.
    """
    datasets = dict(rows(connection, "SELECT id, name FROM datasets"))
    names = {None: None, **datasets, **dict(rows(connection, "SELECT id, name FROM jobs"))}
    graph = TableGraph(KnownJobs(connection, View(micros_of(NOW), runs=RUNS)))
    found = []
    for one in graph.steps(list(datasets), Direction.UPSTREAM, 10_000):
        seen = graph.reasons[one].seen
        of = (len(seen.owners), len(seen.among), bool(seen.newest & seen.owners))
        found.append(
            (names[one.source], names[one.via], names[one.target], moment_of(seen.at), *of)
        )
    return sorted(found, key=str)


def stated(connection: Connection) -> list[Any]:
    """Return the sources of sinks that the events of each run state, by names."""
    runs: dict[int, str] = dict(rows(connection, "SELECT id, run_id FROM runs"))
    names: dict[int, str] = dict(rows(connection, "SELECT id, name FROM datasets"))
    touched = [JobEdge(0, SINK, 0, 0, run, run, 0) for run in runs]
    found = stated_sources(connection, touched).of_sinks.items()
    return sorted(
        (runs[run], names[sink], said.rule, sorted(names[one] for one in said.sources))
        for (run, sink), said in found
    )


def wanted(arrivals: Sequence[Arrival]) -> dict[str, list[Any]]:
    """The same, by the oracle."""
    oracle = Oracle(arrivals, NOW)
    return tables_wanted(oracle) | {
        "stated": sorted(
            (run.partition(APART)[0], sink, rule, sorted(sources))
            for (run, sink), (rule, sources) in oracle.stated().items()
        ),
        "steps": sorted(oracle.steps(), key=str),
        "known": oracle.known(RUNS),
    }


def tables_wanted(oracle: Oracle) -> dict[str, list[Any]]:
    """Return the expected public tables."""
    questions = {
        "live": oracle.job_lineage,
        "history": oracle.history,
        "snapshots": oracle.snapshot_lineage,
    }
    return {
        f"{what} {side}": ask(side)
        for what, ask in questions.items()
        for side in ("inputs", "outputs")
    }


NAMES = st.sampled_from(["/a", "/b", "/c", "/d"])
ORIGINS = NAMES.map(
    lambda name: {"namespace": "file", "name": name, "type": "DATASET", "field": "c"}
)
GONE = {"_deleted": True}
_PLACES: list[Json] = [
    {},
    {"observed": True},
    {"branch": "main"},
    {"branch": "dev"},
    {"staged": True},
]
PLACES = st.sampled_from(_PLACES)


@st.composite
def lineages(draw: st.DrawFn) -> Json:
    """Return the content of a lineage facet, or of an entry of one."""
    said: Json = {}
    if draw(st.booleans()):
        said["inputs"] = draw(st.lists(ORIGINS, max_size=2))
    if draw(st.integers(0, 2)) == 0:
        said["fields"] = {"c": {"inputs": draw(st.lists(ORIGINS, max_size=1))}}
    return said


@st.composite
def entries(draw: st.DrawFn) -> Json:
    if draw(st.integers(0, 2)) == 0:
        return {"type": "JOB", **draw(lineages())}
    return {"type": "DATASET", "namespace": "file", "name": draw(NAMES), **draw(lineages())}


@st.composite
def job_facets(draw: st.DrawFn) -> Json:
    facets: Json = {}
    if draw(st.booleans()):
        facets["jobType"] = {"processingType": "STREAMING", "integration": "SPARK"}
    if draw(st.integers(0, 2)) == 0:
        facets["lineage"] = (
            {"entries": draw(st.lists(entries(), max_size=2))} if draw(st.integers(0, 3)) else GONE
        )
    return facets


@st.composite
def datasets(draw: st.DrawFn) -> Json:
    facets: Json = {}
    if draw(st.integers(0, 4)) == 0:
        link = {
            "namespace": "file",
            "name": draw(NAMES),
            "type": draw(st.sampled_from(["TABLE", "LOCATION"])),
        }
        facets["symlinks"] = {"identifiers": [link]}
    if draw(st.integers(0, 4)) == 0:
        change = draw(st.sampled_from(["CREATE", "CREATE", "ALTER", "DROP"]))
        facets["lifecycleStateChange"] = {"lifecycleStateChange": change}
    if draw(st.integers(0, 3)) == 0:
        facets["columnLineage"] = draw(
            st.sampled_from([GONE, {"fields": {}}, {"fields": {"n": {"inputFields": []}}}])
        )
    elif draw(st.integers(0, 3)) == 0:
        facets["columnLineage"] = {
            "fields": {"c": {"inputFields": draw(st.lists(ORIGINS, max_size=2))}}
        }
    if draw(st.integers(0, 5)) == 0:
        facets["lineage"] = draw(st.one_of(st.just(GONE), lineages()))
    own = {}
    if draw(st.booleans()):
        own = {"strandline_snapshot": {"snapshotId": draw(st.sampled_from("123"))} | draw(PLACES)}
    return dataset(draw(NAMES), "file", own, **facets)


@st.composite
def run_facets(draw: st.DrawFn, run: int, query: str) -> Json:
    facets: Json = {}
    if draw(st.integers(0, 2)) == 0:
        above = {"app": 8, "dag": 9} if run == 7 else {"app": 7, "dag": 8}
        app, dag = ({"run": {"runId": run_id(one)}, "job": {"namespace": "tests", "name": name}}
                    for name, one in above.items())  # fmt: skip
        facets["parent"] = app | draw(st.sampled_from([{}, {"root": dag}]))
    if draw(st.integers(0, 4)) == 0:
        facets["strandline_heartbeat"] = {"timeoutSeconds": 36_000}
    if draw(st.integers(0, 2)) == 0:
        said = {"barrierId": draw(st.integers(1, 2)), "queryId": query}
        facets["strandline_barrier"] = {
            **said,
            "phase": draw(st.sampled_from(["committed", "skipped"])),
        }
    if draw(st.integers(0, 3)) == 0:
        facets["spark_jobDetails"] = {
            "jobDescription": f"q<br/>id = {query}<br/>batch = {draw(st.integers(0, 1))}"
        }
    return facets


@st.composite
def histories(draw: st.DrawFn) -> list[Arrival]:
    found = []
    for index in range(draw(st.integers(1, 9))):
        kind = draw(
            st.sampled_from(["START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER", None])
        )
        run = draw(st.sampled_from([1, 2, 3, 7, 8]))
        one = event(
            kind,
            run=run,
            job=draw(st.sampled_from(["one", "two"])),
            seconds=index,
            inputs=draw(st.lists(datasets(), max_size=2, unique_by=lambda one: one["name"])),
            outputs=draw(st.lists(datasets(), max_size=2, unique_by=lambda one: one["name"])),
            facets=draw(run_facets(run, run_id(90 + run))),
            job_facets=draw(job_facets()),
        )
        long_ago = LONG_AGO + timedelta(seconds=index)
        found.append((one, draw(st.sampled_from([NOW, NOW, long_ago]))))
    return found


def fault(engine: Engine, history: list[Arrival], seed: int, cuts: list[int]) -> str:
    """The first row that is not the oracle's, or another one where the events come in another order; nothing if all is well."""
    expected, order = wanted(history), random.Random(seed)
    take_all(engine, history)
    first = folded(engine)
    if wrong := first_difference(expected, shown(engine)):
        return f"not as the oracle says: {wrong}"
    again = [*history, *order.sample(history, len(history) // 2)]
    order.shuffle(again)
    take_all(engine, again, cuts)
    return first_difference(first, folded(engine)) or first_difference(expected, shown(engine))


def check(engine: Engine, history: list[Arrival], seed: int, cuts: list[int]) -> None:
    """Fail with one line and as few events as still bring it about.

    Found here, for hypothesis takes minutes to shrink them.
    """
    found = fault(engine, history, seed, cuts)
    if not found:
        return
    left = history
    for one in history:
        fewer = [other for other in left if other is not one]
        if fewer and (still := fault(engine, fewer, seed, cuts)):
            left, found = fewer, still
    events = "\n".join(f"{json.dumps(event)} received {received}" for event, received in left)
    pytest.fail(
        f"{found}\nwith {len(left)} of {len(history)} events, seed {seed}, cuts {cuts}:\n{events}",
        pytrace=False,
    )


def first_difference(before: dict[str, list[Any]], after: dict[str, list[Any]]) -> str:
    """The first row of the first table that is not the same, by its key; nothing where all are."""
    for table, found in before.items():
        old, new = by_key(table, found), by_key(table, after[table])
        for key in [*old, *(one for one in new if one not in old)]:
            if old.get(key) != new.get(key):
                return f"{table} {key}: {old.get(key, 'no row')} became {new.get(key, 'no row')}"
        if found != after[table]:
            return (
                f"{table}: {len(found)} rows became {len(after[table])}, or came in another order"
            )
    return ""


def by_key(table: str, found: list[Any]) -> dict[Any, Any]:
    """The rows by the key that they are folded by.

    Those of other tables and views are their own.
    """
    if table not in KEYS:
        return {str(row): row for row in found}
    columns = table_or_view(table).columns
    keys = [place for place, column in enumerate(columns) if column.name in KEYS[table]]
    return {
        tuple(row[place] for place in keys): dict(zip(columns.keys(), row, strict=True))
        for row in found
    }


fixture = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.generate],
)
HISTORIES = histories()
SEEDS = st.integers(0, 2**32)
CUTS = st.lists(st.integers(0, 20), max_size=3)


@settings(fixture, max_examples=40)
@given(history=HISTORIES, seed=SEEDS, cuts=CUTS)
def test_random_orders_match_the_oracle_on_sqlite(
    sqlite_engine: Engine, history: list[Arrival], seed: int, cuts: list[int]
) -> None:
    check(sqlite_engine, history, seed, cuts)


@pytest.mark.slow
@settings(fixture, max_examples=500)
@given(history=HISTORIES, seed=SEEDS, cuts=CUTS)
def test_500_histories_in_any_order_give_the_oracles_tables(
    sqlite_engine: Engine, history: list[Arrival], seed: int, cuts: list[int]
) -> None:
    check(sqlite_engine, history, seed, cuts)


@pytest.mark.soak
@settings(fixture, derandomize=False, max_examples=10_000)
@given(history=HISTORIES, seed=SEEDS, cuts=CUTS)
def test_10_000_histories_in_any_order_give_the_oracles_tables(
    sqlite_engine: Engine, history: list[Arrival], seed: int, cuts: list[int]
) -> None:
    check(sqlite_engine, history, seed, cuts)


@pytest.mark.postgres
@settings(fixture, max_examples=10)
@given(history=HISTORIES, seed=SEEDS, cuts=CUTS)
def test_random_orders_match_the_oracle_on_postgresql(
    postgres_engine: Engine, history: list[Arrival], seed: int, cuts: list[int]
) -> None:
    check(postgres_engine, history, seed, cuts)


@pytest.mark.postgres
@pytest.mark.slow
@settings(fixture, max_examples=100)
@given(history=HISTORIES, seed=SEEDS, cuts=CUTS)
def test_100_histories_in_any_order_give_the_oracles_tables_on_postgresql(
    postgres_engine: Engine, history: list[Arrival], seed: int, cuts: list[int]
) -> None:
    check(postgres_engine, history, seed, cuts)


def test_difference_is_reported_by_table_and_key() -> None:
    found: dict[str, list[Any]] = {
        "job_groups": [(1, "a", 5, 6), (2, "b", 5, 6)],
        "live inputs": [("etl", "a")],
    }
    other: dict[str, list[Any]] = {
        "job_groups": [(1, "a", 5, 6), (2, "c", 7, 8)],
        "live inputs": [("etl", "a")],
    }

    assert first_difference(found, found) == ""
    assert first_difference(found, other).startswith(
        "job_groups (2,): {'job_id': 2, 'group_name': 'b'"
    )
    assert first_difference(found, found | {"live inputs": []}) == (
        "live inputs ('etl', 'a'): ('etl', 'a') became no row"
    )


AT_ONCE = [
    event("START", 1, "one", inputs=[dataset("/a", "file", version={"datasetVersion": "1"})], job_facets={"sql": {"query": "1"}}),
    event("RUNNING", 1, "two", outputs=[dataset("/c", "file", schema={"fields": []}, symlinks={"identifiers": []})],
          facets={"strandline_heartbeat": {"timeoutSeconds": 60}, "parent": {"run": {"runId": run_id(7)}, "job": {"namespace": "tests", "name": "app"}}}),
    event("RUNNING", 1, "one", outputs=[dataset("/c", "file", schema=GONE)], job_facets={"sql": {"query": "2"}},
          facets={"strandline_heartbeat": {"timeoutSeconds": 70}, "parent": {"run": {"runId": run_id(8)}, "job": {"namespace": "tests", "name": "other"}}}),
    event("RUNNING", 2, "one", inputs=[dataset("/a", "file", {"strandline_snapshot": {"snapshotId": "1", "numberOfRows": 1}})],
          outputs=[dataset("/c", "file", schema={"fields": [{"name": "x"}]}, columnLineage={"fields": {}})],
          facets={"strandline_barrier": {"barrierId": 1, "queryId": "q", "phase": "committed", "group": "d"}}),
    event("RUNNING", 2, "one", inputs=[dataset("/a", "file", {"strandline_snapshot": {"snapshotId": "1", "numberOfRows": 2}})],
          outputs=[dataset("/c", "file", columnLineage={"fields": {"c": {"inputFields": [{"namespace": "file", "name": "/a", "field": "c"}]}}})],
          facets={"strandline_barrier": {"barrierId": 1, "queryId": "q", "phase": "committed", "group": "e"}}),
]  # fmt: skip


@pytest.mark.parametrize("size", [1, 5])
def test_arrival_order_does_not_decide_between_equal_times(engine: Engine, size: int) -> None:
    """Whatever two events say otherwise at one moment.

    Facets, jobs of a run, leases, parents, groups, edges, snapshots.
    """
    history = [(one, NOW) for one in AT_ONCE]
    take_all(engine, history)
    first = folded(engine)
    wrong = {}
    for order in ((4, 3, 2, 1, 0), (2, 0, 4, 1, 3)):  # each two of them one way and the other
        take_all(engine, [history[place] for place in order], range(0, len(history), size))
        wrong[order] = first_difference(first, folded(engine))

    assert {order: one for order, one in wrong.items() if one} == {}
    assert sorted(table for table, found in first.items() if not found) == [
        "dataset_aliases",
        "run_queries",
    ]


def test_heartbeat_beside_a_micro_batch_is_not_its_querys(sqlite_engine: Engine) -> None:
    """Two jobs share a run id; one announces a timeout of its own, the other's run is a batch."""
    described = f"q<br/>id = {run_id(9)}<br/>batch = 1"
    facets: Json = {"spark_jobDetails": {"jobDescription": described}}
    own = facets | {"strandline_heartbeat": {"timeoutSeconds": 36_000}}
    history = [
        (event("OTHER", 3, "two", outputs=[dataset("/b", "file")], facets=facets), LONG_AGO),
        (event("FAIL", 3, "one", seconds=1, facets=own), LONG_AGO),
    ]

    check(sqlite_engine, history, 0, [1])


def test_corpus_in_any_order_leaves_the_same_tables(engine: Engine) -> None:
    arrivals = [(json.loads(line), NOW) for line in corpus_lines()]
    take_all(engine, arrivals)
    first = folded(engine)

    order = random.Random(7)
    order.shuffle(arrivals)
    take_all(engine, [*arrivals, *arrivals[::-1]], cuts=range(0, 300, 23))

    assert folded(engine) == first
    assert len(first["runs"]) > 60


def test_edge_sets_that_differ_only_in_deltas_log_are_equal(engine: Engine) -> None:
    """The log is not lineage, so both sets are stored as one in either order."""
    sources = [("/a", "/x/_delta_log/1.json"), ("/a",)]
    history = [
        (event(run=run, outputs=[made_of(*names)]), NOW) for run, names in enumerate(sources, 1)
    ]
    take_all(engine, history, cuts=[1])
    first = folded(engine)
    take_all(engine, history[::-1], cuts=[1])

    assert folded(engine) == first
    assert [name for name in ("/a", "/x/_delta_log/1.json") if name in str(first["datasets"])] == [
        "/a"
    ]


def made_of(*names: str) -> Json:
    """A dataset with a column that comes from a column of each of these files."""
    origins = [{"namespace": "file", "name": name, "field": "c"} for name in names]
    return dataset("bank.b", columnLineage={"fields": {"c": {"inputFields": origins}}})


def test_oracle_detects_a_last_event_wins_rule() -> None:
    """Negative control: the oracle distinguishes the usual rule of collectors from ours."""
    late = [(event("COMPLETE", seconds=1), NOW), (event("RUNNING", seconds=2), NOW)]

    assert Oracle(late, NOW).state(run_id(1)) == "COMPLETE"
    assert max(late, key=lambda one: one[0]["eventTime"])[0]["eventType"] == "RUNNING"
