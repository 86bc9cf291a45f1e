"""`strandline retire JOB`: the job is no longer a member.

It blocks no version, and pins nothing that it read.
"""

from argparse import Namespace
from collections.abc import Sequence

from sqlalchemy import Connection

from strandline.cli.models import job_called, store_of, tell
from strandline.core.openlineage.names import id_of
from strandline.core.versions.facts import Fact, Job, JobRetired
from strandline.core.versions.model import Model
from strandline.errors import RefusedError
from strandline.runtime.coordinator import runs_over
from strandline.settings import Settings
from strandline.store.versions.lookup import call


def run(options: Namespace, settings: Settings) -> int:
    """Retire the job, unless it runs."""

    def decide(
        connection: Connection, model: Model, now: float
    ) -> tuple[Sequence[Fact], tuple[Job, list[str]]]:
        job = job_called(model, options.job)
        place = model.places.get(job)
        if (
            place is not None
            and place.ended is None
            and not options.even_if_running
            # A silent run is over at once; a server notes it later, if one is up at all.
            and not runs_over(connection, {(id_of("job", *job), place.run): place}, now)
        ):
            raise RefusedError(
                f"{job[1]} is running (run {place.run}); stop it first, or pass --even-if-running",
                "running",
            )
        tables = sorted(place.writes) if place is not None else []
        call(connection, model, tables)
        labels = [model.call(table) for table in tables]
        return [JobRetired(job, now, "strandline retire")], (job, labels)

    with store_of(settings) as (_, follower):
        (namespace, name), tables = follower.decide(decide)
    tell({"namespace": namespace, "name": name}, lambda: _lines(name, tables), as_json=options.json)
    return 0


def _lines(name: str, tables: Sequence[str]) -> list[str]:
    lines = [f"{name} is retired: it no longer blocks versions or pins snapshots"]
    return lines + [
        f"  {table}: no newer strong versions until a job with barriers writes it again"
        for table in tables
    ]
