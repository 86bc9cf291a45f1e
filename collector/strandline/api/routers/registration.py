"""The paths of the proposals, without a prefix: /register, /unregister, /version.

A job's id is its name.
"""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from fastapi import Query as InQuery
from sqlalchemy import Connection
from typing_extensions import TypedDict

from strandline.api.http.route import Route, refused
from strandline.api.http.session import IngestSession, ReadSession
from strandline.api.writer.senders import refuse_group
from strandline.core.openlineage.names import TableName, bare, id_of
from strandline.core.versions.facts import Fact, JobRegistered, JobRetired
from strandline.core.versions.model import Model
from strandline.core.versions.registration import refuse_registration
from strandline.core.versions.strong_weak import Reading, strong, weak
from strandline.questions.parameters import Text, Word
from strandline.questions.versions import RegisteredQuery, RetiredQuery
from strandline.store.sql.engine import read_from
from strandline.store.sql.shared_settings import agreed_naming
from strandline.store.versions.answers import with_latest
from strandline.store.versions.fact_log import manage
from strandline.store.versions.live_writers import refuse_live_writers
from strandline.store.versions.lookup import call, job_called, table_at, table_to_register

router = APIRouter(tags=["proposals"], route_class=Route)
Job = Annotated[Word, Path(alias="jobID", description="Name of the job")]
Catalog = Annotated[Word, Path(description="Catalog of the table")]
Database = Annotated[Text, Path(description="Database of the table; may be empty")]
Table = Annotated[Word, Path(description="Table")]
TABLE = "{catalog:name}/{database:name}/{table:name}"
REGISTER = f"/register/{{direction:name}}/{{jobID:name}}/{TABLE}"


class TableVersion(TypedDict):
    """The version and snapshot of one table."""

    version: int | None
    snapshotId: str


@router.post(REGISTER, status_code=204, responses=refused(404, 409))
@router.put(REGISTER, status_code=204, responses=refused(404, 409))
def register(
    direction: Annotated[Literal["source", "sink"], Path(description="source or sink")],
    job: Job,
    catalog: Catalog,
    database: Database,
    table: Table,
    query: Annotated[RegisteredQuery, InQuery()],
    session: IngestSession,
) -> None:
    """Register a table that a job reads or writes; it is shown once a run has started."""

    def decide(connection: Connection, model: Model, now: float) -> tuple[list[Fact], None]:
        announced = agreed_naming(connection).job_name_of(query.namespace, job)
        target = table_to_register(connection, model, _place(catalog, database, table))
        group = bare(query.group) if query.group else None
        if group:
            refuse_group(connection, group, id_of("job", *announced), session.access)
        # a writer of another's table would take its strong versions away
        session.access.require([announced, target])
        reads, writes = ((target,), ()) if direction == "source" else ((), (target,))
        wanted = JobRegistered(announced, reads, writes, now, group)
        call(connection, model, {target, *model.group_of})
        refuse_registration(model, wanted)
        for written in writes:
            refuse_live_writers(connection, model, announced, written)
        manage(connection, [announced])
        return [wanted], None

    session.follower.decide(decide)


@router.post("/unregister/{jobID:name}", status_code=204, responses=refused(404))
@router.delete("/unregister/{jobID:name}", status_code=204, responses=refused(404))
def unregister(job: Job, query: Annotated[RetiredQuery, InQuery()], session: IngestSession) -> None:
    """Retire a job: it no longer blocks versions, and no longer pins what it reads."""

    def decide(connection: Connection, model: Model, now: float) -> tuple[list[Fact], None]:
        called = job_called(connection, model, (query.namespace, job), session.access)
        return [JobRetired(called, now, "unregistered")], None

    session.follower.decide(decide)


@router.get(
    f"/version/{{consistencyType:name}}/{TABLE}",
    response_model=TableVersion,
    responses=refused(404, 409),
)
def get_version(
    consistency: Annotated[
        Literal["strong", "weak"], Path(alias="consistencyType", description="strong or weak")
    ],
    catalog: Catalog,
    database: Database,
    table: Table,
    session: ReadSession,
) -> dict[str, Any]:
    """Version of a table."""
    with session.follower.question(session.access) as (connection, model):
        named = table_at(connection, model, _place(catalog, database, table))
        call(connection, model, [named])
        tracked = (strong if consistency == "strong" else weak)(model, [named])
    with read_from(session.engine) as connection:
        (answer,) = with_latest(connection, tracked, [named])
    barrier = answer.barrier if isinstance(answer, Reading) else None
    return {"version": barrier, "snapshotId": answer.snapshot}


def _place(*parts: str) -> TableName:
    return TableName(*map(bare, parts))
