"""Snapshot lineage from the store, with its accuracy."""

from typing import Any

import pytest
from sqlalchemy import Engine, insert, select

from strandline.core.walk import Direction
from strandline.errors import NotFoundError, RefusedError
from strandline.store.ingest.take import Record
from strandline.store.lineage import snapshot_reads
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.snapshot_lineage import snapshot_lineage_of
from strandline.store.lineage.snapshot_reads import SAME_ROWS
from strandline.store.lineage.table_snapshots import snapshot_answer, snapshots_of
from strandline.store.schema.snapshot_tables import snapshot_uses
from strandline.store.versions.answers import Latest, cut_of, latest_of, reading_answer, with_latest
from strandline_spark.formats.delta.commands import SAME_ROWS as TOLD_OF_DELTA
from worlds.builders import batch, snapshot, store
from worlds.builders import dataset as source
from worlds.scenarios.bank import FACET, bank, with_columns
from worlds.scenarios.plain import creates, dataset, run
from worlds.scenarios.taking import arrows, fill, ids, reader, view

NOW = view("2026-11-20T13:00:00Z")
DOUBLE = 4.3581092698981914e18
PRECISE = "4358109269898191234"  # what a double makes of it: 4358109269898191360


def at(table: str, id_: str, **more: Any) -> dict[str, Any]:
    """A dataset at a snapshot, as it was read or made."""
    facet = {"strandline_snapshot": FACET | {"snapshotId": id_} | more}
    return {"namespace": "db", "name": table, "inputFacets": facet, "outputFacets": facet}


BALANCE = at("/lake/bank/balance", "405") | {"namespace": "file"}


def asked(
    engine: Engine, table: str, snapshot: str | None, way: Direction = Direction.BOTH
) -> dict[str, Any]:
    with reader(engine) as connection:
        return snapshot_lineage_of(connection, node_called(connection, table), snapshot, NOW, way)


def test_snapshot_lineage_reaches_the_base_snapshots(engine: Engine) -> None:
    fill(engine, bank())

    answer = asked(engine, "bank.balance", "405", Direction.UPSTREAM)

    assert arrows(answer) == [
        "snapshot:file:/lake/bank/credits:205 -> snapshot:file:/lake/bank/balance:405",
        "snapshot:file:/lake/bank/debits:305 -> snapshot:file:/lake/bank/balance:405",
        "snapshot:file:/lake/bank/transfers:105 -> snapshot:file:/lake/bank/credits:205",
        "snapshot:file:/lake/bank/transfers:105 -> snapshot:file:/lake/bank/debits:305",
    ]
    assert {(edge["job"], edge["barrierId"]) for edge in answer["edges"]} == {
        ("job:bank:bank_balance", 5),
        ("job:bank:bank_credits", 5),
        ("job:bank:bank_debits", 5),
    }
    assert answer["complete"]


def test_past_snapshot_lineage_shows_only_existing_snapshots(engine: Engine) -> None:
    """The bank commits barrier b 2 b seconds after noon; `late` reads balance@405 at second 30."""
    fill(
        engine,
        [
            *bank(),
            run("COMPLETE", 30, "late", [BALANCE], [at("late", "7")]),
        ],
    )

    def then(second: str, snapshot: str | None = None) -> list[str]:
        with reader(engine) as connection:
            moment = view(f"2026-11-20T12:00:{second}Z", past=True)
            found = snapshot_lineage_of(
                connection, node_called(connection, "bank.balance"), snapshot, moment
            )
        return [one.rpartition("/")[2] for one in ids(found)]

    assert then("11") == ["balance:405", "credits:205", "debits:305", "transfers:105"]
    assert then("29", "405") == ["balance:405", "credits:205", "debits:305", "transfers:105"]
    assert then("30", "405") == [
        "balance:405",
        "snapshot:db:late:7",
        "credits:205",
        "debits:305",
        "transfers:105",
    ]
    with pytest.raises(
        NotFoundError, match=r"snapshot 410 of .* was not there yet at 2026-11-20T12:00:11Z"
    ):
        then("11", "410")
    with pytest.raises(NotFoundError, match=r"no snapshot of .* is known at 2026-11-20T12:00:01Z"):
        then("01")


def test_snapshot_shows_what_its_writer_reported(engine: Engine) -> None:
    fill(engine, bank())

    root = asked(engine, "bank.transfers", "102", Direction.UPSTREAM)

    assert root["nodes"] == [
        {
            "id": "snapshot:file:/lake/bank/transfers:102",
            "type": "snapshot",
            "namespace": "file",
            "name": "/lake/bank/transfers",
            "catalog": "lake",
            "database": "bank",
            "table": "transfers",
            "distance": 0,
            "snapshotId": "102",
            "parentSnapshotId": "101",
            "barrierId": 2,
            "committedAt": "2026-11-20T12:00:04Z",
            "operation": "append",
            "format": "iceberg",
            "numberOfRows": 80,
            "observed": False,
            "madeBy": {"job": "job:bank:bank_ingest", "barrierId": 2},
        }
    ]


def test_inputs_read_at_an_unknown_snapshot_are_named(engine: Engine) -> None:
    """Readers must not mistake the answer for the complete list of sources."""
    begun, ended = (
        run("START", 30, "job", [BALANCE, "rates"], [at("late", "7")]),
        run("COMPLETE", 40, "job", ["files"]),
    )
    fill(engine, [*bank(), begun, ended])

    def unknown(moment: str, table: str, snapshot: str) -> list[list[str]]:
        with reader(engine) as connection:
            then = view(f"2026-11-20T{moment}Z", past=True)
            answer = snapshot_lineage_of(connection, node_called(connection, table), snapshot, then)
        return [
            [one["id"] for one in node.get("inputsOfUnknownSnapshots", ())]
            for node in answer["nodes"]
        ][:2]

    assert unknown("13:00:00", "late", "7") == [["dataset:db:files", "dataset:db:rates"], []]
    assert unknown("13:00:00", "bank.balance", "405")[0] == []
    assert unknown("12:00:35", "late", "7")[0] == ["dataset:db:rates"]


def test_snapshot_has_every_input_snapshot_of_its_statement(engine: Engine) -> None:
    earlier = [{"snapshotId": "1", "operation": "append"}]
    fill(
        engine,
        [
            run(
                "COMPLETE",
                30,
                "compare",
                [at("orders", "2", others=earlier)],
                [at("compared", "5")],
            )
        ],
    )

    assert arrows(asked(engine, "compared", "5", Direction.UPSTREAM)) == [
        "snapshot:db:orders:1 -> snapshot:db:compared:5",
        "snapshot:db:orders:2 -> snapshot:db:compared:5",
    ]


def test_every_snapshot_that_a_run_made_has_the_sources_of_the_run(engine: Engine) -> None:
    earlier = [{"snapshotId": "5", "operation": "append"}]
    fill(
        engine,
        [run("COMPLETE", 30, "twice", [at("orders", "2")], [at("made", "6", others=earlier)])],
    )

    for made in ("5", "6"):
        assert arrows(asked(engine, "made", made, Direction.UPSTREAM)) == [
            f"snapshot:db:orders:2 -> snapshot:db:made:{made}"
        ]


def test_every_snapshot_that_a_micro_batch_made_has_the_sources_of_that_micro_batch(
    engine: Engine,
) -> None:
    batches = [
        batch(
            barrier,
            inputs=[source("bank.a", own=snapshot(f"a{barrier}"))],
            outputs=[
                source("bank.b", own=snapshot(f"b{barrier}", others=[{"snapshotId": earlier}]))
            ],
        )
        for barrier, earlier in ((1, "x"), (2, "y"))
    ]
    store(engine, batches)

    for made, of in (("x", "a1"), ("b1", "a1"), ("y", "a2"), ("b2", "a2")):
        assert arrows(asked(engine, "bank.b", made, Direction.UPSTREAM)) == [
            f"snapshot:hive://lake:bank.a:{of} -> snapshot:hive://lake:bank.b:{made}"
        ]
    assert arrows(asked(engine, "bank.a", "a1", Direction.DOWNSTREAM)) == [
        "snapshot:hive://lake:bank.a:a1 -> snapshot:hive://lake:bank.b:b1",
        "snapshot:hive://lake:bank.a:a1 -> snapshot:hive://lake:bank.b:x",
    ]


COMPACTED = {
    "parentSnapshotId": "2",
    "operation": "vacuum end",
    "sameRowsAs": [
        {"snapshotId": "2", "parentSnapshotId": "1", "operation": "optimize"},
        {"snapshotId": "1", "operation": "write"},
    ],
}


def test_emitter_and_collector_agree_on_row_preserving_operations() -> None:
    assert {"replace", "compact"} | TOLD_OF_DELTA == SAME_ROWS


@pytest.mark.parametrize(
    ("told", "through"),
    [
        (COMPACTED, True),
        (
            COMPACTED | {"sameRowsAs": COMPACTED["sameRowsAs"][:1]},
            True,
        ),  # its writer tells of the first
        (COMPACTED | {"sameRowsAs": []}, False),  # between 3 and 1 there may be others
        (COMPACTED | {"operation": "write"}, False),
    ],
    ids=["all told", "all but the first", "a gap", "not compacted"],
)
def test_reading_a_compacted_snapshot_leads_to_the_one_before(
    engine: Engine, told: dict[str, Any], through: bool
) -> None:
    load = run("COMPLETE", 10, "load", [at("orders", "7")], [at("totals", "1")])
    fill(
        engine,
        [run("COMPLETE", 30, "copy", [at("totals", "3", **told)], [at("copied", "5")]), load],
    )

    behind = [
        "snapshot:db:orders:7 -> snapshot:db:totals:1",
        "snapshot:db:totals:1 -> snapshot:db:copied:5",
    ]
    read = ["snapshot:db:totals:3 -> snapshot:db:copied:5"]
    made_from = [*(behind if through else []), *read]
    assert sorted(arrows(asked(engine, "copied", "5", Direction.UPSTREAM))) == sorted(made_from)
    assert sorted(arrows(asked(engine, "orders", "7", Direction.DOWNSTREAM))) == (
        behind if through else behind[:1]
    )
    compacted = asked(engine, "totals", "3", Direction.UPSTREAM)
    assert arrows(compacted) == (behind[:1] if through else [])
    same = {one["snapshotId"]: one.get("sameRowsAs") for one in compacted["nodes"]}
    assert same == ({"1": None, "3": "1", "7": None} if through else {"3": None})


def test_answer_says_when_compacted_snapshots_were_cut_off(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_reads, "MOST", 1)
    for id_ in ("3", "4"):
        fill(
            engine,
            [
                run(
                    "COMPLETE",
                    30,
                    f"copy{id_}",
                    [at("totals", id_, **COMPACTED)],
                    [at("copied", id_)],
                )
            ],
        )

    answer = asked(engine, "totals", "1", Direction.DOWNSTREAM)

    assert (answer["complete"], answer["truncatedBy"]) == (False, "edges")
    assert asked(engine, "totals", "1", Direction.UPSTREAM)["complete"]


@pytest.mark.parametrize(
    ("besides", "proven"),
    [
        ("rates", True),  # has no snapshots: no cut has any
        ({"namespace": "file", "name": "/lake/bank/transfers"}, False),
        ({"namespace": "db", "name": "late"}, True),  # what it wrote over
    ],
)
def test_cut_is_not_proven_if_a_table_was_read_at_an_unknown_snapshot(
    engine: Engine, besides: str | dict[str, Any], proven: bool
) -> None:
    fill(engine, [*bank(), run("COMPLETE", 30, "job", [BALANCE, besides], [at("late", "7")])])

    with reader(engine) as connection:
        found = cut_of(connection, [("db", "late"), ("file", "/lake/bank/balance")])

    assert {table: (cut.snapshot, cut.observed) for table, cut in found.items()} == {
        ("db", "late"): ("7", not proven),
        ("file", "/lake/bank/balance"): ("405", False),
    }


def test_cut_shows_what_a_restored_snapshot_was_made_from(engine: Engine) -> None:
    def totals(minute: int, reads: dict[str, Any], **made: Any) -> Record:
        return run("COMPLETE", minute, f"run{minute}", [reads], [at("totals", **made)])

    fill(
        engine,
        [
            run("COMPLETE", 1, "load", [], [at("orders", "5")]),
            totals(10, at("orders", "5"), id_="1", replacesTable=True),
            run("COMPLETE", 11, "load2", [], [at("orders", "6", parentSnapshotId="5")]),
            totals(20, at("orders", "6"), id_="2", parentSnapshotId="1", replacesTable=True),
            totals(30, at("totals", "1"), id_="3", parentSnapshotId="2", operation="restore"),
        ],
    )

    with reader(engine) as connection:
        found = cut_of(connection, [("db", "orders"), ("db", "totals")])

    assert {table: cut.snapshot for table, cut in found.items()} == {
        ("db", "orders"): "5",
        ("db", "totals"): "3",
    }


def test_newest_snapshot_is_the_default(engine: Engine) -> None:
    fill(engine, bank())

    answer = asked(engine, "bank.transfers", None, Direction.DOWNSTREAM)

    assert ids(answer) == [
        "snapshot:file:/lake/bank/transfers:110",
        "snapshot:file:/lake/bank/credits:210",
        "snapshot:file:/lake/bank/debits:310",
        "snapshot:file:/lake/bank/balance:410",
        "snapshot:file:/lake/bank/report:501",
    ]


def test_unknown_snapshot_is_rejected_with_the_newest_ones(engine: Engine) -> None:
    fill(engine, bank(barriers=2))

    with pytest.raises(NotFoundError) as refused:
        asked(engine, "bank.transfers", "9")

    assert refused.value.candidates == ("102", "101")


def test_table_without_snapshots_is_reported(engine: Engine) -> None:
    fill(engine, [run("COMPLETE", 1, "j", [], ["t"])])

    with pytest.raises(NotFoundError, match="no snapshot of dataset:db:t is known"):
        asked(engine, "t", None)


def test_newest_snapshot_is_one_on_main(engine: Engine) -> None:
    aside = at("t", "2", parentSnapshotId="1")
    aside["outputFacets"]["strandline_snapshot"] |= {"branch": "dev"}
    fill(
        engine,
        [
            run("COMPLETE", 1, "w", [], [at("t", "1")]),
            run("COMPLETE", 2, "w", [], [aside], run_id="2"),
        ],
    )

    assert ids(asked(engine, "t", None)) == ["snapshot:db:t:1"]


def test_snapshots_are_listed_newest_first_page_by_page(engine: Engine) -> None:
    fill(engine, bank(barriers=5))

    with reader(engine) as connection:
        table = node_called(connection, "bank.credits")
        first = snapshots_of(connection, table, 3, None)
        second = snapshots_of(connection, table, 3, (first.rows[-1].key_0, first.rows[-1].key_1))

    assert [snapshot_answer(row)["snapshotId"] for row in first.rows] == ["205", "204", "203"]
    assert [snapshot_answer(row)["snapshotId"] for row in second.rows] == ["202", "201"]
    assert (first.next_cursor is None, second.next_cursor) == (False, None)


def test_approximate_id_is_matched_with_the_tables_id(engine: Engine) -> None:
    told = {"strandline_snapshot": FACET | {"snapshotId": PRECISE, "format": "iceberg"}}
    scan = {"icebergScanReport": FACET | {"snapshotId": 4.3581092698981914e18}}
    fill(
        engine,
        [
            run("COMPLETE", 1, "writer", [], [dataset("t") | {"outputFacets": told}]),
            run("COMPLETE", 2, "reader", [dataset("t") | {"inputFacets": scan}], [at("u", "1")]),
        ],
    )

    answer = asked(engine, "t", PRECISE, Direction.DOWNSTREAM)

    assert arrows(answer) == [f"snapshot:db:t:{PRECISE} -> snapshot:db:u:1"]
    assert asked(engine, "u", "1", Direction.UPSTREAM)["nodes"][1]["snapshotId"] == PRECISE


def test_approximate_snapshot_has_no_id_in_answers(engine: Engine) -> None:
    scan = {"icebergScanReport": FACET | {"snapshotId": DOUBLE}}
    fill(
        engine,
        [run("COMPLETE", 2, "reader", [dataset("t") | {"inputFacets": scan}], [at("u", "1")])],
    )

    answer = asked(engine, "u", "1", Direction.UPSTREAM)

    assert arrows(answer) == ["snapshot:db:t:~4.3581092698981914e+18 -> snapshot:db:u:1"]
    assert [(one["snapshotId"], one["observed"]) for one in answer["nodes"]] == [
        ("1", False),
        (None, True),
    ]
    assert answer["nodes"][1]["approximateSnapshotId"] == "~4.3581092698981914e+18"
    for id_ in (PRECISE, "~4.3581092698981914e+18"):  # the table's own id finds it
        assert arrows(asked(engine, "t", id_, Direction.DOWNSTREAM)) == arrows(answer)


def test_newest_snapshot_may_be_approximate(engine: Engine) -> None:
    commit = {"icebergCommitReport": FACET | {"snapshotId": DOUBLE}}
    fill(engine, [run("COMPLETE", 1, "writer", [], [at("t", "1")])])
    fill(
        engine,
        [run("COMPLETE", 2, "writer", [], [dataset("t") | {"outputFacets": commit}], run_id="2")],
    )

    assert (
        asked(engine, "t", None)["nodes"][0]["approximateSnapshotId"] == "~4.3581092698981914e+18"
    )
    with reader(engine) as connection:
        weakly = with_latest(connection, [], [("db", "t")])
    assert [
        (reading_answer(one, 0)["snapshotId"], one.newer)
        for one in weakly
        if isinstance(one, Latest)
    ] == [("1", "~4.3581092698981914e+18")]


def test_version_0_of_a_recreated_table_belongs_to_the_newest_creation(engine: Engine) -> None:
    fill(
        engine,
        [
            run("COMPLETE", 1, "old", [at("a", "5")], [created("t")]),
            run("COMPLETE", 2, "more", [at("a", "6")], [at("t", "1")]),
            run("COMPLETE", 3, "new", [at("b", "7")], [created("t")]),
        ],
    )

    assert arrows(asked(engine, "t", None, Direction.UPSTREAM)) == [
        "snapshot:db:b:7 -> snapshot:db:t:0"
    ]
    assert asked(engine, "t", "1", Direction.UPSTREAM)["edges"] == []  # of the table before


@pytest.mark.parametrize("observed", [False, True])
def test_number_given_out_again_after_a_rollback_has_its_own_maker(
    engine: Engine, observed: bool
) -> None:
    """Paimon counts on from the snapshot that a rollback goes back to."""

    def second(time: str, *, of_write: bool = False) -> dict[str, Any]:
        committed = {"format": "paimon", "committedAt": f"2026-11-20T12:00:{time}.500Z"}
        return at("t", "2", **committed, observed=observed and of_write)

    fill(
        engine,
        [
            run("COMPLETE", 1, "old", [at("a", "5")], [second("00", of_write=True)]),
            run("COMPLETE", 2, "before", [second("00")], [at("x", "1")]),
            run("COMPLETE", 4, "new", [at("b", "7")], [second("03", of_write=True)]),
            run("COMPLETE", 5, "after", [second("03")], [at("y", "1")]),
        ],
    )

    after = asked(engine, "y", "1", Direction.UPSTREAM)
    before = asked(engine, "x", "1", Direction.UPSTREAM)

    assert arrows(after) == [
        "snapshot:db:b:7 -> snapshot:db:t:2",
        "snapshot:db:t:2 -> snapshot:db:y:1",
    ]
    assert [edge["observed"] for edge in before["edges"] if edge["target"].endswith("x:1")] == [
        True  # the snapshot 2 that there is now is not what was read
    ]


def created(table: str) -> dict[str, Any]:
    """A table that the statement creates, with its first version as our emitter reports it."""
    return creates(table) | {"outputFacets": at(table, "0")["outputFacets"]}


def test_snapshot_seen_by_a_stock_listener_is_marked_observed(engine: Engine) -> None:
    seen = dataset("t", version=FACET | {"datasetVersion": "7"})
    fill(engine, [run("COMPLETE", 2, "reader", [seen], [at("u", "1")])])

    answer = asked(engine, "u", "1", Direction.UPSTREAM)

    assert [edge["observed"] for edge in answer["edges"]] == [True]
    assert answer["nodes"][1]["observed"] is True


def test_an_incremental_read_covers_the_snapshots_between(engine: Engine) -> None:
    fill(engine, _incremental())

    assert arrows(asked(engine, "u", "9", Direction.UPSTREAM)) == [
        "snapshot:db:t:2 -> snapshot:db:u:9",
        "snapshot:db:t:3 -> snapshot:db:u:9",
    ]
    assert arrows(asked(engine, "t", "2", Direction.DOWNSTREAM)) == [
        "snapshot:db:t:2 -> snapshot:db:u:9"
    ]
    assert arrows(asked(engine, "t", "1", Direction.DOWNSTREAM)) == []


def test_answer_says_when_incremental_reads_were_cut_off(engine: Engine) -> None:
    fill(engine, _incremental())
    with engine.begin() as connection:
        reads = connection.execute(
            select(snapshot_uses).where(snapshot_uses.c.from_snapshot_id == "1")
        ).mappings()
        read = dict(reads.one())
        connection.execute(
            insert(snapshot_uses), [read | {"run_id": -n, "at": 0} for n in range(1, 5001)]
        )

    answer = asked(engine, "t", "2", Direction.DOWNSTREAM)

    assert (arrows(answer), answer["complete"], answer["truncatedBy"]) == (
        ["snapshot:db:t:2 -> snapshot:db:u:9"],
        False,
        "edges",
    )


def _incremental() -> list[Record]:
    """T has snapshots 1, 2 and 3; a job reads what came after 1 and makes u's 9 of it."""
    chain = [at("t", "1"), at("t", "2", parentSnapshotId="1"), at("t", "3", parentSnapshotId="2")]
    commits = [
        run("COMPLETE", number, "w", [], [one], run_id=str(number))
        for number, one in enumerate(chain, 1)
    ]
    read = {"strandline_snapshot": FACET | {"snapshotId": "3", "fromSnapshotId": "1"}}
    return [
        *commits,
        run("COMPLETE", 9, "r", [dataset("t") | {"inputFacets": read}], [at("u", "9")]),
    ]


def test_errors_without_a_version_use_catalog_names(engine: Engine) -> None:
    tables = [("file", f"/lake/bank/{name}") for name in ("balance", "report")]
    fill(
        engine, [run("COMPLETE", 1, "load", [], [with_columns("balance"), with_columns("report")])]
    )

    with reader(engine) as connection:
        with pytest.raises(RefusedError, match=r"^lake\.bank\.balance: no snapshots are known"):
            latest_of(connection, tables[0])
        with pytest.raises(
            RefusedError,
            match=r"^lake\.bank\.balance, lake\.bank\.report: the recorded data lineage shows no consistent cut",
        ):
            cut_of(connection, tables)
