"""POST /api/v2/forget: counts what forgetting a job, a dataset, a run, a namespace or an event changes; `dryRun` false forgets it."""

from typing import Any

import msgspec

from strandline.api.endpoints.version_requests import body_as
from strandline.api.http.operations import Ask, Operation, ParameterError
from strandline.api.http.routing import BODY
from strandline.store.forgetting.forget import Asked, Forgotten, Subject, forget
from strandline.store.forgetting.subjects import KINDS, Kind


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What is to be forgotten.

    Only a `dry_run` that is false does so, as the command only does with --execute.
    """

    kind: Kind
    namespace: str = ""
    name: str = ""
    id: str = ""
    dry_run: bool = True


_NEEDED = {
    "job": ("namespace", "name"),
    "dataset": ("namespace", "name"),
    "namespace": ("namespace",),
    "run": ("id",),
    "event": ("id",),
}


def take_out(ask: Ask) -> dict[str, Any]:
    """Count the rows, or forget it."""
    wanted = body_as(ask, Wanted)
    if missing := [one for one in _NEEDED[wanted.kind] if not getattr(wanted, one)]:
        raise ParameterError(
            f"the body names no {' and no '.join(missing)}: a {wanted.kind} is named by it"
        )
    subject = Subject(wanted.kind, wanted.namespace, wanted.name, wanted.id)
    ask.request.scope[BODY] = {
        "forget": subject.shown,
        "dryRun": wanted.dry_run,
    }  # what the audit log gets of it
    client = ask.request.client
    asked = Asked(ask.now, ask.access.who, client.host if client else "")
    found = forget(ask.whole_engine, subject, asked, execute=not wanted.dry_run)
    return {
        "executed": not wanted.dry_run,
        "message": _message(found, executed=not wanted.dry_run),
        "gone": [{"table": table, "rows": rows} for table, rows in found.gone.items()],
        "changed": [{"table": table, "rows": rows} for table, rows in found.changed.items()],
        "spaceOwed": found.owed,
    }


def _message(found: Forgotten, *, executed: bool) -> str:
    if found.is_nothing:
        return "the store has nothing of it"
    return "it is forgotten" if executed else 'nothing was changed: {"dryRun": false} forgets it'


_TEXT = {"type": "string"}
_WANTED = {
    "type": "object",
    "properties": {
        "kind": {"type": "string", "enum": list(KINDS)},
        "namespace": _TEXT,
        "name": _TEXT,
        "id": _TEXT,
        "dryRun": {"type": "boolean", "default": True},
    },
    "required": ["kind"],
    "additionalProperties": False,
}
_ROWS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"table": _TEXT, "rows": {"type": "integer"}},
        "required": ["table", "rows"],
    },
}
_ANSWER = {
    "type": "object",
    "properties": {
        "executed": {"type": "boolean"},
        "message": _TEXT,
        "gone": _ROWS,
        "changed": _ROWS,
        "spaceOwed": {"type": "boolean"},
    },
    "required": ["executed", "message", "gone", "changed", "spaceOwed"],
}

OPERATIONS = (
    Operation(
        "POST",
        "/api/v2/forget",
        "Forget a job, a dataset (under each of its names), a run, a namespace or an event: everywhere in the store, as if it "
        "had never come. By default the rows are counted by table and nothing changes; `dryRun` false forgets. `executed` says "
        "which of the two was done. Writers wait meanwhile.",
        take_out,
        body=_WANTED,
        answer=_ANSWER,
        refusals=(409,),
        scope="admin",
        whole=True,
    ),
)
