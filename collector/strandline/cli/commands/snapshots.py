"""`strandline snapshots`: the known snapshots of a table, the newest first."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

import orjson
from sqlalchemy import Engine

from strandline.cli.answers import (
    short_time,
    show,
    show_table,
    tell_list,
)
from strandline.cli.collector import Ask, answering
from strandline.core.exports.lists import COLUMNS
from strandline.errors import NotFoundError
from strandline.settings import Settings
from strandline.store.lineage.lookup import dataset_called, dataset_of
from strandline.store.lineage.snapshot_lineage import snapshot_answer, snapshots_of
from strandline.store.sql.pages import decode_cursor

Json = dict[str, Any]
PAGE = 1_000
HEAD = ("SNAPSHOT", "COMMITTED", "BARRIER", "OPERATION", "ROWS", "ACCURACY")


def run(options: Namespace, settings: Settings) -> int:
    """Print the snapshots."""
    with answering(options, settings, _of_database) as ask:
        table = ask("/lineage", {"node": options.table, "depth": 0})["nodes"][0]
        if table["type"] != "dataset":
            raise NotFoundError(f"{options.table}: is a job, not a table")
        items, complete = _all(
            ask, {name: table[name] for name in ("namespace", "name")}, options.limit
        )
    cut = "" if complete else f"the newest {len(items)}; a greater --limit shows more"
    if tell_list(
        options, {"items": items, "complete": complete}, items, cut, COLUMNS["/datasets/snapshots"]
    ):
        return 0
    if items:
        show_table(HEAD, [_row(item) for item in items], [f"({cut})"] if cut else [])
    else:
        show([f"no snapshot of {options.table} is known"])
    return 0


def _all(ask: Ask, table: Json, limit: int) -> tuple[list[Json], bool]:
    """As many as were asked for, page by page, and whether there are no more."""
    items: list[Json] = []
    cursor: str | None = None
    while True:
        page = ask(
            "/datasets/snapshots",
            table | {"limit": min(PAGE, limit - len(items)), "cursor": cursor},
        )
        items += page["items"]
        cursor = page["nextCursor"]
        if cursor is None or len(items) >= limit:
            return items, cursor is None


def _of_database(engine: Engine) -> Ask:
    def ask(path: str, parameters: Mapping[str, Any]) -> Json:
        with engine.connect() as connection:
            if path == "/lineage":
                node = dataset_called(connection, parameters["node"])
                return {
                    "nodes": [{"type": node.kind, "namespace": node.namespace, "name": node.name}]
                }
            table = dataset_of(connection, parameters["namespace"], parameters["name"])
            after = (
                None
                if parameters["cursor"] is None
                else decode_cursor(parameters["cursor"], (int, str))
            )
            page = snapshots_of(connection, table, parameters["limit"], after)
        answer: Json = orjson.loads(
            orjson.dumps(page.of([snapshot_answer(row) for row in page.rows]))
        )
        return answer

    return ask


def _row(item: Json) -> list[str]:
    numbers = (
        "" if item[name] is None else str(item[name]) for name in ("barrierId", "numberOfRows")
    )
    barrier, rows = numbers
    accuracy = "observed" if item["observed"] else "exact"
    return [
        item["snapshotId"],
        short_time(item["committedAt"] or ""),
        barrier,
        item["operation"] or "",
        rows,
        accuracy,
    ]
