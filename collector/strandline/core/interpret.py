"""Event -> changes: everything that one event says about runs, jobs, datasets, relations, barriers and snapshots.

A pure function of the event, its content hash and the moment of its receipt; what other events said is never asked.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from strandline.core import facets as f
from strandline.core import states
from strandline.core.changes import (
    BarrierSeen,
    Change,
    DatasetSeen,
    EdgeSet,
    JobDomain,
    JobRelation,
    JobSeen,
    RelationSeen,
    RunLease,
    RunParent,
    RunQuery,
    RunSeen,
)
from strandline.core.edges import edges_of
from strandline.core.events import Dataset, Event, Job, Run
from strandline.core.memo import NOTHING_SAID, Memo, Said
from strandline.core.naming import clean, id_of, key_text
from strandline.core.reading import SINK, SOURCE, Link, Reading, Stamp, relation_id_of
from strandline.core.snapshots import snapshots_of
from strandline.core.times import micros

MENTION_AT = -(2**62)  # a parent facet knows the job's name, but any event of the run knows better
LONGEST_LEASE = 100 * 365 * 86_400

_QUERY_ID = re.compile(r"(?:^|\n|<br/?>|\s)id = ([0-9a-fA-F-]{36})")
_BATCH = re.compile(r"(?:^|\n|<br/?>|\s)batch = (\d{1,18})")


def changes_of(event: Event, stamp: Stamp, memo: Memo) -> Reading:
    """Read a whole event."""
    reading = Reading(event, stamp, memo, [], [])
    if event.run is not None and event.job is not None:
        _read_run(reading, event.run, event.job)
    elif event.job is not None:
        _read_design(reading, event.job)
    elif event.dataset is not None:
        _read_dataset(reading, event.dataset)
    return reading


def _read_run(reading: Reading, run: Run, job: Job) -> None:
    job_id = reading.memo.job(job.namespace, job.name)[0]
    said_of_job = reading.facets(f.JOB, job_id, job.facets)
    run_id = reading.memo.run(run.run_id, job.namespace, job.name)
    said = reading.facets(f.RUN, run_id, run.facets)
    kind = said_of_job.value("jobType") or _NO_TYPE
    streaming, spark = kind.processing_type.upper() == "STREAMING", kind.integration.upper() == "SPARK"
    announced = "strandline_lease" in said or "strandline_barrier" in said
    _add_run(reading, run_id, job_id, int(streaming), int(spark), int(announced))
    _read_parent(reading, run_id, said)
    _read_lease(reading, run_id, said.value("strandline_lease"))
    _read_query(reading, run_id, job, said)
    barrier = _read_barrier(reading, run_id, job_id, said)
    inputs, outputs = _read_datasets(reading, run_id, streamed=streaming and spark)
    _read_job(reading, job, len(inputs) + len(outputs))
    reading.changes.extend(snapshots_of(reading.stamp, run_id, barrier, (*inputs, *outputs)))
    edges = edges_of(reading.memo, run_id, reading.stamp.at, inputs, outputs, said_of_job, kind.is_complete_snapshot)
    _relate(reading, run_id, job_id, (*inputs, *outputs), list(edges))


_NO_TYPE = f.JobType()


def _add_run(reading: Reading, run_id: int, job_id: int, streaming: int, spark: int, announced: int) -> None:
    at, hash_, received_at = reading.stamp
    rank = states.rank_of(reading.event.event_type)
    started_at = at if states.runs(rank) else None
    ended_at = at if states.is_terminal(rank) else None
    assert reading.event.run is not None
    name = key_text(reading.event.run.run_id)
    times = (at, at, started_at, ended_at, received_at)
    own = (streaming, spark, announced)
    reading.changes.append(RunSeen(run_id, name, job_id, at, hash_, rank, *times, 0, 0, *own))


def _read_job(reading: Reading, job: Job, links: int) -> None:
    """Note the job: noise, if all its datasets in this event are Delta's log; data, if some are not."""
    known = reading.memo.job(job.namespace, job.name)
    if known[2:] != (job.namespace, job.name):
        reading.redacted.append("job")
    datasets = len(reading.event.inputs or ()) + len(reading.event.outputs or ())
    at = reading.stamp.at
    reading.changes.append(JobSeen(*known, at, at, int(datasets > 0 == links), int(links > 0)))


def _read_design(reading: Reading, job: Job) -> None:
    """A JobEvent: its inputs and outputs are a design of their own, told apart by the event's time, and never live."""
    job_id = reading.memo.job(job.namespace, job.name)[0]
    said = reading.facets(f.JOB, job_id, job.facets)
    if reading.event.inputs is None and reading.event.outputs is None:
        _read_job(reading, job, 0)
        return
    at, hash_, _ = reading.stamp
    design_id = id_of("design", str(job_id), str(at))
    reading.changes.append(RunSeen(design_id, "", job_id, at, hash_, 0, at, at, design=1))
    inputs, outputs = _read_datasets(reading, design_id, streamed=False)
    _read_job(reading, job, len(inputs) + len(outputs))
    kind = said.value("jobType") or _NO_TYPE
    edges = edges_of(reading.memo, design_id, at, inputs, outputs, said, kind.is_complete_snapshot)
    _relate(reading, design_id, job_id, (*inputs, *outputs), list(edges))


def _relate(reading: Reading, run_id: int, job_id: int, links: Iterable[Link], edges: Sequence[Change]) -> None:
    """Take in the edges, and say which datasets the job was named with: linked, or as a source of an edge."""
    reading.changes.extend(edges)
    related = {(link.direction, link.dataset_id) for link in links}
    related |= {(SOURCE, one.id) for edge in edges if isinstance(edge, EdgeSet) for one in edge.mentions}
    at = reading.stamp.at
    reading.changes.extend(JobRelation(job_id, direction, dataset, run_id, at) for direction, dataset in related)


def _read_parent(reading: Reading, run_id: int, said: Said) -> None:
    facet = said.get("parent") or said.get("parentRun")
    if facet is None:
        return
    family: Family = reading.memo.derived(("parent", facet.hash), lambda: _family(reading.memo, facet.value))
    at, hash_, received_at = reading.stamp
    for job, run in family.mentions:
        seen = RunSeen(*run, job.id, MENTION_AT, job.id, child_received_at=received_at)
        reading.changes.extend((job, seen))
    if family.parent != run_id:
        reading.changes.append(RunParent(run_id, *family.ids, at, hash_))


class Family(NamedTuple):
    """What a parent facet names: parent run and job, root run and job (`ids`); each job and run once (`mentions`)."""

    ids: tuple[int, int, int, int]
    mentions: tuple[tuple[JobSeen, tuple[int, str]], ...]

    @property
    def parent(self) -> int:
        """The parent's run."""
        return self.ids[0]


def _family(memo: Memo, facet: f.Parent) -> Family:
    root = facet.root or facet
    parents = [_mention(memo, one.run.run_id, one.job) for one in (facet, root)]
    ids = [id_ for job, run in parents for id_ in (run[0], job.id)]
    return Family((ids[0], ids[1], ids[2], ids[3]), tuple(dict.fromkeys(parents)))


def _mention(memo: Memo, run_id: str, job: f.Named) -> tuple[JobSeen, tuple[int, str]]:
    own = memo.run(run_id, job.namespace, job.name)
    return JobSeen(*memo.job(job.namespace, job.name), None, None), (own, key_text(run_id))


def _read_lease(reading: Reading, run_id: int, lease: f.Lease | None) -> None:
    if lease is not None and lease.seconds > 0:
        seconds = int(min(max(lease.seconds, 1), LONGEST_LEASE))
        reading.changes.append(RunLease(run_id, seconds, reading.stamp.at, reading.stamp.hash))


def _read_query(reading: Reading, run_id: int, job: Job, said: Said) -> None:
    """The streaming query that a micro-batch's own run belongs to, by its description or its captured properties."""
    rank, query_id, batch_id = query_of(said.value("spark_jobDetails"), said.value("spark_properties"))
    if query_id:
        query = reading.memo.job(job.namespace, f"streaming_query.{query_id}")
        reading.changes.append(JobSeen(*query, reading.stamp.at, reading.stamp.at))
        at, hash_, _ = reading.stamp
        reading.changes.append(RunQuery(run_id, query_id, batch_id, query[0], rank, at, hash_))


def query_of(details: f.JobDetails | None, properties: f.Properties | None) -> tuple[int, str, int | None]:
    """Rank, query id and batch of a micro-batch; properties may be one batch behind, so the description ranks higher.

    >>> query_of(f.JobDetails("q<br/>id = 0f2c6d0e-0000-4000-8000-000000000001<br/>runId = x<br/>batch = 3"), None)
    (2, '0f2c6d0e-0000-4000-8000-000000000001', 3)
    """
    text = (details and details.job_description) or ""
    named, batch = _QUERY_ID.search(text), _BATCH.search(text)
    if named:
        return 2, named[1].lower(), int(batch[1]) if batch else None
    captured = properties.properties if properties else {}
    batch_id = str(captured.get("streaming.sql.batchId", ""))
    query_id = captured.get("sql.streaming.queryId")
    return 1, key_text(str(query_id or "")), int(batch_id) if batch_id.isdigit() and len(batch_id) < 18 else None


_PHASES = {"committed": 2, "aborted": 1}


def _read_barrier(reading: Reading, run_id: int, job_id: int, said: Said) -> f.Barrier | None:
    """Note a barrier; gives it back if it is a committed one, for the snapshots that the event tells of."""
    barrier: f.Barrier | None = said.value("strandline_barrier")
    if barrier is None:
        return None
    at, hash_, _ = reading.stamp
    if barrier.domain:
        reading.changes.append(JobDomain(job_id, key_text(barrier.domain), at, hash_))
    number, phase = barrier.number, _PHASES.get(barrier.phase)
    if number is None or phase is None:
        return None
    body = said["strandline_barrier"].body
    reading.changes.append(
        BarrierSeen(
            job_id=job_id,
            generation=key_text(barrier.query_id or ""),
            barrier=number,
            domain=key_text(barrier.domain or ""),
            engine=clean(barrier.engine or ""),
            batch_id=barrier.batch_id,
            phase=phase,
            started_at=micros(barrier.started_at or ""),
            committed_at=micros(barrier.committed_at or ""),
            checkpoint=clean(barrier.checkpoint_location or ""),
            run_id=run_id,
            facet=body,
            at=at,
            hash=hash_,
        )
    )
    return barrier if phase == _PHASES["committed"] else None


def _read_datasets(reading: Reading, run_id: int, *, streamed: bool) -> tuple[list[Link], list[Link]]:
    event = reading.event
    inputs = _links(reading, run_id, SOURCE, event.inputs or (), streamed)
    outputs = _links(reading, run_id, SINK, event.outputs or (), streamed)
    return inputs, outputs


def _links(reading: Reading, run_id: int, direction: int, datasets: Iterable[Dataset], streamed: bool) -> list[Link]:
    links = []
    at = reading.stamp.at
    for dataset in datasets:
        dataset_id, said = _read_dataset(reading, dataset, streamed and direction == SOURCE)
        if dataset_id is None:
            continue
        link_id = relation_id_of(run_id, direction, dataset_id)
        own = (
            reading.facets(f.INPUT, link_id, dataset.input_facets)
            if direction == SOURCE
            else reading.facets(f.OUTPUT, link_id, dataset.output_facets)
        )
        creates = int(direction == SINK and _creates(said.value("lifecycleStateChange")))
        reading.changes.append(RelationSeen(run_id, direction, dataset_id, link_id, creates, at, at))
        links.append(Link(direction, dataset_id, Said(said | own) if own else said))
    return links


def _creates(lifecycle: f.Lifecycle | None) -> bool:
    return lifecycle is not None and lifecycle.lifecycle_state_change.upper() == "CREATE"


def _read_dataset(reading: Reading, dataset: Dataset, streamed: bool = False) -> tuple[int | None, Said]:
    at = reading.stamp.at
    sighting = reading.memo.sighting(dataset.namespace, dataset.name, bytes(dataset.facets), streamed=streamed)
    known = sighting.known
    if known.redacted:
        reading.redacted.append("dataset")
    if known.noise:
        return None, NOTHING_SAID
    reading.changes.append(DatasetSeen(*known.named, at, at, 1))
    reading.note(f.DATASET, known.id, sighting.group)
    if sighting.aliases is not None:
        reading.changes.append(sighting.aliases)
    return known.id, sighting.group.said
