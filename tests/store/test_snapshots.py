"""Data lineage: the snapshots in an event, and the statement that counts."""

import pytest
from sqlalchemy import Engine

from strandline.core.openlineage.names import id_of
from strandline.core.versions.facts import BarrierCommitted
from strandline.store.lineage.checkpoints import checkpoints_of
from strandline.store.lineage.run_state import rows_of_runs
from strandline.store.marquez.runs import touched_by_runs, version_id
from strandline.store.versions.fact_log import RUN, VersionNews
from strandline.store.versions.facts_from_rows import facts_of
from worlds.builders import NOON, QUERY, Json, batch, dataset, event, rows, snapshot, store

SINKS = 'SELECT job, barrier_id, "table", snapshot_id FROM sink_snapshot_lineage'
SOURCES = 'SELECT job, barrier_id, "table", snapshot_id FROM source_snapshot_lineage'
USES = "SELECT direction, snapshot_id, observed FROM snapshot_lineage"
LONG_ID, OTHER_ID = 4358109269898191234, 5053019995305414818
NOON_MICROS = int(NOON.timestamp()) * 1_000_000


def commit(snapshot_id: int) -> Json:
    """Iceberg's report of a commit, as the stock listener sends it."""
    return {"icebergCommitReport": {"snapshotId": float(snapshot_id), "operation": "append"}}


def test_each_barrier_has_a_row_for_each_table(engine: Engine) -> None:
    for barrier in (1, 2):
        read, made = (
            dataset("bank.a", own=snapshot(f"a{barrier}")),
            dataset("bank.b", own=snapshot(f"b{barrier}")),
        )
        store(engine, [batch(barrier, inputs=[read], outputs=[made])])

    assert rows(engine, SOURCES) == [("stream", 1, "a", "a1"), ("stream", 2, "a", "a2")]
    assert rows(engine, SINKS) == [("stream", 1, "b", "b1"), ("stream", 2, "b", "b2")]


def test_only_the_last_commit_of_a_barrier_shows_all_of_it(engine: Engine) -> None:
    made = dataset("bank.b", own=snapshot("1", others=[{"snapshotId": "9"}, {"snapshotId": "8"}]))
    store(engine, [batch(1, inputs=[dataset("bank.a", own=snapshot("a1"))], outputs=[made])])

    assert rows(engine, SINKS) == [("stream", 1, "b", "1")]
    with engine.connect() as connection:
        run_id = connection.exec_driver_sql("SELECT run_id FROM job_barriers").scalar_one()
        facts = facts_of(connection, [VersionNews(1, RUN, run_id, 1)])
        (committed,) = [fact for fact in facts if isinstance(fact, BarrierCommitted)]
        (checkpoint,) = checkpoints_of(connection, ("hive://lake", "bank.b"))
        (run,) = rows_of_runs(connection, [run_id]).values()
        versions = [one.version for one in touched_by_runs(connection, [run])[run_id]]
    assert [written.snapshot for written in committed.written] == ["1"]
    assert checkpoint.written == ["1"]
    assert version_id(id_of("dataset", "hive://lake", "bank.b"), "1", run_id) in versions


def test_the_newest_query_of_a_barrier_counts(engine: Engine) -> None:
    other = QUERY.replace("1", "2")
    old = batch(1, outputs=[dataset("bank.b", own=snapshot("old"))])
    new = batch(1, seconds=50, query=other, outputs=[dataset("bank.b", own=snapshot("new"))])
    store(engine, [new, old])

    assert rows(engine, SINKS) == [("stream", 1, "b", "new")]


def test_batch_run_without_a_barrier_has_snapshots(engine: Engine) -> None:
    store(engine, [event("COMPLETE", outputs=[dataset("bank.b", own=snapshot("7"))])])

    assert rows(engine, SINKS) == []
    assert rows(engine, USES) == [(1, "7", 0)]


def test_exact_snapshot_at_the_end_replaces_the_observed_start(engine: Engine) -> None:
    hint = dataset("bank.a", own=snapshot("1", observed=True))
    store(
        engine,
        [
            event("START", inputs=[hint]),
            event("COMPLETE", seconds=1, inputs=[dataset("bank.a", own=snapshot("2"))]),
        ],
    )

    assert rows(engine, USES) == [(0, "2", 0)]


def test_earliest_observed_read_and_newest_observed_write_count(engine: Engine) -> None:
    before, after = (dataset("bank.a", version={"datasetVersion": one}) for one in "12")
    store(engine, [event("COMPLETE", seconds=1, inputs=[after], outputs=[after])])
    store(engine, [event("START", inputs=[before], outputs=[before])])

    assert rows(engine, USES) == [(0, "1", 1), (1, "2", 1)]


def test_approximate_id_is_matched_to_the_tables_id(engine: Engine) -> None:
    scan = dataset("bank.a", own={"icebergScanReport": {"snapshotId": float(LONG_ID)}})
    store(engine, [event("COMPLETE", 1, inputs=[scan])])

    assert rows(engine, USES) == [(0, None, 1)]

    store(
        engine,
        [event("COMPLETE", 2, "writer", outputs=[dataset("bank.a", own=snapshot(str(LONG_ID)))])],
    )

    assert rows(engine, USES) == [(0, str(LONG_ID), 0), (1, str(LONG_ID), 0)]


def test_ambiguous_approximate_id_matches_neither_snapshot(engine: Engine) -> None:
    twins = [dataset("bank.a", own=snapshot(str(LONG_ID + more))) for more in (0, 1)]
    scan = dataset("bank.a", own={"icebergScanReport": {"snapshotId": float(LONG_ID)}})
    store(engine, [event("COMPLETE", 1, outputs=twins), event("COMPLETE", 2, inputs=[scan])])

    assert rows(engine, f"{USES} WHERE direction = 0") == [(0, None, 1)]


@pytest.mark.parametrize(
    "id_", [LONG_ID, 15_279_136_902_135_000]
)  # the second one is a double as it is
def test_version_confirmed_by_a_rounded_report_is_exact(engine: Engine, id_: int) -> None:
    version = {"datasetVersion": str(id_)}
    read = dataset("bank.a", own={"icebergScanReport": {"snapshotId": float(id_)}}, version=version)
    made = dataset("bank.b", own=commit(id_), version=version)
    store(engine, [event("COMPLETE", inputs=[read], outputs=[made])])

    assert rows(engine, USES) == [(0, str(id_), 0), (1, str(id_), 0)]
    known = "SELECT snapshot_id, rank, operation, format FROM snapshots"
    assert rows(engine, known) == [(str(id_), 2, "", "iceberg"), (str(id_), 2, "append", "iceberg")]


def test_version_contradicted_by_the_report_exists_but_was_not_used(engine: Engine) -> None:
    """For an UPDATE the listener reports the new version as the one read."""
    began = dataset("bank.a", version={"datasetVersion": str(LONG_ID)})
    scan = {"icebergScanReport": {"snapshotId": float(LONG_ID)}}
    ended = dataset("bank.a", own=scan, version={"datasetVersion": str(OTHER_ID)})
    made = dataset("bank.a", own=commit(OTHER_ID), version={"datasetVersion": str(OTHER_ID)})
    store(engine, [event("COMPLETE", seconds=1, inputs=[ended], outputs=[made])])

    assert rows(engine, USES) == [(0, None, 1), (1, str(OTHER_ID), 0)]

    store(engine, [event("START", inputs=[began])])

    assert rows(engine, USES) == [(0, str(LONG_ID), 0), (1, str(OTHER_ID), 0)]


def test_approximate_id_does_not_complete_a_barrier(engine: Engine) -> None:
    store(
        engine,
        [
            batch(
                1,
                outputs=[
                    dataset("bank.a", own=commit(LONG_ID)),
                    dataset("bank.b", own=snapshot("7")),
                ],
            )
        ],
    )

    with engine.connect() as connection:
        run_id, barrier = connection.exec_driver_sql(
            "SELECT run_id, barrier FROM job_barriers"
        ).one()
        found = facts_of(connection, [VersionNews(1, RUN, run_id, barrier)])
    made = [one.written for one in found if isinstance(one, BarrierCommitted)]
    assert [[(one.table[1], one.snapshot) for one in each] for each in made] == [[("bank.b", "7")]]


def test_version_present_at_the_start_was_not_written(engine: Engine) -> None:
    """The end event of a MERGE into a Delta table names no dataset."""
    there = dataset("bank.a", version={"datasetVersion": "1"})
    store(engine, [event("START", inputs=[there], outputs=[there]), event("COMPLETE", seconds=1)])

    assert rows(engine, USES) == [(0, "1", 1)]


def test_statement_did_not_read_its_own_output(engine: Engine) -> None:
    """The first MERGE into an empty Iceberg table observes only its own version."""
    made = dataset("bank.a", version={"datasetVersion": "1"})
    store(engine, [event("START", inputs=[dataset("bank.a")])])
    store(engine, [event("COMPLETE", seconds=1, inputs=[made, dataset("bank.b")], outputs=[made])])

    assert rows(engine, USES) == [(1, "1", 1)]


def test_repeated_commit_report_belongs_to_the_first_run(engine: Engine) -> None:
    """REPLACE TABLE AS SELECT and failed INSERTs report the previous commit again."""
    made = dataset("bank.a", own=commit(LONG_ID), version={"datasetVersion": str(LONG_ID)})
    seen = dataset("bank.a", version={"datasetVersion": str(LONG_ID)})
    store(engine, [event("COMPLETE", 2, "again", seconds=9, outputs=[made])])
    store(engine, [event("COMPLETE", 3, "in passing", seconds=1, outputs=[seen])])
    store(engine, [event("COMPLETE", 1, "first", seconds=5, outputs=[made])])

    makers = "SELECT job.name FROM snapshot_lineage used JOIN jobs job ON job.id = used.job_id"
    assert rows(engine, makers) == [("first",)]

    store(engine, [event("FAIL", 1, "first", seconds=6)])

    assert rows(engine, makers) == [("again",)]


def test_snapshot_exists_from_its_first_sighting(engine: Engine) -> None:
    for moment, version in ((1, "7"), (2, "8"), (9, "7")):
        store(
            engine,
            [
                event(
                    "COMPLETE",
                    moment,
                    seconds=moment,
                    inputs=[dataset("bank.a", version={"datasetVersion": version})],
                )
            ],
        )

    assert [at_ - NOON_MICROS for (at_,) in rows(engine, "SELECT first_at FROM snapshots")] == [
        1_000_000,
        2_000_000,
    ]


def test_invalid_approximate_id_is_ignored_and_the_version_counts(engine: Engine) -> None:
    report = {"icebergCommitReport": {"snapshotId": 1e300}}
    store(engine, [event("COMPLETE", 1, outputs=[dataset("bank.a", own=report)])])
    store(
        engine,
        [
            event(
                "COMPLETE",
                2,
                outputs=[dataset("bank.b", own=report, version={"datasetVersion": "7"})],
            )
        ],
    )

    assert rows(engine, USES) == [(1, "7", 1)]


def test_two_snapshots_of_one_table_in_one_statement_are_both_kept(engine: Engine) -> None:
    two = [dataset("bank.a", own=snapshot(one)) for one in "12"]
    store(engine, [event("COMPLETE", inputs=two)])

    assert rows(engine, USES) == [(0, "1", 0), (0, "2", 0)]


def test_skipped_barrier_has_no_snapshots(engine: Engine) -> None:
    aborted = batch(1, barrier_facet={"phase": "skipped"}, inputs=[dataset("bank.a")])
    store(engine, [aborted])

    assert rows(engine, SINKS) == []
    assert rows(engine, "SELECT barrier, phase FROM job_barriers") == [(1, 1)]


def test_metadata_table_read_counts_as_a_table_read(engine: Engine) -> None:
    catalog = {"name": "lake", "framework": "iceberg", "type": "hive"}
    store(
        engine,
        [
            event(
                "START",
                inputs=[dataset("bank.a.snapshots", catalog=catalog), dataset("bank.files")],
            )
        ],
    )

    assert rows(engine, 'SELECT catalog, database, "table" FROM source_job_lineage') == [
        ("hive://lake", "bank", "files"),
        ("lake", "bank", "a"),
    ]


@pytest.mark.parametrize(
    ("rows_written", "size", "made"),
    [
        (3, 900, True),
        (2, 900, True),
        (3, 800, True),
        (2, 800, False),
        (0, 0, True),
        (None, None, True),
    ],
    ids=[
        "the same",
        "the same size",
        "the same rows",
        "another commit",
        "nothing counted",
        "nothing told",
    ],
)
def test_report_of_another_commit_is_not_the_runs_snapshot(
    engine: Engine, rows_written: int | None, size: int | None, made: bool
) -> None:
    """The stock listener reports main's newest commit even for writes elsewhere."""
    report = commit(LONG_ID)
    report["icebergCommitReport"]["commitMetrics"] = {
        "addedRecords": 3.0,
        "addedFilesSizeInBytes": 900.0,
    }
    told = (
        {}
        if rows_written is None
        else {"outputStatistics": {"rowCount": rows_written, "size": size}}
    )
    version = {"datasetVersion": str(LONG_ID)}
    store(
        engine,
        [event("COMPLETE", outputs=[dataset("bank.b", own={**report, **told}, version=version)])],
    )

    assert rows(engine, "SELECT count(*) FROM snapshot_uses") == [(int(made),)]
    assert rows(engine, "SELECT snapshot_id FROM snapshots") == [
        (str(LONG_ID),)
    ]  # the table has it, whoever made it


def test_runs_own_snapshot_is_not_an_observed_read(engine: Engine) -> None:
    """A MERGE into an empty table reads no snapshot, and the newest one observed is its own."""
    read = dataset("bank.b", own=snapshot("7", observed=True))
    store(
        engine,
        [
            event(
                "COMPLETE",
                inputs=[read, dataset("bank.a", own=snapshot("5"))],
                outputs=[dataset("bank.b", own=snapshot("7"))],
            )
        ],
    )

    uses = "SELECT direction, snapshot_id FROM snapshot_uses ORDER BY direction"
    assert rows(engine, uses) == [(0, "5"), (1, "7")]


def test_all_snapshots_that_a_statement_read_are_stored(engine: Engine) -> None:
    both = snapshot("7", others=[{"snapshotId": "5", "operation": "append"}])
    store(
        engine,
        [
            event(
                "COMPLETE",
                inputs=[dataset("bank.a", own=both)],
                outputs=[dataset("bank.b", own=snapshot("9"))],
            )
        ],
    )

    assert rows(
        engine, "SELECT snapshot_id FROM snapshot_lineage WHERE direction = 0 ORDER BY 1"
    ) == [("5",), ("7",)]
    assert rows(engine, "SELECT snapshot_id FROM snapshots ORDER BY 1") == [("5",), ("7",), ("9",)]


def test_data_lineage_outlives_the_job_and_can_be_hidden(engine: Engine) -> None:
    store(
        engine,
        [
            batch(1, outputs=[dataset("bank.b", own=snapshot("7"))]),
            event("COMPLETE", job="stream", seconds=9),
        ],
    )

    assert rows(engine, SINKS) == [("stream", 1, "b", "7")]

    with engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO catalog_options VALUES ('data-lineage', 'False', '', 'hive://lake', '')"
        )

    assert rows(engine, SINKS) == []


def test_meta_tables_of_the_proposals_have_the_snapshots(engine: Engine) -> None:
    a, b = dataset("bank.a", own=snapshot("1")), dataset("bank.b", own=snapshot("2"))
    store(
        engine,
        [
            batch(1, run=1, job="ingest", outputs=[a]),
            batch(1, run=2, job="derive", inputs=[a], outputs=[b]),
        ],
    )

    query = """SELECT T.table_name FROM __META_ETL_SOURCE S JOIN __META_ETL_SINK T ON S.job_id = T.job_id
                WHERE S.table_name = 'a'"""
    assert rows(engine, query) == [("b",)]
    assert rows(engine, "SELECT table_name, version, table_type FROM __META_TABLE_VERSION") == [
        ("a", 1, "Root"),
        ("b", 1, "Intermediate"),
    ]


@pytest.mark.parametrize("order", [1, -1])
def test_own_snapshot_facet_wins_over_reports(engine: Engine, order: int) -> None:
    """The stock listener's report may describe another scan, or be rounded."""
    read, made = (
        dataset(
            "bank.a",
            own=dict([*snapshot("7").items(), (report, {"snapshotId": 8})][::order]),
            version=version,
        )
        for report, version in (
            ("icebergScanReport", {}),
            ("icebergCommitReport", {"datasetVersion": "9"}),
        )
    )
    store(engine, [event("COMPLETE", inputs=[read], outputs=[made])])

    assert rows(engine, USES) == [(0, "7", 0), (1, "7", 0)]
