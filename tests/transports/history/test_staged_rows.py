"""Relations and edges that wait as rows while a store is rebuilt become the templates that the live collector writes."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Engine, inspect

from store.test_all_producers import RECORDS
from strandline.core.changes.rows import FOLDS, EdgesUsed, RelationSeen
from strandline.history import staged_rows
from strandline.history.staged_rows import begin_staging, move_into_templates, stage
from strandline.store.ingest.take import Caches, Record, take
from strandline.store.schema.relation_tables import TEMPLATES
from worlds.builders import rows


def take_all(engine: Engine, records: Sequence[Record]) -> None:
    """Take records in small batches."""
    caches = Caches()
    for start in range(0, len(records), 20):
        with engine.begin() as connection:
            take(connection, records[start : start + 20], caches)
        caches.commit()


def rows_by_kind(engine: Engine) -> dict[type[Any], list[Any]]:
    """Return the relations and edges of all runs."""
    return {
        kind: [
            kind(*row)
            for row in rows(engine, f"SELECT {', '.join(kind._fields)} FROM {FOLDS[kind].table}")
        ]
        for kind in (RelationSeen, EdgesUsed)
    }


def templates_of(engine: Engine) -> dict[str, list[Any]]:
    """Return all rows of templates, by table."""
    return {table.name: rows(engine, f"SELECT * FROM {table.name}") for table in TEMPLATES}


def remove_templates(engine: Engine) -> None:
    """Delete all templates."""
    with engine.begin() as connection:
        for table in TEMPLATES:
            connection.execute(table.delete())


def stage_all(engine: Engine, staged: dict[type[Any], list[Any]]) -> None:
    """Stage rows in a store."""
    begin_staging(engine)
    with engine.begin() as connection:
        for kind, some in staged.items():
            stage(connection, kind, some)


@pytest.mark.parametrize("runs_at_once", [7, 5_000])
def test_staged_rows_become_the_templates_of_the_live_store(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, runs_at_once: int
) -> None:
    monkeypatch.setattr(staged_rows, "RUNS_AT_ONCE", runs_at_once)
    take_all(engine, RECORDS)
    used = "SELECT DISTINCT template_id FROM run_templates"
    with engine.begin() as connection:  # writers leave templates behind that no run has any more
        for name in ("template_relations", "template_edges"):
            connection.exec_driver_sql(f"DELETE FROM {name} WHERE template_id NOT IN ({used})")
    live, staged = templates_of(engine), rows_by_kind(engine)
    remove_templates(engine)

    stage_all(engine, staged)
    move_into_templates(engine)

    assert {table for table, some in live.items() if some} == {table.name for table in TEMPLATES}
    assert templates_of(engine) == live
    assert [name for name in inspect(engine).get_table_names() if name.startswith("rebuild_")] == []


def test_an_attempt_that_failed_is_begun_again(engine: Engine) -> None:
    take_all(engine, RECORDS)
    before, staged = rows(engine, "SELECT * FROM run_templates"), rows_by_kind(engine)
    stage_all(engine, staged)  # of an attempt that was killed: its tables are still there

    stage_all(engine, staged)
    move_into_templates(engine)

    assert rows(engine, "SELECT * FROM run_templates") == before
    assert rows_by_kind(engine) == staged
