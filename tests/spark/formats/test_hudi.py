"""Hudi's commands, time travel and writes by path, on Spark 3.5.

Its ordinary writes and streams are those of `test_every_spark`.
"""

from __future__ import annotations

import pytest

from fixtures.spark_lake import SPARK, formats
from fixtures.spark_lake.running import Event, events_of, numbered, snapshot

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(
        "hudi" not in formats(),
        reason=f"Hudi has no runtime for Spark {SPARK}; the matrix runs it on Spark 3.5",
    ),
]
DONE = [  # snapshots are numbered by table; a question mark stands where one was only observed
    "orders.create [] -> orders",
    "news.create [] -> news",
    "orders [] -> orders@1",
    "news [] -> news@1",
    "orders [news@1 orders@1?] -> orders@2?",
    "orders [orders@2?] -> orders@3",
    "orders [orders@3?] -> orders@4",
    "then [orders@1] -> then",
    "by_path [orders@4] -> by_path",
    "placed [news@1] -> placed@1?",
    "news.truncate [] -> news",
    "news.drop [] -> news",
]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    """The ends of the statements of one application on Hudi tables."""
    events = events_of("hudi.py", tmp_path_factory.mktemp("hudi"), "hudi")
    return [
        event
        for event in events
        if event["eventType"] == "COMPLETE" and event["job"]["name"] != "hudi"
    ]


def test_each_statement_reports_its_reads_and_writes(done: list[Event]) -> None:
    numbers: dict[str, dict[str, int]] = {}

    assert [line(event, numbers) for event in done] == DONE


def line(event: Event, numbers: dict[str, dict[str, int]]) -> str:
    reads = sorted(numbered(dataset, numbers) for dataset in event["inputs"])
    writes = [numbered(dataset, numbers) for dataset in event["outputs"]]
    name = event["job"]["name"].removeprefix("hudi.").removeprefix("default.").rpartition("/")[2]
    return f"{name} [{' '.join(reads)}] -> {' '.join(writes)}"


def test_snapshot_is_a_timeline_instant_with_its_parent(done: list[Event]) -> None:
    written = [
        snapshot(output)
        for event in done
        for output in event["outputs"]
        if output["name"].endswith("orders")
    ]
    made = [one for one in written if one]

    assert [one.get("parentSnapshotId") for one in made] == [
        None,
        *(one["snapshotId"] for one in made[:-1]),
    ]
    assert [(one["operation"], one["numberOfRows"]) for one in made] == [
        ("insert", 2), ("upsert", 2), ("upsert_prepped", 1), ("delete_prepped", 0)
    ]  # fmt: skip
    assert all(len(one["snapshotId"]) == 17 and one["snapshotId"].isdigit() for one in made)


def test_hudi_metadata_columns_are_not_table_columns(done: list[Event]) -> None:
    (read,) = done[8]["inputs"]

    assert [field["name"] for field in read["facets"]["schema"]["fields"]] == [
        "id",
        "who",
        "amount",
    ]


def test_merge_update_and_delete_have_column_lineage(done: list[Event]) -> None:
    merge, update, delete = (columns(event) for event in done[4:7])

    assert merge == [
        "amount <- news.more: (orders.amount + news.more)",
        "amount <- news.more: IDENTITY",
        "amount <- orders.amount: (orders.amount + news.more)",
        "id <- news.id: IDENTITY",
        "who <- news.name: UPPER(name)",
        "decided by news.id: JOIN",
        "decided by news.more: CONDITIONAL",
        "decided by orders.id: JOIN",
    ]
    assert update == ["amount <- orders.amount: (amount * 2)", "decided by orders.who: FILTER"]
    assert delete == ["decided by orders.id: FILTER"]


def columns(event: Event) -> list[str]:
    """The column lineage of the one output, values before what decides."""
    facet = event["outputs"][0]["facets"]["columnLineage"]
    values = [
        f"{name} <- {column_of(origin)}: {step['description'] or step['subtype']}"
        for name, field in facet["fields"].items()
        for origin in field["inputFields"]
        for step in origin["transformations"]
    ]
    deciding = [
        f"decided by {column_of(o)}: {step['subtype']}"
        for o in facet["dataset"]
        for step in o["transformations"]
    ]
    return sorted(values) + sorted(deciding)


def column_of(origin: Event) -> str:
    return f"{origin['name'].rpartition('/')[2]}.{origin['field']}"
