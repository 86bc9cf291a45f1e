"""The paths of the proposals, without a prefix: /register, /unregister, /version.

A job's id is its name.
"""

from typing import Any

from sqlalchemy import Connection

from strandline.api.endpoints.version_requests import follower_of
from strandline.api.http.operations import Ask, Choice, Operation, Parameter, Text
from strandline.api.writer.senders import refuse_domain
from strandline.core.openlineage.names import TableName, bare, id_of, stored_name
from strandline.core.versions.facts import Fact, Job, JobRegistered, JobRetired
from strandline.core.versions.model import Model
from strandline.core.versions.registration import refuse_registration
from strandline.core.versions.strong_weak import Reading, strong, weak
from strandline.store.sql.engine import read_from
from strandline.store.versions.answers import with_latest
from strandline.store.versions.fact_log import manage
from strandline.store.versions.live_writers import refuse_live_writers
from strandline.store.versions.lookup import call, job_called, table_at, table_to_register


def register(ask: Ask) -> None:
    """Announce that a job reads or writes a table; visible when a run of it really runs."""
    job = _job(ask)

    def decide(connection: Connection, model: Model, now: float) -> tuple[list[Fact], None]:
        table = table_to_register(connection, model, _place(ask))
        domain = bare(ask.given["group"]) if ask.given["group"] else None
        if domain:
            refuse_domain(connection, domain, id_of("job", *job), ask.access)
        ask.access.require(
            [job, table]
        )  # a writer of another's table would take its strong versions away
        reads, writes = ((table,), ()) if ask.given["direction"] == "source" else ((), (table,))
        wanted = JobRegistered(job, reads, writes, now, domain)
        call(connection, model, {table, *model.domain_of})
        refuse_registration(model, wanted)
        for written in writes:
            refuse_live_writers(connection, model, job, written)
        manage(connection, [job])
        return [wanted], None

    follower_of(ask).decide(decide)


def unregister(ask: Ask) -> None:
    """Retire a job: it no longer blocks versions, and no longer pins what it reads."""
    job = _job(ask)

    def decide(_: Connection, model: Model, now: float) -> tuple[list[Fact], None]:
        return [JobRetired(job_called(model, job, ask.access), now, "unregistered")], None

    follower_of(ask).decide(decide)


def version(ask: Ask) -> dict[str, Any]:
    """The version and snapshot of one table."""
    with follower_of(ask).question(ask.access) as (connection, model):
        table = table_at(connection, model, _place(ask))
        call(connection, model, [table])
        strongly = ask.given["consistencyType"] == "strong"
        managed = strong(model, [table]) if strongly else weak(model, [table])
    with read_from(ask.engine) as connection:
        (one,) = with_latest(connection, managed, [table])
    barrier = one.barrier if isinstance(one, Reading) else None
    return {"version": barrier, "snapshotId": one.snapshot}


def _job(ask: Ask) -> Job:
    """The job as its events would name it: without secrets, and no longer than a name may be."""
    return stored_name(ask.given["namespace"]), stored_name(ask.given["jobID"])


def _place(ask: Ask) -> TableName:
    return TableName(*(bare(ask.given[part]) for part in ("catalog", "database", "table")))


_PLACE = (
    Parameter("catalog", "Catalog of the table", Text(1), required=True),
    Parameter("database", "Database of the table; may be empty", Text(), required=True),
    Parameter("table", "Table", Text(1), required=True),
)
_JOB = (
    Parameter("jobID", "Name of the job", Text(1), required=True),
    Parameter("namespace", "Namespace of the job", Text(1), default="default"),
)
_DOMAIN = Parameter("group", "Group of the job, where its sources do not tell", Text(1))
_DIRECTION = Parameter("direction", "source or sink", Choice(("source", "sink")), required=True)
_CONSISTENCY = Parameter(
    "consistencyType", "strong or weak", Choice(("strong", "weak")), required=True
)

OPERATIONS = (
    *(
        Operation(
            method, "/register/{direction}/{jobID}/{catalog}/{database}/{table}", "Announce a table of a job", register,
            (_DIRECTION, *_JOB, *_PLACE, _DOMAIN), status=204, refusals=(404, 409), scope="ingest",
        )
        for method in ("PUT", "POST")
    ),
    *(
        Operation(method, "/unregister/{jobID}", "Retire a job", unregister, _JOB, status=204, refusals=(404,), scope="ingest")
        for method in ("DELETE", "POST")
    ),
    Operation(
        "GET", "/version/{consistencyType}/{catalog}/{database}/{table}", "Version of a table", version,
        (_CONSISTENCY, *_PLACE), answer={"type": "object"}, refusals=(404, 409), scope="read",
    ),
)  # fmt: skip
