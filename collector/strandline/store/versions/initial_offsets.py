"""The snapshots with which streaming queries that end by themselves began.

Such queries run with AvailableNow; their barriers' facets name the snapshots. Iceberg's source
walks the table's history from there when such a query starts again, wherever it is; so all that
came after stays (https://github.com/apache/iceberg/issues/18000).
"""

from collections.abc import Callable, Collection, Iterator

import msgspec
from sqlalchemy import Connection, select

from strandline.core.openlineage.names import id_of
from strandline.core.versions.expirable import Pin
from strandline.core.versions.facts import Job
from strandline.store.schema.snapshot_tables import job_barriers
from strandline.store.sql.compression import expand


class _Source(msgspec.Struct, rename="camel"):
    initial_offset: str | None = None


class _Barrier(msgspec.Struct):
    sources: tuple[_Source, ...] | None = None


class _Offset(msgspec.Struct):
    snapshot_id: int = -1


def _name(job: Job) -> str:
    return job[1]


_BARRIER, _OFFSET = msgspec.json.Decoder(_Barrier), msgspec.json.Decoder(_Offset)


def initial_pins(
    connection: Connection, jobs: Collection[Job], called: Callable[[Job], str] = _name
) -> list[Pin]:
    """Return the snapshots, of any table, with which the newest query of each job began.

    `called` is how messages name a job.
    """
    return [
        Pin(
            snapshot,
            f"the query of job {called(job)} began with it, "
            "and reads from there on when it starts again",
        )
        for job in sorted(jobs)
        for snapshot in _begun_with(connection, job)
    ]


def _begun_with(connection: Connection, job: Job) -> Iterator[str]:
    stored = job_barriers.c
    newest = (
        select(stored.facet)
        .where(stored.job_id == id_of("job", *job))
        .order_by(stored.at.desc(), stored.barrier.desc())
    )
    facet = connection.scalar(newest.limit(1))
    try:
        sources = _BARRIER.decode(expand(facet)).sources if facet is not None else None
    except msgspec.DecodeError:  # kept as it came
        return
    for source in sources or ():
        try:
            snapshot = _OFFSET.decode(source.initial_offset or "{}").snapshot_id
        except msgspec.DecodeError:  # of a source that writes other offsets
            continue
        if snapshot >= 0:
            yield str(snapshot)
