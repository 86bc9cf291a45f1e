"""The audit log, for admins of everything."""

from typing import Any

from strandline.api.http.operations import Ask, Operation
from strandline.api.http.paging import page_of, paged
from strandline.store.audit import entries
from strandline.store.sql.engine import read_from
from strandline.store.sql.pages import encode_cursor

TEXT = {"type": "string"}
ENTRY = {
    "type": "object",
    "required": ["at", "who", "what", "address", "status", "details"],
    "properties": {
        "at": TEXT, "who": TEXT, "what": TEXT, "address": TEXT, "status": {"type": "integer"}, "details": TEXT,
    },
}  # fmt: skip


def audit(ask: Ask) -> dict[str, Any]:
    """Who changed what, the newest first."""
    cursor = ask.given["cursor"]
    with read_from(ask.whole_engine) as connection:
        found = entries(connection, ask.given["limit"] + 1, cursor[0] if cursor else None)
    page = found[: ask.given["limit"]]
    more = len(found) > len(page)
    items = [one._asdict() | {"at": one.at.isoformat()} for _, one in page]
    return {"items": items, "nextCursor": encode_cursor((page[-1][0],)) if more else None}


OPERATIONS = (
    Operation(
        "GET",
        "/api/v2/audit",
        "Who changed what, when and from where, newest first (status 0: a command on the collector's machine)",
        audit,
        paged(int),
        answer=page_of(ENTRY),
        export="list",
        scope="admin",
        whole=True,
    ),
)
