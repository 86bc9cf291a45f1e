"""The search of Marquez' page, and the one of its second version, over the names, columns and SQL that are known."""

import re
from collections.abc import Iterator
from operator import itemgetter
from typing import Any
from urllib.parse import unquote, unquote_plus

from sqlalchemy import Connection

from strandline.api.http.operations import Ask, Operation, Parameter, Text
from strandline.api.http.paging import connected
from strandline.api.marquez.parameters import API, LIMIT, MOST, OBJECT, AnyCaseWord, now_of
from strandline.api.marquez.shapes.times import time_text
from strandline.core.openlineage.facets import DATASET, JOB, RUN
from strandline.core.openlineage.names import id_of
from strandline.store.catalog.lists import newest_run_ids
from strandline.store.catalog.newest_writes import newest_writes
from strandline.store.catalog.runs_called import runs_by_id
from strandline.store.catalog.search import search_page
from strandline.store.lineage.run_state import run_state
from strandline.store.marquez.datasets import rows_of
from strandline.store.marquez.facet_values import all_facets
from strandline.store.marquez.jobs import job_rows
from strandline.store.sql.pages import decode_cursor

CURSOR = (int, str, str, str)
_Q = re.compile(r"(?:^|&)q=(.*?)(?=$|&(?:sort|limit|filter|offset)=)", re.DOTALL)
Found = list[tuple[dict[str, Any], Any]]


def get_search(ask: Ask) -> dict[str, Any]:
    """Datasets and jobs by a part of a name, of a column or of an SQL text."""
    with connected(ask) as connection:
        found = _found(connection, ask, ask.given["filter"].lower() or None)
    results = [_result(one, row, now_of(ask)) for one, row in found]
    if ask.given["sort"] == "NAME":
        results.sort(key=itemgetter("name"))
    elif ask.given["sort"]:
        results.sort(key=itemgetter("updatedAt"), reverse=True)
    return {"totalCount": len(results), "results": results}


def _result(one: dict[str, Any], row: Any, now: int) -> dict[str, Any]:
    updated = row.newest_at or row.first_at or now
    kept = {"namespace": one["namespace"], "name": one["name"]}
    return {
        "type": one["type"].upper(),
        **kept,
        "updatedAt": time_text(updated),
        "nodeId": one["id"],
    }


def _found(connection: Connection, ask: Ask, kind: str | None) -> Found:
    """What the search finds for the text, read in the first way that finds something."""
    most = min(ask.given["limit"], MOST)
    for text in dict.fromkeys(_texts(ask)):
        items = _items(connection, text, kind, most) if text and "\0" not in text else []
        ids = {id_of(one["type"], one["namespace"], one["name"]): one for one in items}
        rows = rows_of(connection, ids) | job_rows(connection, ids)
        if rows:
            return [(one, rows[id_]) for id_, one in ids.items() if id_ in rows]
    return []


def _items(connection: Connection, text: str, kind: str | None, most: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    after = None
    while len(items) < most:
        page = search_page(connection, text, most, after)
        items += [
            one for one in page["items"] if one["type"] in ((kind,) if kind else ("dataset", "job"))
        ]
        if page["nextCursor"] is None:
            break
        after = decode_cursor(page["nextCursor"], CURSOR)
    return items[:most]


def _texts(ask: Ask) -> Iterator[str]:
    """What may be meant: Marquez' page does not encode what is typed, so `&` and `+` may stand for themselves.

    A `%` at an end is Marquez' own sign for any text, where nothing has such a name.
    """
    found = _Q.search(ask.request.scope["query_string"].decode("latin-1"))
    for text in (
        ask.given["q"],
        *(() if found is None else (unquote_plus(found[1]), unquote(found[1]))),
    ):
        clean = text.encode("utf-8", "replace").decode()
        yield clean
        yield clean.strip("%")


def _hits(kind: str) -> Any:
    def search(ask: Ask) -> dict[str, Any]:
        with connected(ask) as connection:
            found = _found(connection, ask, kind)
            runs = _newest_runs(connection, kind, [row for _, row in found], now_of(ask))
            facets = all_facets(
                connection,
                DATASET if kind == "dataset" else JOB,
                {row.id: row.id for _, row in found},
            )
            shown = {row.id: run for _, row in found if (run := runs.get(row.id)) is not None}
            of_runs = all_facets(
                connection, RUN, {run["row"]: run["row"] for run in shown.values()}
            )
        hits = [
            {
                "run_id": shown.get(row.id, {}).get("run_id", ""),
                "name": one["name"],
                "namespace": one["namespace"],
                "eventType": shown.get(row.id, {}).get("eventType", ""),
                "type": "BATCH",
                "facets": facets.get(row.id, {}),
                "runFacets": of_runs.get(shown.get(row.id, {}).get("row", 0), {}),
            }
            for one, row in found
        ]
        return {"hits": hits, "highlights": [_highlight(one) for one, _ in found]}

    search.__doc__ = f"Every {kind} with this text, with its facets and its last run."
    return search


def _highlight(one: dict[str, Any]) -> dict[str, list[str]]:
    return {one["matched"]: [one["text"] or one["name"]]}


def _newest_runs(
    connection: Connection, kind: str, rows: list[Any], now: int
) -> dict[int, dict[str, Any]]:
    """The last run of each job, or the one that wrote each dataset last."""
    if kind == "dataset":
        writes = newest_writes(connection, [row.id for row in rows], now).items()
        return {
            id_: {"run_id": one.run.run_id, "eventType": one.run.state, "row": 0}
            for id_, one in writes
        }
    newest = newest_run_ids(connection, [row.id for row in rows])
    states = {
        id_: run_state(row, now) for id_, row in runs_by_id(connection, newest.values()).items()
    }
    return {
        job: {"run_id": states[run].run_id, "eventType": states[run].state, "row": run}
        for job, run in newest.items()
        if run in states
    }


_QUERY = Parameter(
    "q", "A part of a name, of a column or of an SQL text, in any case", Text(), default=""
)
_FILTER = Parameter("filter", "Only these", AnyCaseWord(("DATASET", "JOB")), default="")
_SORT = Parameter(
    "sort", "By name, or the newest first; without it the shortest name first", AnyCaseWord(("NAME", "UPDATE_AT", "UPDATED_AT")),
    default="",
)  # fmt: skip
_V2 = "/api/v2beta/search"
OPERATIONS = (
    Operation(
        "GET", f"{API}/search", "Datasets and jobs by a part of their name", get_search,
        (_QUERY, _FILTER, _SORT, LIMIT), answer=OBJECT, scope="read",
    ),
    Operation(
        "GET", f"{_V2}/jobs", "Jobs, with facets", _hits("job"), (_QUERY, LIMIT), answer=OBJECT, scope="read"
    ),
    Operation(
        "GET", f"{_V2}/datasets", "Datasets, with facets", _hits("dataset"), (_QUERY, LIMIT), answer=OBJECT, scope="read"
    ),
)  # fmt: skip
