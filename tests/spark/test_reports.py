"""`strandline report`: Spark SQL over the published edges, on worlds that anybody can count."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import Engine

from fixtures.spark_lake import catalog_properties
from strandline.cli import main
from strandline.errors import RefusedError
from strandline.execution.iceberg_tables import IcebergTables
from strandline.execution.published_tables import publish
from strandline.reports.run_report import reach, run_report
from strandline.store.ingest.take import Record
from worlds.scenarios.plain import columns, run
from worlds.scenarios.random_graph import random_jobs, reached, ways_on
from worlds.scenarios.taking import fill

pytestmark = pytest.mark.spark
Published = Callable[[Sequence[Record]], None]

# ingest -> raw -> orders -> totals, and a circle ring1 <-> ring2 that raw feeds.
SMALL = [
    run("COMPLETE", 0, "ingest", [], ["raw"]),
    run(
        "COMPLETE", 10, "clean", ["raw"],
        [columns("orders", id=("raw", "id"), price=("raw", "price"))],
    ),
    run("COMPLETE", 20, "sum", ["orders"], [columns("totals", sum=("orders", "price"))]),
    run("COMPLETE", 30, "second", ["orders"], ["totals"]),
    run("COMPLETE", 40, "loop", ["raw", "ring1"], ["ring2"]),
    run("COMPLETE", 50, "back", ["ring2"], ["ring1"]),
]  # fmt: skip


@pytest.fixture
def published(lake: Any, sqlite_engine: Engine) -> Published:
    """Publish what events say into the catalog `lake` of Spark's session.

    Reports see published tables alone, whichever database they came from.
    """

    def fill_and_publish(records: Sequence[Record]) -> None:
        fill(sqlite_engine, records)
        with sqlite_engine.connect() as connection:
            for _ in publish(connection, IcebergTables({"lake": catalog_properties(lake)}), "lake"):
                pass
        for table in ("job_edges", "column_edges"):
            lake.sql(f"REFRESH TABLE lake.strandline.{table}")

    return fill_and_publish


def rows(spark: Any, name: str, before: str = "2026-11-20T12:00:15Z") -> list[tuple[Any, ...]]:
    """The rows of a report, nodes by their last names, without times."""
    report = run_report(spark, name, "lake", _moment(before))
    kept = [column for column in report.columns if not column.endswith("_at")]
    return [
        tuple(value.rpartition(":")[2] if isinstance(value, str) else value for value in row)
        for row in report.select(*kept).collect()
    ]


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_reports_of_a_small_world(lake: Any, published: Published) -> None:
    published(SMALL)

    assert rows(lake, "impact") == [
        ("raw", 4, 2),
        ("orders", 1, 2),
        ("ring1", 1, 1),
        ("ring2", 1, 1),
    ]
    assert rows(lake, "jobs") == [("ingest", 5), ("back", 2), ("clean", 2), ("loop", 2)]
    assert rows(lake, "columns") == [
        ("orders", "price", 1, 1, 1),
        ("raw", "id", 1, 1, 1),
        ("raw", "price", 1, 1, 1),
    ]
    assert rows(lake, "unread") == [("totals", 2)]
    assert rows(lake, "stale") == [("raw", 2), ("orders", 2)]
    assert rows(lake, "stale", "2026-11-20T12:00:05Z") == [("raw", 2)]


def test_reach_of_random_worlds_is_what_a_search_finds(lake: Any, published: Published) -> None:
    jobs = random_jobs(random.Random(7), 9, 11)
    published([job.event() for job in jobs])
    run_report(lake, "unread", "lake", _moment("2026-11-20T12:00:00Z"))
    pairs = {
        (row.start.rpartition(":")[2], row.node.rpartition(":")[2]) for row in reach(lake).collect()
    }

    onwards = ways_on({triple for job in jobs for triple in job.triples()})
    wanted = {
        (start, node)
        for start, next_nodes in onwards.items()
        for node in reached(onwards, sorted(next_nodes))
    }
    assert pairs == wanted
    assert any(start == node for start, node in pairs)


def test_command_prints_rows_and_says_what_it_cut(
    lake: Any, published: Published, capsys: pytest.CaptureFixture[str]
) -> None:
    published(SMALL)

    assert main(["report", "impact", "--catalog", "lake", "--limit", "1"], {}) == 0
    assert capsys.readouterr().out.splitlines() == [
        "DATASET         DOWNSTREAM  READERS",
        "dataset:db:raw  4           2",
        "the first 1 rows; --limit prints more",
    ]
    assert main(["report", "unread", "--catalog", "lake", "--json"], {}) == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "dataset": "dataset:db:totals",
            "writers": 2,
            "written_at": "2026-11-20T12:00:30Z",
        }
    ]


def test_catalog_without_published_tables_is_refused_with_the_remedy(lake: Any) -> None:
    with pytest.raises(RefusedError, match=r"nowhere\.strandline\.job_edges.*tables publish"):
        run_report(lake, "impact", "nowhere", _moment("2026-11-20T12:00:00Z"))
