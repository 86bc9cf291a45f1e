"""The searches of Marquez' page, old and new, over the names, columns and SQL that are known."""

import re
from collections.abc import Iterator
from operator import itemgetter
from typing import Annotated, Any
from urllib.parse import unquote, unquote_plus

from fastapi import Query as InQuery
from pydantic import Field, WithJsonSchema
from sqlalchemy import Connection
from typing_extensions import TypedDict

from strandline.api.http.session import ReadSession, Session
from strandline.api.marquez.parameters import JSON, MOST, Number, any_case, marquez_router
from strandline.api.marquez.shapes.times import time_text
from strandline.core.openlineage.facets import DATASET, RUN
from strandline.core.openlineage.facets import JOB as OF_JOB
from strandline.core.openlineage.names import id_of
from strandline.questions.parameters import Query, Text
from strandline.store.catalog.runs import newest_run_ids, runs_by_id
from strandline.store.catalog.search import search_page
from strandline.store.catalog.writes import newest_writes
from strandline.store.lineage.facets import Facets
from strandline.store.lineage.run_state import View, run_state
from strandline.store.marquez.datasets import rows_of
from strandline.store.marquez.facet_values import all_facets, facet_values
from strandline.store.marquez.jobs import job_rows
from strandline.store.sql.pages import decode_cursor

CURSOR = (int, str, str, str)
ENGINE = "processing_engine"
_Q = re.compile(r"(?:^|&)q=(.*?)(?=$|&(?:sort|limit|filter|offset)=)", re.DOTALL)
Found = list[tuple[dict[str, Any], Any]]


router = marquez_router()
beta_router = marquez_router("/api/v2beta")


class HitsQuery(Query):
    """The text of a search."""

    q: Annotated[
        Text,
        Field(description="A part of a name, of a column or of an SQL text, in any case"),
    ] = ""
    limit: Annotated[Number, Field(description=f"Maximum number of items, up to {MOST}")] = 100


class SearchQuery(HitsQuery):
    """The text of a search, and the order of its results."""

    filter: Annotated[
        str,
        any_case("DATASET", "JOB"),
        WithJsonSchema({"type": "string", "enum": ["", "DATASET", "JOB"]}),
        Field(description="Only these"),
    ] = ""
    sort: Annotated[
        str,
        any_case("NAME", "UPDATE_AT", "UPDATED_AT"),
        WithJsonSchema({"type": "string", "enum": ["", "NAME", "UPDATE_AT", "UPDATED_AT"]}),
        Field(description="By name, or the newest first; without it the shortest name first"),
    ] = ""


class Results(TypedDict):
    """The results of a search."""

    totalCount: int
    results: list[JSON]


class Hits(TypedDict):
    """The results of a search, with facets."""

    hits: list[JSON]
    highlights: list[JSON]


@router.get("/search", response_model=Results)
def get_search(query: Annotated[SearchQuery, InQuery()], session: ReadSession) -> JSON:
    """Datasets and jobs by a part of a name, of a column or of an SQL text."""
    with session.connected() as connection:
        hits = _found(connection, session, query, query.filter.lower() or None)
    results = [_result(hit, row, session.micros) for hit, row in hits]
    if query.sort == "NAME":
        results.sort(key=itemgetter("name"))
    elif query.sort:
        results.sort(key=itemgetter("updatedAt"), reverse=True)
    return {"totalCount": len(results), "results": results}


def _result(hit: dict[str, Any], row: Any, now: int) -> dict[str, Any]:
    updated = row.newest_at or row.first_at or now
    result = {"namespace": hit["namespace"], "name": hit["name"]}
    return {
        "type": hit["type"].upper(),
        **result,
        "updatedAt": time_text(updated),
        "nodeId": hit["id"],
    }


def _found(connection: Connection, session: Session, query: HitsQuery, kind: str | None) -> Found:
    """Return the results for the text, read in the first way that finds something."""
    most = min(query.limit, MOST)
    for text in dict.fromkeys(_texts(session, query.q)):
        items = (
            _items(connection, text, kind, most, session.micros)
            if text and "\0" not in text
            else []
        )
        ids = {id_of(item["type"], item["namespace"], item["name"]): item for item in items}
        rows = rows_of(connection, ids) | job_rows(connection, ids)
        if rows:
            return [(entity, rows[id_]) for id_, entity in ids.items() if id_ in rows]
    return []


def _items(
    connection: Connection, text: str, kind: str | None, most: int, now: int
) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    after = None
    while len(items) < most:
        page = search_page(connection, text, most, after, now)
        items += [
            item
            for item in page["items"]
            if item["type"] in ((kind,) if kind else ("dataset", "job"))
        ]
        if page["nextCursor"] is None:
            break
        after = decode_cursor(page["nextCursor"], CURSOR)
    return items[:most]


def _texts(session: Session, typed: str) -> Iterator[str]:
    """Yield the texts that may have been typed.

    Marquez' page does not encode `&` and `+`, so they may stand for themselves. A `%` at an end is
    its own sign for any text, where nothing has such a name.
    """
    texts = _Q.search(session.request.scope["query_string"].decode("latin-1"))
    for text in (
        typed,
        *(() if texts is None else (unquote_plus(texts[1]), unquote(texts[1]))),
    ):
        clean = text.encode("utf-8", "replace").decode()
        yield clean
        yield clean.strip("%")


@beta_router.get("/search/jobs", response_model=Hits)
def get_jobs(query: Annotated[HitsQuery, InQuery()], session: ReadSession) -> JSON:
    """Every job with this text, with its facets and its last run."""
    return _hits(session, query, "job")


@beta_router.get("/search/datasets", response_model=Hits)
def get_datasets(query: Annotated[HitsQuery, InQuery()], session: ReadSession) -> JSON:
    """Every dataset with this text, with its facets and its last run."""
    return _hits(session, query, "dataset")


def _hits(session: Session, query: HitsQuery, kind: str) -> JSON:
    with session.connected() as connection:
        page = _found(connection, session, query, kind)
        runs = _newest_runs(connection, kind, [row for _, row in page], session.micros)
        facets = all_facets(
            connection,
            DATASET if kind == "dataset" else OF_JOB,
            {row.id: row.id for _, row in page},
        )
        shown = {row.id: run for _, row in page if (run := runs.get(row.id)) is not None}
        of_runs = _run_facets(connection, [run["row"] for run in shown.values()])
    hits = [
        {
            "run_id": shown.get(row.id, {}).get("run_id", ""),
            "name": hit["name"],
            "namespace": hit["namespace"],
            "eventType": shown.get(row.id, {}).get("eventType", ""),
            "type": "BATCH",
            "facets": facets.get(row.id, {}),
            "runFacets": of_runs.get(shown.get(row.id, {}).get("row", 0), {}),
        }
        for hit, row in page
    ]
    return {"hits": hits, "highlights": [_highlight(hit) for hit, _ in page]}


def _run_facets(connection: Connection, rows: list[int]) -> dict[int, Facets]:
    """Return the facets of these runs, without an engine that states no name.

    It may leave its name out, which Marquez's page reads unchecked.
    """
    own = {row: row for row in rows}
    engines = facet_values(connection, RUN, own, (ENGINE,))
    of_runs = all_facets(connection, RUN, own)
    for row, facets in of_runs.items():
        if not isinstance(engines.get(row, {}).get(ENGINE, {}).get("name"), str):
            facets.pop(ENGINE, None)
    return of_runs


def _highlight(hit: dict[str, Any]) -> dict[str, list[str]]:
    return {hit["matched"]: [hit["text"] or hit["name"]]}


def _newest_runs(
    connection: Connection, kind: str, rows: list[Any], now: int
) -> dict[int, dict[str, Any]]:
    """Return the last run of each job, or the one that wrote each dataset last."""
    if kind == "dataset":
        writes = newest_writes(connection, [row.id for row in rows], View(now)).items()
        return {
            id_: {"run_id": write.run.run_id, "eventType": write.run.state, "row": 0}
            for id_, write in writes
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
