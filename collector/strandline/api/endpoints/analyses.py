"""GET /api/v2/analyses: the first rows of the reports that `strandline analyse --publish` computed on Spark."""

from typing import Any

from strandline.api.http.operations import Ask, Choice, Operation, Parameter
from strandline.api.http.paging import connected, page_of, paged, shape
from strandline.store.analyses import REPORTS, report_of, reports_of
from strandline.store.sql.pages import encode_cursor

REPORT = Parameter("report", f"One of {', '.join(REPORTS)}", Choice(REPORTS), required=True)
HEAD = {
    "report": {"type": "string", "enum": list(REPORTS)},
    "about": {"type": "string"},
    "asOf": {"type": "string", "format": "date-time"},
    "state": {"type": "string", "enum": ["known", "newest"]},
    "total": {"type": "integer", "description": "How many rows the report has; only for who sees all namespaces"},
    "complete": {"type": "boolean"},
    "truncatedBy": {
        "type": ["string", "null"],
        "enum": ["depth", "pairs", "rows", None],
        "description": "Why counts are lower bounds (depth, pairs), or later rows are in the report's table alone (rows)",
    },
}
SUMMARY = {"type": "object", "required": [name for name in HEAD if name != "total"], "properties": HEAD}
PAGE = page_of(shape("id", "kind", "namespace", "name"))
WITHHELD = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Values that count what lies in other namespaces, which the key does not see",
}
ANSWER = {
    "type": "object",
    "required": [*SUMMARY["required"], "items", "withheld", "nextCursor"],
    "properties": HEAD | PAGE["properties"] | {"withheld": WITHHELD},
}


def analyses(ask: Ask) -> dict[str, Any]:
    """Which reports there are, and of when."""
    with connected(ask) as connection:
        return {"items": reports_of(connection, everything=ask.access.everything)}


def analysis(ask: Ask) -> dict[str, Any]:
    """A page of a report."""
    start = max(0, ask.given["cursor"][0]) if ask.given["cursor"] else 0
    with connected(ask) as connection:
        answer = report_of(connection, ask.given["report"], start, ask.given["limit"], everything=ask.access.everything)
    following = answer.pop("next")
    return answer | {"nextCursor": None if following is None else encode_cursor((following,))}


OPERATIONS = (
    Operation(
        "GET",
        "/api/v2/analyses",
        "The reports over the whole store that were published (strandline analyse --publish), and of when they are",
        analyses,
        answer={"type": "object", "required": ["items"], "properties": {"items": {"type": "array", "items": SUMMARY}}},
        scope="read",
    ),
    Operation(
        "GET",
        "/api/v2/analyses/{report}",
        "The first rows of a report: what most others come from, orphans, stale and unread datasets, unused columns, aliases",
        analysis,
        (REPORT, *paged(int)),
        answer=ANSWER,
        refusals=(404,),
        export="list",
        scope="read",
    ),
)
