"""Lineage exported to a DataHub file can be imported again."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.cli import main
from strandline.store.sql.engine import make_engine, migrate
from worlds.builders import NOON, dataset, event, rows, run_id, store

JOB = {
    "jobType": {"processingType": "BATCH", "integration": "SPARK"},
    "ownership": {"owners": [{"name": "team:ops"}]},
    "tags": {"tags": [{"key": "pii", "value": "true"}]},
}
COLUMNS = {
    "fields": {"total": {"inputFields": [{"namespace": "hive", "name": "db.a", "field": "amount"}]}}
}
SCHEMA = {"fields": [{"name": "total", "type": "int"}]}
NAMED = (
    "SELECT direction, namespace, name FROM run_relations JOIN datasets ON datasets.id = dataset_id"
)


def run(*argv: str, url: str) -> int:
    return main(list(argv), {"STRANDLINE_DATABASE_URL": url, "STRANDLINE_DATAHUB_SCHEMAS": "true"})


def test_exported_file_can_be_imported_again(
    sqlite_engine: Engine, sqlite_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = [dataset("db.b", "hive", columnLineage=COLUMNS, schema=SCHEMA)]
    made: dict[str, Any] = {
        "inputs": [dataset("db.a", "hive"), dataset("wh/x", "s3://lake")],
        "outputs": outputs,
    }
    store(sqlite_engine, [event("START", 1, "bank.etl", **made, job_facets=JOB)], received_at=NOON)
    store(
        sqlite_engine,
        [event("COMPLETE", 1, "bank.etl", 5, **made, job_facets=JOB)],
        received_at=NOON,
    )
    file, url = tmp_path / "lineage.json", f"sqlite:///{tmp_path / 'other.db'}"
    codes = [
        run("export", "--to", "datahub", str(file), url=sqlite_url),
        run("import", "--from", "datahub", str(file), url=url),
        run("import", "--from", "datahub", str(file), "--json", url=url),
    ]
    said = capsys.readouterr().out
    again = json.loads(said[said.index("{") :])
    other = make_engine(url)

    assert (codes, again["stored"], again["leftOut"]) == ([0, 0, 0], 0, {})
    assert {(row[1], row[2]) for row in rows(other, NAMED)} == {
        ("hive", "db.a"),
        ("hive", "db.b"),
        ("s3://lake", "wh/x"),
    }
    assert rows(
        other, "SELECT run_id, state, ended_at - started_at FROM runs WHERE design = 0"
    ) == [(run_id(1), 4, 5_000_000)]
    assert rows(other, "SELECT namespace, name FROM jobs") == [("tests", "bank.etl")]
    assert rows(other, "SELECT DISTINCT rule FROM run_edges WHERE rule > 1") == [(2,)]
    keys = {key for (key,) in rows(other, "SELECT key FROM facets WHERE kind IN (2, 3)")}
    assert {"ownership", "tags", "schema", "columnLineage"} <= keys
    other.dispose()


def test_aspects_without_an_event_form_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    engine = make_engine(url)
    migrate(engine)
    engine.dispose()
    entry = {
        "entityType": "corpuser",
        "entityUrn": "urn:li:corpuser:ann",
        "aspectName": "corpUserInfo",
    }
    file = tmp_path / "users.json"
    file.write_text(json.dumps([entry | {"aspect": {"json": {"active": True}}}]))
    code = run("import", "--from", "datahub", str(file), url=url)

    assert code == 0
    assert "left out: 1 x corpuser corpUserInfo" in capsys.readouterr().out


def test_foreign_file_is_rejected(
    tmp_path: Path, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.json"
    file.write_text('{"a": 1}')

    assert run("import", "--from", "datahub", str(file), url=sqlite_url) == 1
    assert "is not a file of DataHub's metadata" in capsys.readouterr().err
