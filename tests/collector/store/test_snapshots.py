"""Data lineage: which snapshots an event tells of, and which of several statements counts."""

import pytest
from sqlalchemy import Engine

from collector.builders import QUERY, batch, dataset, event, rows, snapshot, store

SINKS = 'SELECT job, barrier_id, "table", snapshot_id FROM sink_snapshot_lineage'
SOURCES = 'SELECT job, barrier_id, "table", snapshot_id FROM source_snapshot_lineage'
USES = "SELECT direction, snapshot_id, observed FROM snapshot_lineage"
LONG_ID = 4358109269898191234


def test_each_barrier_has_a_row_for_each_table(engine: Engine) -> None:
    for barrier in (1, 2):
        read, made = dataset("bank.a", own=snapshot(f"a{barrier}")), dataset("bank.b", own=snapshot(f"b{barrier}"))
        store(engine, [batch(barrier, inputs=[read], outputs=[made])])

    assert rows(engine, SOURCES) == [("stream", 1, "a", "a1"), ("stream", 2, "a", "a2")]
    assert rows(engine, SINKS) == [("stream", 1, "b", "b1"), ("stream", 2, "b", "b2")]


def test_the_newest_generation_of_a_barrier_counts(engine: Engine) -> None:
    other = QUERY.replace("1", "2")
    old = batch(1, outputs=[dataset("bank.b", own=snapshot("old"))])
    new = batch(1, seconds=50, query=other, outputs=[dataset("bank.b", own=snapshot("new"))])
    store(engine, [new, old])

    assert rows(engine, SINKS) == [("stream", 1, "b", "new")]


def test_a_batch_run_has_no_barrier_and_is_known_all_the_same(engine: Engine) -> None:
    store(engine, [event("COMPLETE", outputs=[dataset("bank.b", own=snapshot("7"))])])

    assert rows(engine, SINKS) == []
    assert rows(engine, USES) == [(1, "7", 0)]


def test_the_facts_at_the_end_replace_the_hint_at_the_start(engine: Engine) -> None:
    hint = dataset("bank.a", own=snapshot("1", observed=True))
    store(
        engine,
        [event("START", inputs=[hint]), event("COMPLETE", seconds=1, inputs=[dataset("bank.a", own=snapshot("2"))])],
    )

    assert rows(engine, USES) == [(0, "2", 0)]


def test_of_observed_versions_the_earliest_read_and_the_newest_written_count(engine: Engine) -> None:
    before, after = (dataset("bank.a", version={"datasetVersion": one}) for one in "12")
    store(engine, [event("COMPLETE", seconds=1, inputs=[after], outputs=[after])])
    store(engine, [event("START", inputs=[before], outputs=[before])])

    assert rows(engine, USES) == [(0, "1", 1), (1, "2", 1)]


def test_an_id_that_came_as_a_double_is_matched_to_the_tables_own(engine: Engine) -> None:
    scan = dataset("bank.a", own={"icebergScanReport": {"snapshotId": float(LONG_ID)}})
    store(engine, [event("COMPLETE", 1, inputs=[scan])])

    assert rows(engine, USES) == [(0, str(int(float(LONG_ID))), 1)]

    store(engine, [event("COMPLETE", 2, "writer", outputs=[dataset("bank.a", own=snapshot(str(LONG_ID)))])])

    assert rows(engine, USES) == [(0, str(LONG_ID), 0), (1, str(LONG_ID), 0)]


def test_a_double_that_is_no_id_is_no_snapshot_and_the_version_counts(engine: Engine) -> None:
    report = {"icebergCommitReport": {"snapshotId": 1e300}}
    store(engine, [event("COMPLETE", 1, outputs=[dataset("bank.a", own=report)])])
    store(engine, [event("COMPLETE", 2, outputs=[dataset("bank.b", own=report, version={"datasetVersion": "7"})])])

    assert rows(engine, USES) == [(1, "7", 1)]


def test_two_snapshots_of_one_table_in_one_statement_are_both_kept(engine: Engine) -> None:
    two = [dataset("bank.a", own=snapshot(one)) for one in "12"]
    store(engine, [event("COMPLETE", inputs=two)])

    assert rows(engine, USES) == [(0, "1", 0), (0, "2", 0)]


def test_an_aborted_barrier_has_no_snapshots(engine: Engine) -> None:
    aborted = batch(1, barrier_facet={"phase": "aborted"}, inputs=[dataset("bank.a")])
    store(engine, [aborted])

    assert rows(engine, SINKS) == []
    assert rows(engine, "SELECT barrier, phase FROM job_barriers") == [(1, 1)]


def test_reading_a_metadata_table_is_reading_the_table(engine: Engine) -> None:
    catalog = {"name": "lake", "framework": "iceberg", "type": "hive"}
    store(engine, [event("START", inputs=[dataset("bank.a.snapshots", catalog=catalog), dataset("bank.files")])])

    assert rows(engine, 'SELECT catalog, database, "table" FROM source_job_lineage') == [
        ("hive://lake", "bank", "files"),
        ("lake", "bank", "a"),
    ]


def test_data_lineage_outlives_the_job_and_can_be_hidden(engine: Engine) -> None:
    store(
        engine, [batch(1, outputs=[dataset("bank.b", own=snapshot("7"))]), event("COMPLETE", job="stream", seconds=9)]
    )

    assert rows(engine, SINKS) == [("stream", 1, "b", "7")]

    with engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO catalog_options VALUES ('data-lineage', 'False', '', 'hive://lake', '')"
        )

    assert rows(engine, SINKS) == []


def test_the_meta_tables_of_the_proposals(engine: Engine) -> None:
    a, b = dataset("bank.a", own=snapshot("1")), dataset("bank.b", own=snapshot("2"))
    store(engine, [batch(1, run=1, job="ingest", outputs=[a]), batch(1, run=2, job="derive", inputs=[a], outputs=[b])])

    query = """SELECT T.table_name FROM __META_ETL_SOURCE S JOIN __META_ETL_SINK T ON S.job_id = T.job_id
                WHERE S.table_name = 'a'"""
    assert rows(engine, query) == [("b",)]
    assert rows(engine, "SELECT table_name, version, table_type FROM __META_TABLE_VERSION") == [
        ("a", 1, "Root"),
        ("b", 1, "Intermediate"),
    ]


@pytest.mark.parametrize("order", [1, -1])
def test_what_our_own_facet_says_counts_before_any_report(engine: Engine, order: int) -> None:
    """The stock listener's report of the same statement may be of another scan, or rounded."""
    read, made = (
        dataset("bank.a", own=dict([*snapshot("7").items(), (report, {"snapshotId": 8})][::order]), version=version)
        for report, version in (("icebergScanReport", {}), ("icebergCommitReport", {"datasetVersion": "9"}))
    )
    store(engine, [event("COMPLETE", inputs=[read], outputs=[made])])

    assert rows(engine, USES) == [(0, "7", 0), (1, "7", 0)]
