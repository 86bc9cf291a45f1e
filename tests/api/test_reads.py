"""Reads over HTTP about the bank: lineage, lists, details and the proposals' tables."""

import csv
import io
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from sqlalchemy import Engine

from worlds.builders import dataset as lake
from worlds.builders import event, store
from worlds.scenarios.bank import FACET, bank, run_id
from worlds.scenarios.plain import columns, creates, dataset, parent, run
from worlds.scenarios.taking import arrows, fill, ids

BALANCE = {"namespace": "file", "name": "/lake/bank/balance"}


def test_lineage_accepts_the_full_name_of_a_node(bank_client: httpx.Client) -> None:
    answer = bank_client.get(
        "/lineage", params={"node": "dataset:file:/lake/bank/credits", "direction": "upstream"}
    )

    assert answer.status_code == 200
    assert ids(answer.json()) == [
        "dataset:file:/lake/bank/credits",
        "dataset:file:/lake/bank/transfers",
        "job:bank:bank_credits",
        "job:bank:bank_ingest",
    ]
    assert {name: answer.json()[name] for name in ("complete", "truncatedBy")} == {
        "complete": True,
        "truncatedBy": None,
    }


def test_node_id_resolves_to_the_longest_known_namespace(
    client: httpx.Client, engine: Engine
) -> None:
    short, long = {"namespace": "a", "name": "b:c"}, {"namespace": "a:b", "name": "c"}
    fill(
        engine,
        [
            run("COMPLETE", 1, "j", [dataset("s")], [short]),
            run("COMPLETE", 2, "k", [dataset("s")], [long]),
        ],
    )

    answer = client.get(
        "/lineage", params={"node": "dataset:a:b:c", "direction": "upstream"}
    ).json()

    assert ids(answer) == ["dataset:a:b:c", "dataset:db:s", "job:ns:k"]


def test_column_lineage_has_the_expressions(client: httpx.Client, engine: Engine) -> None:
    fill(engine, bank())
    node = {
        "node": "bank.debits",
        "granularity": "column",
        "column": "amount",
        "direction": "upstream",
    }

    answer = client.get("/lineage", params=node).json()

    assert answer["edges"] == [
        {
            "source": "column:file:/lake/bank/transfers:amount",
            "target": "column:file:/lake/bank/debits:amount",
            "job": "job:bank:bank_debits",
            "rule": "columnLineage",
            "opaque": False,
            "dependency": "direct",
            "type": "DIRECT",
            "subtype": "TRANSFORMATION",
            "transform": "(- amount)",
            "masking": None,
            "lastSeen": "2026-11-20T12:00:20Z",
            "runs": 1,
            "ofRuns": 1,
            "inLatest": True,
        }
    ]


def test_column_lineage_continues_through_a_job_without_column_edges(
    client: httpx.Client, engine: Engine
) -> None:
    steps = [
        run("COMPLETE", 1, "j", ["a"], [columns("b", x=("a", "p"))]),
        run("COMPLETE", 2, "k", ["b"], ["c"]),
        run("COMPLETE", 3, "l", ["c"], [columns("d", y=("c", "q"))]),
    ]
    fill(engine, steps)

    answer = client.get(
        "/lineage",
        params={"node": "d", "granularity": "column", "column": "y", "direction": "upstream"},
    )

    assert arrows(answer.json()) == [
        "dataset:db:b -> column:db:c:q",
        "column:db:c:q -> column:db:d:y",
        "column:db:a:p -> dataset:db:b",
    ]


def test_snapshot_lineage_names_job_and_barrier(bank_client: httpx.Client) -> None:
    answer = bank_client.get(
        "/snapshots/lineage", params={**BALANCE, "snapshotId": "403", "direction": "upstream"}
    ).json()

    assert answer["edges"][0] == {
        "source": "snapshot:file:/lake/bank/credits:203",
        "target": "snapshot:file:/lake/bank/balance:403",
        "job": "job:bank:bank_balance",
        "barrierId": 3,
        "fromSnapshotId": None,
        "observed": False,
    }


def test_job_barriers_show_its_progress(bank_client: httpx.Client) -> None:
    items = bank_client.get(
        "/jobs/barriers", params={"namespace": "bank", "name": "bank_balance", "limit": 2}
    ).json()["items"]

    assert items[0] == {
        "barrierId": 10,
        "group": None,
        "phase": "committed",
        "queryId": "10000000-0000-4000-8000-000000000004",
        "batchId": 9,
        "engine": "spark",
        "startedAt": "2026-11-20T12:00:19Z",
        "committedAt": "2026-11-20T12:00:20Z",
        "checkpointLocation": None,
        "runId": run_id("balance"),
        "sources": [],
    }
    assert items[1]["barrierId"] == 9


def test_details_return_every_facet_unchanged(client: httpx.Client, engine: Engine) -> None:
    odd = FACET | {"anything": {"deep": [1, 2, {"x": None}]}}
    event = run(
        "COMPLETE",
        1,
        "j",
        [],
        [dataset("t", ours_odd=odd)],
        of_run={"of_run": odd},
        of_job={"of_job": odd},
    )
    fill(engine, [event])

    table = client.get("/datasets/detail", params={"namespace": "db", "name": "t"}).json()
    job = client.get("/jobs/detail", params={"namespace": "ns", "name": "j"}).json()
    a_run = client.get("/runs/detail", params={"runId": "j-1"}).json()

    assert table["facets"] == {"ours_odd": odd}
    assert job["facets"] == {"of_job": odd}
    assert a_run["facets"] == {"of_run": odd}
    assert a_run["outputs"] == [
        {
            "id": "dataset:db:t",
            "namespace": "db",
            "name": "t",
            "label": "t",
            "snapshots": [],
            "outputFacets": {},
        }
    ]


@pytest.mark.parametrize(
    "schema", [b'"text"', b"[]", b'{"fields": 5}', b'{"fields": [], "odd": 1e400}']
)
def test_columns_come_from_edges_if_the_schema_is_unusable(
    client: httpx.Client, engine: Engine, schema: bytes
) -> None:
    event = run("COMPLETE", 1, "j", ["a"], [columns("t", x=("a", "x"))])
    body = event.value.replace(b'"columnLineage"', b'"schema": ' + schema + b', "columnLineage"')
    fill(engine, [event._replace(value=body)])

    answer = client.get(
        "/lineage", params={"node": "t", "granularity": "column", "direction": "upstream"}
    )

    assert ids(answer.json()) == ["column:db:t:x", "column:db:a:x"]


def test_barrier_offsets_are_returned_unchanged(client: httpx.Client, engine: Engine) -> None:
    told = {
        "strandline_barrier": FACET
        | {"barrierId": 1, "odd": "HERE", "sources": [{"endOffset": "HERE"}]}
    }
    event = run("RUNNING", 1, "j", ["a"], of_run=told)
    fill(engine, [event._replace(value=event.value.replace(b'"HERE"', b"1e400"))])

    answer = client.get("/jobs/barriers", params={"namespace": "ns", "name": "j"})

    assert answer.status_code == 200
    assert b'"sources":[{"endOffset":1e400}]' in answer.content.replace(b" ", b"")


CATALOG = {"name": "lake", "framework": "iceberg", "type": "hive"}


@pytest.mark.parametrize("newer", [0, 2], ids=["older", "newer"])
def test_quarantined_facet_does_not_replace_a_good_one(
    client: httpx.Client, engine: Engine, newer: int
) -> None:
    good = {
        "schema": FACET | {"fields": [{"name": "id", "type": "bigint"}]},
        "catalog": FACET | CATALOG,
    }
    bad = {"schema": FACET | {"fields": [{"type": 5}]}, "catalog": FACET | {"name": None}}
    fill(
        engine,
        [
            run("START", 1, "j", [dataset("t", **good)]),
            run("OTHER", newer, "k", [dataset("t", **bad)]),
        ],
    )

    detail = client.get("/datasets/detail", params={"namespace": "db", "name": "t"}).json()

    assert [column["name"] for column in detail["facets"]["schema"]["fields"]] == ["id"]
    assert (detail["catalog"], detail["facets"]["catalog"]["name"]) == ("lake", "lake")
    assert detail["quarantined"].keys() == ({"schema", "catalog"} if newer else set())


def test_quarantined_facets_are_shown_with_their_input_or_output(
    client: httpx.Client, engine: Engine
) -> None:
    read = lake("bank.a", own={"bad": 3})
    made = lake("bank.b", own={"outputStatistics": {"rowCount": 1, "size": "x"}, "subset": {}})
    store(engine, [event("COMPLETE", 1, inputs=[read], outputs=[made])])

    detail = client.get(
        "/runs/detail", params={"runId": "00000000-0000-4000-8000-000000000001"}
    ).json()

    assert [one["quarantined"].keys() for one in detail["inputs"]] == [{"bad"}]
    assert [one["quarantined"].keys() for one in detail["outputs"]] == [{"outputStatistics"}]


def test_facet_deleted_under_one_name_is_deleted_under_all(
    client: httpx.Client, engine: Engine
) -> None:
    text, names = (
        {"description": "old"},
        {"identifiers": [{"namespace": "db", "name": "p", "type": "LOCATION"}]},
    )
    fill(
        engine,
        [run("START", 1, "j", [dataset("t", documentation=FACET | text, symlinks=FACET | names)])],
    )
    fill(engine, [run("RUNNING", 2, "j", [dataset("p", documentation=FACET | {"_deleted": True})])])

    detail = client.get("/datasets/detail", params={"namespace": "db", "name": "t"}).json()

    assert detail["facets"].keys() == {"symlinks"}


def test_run_that_ended_by_a_fast_clock_has_ended_in_every_answer(
    client: httpx.Client, engine: Engine
) -> None:
    begun, ended = (datetime.now(UTC) + timedelta(seconds=seconds) for seconds in (-3600, 600))
    events = [event("START", inputs=[lake("a")], outputs=[lake("b")]), event("COMPLETE")]
    moments = [{"eventTime": moment.isoformat()} for moment in (begun, ended)]
    store(engine, [one | moment for one, moment in zip(events, moments, strict=True)])

    detail = client.get("/runs/detail", params={"runId": events[0]["run"]["runId"]}).json()
    lineage = client.get(
        "/lineage", params={"node": "dataset:hive://lake:a", "state": "running"}
    ).json()

    assert (detail["state"], detail["running"]) == ("COMPLETE", False)
    assert arrows(lineage) == []
    assert client.get("/tables/sink_job_lineage").json() == []


@pytest.mark.parametrize("limit", [2, 100])
def test_parents_known_only_by_reference_are_not_listed_as_runs(
    client: httpx.Client, engine: Engine, limit: int
) -> None:
    told = [
        run("START", turn, f"task{turn}", ["a"], of_run=parent(f"dag{turn}")) for turn in range(3)
    ]
    fill(engine, told)

    found, cursor = [], ""
    while cursor is not None:
        page = client.get(
            "/runs", params={"limit": limit} | ({"cursor": cursor} if cursor else {})
        ).json()
        found += [one["runId"] for one in page["items"]]
        cursor = page["nextCursor"]

    assert found == ["task2-1", "task1-1", "task0-1"]


def test_table_of_a_failed_create_is_not_listed(client: httpx.Client, engine: Engine) -> None:
    made = [creates("t"), creates("u")]
    fill(engine, [run("START", 1, "j", ["a"], made), run("COMPLETE", 2, "k", ["u"])])

    def listed(path: str, **asked: str) -> list[str]:
        return [one["name"] for one in client.get(path, params=asked).json()["items"]]

    assert listed("/datasets") == ["a", "t", "u"]

    fill(engine, [run("FAIL", 3, "j")])

    assert listed("/datasets") == ["a", "u"]
    assert listed("/search", q="t") == []
    assert listed("/search", q="u") == ["u"]

    fill(engine, [run("COMPLETE", 4, "j", ["a"], made, run_id="2")])

    assert listed("/datasets") == ["a", "t", "u"]


def test_a_dataset_lists_its_names_and_its_newest_snapshot(bank_client: httpx.Client) -> None:
    detail = bank_client.get(
        "/datasets/detail", params={"namespace": "file:/lake", "name": "bank.balance"}
    ).json()

    assert detail["id"] == "dataset:file:/lake/bank/balance"
    assert detail["names"] == [
        {"namespace": "file", "name": "/lake/bank/balance", "types": []},
        {"namespace": "file:/lake", "name": "bank.balance", "types": ["TABLE"]},
    ]
    assert detail["newestSnapshot"]["snapshotId"] == "410"


def test_a_search_finds_names_of_all_kinds_the_shortest_first(bank_client: httpx.Client) -> None:
    by_name = bank_client.get("/search", params={"q": "BALANCE"}).json()["items"]
    by_place = bank_client.get("/search", params={"q": "lake.bank.cred"}).json()["items"]

    assert [one["id"] for one in by_name] == [
        "job:bank:bank_balance",
        "dataset:file:/lake/bank/balance",
    ]
    assert [one["id"] for one in by_place] == ["dataset:file:/lake/bank/credits"]


def test_job_tables_show_running_and_past_edges(bank_client: httpx.Client) -> None:
    live = bank_client.get("/tables/sink_job_lineage").json()
    history = bank_client.get("/tables/sink_job_lineage", params={"state": "history"}).json()

    assert live == []
    assert {
        "job": "bank_report",
        "database": "bank",
        "table": "report",
        "namespace": "bank",
        "catalog": "lake",
        "consistency_group": "",
        "run_id": run_id("report"),
        "valid_from": "2026-11-20T12:00:22Z",
        "valid_to": "2026-11-20T12:00:24Z",
        "state": "COMPLETE",
    } in history
    assert len(history) == 5


@pytest.mark.parametrize("side", ["SOURCE", "SINK"])
def test_etl_tables_show_past_jobs(bank_client: httpx.Client, side: str) -> None:
    name = f"{side.lower()}_job_lineage"
    relations = bank_client.get(f"/tables/{name}", params={"state": "history"}).json()
    etl = bank_client.get(f"/tables/__META_ETL_{side}", params={"state": "history"}).json()

    assert bank_client.get(f"/tables/__META_ETL_{side}").json() == []
    assert etl
    assert sorted(
        (row["job_id"], row["table_name"], row["valid_from"], row["valid_to"]) for row in etl
    ) == sorted((row["job"], row["table"], row["valid_from"], row["valid_to"]) for row in relations)


def test_snapshot_lineage_has_one_row_per_job_table_and_barrier(
    client: httpx.Client, engine: Engine
) -> None:
    fill(engine, bank(barriers=3))

    rows = client.get("/tables/source_snapshot_lineage").json()

    assert len(rows) == 12
    assert {
        "job": "bank_balance",
        "barrier_id": "3",
        "database": "bank",
        "table": "debits",
        "snapshot_id": "303",
        "namespace": "bank",
        "catalog": "lake",
        "consistency_group": "",
    } in rows


def test_tables_are_available_as_csv(client: httpx.Client, engine: Engine) -> None:
    fill(engine, bank(barriers=2))

    answer = client.get("/tables/sink_snapshot_lineage", params={"format": "csv"})

    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert sorted(
        (row["table"], row["barrier_id"], row["snapshot_id"])
        for row in rows
        if row["table"] == "balance"
    ) == [
        ("balance", "1", "401"),
        ("balance", "2", "402"),
    ]


def test_empty_table_has_a_csv_header(bank_client: httpx.Client) -> None:
    assert bank_client.get("/tables/job_startup", params={"format": "csv"}).text == (
        "job,database,table,snapshot_id,namespace,catalog,consistency_group\r\n"
    )


def test_unknown_table_is_rejected_with_the_valid_names(bank_client: httpx.Client) -> None:
    answer = bank_client.get("/tables/nonsense")

    assert answer.status_code == 404
    assert "source_job_lineage" in answer.json()["candidates"]
