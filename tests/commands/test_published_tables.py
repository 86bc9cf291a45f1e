"""`strandline tables publish`: pyiceberg reads the rows of the store."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fixtures.versions_server.events import committed, ended, started
from fixtures.versions_server.server import running
from strandline.cli import main
from strandline.execution import published_tables
from strandline.execution.edge_rows import column_edge_rows, job_edge_rows
from strandline.execution.iceberg_tables import PUBLISHED
from strandline.store.catalog.proposal_tables import TABLES, WITH_HISTORY, rows_of
from strandline.store.sql.engine import make_engine

pytest.importorskip("pyiceberg")

EVENTS = [
    started("ETL 1", 0, ["db.t2", "db.t3"], ["db.t5"], group="lake"),
    committed(
        "ETL 1", 1, 1, {"db.t2": "13", "db.t3": "12"}, {"db.t5": "9007199254740993"}, group="lake"
    ),
    started("ended", 5, ["db.t5"], ["db.t6"], group="lake"),
    committed(
        "ended", 6, 1, {"db.t5": "9007199254740993"}, {"db.t6": "none of 64 bits"}, group="lake"
    ),
    ended("ended", 10),
]
EVERY = {name: (name, False) for name in TABLES} | {
    named: (name, True) for name, named in WITH_HISTORY.items()
}
EDGES = {"job_edges": job_edge_rows, "column_edges": column_edge_rows}
Publish = Callable[..., str]


@pytest.fixture
def properties(tmp_path: Path) -> list[str]:
    """Return the options of a catalog `lake` of pyiceberg, on SQLite."""
    given = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"file://{tmp_path}/lake",
    }
    return [
        word
        for key, value in given.items()
        for word in ("--catalog-property", f"lake.{key}={value}")
    ]


@pytest.fixture
def lake(properties: list[str]) -> Any:
    from pyiceberg.catalog import load_catalog

    return load_catalog(
        "lake", **dict(one.removeprefix("lake.").split("=", 1) for one in properties[1::2])
    )


@pytest.fixture
def publish(
    database_url: str, properties: list[str], capsys: pytest.CaptureFixture[str]
) -> Iterator[Publish]:
    """Yield a function that runs the command on a store with two jobs, and returns its output."""
    engine = make_engine(database_url)
    with running(engine) as server:
        server.post(*EVENTS)

    def run(*more: str, catalog: str = "lake", code: int = 0) -> str:
        command = [
            "tables",
            "publish",
            "--catalog",
            catalog,
            *properties,
            "--database-url",
            database_url,
            *more,
        ]
        assert main(command, {}) == code
        said = capsys.readouterr()
        return said.out or said.err

    yield run
    engine.dispose()


def there(lake: Any, name: str) -> list[dict[str, Any]]:
    """Return the rows of a published table, ids and times as the store's rows have them."""
    rows = lake.load_table(f"strandline.{name}").scan().to_arrow().to_pylist()
    return sorted(
        (dict(zip(row, map(as_text, row.values()), strict=True)) for row in rows), key=repr
    )


def as_text(value: Any) -> str | None:
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds")
    return None if value is None else str(value)


def stored(database_url: str, table: str, history: bool) -> list[dict[str, Any]]:
    engine = make_engine(database_url)
    with engine.connect() as connection:
        rows = [
            {key: as_text(instant(key, value)) for key, value in row.items()}
            for row in rows_of(connection, table, history=history)
        ]
    engine.dispose()
    for row in rows:
        if row.get("snapshot_id") == "none of 64 bits":
            row["snapshot_id"] = None
    return sorted(rows, key=repr)


def instant(key: str, value: Any) -> Any:
    return datetime.fromisoformat(value) if key.startswith("valid_") and value else value


def test_published_tables_hold_the_rows_of_the_store(
    publish: Publish, lake: Any, database_url: str
) -> None:
    told = json.loads(publish("--json"))

    wanted = {
        name: stored(database_url, table, history) for name, (table, history) in EVERY.items()
    }
    assert {name: there(lake, name) for name in EVERY} == wanted
    assert {one["table"]: one["rows"] for one in told} == {
        f"lake.strandline.{name}": len(rows) for name, rows in wanted.items()
    } | {"lake.strandline.job_edges": 3, "lake.strandline.column_edges": 3}
    assert sum(map(len, wanted.values())) > 10
    (made,) = (
        lake.load_table("strandline.sink_snapshot_lineage")
        .scan("job = 'ETL 1'")
        .to_arrow()
        .to_pylist()
    )
    assert (made["snapshot_id"], made["barrier_id"]) == (9007199254740993, 1)


def test_published_edges_are_those_of_all_jobs(
    publish: Publish, lake: Any, database_url: str
) -> None:
    publish()
    engine = make_engine(database_url)
    moment = int(datetime.now(UTC).timestamp() * 1_000_000)
    with engine.connect() as connection:
        wanted = {name: list(rows(connection, moment)) for name, rows in EDGES.items()}
    engine.dispose()

    for row in wanted["job_edges"]:
        for key in ("read_at", "written_at"):
            row[key] = as_text(datetime.fromisoformat(row[key]))
    assert {name: there(lake, name) for name in EDGES} == {
        name: sorted(rows, key=repr) for name, rows in wanted.items()
    }
    assert [(row["source"], row["target"]) for row in there(lake, "job_edges")] == [
        ("dataset:iceberg://lake:db.t2", "dataset:iceberg://lake:db.t5"),
        ("dataset:iceberg://lake:db.t3", "dataset:iceberg://lake:db.t5"),
        ("dataset:iceberg://lake:db.t5", "dataset:iceberg://lake:db.t6"),
    ]


def test_publishing_again_replaces_the_rows(
    publish: Publish, lake: Any, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish()
    engine = make_engine(database_url)
    with running(engine) as server:
        server.post(started("new", 20, ["db.t2"], ["db.t8"], group=None), ended("ETL 1", 30))
    engine.dispose()
    monkeypatch.setattr(published_tables, "ROWS_AT_ONCE", 1)
    lines = publish().splitlines()

    assert "lake.strandline.sink_job_lineage  1 row" in lines
    assert {name: there(lake, name) for name in EVERY} == {
        name: stored(database_url, table, history) for name, (table, history) in EVERY.items()
    }


def test_column_of_a_later_version_is_added(publish: Publish, lake: Any) -> None:
    publish()
    with lake.load_table("strandline.sink_job_lineage").update_schema(
        allow_incompatible_changes=True
    ) as before:
        before.delete_column("consistency_group")
    publish()

    assert there(lake, "sink_job_lineage")[0]["consistency_group"] == "lake"


def test_foreign_table_is_not_replaced(publish: Publish, lake: Any) -> None:
    import pyarrow as pa

    lake.create_namespace("strandline")
    own = pa.table({"key": ["precious"]})
    lake.create_table("strandline.catalog_options", schema=own.schema).append(own)

    assert publish(code=1) == (
        "strandline: lake.strandline.catalog_options: already exists and was not published by Strandline "
        f"({PUBLISHED} is not true)\n"
    )
    assert lake.load_table("strandline.catalog_options").scan().to_arrow().to_pylist() == [
        {"key": "precious"}
    ]


@pytest.mark.parametrize(
    ("catalog", "reason"),
    [
        (
            "nowhere",
            "nowhere.strandline.catalog_options: catalog nowhere refused the table: ",
        ),
        ("lake.db", "lake.db: is a path in a catalog; name the catalog alone"),
    ],
)
def test_unusable_catalog_is_reported(publish: Publish, catalog: str, reason: str) -> None:
    assert reason in publish(catalog=catalog, code=1)
