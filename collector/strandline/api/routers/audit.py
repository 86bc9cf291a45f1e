"""The audit log, for admins of everything."""

from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Query as InQuery
from typing_extensions import TypedDict

from strandline.api.http.answers import Page
from strandline.api.http.route import Route
from strandline.api.http.session import WholeAdminSession
from strandline.questions.versions import AuditQuery
from strandline.store.audit import entries
from strandline.store.sql.engine import read_from
from strandline.store.sql.pages import encode_cursor

router = APIRouter(prefix="/api/v2", tags=["administration"], route_class=Route)


class AuditEntry(TypedDict):
    """A change with its author."""

    at: str
    who: str
    what: str
    address: str
    status: int
    details: str


@router.get("/audit", response_model=Page[AuditEntry])
def get_audit(
    query: Annotated[AuditQuery, InQuery()], session: WholeAdminSession
) -> dict[str, Any]:
    """List the changes, newest first: who, when and from where.

    Status 0 is a command on the collector's machine.
    """
    cursor = query.cursor
    with read_from(session.whole_engine) as connection:
        rows = entries(connection, query.limit + 1, cursor[0] if cursor else None)
    page = rows[: query.limit]
    more = len(rows) > len(page)
    items = [entry._asdict() | {"at": entry.at.isoformat()} for _, entry in page]
    return {"items": items, "nextCursor": encode_cursor((page[-1][0],)) if more else None}
