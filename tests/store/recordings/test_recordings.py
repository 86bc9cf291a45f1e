"""Stock Spark recordings: default answers match what the programs did.

Each recording comes in the order of its sending, shuffled, and shuffled with repeats in several
transactions.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, select

import recordings
from store.recordings.conftest import Take
from strandline.cli import main
from strandline.cli.lineage_text import NOTHING
from strandline.core.openlineage.times import micros_of
from strandline.core.walk import Direction
from strandline.store.lineage.column_lineage import column_lineage_of
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.run_state import View
from strandline.store.lineage.snapshot_lineage import snapshot_lineage_of
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from strandline.store.schema.relation_tables import job_relations
from strandline.store.schema.run_tables import jobs
from strandline.store.versions.answers import cut_of
from worlds.stock_recorded import (
    ORDERS,
    Recorded,
    Truth,
    called,
    listed,
    made_from,
    now,
    recorded,
)

# Whose snapshots no event names: the listener reports neither an Iceberg sink nor a Delta stream's
# or MERGE's version.
UNREPORTED = {
    "two_queries": {"bank.landed"},
    "delta_stream": {"shop.clean"},
    "several_sinks": {"bank.large", "bank.small"},
    "time_travel": {"bank.orders"},  # a commit to a branch: only its rounded number
    "rolled_back": {"bank.totals"},  # a compaction
    "delta_batch": {"shop.daily"},  # an overwrite of a part
    "delta_changes": {"shop.final", "shop.copy"},  # RENAME, RESTORE and CLONE
    "delta_again": {"shop.report"},  # an INSERT after a CREATE IF NOT EXISTS
    "write_audit_publish": {
        "bank.report"
    },  # what is staged; the listener reports the commit before
    "joined_streams": {"bank.matched"},
    "delta_feed": {"shop.fed", "shop.whole"},  # an UPDATE, an OPTIMIZE, a MERGE
}
# Of these snapshots nobody can say what they were made from; that is what the answer says.
UNKNOWN = {
    "several_sinks": {
        ("bank.large", 0),
        ("bank.small", 0),
    },  # two INSERTs in one statement: a run without outputs
    "rolled_back": {("bank.totals", 3)},
    "without_rows": {("bank.quiet", 3)},  # a DELETE from metadata alone
    "delta_batch": {("shop.daily", 2), ("shop.daily", 3)},  # an UPDATE
    "delta_changes": {
        ("shop.report", 0),
        ("shop.final", 0),
        ("shop.final", 2),
    },  # version 0 of two tables of one name
    "delta_again": {("shop.report", 0), ("shop.report", 1)},
    "write_audit_publish": {("bank.report", 1), ("bank.report", 2)},  # to a branch; staged by an id
    "reading_options": {
        ("bank.changes", 0)
    },  # of what a view has, which is named without a snapshot
    "delta_feed": {("shop.fed", 2), ("shop.fed", 4), ("shop.changes", 0)},
}
# One statement for each snapshot, and all that it reads is reported with its version.
BATCHES = ("insert_select", "partial_columns")
WITH_EVERY_SNAPSHOT = [name for name in recordings.names() if "made" in recordings.truth_of(name)]


@pytest.fixture(params=ORDERS)
def taken(request: pytest.FixtureRequest, take_recording: Take, name: str) -> Recorded:
    """The recording of a test, in each order."""
    return take_recording(name, request.param)


def each(*names: str) -> pytest.MarkDecorator:
    """The test runs with these recordings, or with all."""
    return pytest.mark.parametrize("name", names or recordings.names())


def true_inputs(truth: Truth, table: str, snapshot: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return the real inputs of a statement that made a snapshot.

    Of each source, and of the table, the newest of that moment.
    """
    found = set()
    for source in truth["sources"][table]:
        if source not in truth["unreported"].get(table, ()):
            before = [
                one
                for one in truth["snapshots"][source]
                if one["milliseconds"] < snapshot["milliseconds"]
            ]
            found.add((source, before[-1]["id"]))
    return found


def sources_of(connection: Connection, table: str) -> set[str]:
    """Return the default sources of a table, but for itself.

    A MERGE or UPDATE reads what it changes.
    """
    node = node_called(
        connection, table if table.startswith(("bank.", "shop.", "default.")) else f"/data/{table}"
    )
    answer = lineage_of(connection, Question(node, now(), Direction.UPSTREAM, 1))
    return {called(one) for one in answer["nodes"] if one["type"] == "dataset"} - {table}


def true_sources(truth: Truth) -> dict[str, set[str]]:
    """Return the real sources of each table, as far as any event can tell."""
    gone, unreported = truth.get("gone", {}), truth["unreported"]
    return {
        table: {*names, *gone.get(table, ())}.difference(unreported.get(table, ()))
        for table, names in truth["sources"].items()
    }


@each()
def test_table_sources_are_what_its_statements_read(taken: Recorded) -> None:
    wanted = true_sources(taken.truth)
    with taken.engine.connect() as connection:
        tables = [table for table, sources in wanted.items() if sources]
        found = {table: sources_of(connection, table) for table in tables}

    assert found == {table: wanted[table] for table in tables}


@each("foreach_batch", "available_now", "partial_columns", "fan_out")
def test_impact_finds_everything_made_from_each_source(taken: Recorded) -> None:
    wanted = {
        (source, table)
        for table, sources in true_sources(taken.truth).items()
        for source in sources
    }
    found = set()
    with taken.engine.connect() as connection:
        for source in {source for source, _ in wanted}:
            node = node_called(
                connection, source if source.startswith("bank.") else f"/data/{source}"
            )
            answer = lineage_of(connection, Question(node, now(), Direction.DOWNSTREAM, 1))
            found |= {
                (source, called(one))
                for one in answer["nodes"]
                if one["type"] == "dataset" and one["distance"]
            }

    assert found == wanted


@each("partial_columns")
def test_columns_have_the_origins_in_the_programs(taken: Recorded) -> None:
    found: dict[str, dict[str, set[str]]] = {}
    with taken.engine.connect() as connection:
        for table in taken.truth["columns"]:
            question = Question(node_called(connection, table), now(), Direction.UPSTREAM, 1)
            answer = column_lineage_of(connection, question)
            names = {one["id"]: f"{called(one)}.{one['column']}" for one in answer["nodes"]}
            for edge in answer["edges"]:
                if edge["type"] == "DIRECT":
                    column = names[edge["target"]].rpartition(".")[2]
                    found.setdefault(table, {}).setdefault(column, set()).add(names[edge["source"]])

    assert found == {
        table: {column: {*origins} for column, origins in columns.items()}
        for table, columns in taken.truth["columns"].items()
    }


@each()
def test_every_snapshot_is_listed_as_in_its_table(taken: Recorded) -> None:
    tables = taken.truth["snapshots"].keys() - UNREPORTED.get(taken.name, set())
    with taken.engine.connect() as connection:
        found = {table: listed(connection, node_called(connection, table)) for table in tables}

    assert {table: [one["snapshotId"] for one in rows] for table, rows in found.items()} == {
        table: [one["id"] for one in taken.truth["snapshots"][table]] for table in tables
    }


@each()
def test_every_listed_snapshot_exists_in_its_table(taken: Recorded) -> None:
    with taken.engine.connect() as connection:
        for table, snapshots in taken.truth["snapshots"].items():
            if table != "shop.copy":  # a clone, of which no event tells
                found = [
                    one["snapshotId"] for one in listed(connection, node_called(connection, table))
                ]

                assert [one["id"] for one in snapshots if one["id"] in found] == found


@each(*WITH_EVERY_SNAPSHOT)
def test_snapshot_sources_are_what_the_statement_read_or_unknown(taken: Recorded) -> None:
    found, wanted = {}, {}
    with taken.engine.connect() as connection:
        for table, made in taken.truth["made"].items():
            for number, origins in enumerate(made):
                found[table, number] = made_from(connection, taken.truth, table, number)
                wanted[table, number] = {*origins}

    unknown = {snapshot: set[str]() for snapshot in UNKNOWN.get(taken.name, ())}
    assert found == wanted | unknown


@each("recreated", "delta_again")
def test_sources_of_a_dropped_table_are_not_in_the_latest_run(taken: Recorded) -> None:
    table, gone = next(iter(taken.truth["gone"].items()))
    with taken.engine.connect() as connection:
        newest = View(micros_of(datetime.now(UTC)), newest=True)
        answer = lineage_of(
            connection, Question(node_called(connection, table), newest, Direction.UPSTREAM, 1)
        )

    assert {*gone}.isdisjoint({called(one) for one in answer["nodes"] if one["type"] == "dataset"})


@each("delta_again")
def test_recreated_table_does_not_show_snapshots_of_the_old_one(
    taken: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    url = taken.engine.url.render_as_string(hide_password=False)

    assert main(["versions", "--weak", "--json", "shop.report", "--database-url", url], {}) == 0

    assert [one["snapshotId"] for one in json.loads(capsys.readouterr().out)["tables"]] == ["0"]


@each("insert_select", "update_delete", "partial_columns", "merge_after_ctas", "nested_ctas")
def test_snapshot_confirmed_by_a_commit_report_is_exact(taken: Recorded) -> None:
    with taken.engine.connect() as connection:
        found = {
            table: listed(connection, node_called(connection, table))
            for table in taken.truth["snapshots"]
        }

    assert {one["observed"] for rows in found.values() for one in rows} == {False}


@each(*BATCHES)
def test_snapshot_sources_are_the_source_snapshots_of_that_time(taken: Recorded) -> None:
    found, wanted = {}, {}
    with taken.engine.connect() as connection:
        for table in taken.truth["sources"]:
            node = node_called(connection, table)
            for snapshot in taken.truth["snapshots"][table]:
                answer = snapshot_lineage_of(
                    connection, node, snapshot["id"], now(), Direction.UPSTREAM, 1
                )
                sources = [one for one in answer["nodes"] if one["distance"]]
                found[snapshot["id"]] = {(called(one), one["snapshotId"]) for one in sources}
                wanted[snapshot["id"]] = true_inputs(taken.truth, table, snapshot)

    assert found == wanted


@each("merge_after_ctas", "update_delete", "ledger")
def test_row_change_reads_the_previous_snapshot_of_its_table(taken: Recorded) -> None:
    table = {
        "merge_after_ctas": "bank.daily",
        "update_delete": "bank.balances",
        "ledger": "bank.ledger",
    }[taken.name]
    snapshots = taken.truth["snapshots"][table]
    with taken.engine.connect() as connection:
        node = node_called(connection, table)
        for before, after in pairwise(snapshots):
            answer = snapshot_lineage_of(
                connection, node, after["id"], now(), Direction.UPSTREAM, 1
            )

            edges = [edge for edge in answer["edges"] if edge["source"].endswith(before["id"])]
            assert [edge["observed"] for edge in edges] == [False]
            assert [one["snapshotId"] for one in answer["nodes"] if called(one) == table] == [
                after["id"],
                before["id"],
            ]


@each("nested_ctas")
def test_replaced_tables_snapshots_name_their_own_statements(taken: Recorded) -> None:
    with taken.engine.connect() as connection:
        node = node_called(connection, "bank.totals")
        ids = [one["id"] for one in taken.truth["snapshots"]["bank.totals"]]
        answers = [
            snapshot_lineage_of(connection, node, id_, now(), Direction.UPSTREAM, 1) for id_ in ids
        ]

    assert [answer["nodes"][0]["madeBy"]["job"] for answer in answers] == [
        "job:lakehouse:wide.append_data.lake_bank_totals",
        "job:lakehouse:wide.atomic_replace_table_as_select.bank_totals",
    ]


@each("insert_select", "partial_columns")
def test_the_greatest_cut_is_the_newest_snapshot_of_every_table(taken: Recorded) -> None:
    """Every sink was written last, from the newest snapshots."""
    tables = sorted(taken.truth["snapshots"])
    with taken.engine.connect() as connection:
        nodes = [node_called(connection, table) for table in tables]
        found = cut_of(connection, [(node.namespace, node.name) for node in nodes])

    newest = [taken.truth["snapshots"][table][-1]["id"] for table in tables]
    unproven = {"bank.counted"} & {
        *tables
    }  # count(*) is answered without a scan, so no report confirms the version
    assert [cut.snapshot for cut in found.values()] == newest
    assert {
        table for table, cut in zip(tables, found.values(), strict=True) if cut.observed
    } == unproven


@each("insert_select", "update_delete", "killed_stream")
def test_weak_version_of_an_untracked_table_is_its_newest_snapshot(
    taken: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = sorted(taken.truth["snapshots"])
    url = taken.engine.url.render_as_string(hide_password=False)

    assert main(["versions", "--weak", "--json", *tables, "--database-url", url], {}) == 0

    answer = json.loads(capsys.readouterr().out)
    assert [one["snapshotId"] for one in answer["tables"]] == [
        taken.truth["snapshots"][table][-1]["id"] for table in tables
    ]


@each("insert_select")
def test_command_finds_a_snapshot_by_its_table_id(
    taken: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    first, last = (one["id"] for one in taken.truth["snapshots"]["bank.joined"])
    orders = [one["id"] for one in taken.truth["snapshots"]["bank.orders"]]
    url = taken.engine.url.render_as_string(hide_password=False)
    told = []
    for snapshot in (["--snapshots"], ["--snapshot", first]):
        assert main(["lineage", "lake.bank.joined", *snapshot, "--database-url", url], {}) == 0
        told.append(capsys.readouterr().out)

    assert f"lake.bank.joined @ {last}" in told[0]
    assert f"lake.bank.orders @ {orders[1]}" in told[0]
    assert f"lake.bank.orders @ {orders[0]}" in told[1]
    assert orders[1] not in told[1]


@pytest.mark.postgres
@each("update_delete")
def test_postgresql_gives_the_same_lists(name: str, postgres_engine: Engine) -> None:
    taken = recorded(name, "repeated", postgres_engine)

    test_table_sources_are_what_its_statements_read(taken)
    test_every_snapshot_is_listed_as_in_its_table(taken)
    test_row_change_reads_the_previous_snapshot_of_its_table(taken)


@pytest.mark.parametrize("name", ["available_now", "two_queries"])
def test_a_query_is_found_by_the_name_of_its_micro_batches(
    name: str, take_recording: Take, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = take_recording(name, "sent")
    touching = (
        select(jobs.c.namespace, jobs.c.name)
        .join(job_relations, job_relations.c.job_id == jobs.c.id)
        .distinct()
    )
    with taken.engine.connect() as connection:
        for namespace, job in connection.execute(touching).all():
            main(
                [
                    "lineage",
                    f"job:{namespace}:{job}",
                    "--database-url",
                    taken.engine.url.render_as_string(),
                ],
                {},
            )
            assert NOTHING not in capsys.readouterr().out, job
