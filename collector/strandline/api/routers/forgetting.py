"""POST /api/v2/forget: counts what forgetting something changes; `dryRun` false forgets it."""

from typing import Any

from fastapi import APIRouter
from typing_extensions import TypedDict

from strandline.api.http.route import BODY, Route, refused
from strandline.api.http.session import WholeAdminSession, address_of
from strandline.errors import ParameterError
from strandline.questions.versions import Forgetting
from strandline.store.forgetting.forget import Forgotten, Requester, Subject, forget

router = APIRouter(prefix="/api/v2", tags=["administration"], route_class=Route)
_NEEDED = {
    "job": ("namespace", "name"),
    "dataset": ("namespace", "name"),
    "namespace": ("namespace",),
    "run": ("id",),
    "event": ("id",),
}


class Rows(TypedDict):
    """So many rows of a table."""

    table: str
    rows: int


class ForgottenRows(TypedDict):
    """The forgotten rows, or those that would be."""

    executed: bool
    message: str
    gone: list[Rows]
    changed: list[Rows]
    spaceOwed: bool


@router.post("/forget", response_model=ForgottenRows, responses=refused(409))
def post_forget(wanted: Forgetting, session: WholeAdminSession) -> dict[str, Any]:
    """Forget a job, a dataset (under each of its names), a run, a namespace or an event.

    It leaves the whole store, as if it had never come. By default the rows are counted by table and
    nothing changes; `dryRun` false forgets. `executed` says which of the two was done. Writers wait
    meanwhile.
    """
    if missing := [member for member in _NEEDED[wanted.kind] if not getattr(wanted, member)]:
        raise ParameterError(
            f"the body names no {' and no '.join(missing)}: a {wanted.kind} is named by it"
        )
    subject = Subject(wanted.kind, wanted.namespace, wanted.name, wanted.id)
    answer = {"forget": subject.shown, "dryRun": wanted.dry_run}
    session.request.scope[BODY] = answer  # what the audit log gets of it
    requester = Requester(session.now, session.access.who, address_of(session.request))
    forgotten = forget(session.whole_engine, subject, requester, execute=not wanted.dry_run)
    return {
        "executed": not wanted.dry_run,
        "message": _message(forgotten, executed=not wanted.dry_run),
        "gone": [{"table": table, "rows": rows} for table, rows in forgotten.gone.items()],
        "changed": [{"table": table, "rows": rows} for table, rows in forgotten.changed.items()],
        "spaceOwed": forgotten.owed,
    }


def _message(forgotten: Forgotten, *, executed: bool) -> str:
    if forgotten.is_nothing:
        return "nothing in the store names it"
    return "it is forgotten" if executed else 'nothing was changed: {"dryRun": false} forgets it'
