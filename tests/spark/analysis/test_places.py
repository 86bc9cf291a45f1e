"""An analysis reads archives of each table format, and writes its tables in each: read back here without Spark."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pyarrow as pa
import pytest
from pyarrow import dataset as arrow
from sqlalchemy import Engine

from fixtures.servers import serving
from strandline.cli import main
from strandline.history.archive import archive
from strandline.history.places import overwrite, place_of
from strandline.store.ingest.name_patterns import apply_alias
from strandline.store.sql.engine import make_engine, migrate
from worlds.scenarios.plain import run
from worlds.scenarios.taking import fill

pytestmark = pytest.mark.spark
LATER = datetime(2027, 1, 1, tzinfo=UTC)
FORMS = ("parquet", "delta", "iceberg")
JOINED = (("db", "raw"), ("db", "called.so"))
IMPACT = [("dataset:db:called.so", 3), ("dataset:db:orders", 1)]
Json = dict[str, Any]
Read = Callable[[str], pa.Table]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A chain of three datasets with a copy on the way; two names of the first are joined by hand."""
    engine = make_engine(f"sqlite:///{tmp_path_factory.mktemp('live')}/live.db")
    migrate(engine)
    fill(engine, [
        run("COMPLETE", 1, "clean", ["raw"], ["orders"]), run("COMPLETE", 2, "sum", ["orders"], ["totals"]),
        run("COMPLETE", 3, "other", ["called.so"], ["copy"]),
    ])  # fmt: skip
    with engine.begin() as connection:
        apply_alias(connection, *JOINED)
    yield engine
    engine.dispose()


def url_of(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


def catalog_of(lake: Any) -> dict[str, str]:
    """Spark's own catalog, as pyiceberg opens it."""
    file = lake.conf.get("spark.sql.catalog.lake.uri").removeprefix("jdbc:sqlite:")
    return {"type": "sql", "uri": f"sqlite:///{file}", "warehouse": lake.conf.get("spark.sql.catalog.lake.warehouse")}


def place(lake: Any, form: str, folder: Path) -> tuple[str, Read]:
    """Where tables go together, and how the library of the format reads one of them."""
    if form == "parquet":
        return str(folder), lambda name: arrow.dataset(folder / name, ignore_prefixes=["_", "."]).to_table()
    if form == "delta":
        from deltalake import DeltaTable

        return f"delta:{folder}", lambda name: DeltaTable(folder / name).to_pyarrow_table()
    from pyiceberg.catalog import load_catalog

    database = f"results_{uuid4().hex[:8]}"
    catalog = load_catalog("lake", **catalog_of(lake))
    return f"iceberg:lake.{database}", lambda name: catalog.load_table(f"{database}.{name}").scan().to_arrow()


def analysed(capsys: pytest.CaptureFixture[str], url: str, *flags: str) -> Json:
    code = main(["analyse", "--report", "impact", "--json", *flags], {"STRANDLINE_DATABASE_URL": url})
    shown = capsys.readouterr()
    assert code == 0, shown.err
    answer: Json = json.loads(shown.out)
    return answer


@pytest.mark.parametrize("form", FORMS)
def test_an_archive_is_analysed_as_the_store_that_it_came_from(
    lake: Any, live: Engine, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The archive is written by the format's own library; the tables of its analysis are read by it."""
    copy = tmp_path / "copy.db"
    with sqlite3.connect(str(live.url.database)) as connection:
        connection.execute(f"VACUUM INTO '{copy}'")
    connection.close()
    target, read = place(lake, form, tmp_path / "results")
    events = f"iceberg:lake.old_{uuid4().hex[:8]}.events" if form == "iceberg" else f"{target}-events"
    engine = make_engine(f"sqlite:///{copy}")
    moved = archive(engine, events, LATER, {"lake": catalog_of(lake)} if form == "iceberg" else {})
    engine.dispose()

    found = analysed(capsys, url_of(live), "--from", events, "--like", url_of(live), "--to", target)

    assert found["archive"] == {"events": moved.events, "refused": 0}
    assert [(row["dataset"], row["downstream"]) for row in found["reports"]["impact"]["rows"]] == IMPACT
    assert read("closure").num_rows == 4
    assert sum(read("datasets")["downstream"].to_pylist()) == 4
    assert read("analysis").num_rows == 1


@pytest.mark.parametrize("form", FORMS)
def test_a_later_analysis_takes_the_place_of_an_earlier_one(lake: Any, form: str, tmp_path: Path) -> None:
    """Whatever columns it has; whoever reads a table that has commits may still read the one before."""
    target, read = place(lake, form, tmp_path / "results")
    if form == "iceberg":
        lake.sql(f"CREATE NAMESPACE {place_of(target).address}")
    there = place_of(target).within("jobs")

    overwrite(lake.range(3), there)
    found = overwrite(lake.range(1).selectExpr("'a' AS name", "id"), there)

    assert [tuple(row) for row in found.collect()] == [("a", 0)]
    assert read("jobs").to_pylist() == [{"name": "a", "id": 0}]


@pytest.mark.parametrize("target", ["iceberg:nowhere.analysis", "delta:/proc/analysis"])
def test_where_no_table_can_be_written_the_place_is_named_before_anything_is_read(
    lake: Any, live: Engine, target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("strandline.analysis.report.read_graph", _never)

    code = main(["analyse", "--to", target], {"STRANDLINE_DATABASE_URL": url_of(live)})

    assert code == 1
    assert f"{target}: no tables can be written there: " in capsys.readouterr().err


def _never(*_: Any) -> None:
    raise AssertionError


def test_where_no_archive_is_the_place_is_named(
    lake: Any, live: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {"STRANDLINE_DATABASE_URL": url_of(live)}
    code = main(["analyse", "--from", f"delta:{tmp_path}/nothing"], environ)
    alone = main(["analyse", "--like", url_of(live)], environ)

    err = capsys.readouterr().err
    assert (code, alone) == (1, 2)
    assert "nothing: no archive can be read there" in err
    assert "--like goes with --from" in err


def test_what_is_published_is_answered_by_the_api(lake: Any, live: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    flags = [flag for name in ("impact", "jobs", "columns", "unread", "delays") for flag in ("--report", name)]

    code = main(["analyse", "--publish", "--top", "1", "--json", *flags], {"STRANDLINE_DATABASE_URL": url_of(live)})
    shown = json.loads(capsys.readouterr().out)
    with serving(live) as address:
        impact = httpx.get(f"{address}/api/v2/analyses/impact", timeout=60).json()
        listed = httpx.get(f"{address}/api/v2/analyses", timeout=60).json()["items"]

    assert code == 0
    assert [(item["id"], item["downstream"]) for item in impact["items"]] == IMPACT
    assert (impact["total"], impact["asOf"]) == (2, shown["asOf"])
    assert [one["report"] for one in listed] == ["impact", "jobs", "columns", "unread", "delays"]
    assert len(shown["reports"]["impact"]["rows"]) == 1
