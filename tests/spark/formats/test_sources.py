"""Sources and sinks other than tables, and statements that do nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deploy import jars
from fixtures.spark_lake import SPARK, formats
from fixtures.spark_lake.running import Event, done, events_of, short_name, snapshot
from fixtures.warm_jvm import WarmJvm

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.kafka]
CONNECTED = ("3.5", "4.0", "4.1")  # a Spark that has a Kafka connector in the registry

DATABASE = [
    "shopdb.ORDERS <- : CREATE",
    "shopdb.PEOPLE <- : CREATE",
    "out/joined <- shopdb.ORDERS shopdb.PEOPLE: CREATE AMOUNT=ORDERS.AMOUNT WHO=PEOPLE.NAME",
    "out/summed <- shopdb.ORDERS: CREATE PERSON=ORDERS.PERSON TOTAL=ORDERS.AMOUNT",
    "out/quoted <- shopdb.ORDERS: CREATE A=ORDERS.AMOUNT",
    "out/within <- shopdb.ORDERS shopdb.PEOPLE: CREATE NAME=PEOPLE.NAME",
    "out/dialect <- : CREATE",
]
FOLDERS = [
    "in/north <- : CREATE",
    "in/south <- : CREATE",
    "out/both <- in/north in/south: CREATE id=in/north.id,in/south.id",
    "out/fresh <- in/north: CREATE id=in/north.id twice=in/north.twice",
    "shop.kept <- in/north: CREATE id=in/north.id twice=in/north.twice",
    "shop.kept <- in/north: id=in/north.id twice=in/north.twice",
    "shop.kept <- in/north: OVERWRITE id=in/north.id twice=in/north.twice",
    "shop.kept <- : DROP",
]
TOPICS = [
    "sources_a <- in/north: value=in/north.id",
    "sources_b <- in/north: value=in/north.id",
    "out/topics <- sources_a sources_b: CREATE value=sources_a.value,sources_b.value",
]
LAKE = {
    "iceberg": [
        "shop.orders <- : CREATE",
        "shop.copied <- : CREATE",
        "shop.copied <- shop.orders: id=shop.orders.id",
        "shop.orders <- :",
        "shop.orders <- :",
        "shop.twice <- shop.orders: CREATE id=shop.orders.id",
        "out/changed <- shop.orders: CREATE",
        "shop.seen <- shop.orders: CREATE id=shop.orders.id",
        "shop.twice <- : DROP",
    ],
    "paimon": [
        "shop.orders <- : CREATE",
        "paimon/shop.db/orders <- in/north: id=in/north.id twice=in/north.twice",
        "shop.orders <- in/north: OVERWRITE id=in/north.id twice=in/north.twice",
        "out/copied <- paimon/shop.db/orders: id=paimon/shop.db/orders.id twice=paimon/shop.db/orders.twice",
        "shop.orders <- in/north: id=in/north.id twice=in/north.twice",
        "paimon/shop.db/orders <- : TRUNCATE",
    ],
}
KINDS = [kind for kind in formats() if kind in LAKE][::-1][:1] or ["plain"]
LAST = ["out/last <- : CREATE"]


@pytest.fixture(scope="module", params=KINDS)
def ran_sources(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, warm_jvm: WarmJvm
) -> tuple[Path, str, list[Event]]:
    """The application, run to its end."""
    folder, kind = tmp_path_factory.mktemp("sources"), str(request.param)
    sets = [] if kind == "plain" else [f"{kind}-{SPARK}"]
    arguments = []
    if SPARK in CONNECTED:
        arguments = [str(request.getfixturevalue("kafka"))]
        sets.append(f"spark-kafka-{SPARK}")
    conf = {"spark.jars": jars.comma_list(sets)} if sets else {}
    return folder, kind, events_of("sources.py", folder, kind, *arguments, conf=conf, jvm=warm_jvm)


def test_each_read_and_write_is_reported_and_no_other(
    ran_sources: tuple[Path, str, list[Event]],
) -> None:
    folder, kind, events = ran_sources

    topics = TOPICS if SPARK in CONNECTED else []
    assert lines(events, str(folder)) == [*DATABASE, *FOLDERS, *topics, *LAKE.get(kind, []), *LAST]


def test_empty_table_has_no_snapshot_and_two_versions_are_distinct(
    ran_sources: tuple[Path, str, list[Event]],
) -> None:
    _, kind, events = ran_sources
    if kind != "iceberg":
        pytest.skip("tables of Iceberg only")

    streamed = next(event for event in done(events) if event["job"]["name"] == "sources.copied")
    twice = next(
        event for event in done(events) if event["job"]["name"] == "sources.lake.shop.twice"
    )
    orders = [
        o
        for event in done(events)
        if event["job"]["name"] == "sources.lake.shop.orders"
        for o in event["outputs"]
    ]
    first, second = (snapshot(one)["snapshotId"] for one in orders)
    read = snapshot(twice["inputs"][0])
    assert snapshot(streamed["inputs"][0]) == {}
    assert (read["snapshotId"], [one["snapshotId"] for one in read["others"]]) == (second, [first])


def lines(events: list[Event], folder: str) -> list[str]:
    """A line an output: what it was made of, what became of it, which columns each of its columns comes from."""
    return [line(output, event, folder) for event in done(events) for output in event["outputs"]]


def line(output: dict[str, Any], event: Event, folder: str) -> str:
    names = {(one["namespace"], one["name"]): short_name(one, folder) for one in event["inputs"]}
    facets = output["facets"]
    became = facets.get("lifecycleStateChange", {}).get("lifecycleStateChange")
    columns = facets.get("columnLineage", {}).get("fields", {})
    made = [f"{name}=" + ",".join(origins(column, names)) for name, column in columns.items()]
    return f"{short_name(output, folder)} <- {' '.join(sorted(names.values()))}:" + "".join(
        f" {one}" for one in (became, *made) if one
    )


def origins(column: dict[str, Any], names: dict[tuple[str, str], str]) -> list[str]:
    found = [
        f"{names[one['namespace'], one['name']]}.{one['field']}" for one in column["inputFields"]
    ]
    return [one.removeprefix("shopdb.") for one in found]
