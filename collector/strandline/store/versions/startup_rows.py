"""Start-up rows: the snapshots from which a new job begins.

They are decided once, when it first says what it reads.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, insert, select

from strandline.core.openlineage.names import id_of
from strandline.core.versions.checkpoint import start_up
from strandline.core.versions.facts import Fact, JobPlaced
from strandline.core.versions.group_jobs import GroupJob
from strandline.core.versions.model import Model
from strandline.store.schema.run_tables import job_groups, runs
from strandline.store.schema.snapshot_tables import startup_snapshots

MICRO = 1_000_000


def placements(connection: Connection, model: Model, now: float) -> tuple[Sequence[Fact], None]:
    """Place every new job that has reported what it reads; write its start-up rows."""
    facts: list[Fact] = []
    for place in sorted(model.unplaced(), key=lambda place: place.job):
        barrier, snapshots = start_up(model, place.job) or (None, {})
        facts.append(JobPlaced(place.job, tuple(sorted(snapshots.items())), barrier, now))
        if snapshots:
            _store(connection, place, facts[-1], now)
    return facts, None


def _store(connection: Connection, place: GroupJob, placed: Fact, now: float) -> None:
    assert isinstance(placed, JobPlaced)
    run = connection.scalar(
        select(runs.c.id).where(
            runs.c.run_id == place.run, runs.c.job_id == id_of("job", *place.job)
        )
    )
    if run is None:
        return
    stored = set(
        connection.scalars(
            select(startup_snapshots.c.dataset_id).where(startup_snapshots.c.run_id == run)
        )
    )
    rows = [
        {
            "run_id": run,
            "job_id": id_of("job", *place.job),
            "dataset_id": id_of("dataset", *table),
            "snapshot_id": snapshot,
            "at": round(now * MICRO),
        }
        for table, snapshot in placed.snapshots
    ]
    rows = [row for row in rows if row["dataset_id"] not in stored]
    if rows:
        connection.execute(insert(startup_snapshots), rows)
        _say_group(connection, place)


def _say_group(connection: Connection, place: GroupJob) -> None:
    """The group for the rows of a job whose events named none yet.

    A word of its own has a time, and wins over this.
    """
    job = id_of("job", *place.job)
    if connection.scalar(select(job_groups.c.job_id).where(job_groups.c.job_id == job)) is None:
        row = {"job_id": job, "group_name": place.group, "at": 0, "hash": 0}
        connection.execute(insert(job_groups).values(row))
