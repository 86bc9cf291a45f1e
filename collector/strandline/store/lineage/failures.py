"""Why runs have failed, as their events say: the message of the run, else that of the first run below it that failed."""

from collections.abc import Iterable, Mapping

import msgspec
from sqlalchemy import Connection, func, select

from strandline.core.openlineage.facets import RUN, ErrorMessage
from strandline.core.openlineage.run_states import FAIL
from strandline.store.schema.tables import facet_bodies, facets, run_parents, runs
from strandline.store.sql.compression import expand
from strandline.store.sql.id_lists import among

LEVELS = 4  # a DAG, its task, the Spark application, the statement


def failures(connection: Connection, run_ids: Iterable[int]) -> dict[int, str]:
    """The reasons of those of these runs (by row id) that have one."""
    below = {run: run for run in run_ids}  # where the reason of each is looked for
    found: dict[int, str] = {}
    for _ in range(LEVELS):
        if not below:
            break
        messages = _messages(connection, below.values())
        found |= {run: messages[at] for run, at in below.items() if at in messages}
        failed = _first_failed(connection, [at for run, at in below.items() if run not in found])
        below = {run: failed[at] for run, at in below.items() if run not in found and at in failed}
    return found


def _messages(connection: Connection, run_ids: Iterable[int]) -> Mapping[int, str]:
    body = func.coalesce(facets.c.body, facet_bodies.c.body)
    query = (
        select(facets.c.entity_id, body)
        .outerjoin(facet_bodies, facet_bodies.c.hash == facets.c.hash)
        .where(among(facets.c.entity_id, run_ids), facets.c.kind == RUN, facets.c.key == "errorMessage")
        .where(facets.c.deleted == 0, facets.c.problem == "", body.is_not(None))
    )
    decoded = {run: msgspec.json.decode(expand(said), type=ErrorMessage) for run, said in connection.execute(query)}
    return {run: error.message for run, error in decoded.items() if error.message}


def _first_failed(connection: Connection, run_ids: Iterable[int]) -> dict[int, int]:
    """The run below each of these that failed first: the others mostly failed because of it."""
    query = (
        select(run_parents.c.parent_run_id, runs.c.id)
        .join(runs, runs.c.id == run_parents.c.run_id)
        .where(among(run_parents.c.parent_run_id, run_ids), runs.c.state == FAIL)
        .order_by(runs.c.ended_at.desc(), runs.c.id.desc())
    )
    return {row.parent_run_id: row.id for row in connection.execute(query)}
