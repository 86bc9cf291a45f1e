"""Inputs, outputs and columns of an ordinary PySpark application, statement by statement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures.spark_lake import SPARK
from fixtures.spark_lake.running import Event, events_of, filled, short_name
from fixtures.warm_jvm import WarmJvm

pytestmark = [pytest.mark.spark, pytest.mark.slow]
HIVE = {"spark.sql.catalogImplementation": "hive"}

EXPECTED_EVENTS = [
    "in/people <- ",
    "out/people <- in/people: id, UPPER(name), city",
    "out/cities <- in/people: city",
    "out/report <- in/people: city",
    "shop.people <- out/people: id, name, city",
    "shop.orders <- ",
    "shop.totals <- shop.orders shop.people: name, SUM(amount)",
    "shop.large <- shop.orders: id, amount",
    "shop.few <- shop.large shop.orders: id, amount",
    "shop.low <- shop.orders: id, amount",
    "shop.high <- shop.orders: id, (amount * 2)",
    "shop.most <- shop.orders: person, MAX(amount)",
    "shop.archive <- shop.totals: name, total",
    "shopdb.TOTALS <- shop.totals: name, total",
    "out/totals <- shopdb.TOTALS: name, total",
    "out/copied <- spark/shop.db/orders: id, person, amount",
    "out/kept <- spark/shop.db/orders: id, (amount + 1)",
]
SINCE_FOUR = [
    "shop.taxes <- shop.orders: id, (amount + (amount / 5))",
    "shop.hers <- shop.orders: id, amount",
    "shop.numbers <- numbers: (n + 1)",
]


def test_ordinary_application_reports_every_statement(tmp_path: Path, warm_jvm: WarmJvm) -> None:
    events = events_of("ordinary.py", tmp_path, "files", conf=HIVE, jvm=warm_jvm)

    assert lines(events, str(tmp_path)) == [*EXPECTED_EVENTS, *(SINCE_FOUR if SPARK >= "4" else [])]


def lines(events: list[Event], folder: str) -> list[str]:
    """A line an output, but for tables that were made without rows."""
    return [line(output, event, folder) for event in filled(events) for output in event["outputs"]]


def line(output: dict[str, Any], event: Event, folder: str) -> str:
    reads = " ".join(sorted(short_name(one, folder) for one in event["inputs"]))
    columns = output["facets"].get("columnLineage", {}).get("fields", {})
    made = ", ".join(expression(column["inputFields"][0]) for column in columns.values())
    return f"{short_name(output, folder)} <- {reads}" + (f": {made}" if made else "")


def expression(origin: dict[str, Any]) -> str:
    """The whole expression; the column itself, where it is taken as it is."""
    return origin["transformations"][0]["description"] or str(origin["field"])
