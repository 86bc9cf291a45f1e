"""A lake whose jobs report what they do as events, with the rows of every snapshot.

A row of a base table is a number; a derived table holds the rows of all its inputs, each as often
as they hold it. So what a table should hold at a barrier is known without any rule of the product.
Streams append, batch jobs replace a table, write a part of it or assert that it is complete. Rows
are deleted, tables compacted and restored, checkpoints lost, jobs retired; two jobs may write one
table, a job may have no group, and events come late, twice or never.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

from fixtures.versions_server.events import barrier_facet, dataset, event, facet, moment

JSON = dict[str, Any]
Kind = Literal["stream", "merge", "whole", "part", "append", "asserted"]
GROUP = "lake"
PARTS = 3
BATCH = {"jobType": facet({"processingType": "BATCH", "integration": "SPARK"})}


@dataclass(frozen=True)
class Snapshot:
    """A state of a table; `is_corrected`: somebody changed rows that a job had derived."""

    id: str
    parent: str | None
    operation: str
    rows: Counter[int]
    is_corrected: bool = False


@dataclass
class Table:
    """A table: all its snapshots, and the one that it shows."""

    name: str
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    head: str | None = None

    @property
    def rows(self) -> Counter[int]:
        """The rows that the table shows."""
        return self.snapshots[self.head].rows if self.head is not None else Counter()

    def line(self, head: str | None) -> list[str]:
        """Return a snapshot with its ancestors, newest first."""
        line = []
        while head is not None:
            line.append(head)
            head = self.snapshots[head].parent
        return line

    def commit(self, operation: str, rows: Counter[int], *, is_corrected: bool = False) -> Snapshot:
        """Add a snapshot to the table."""
        number = len(self.snapshots) + 1
        snapshot = Snapshot(f"{self.name}-{number}", self.head, operation, rows, is_corrected)
        self.snapshots[snapshot.id], self.head = snapshot, snapshot.id
        return snapshot


@dataclass
class Job:
    """A job with its position: `at` is where a stream stands in each input."""

    name: str
    kind: Kind
    reads: list[str]
    writes: str
    group: str | None = GROUP
    skips: bool = False
    run: int = 1
    query: int = 1
    batch: int = -1
    at: dict[str, str] = field(default_factory=dict)

    @property
    def is_stream(self) -> bool:
        """True for a job that runs all the time."""
        return self.kind in ("stream", "merge")


@dataclass
class Lake:
    """Tables, the jobs between them, and the streams that fill the base tables."""

    random: Random
    bases: list[str] = field(default_factory=list)
    ungrouped: set[str] = field(default_factory=set)
    dimensions: list[str] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    ingested: dict[str, int] = field(default_factory=dict)
    retired: list[str] = field(default_factory=list)
    faults: frozenset[str] = frozenset()
    clock: float = 0.0
    rows: int = 0
    runs: int = 0

    def tick(self) -> float:
        """Return a time that never comes twice."""
        self.clock += 1.0
        return self.clock

    def group_of_ingest(self, base: str) -> str | None:
        """Return the group that the stream names which fills a base table."""
        return None if base in self.ungrouped else GROUP

    def definition(self, table: str) -> list[str] | None:
        """Return the inputs of a derived table; None of a base table."""
        return next((job.reads for job in self.jobs if job.writes == table), None)

    def expected(self, table: str, states: dict[str, Counter[int]]) -> Counter[int]:
        """Return the rows that a table holds if its base tables are in these states."""
        inputs = self.definition(table)
        if inputs is None:
            return states.get(table, Counter())
        rows = Counter[int]()
        for one in inputs:
            if one not in self.dimensions:
                rows += self.expected(one, states)
        return rows

    def bases_of(self, table: str) -> set[str]:
        """Return the base tables that a table is made from."""
        inputs = self.definition(table)
        if inputs is None:
            return {table} - set(self.dimensions)
        return {base for one in inputs for base in self.bases_of(one)}


def make_lake(seed: int, most: int = 5, faults: int = 4) -> Lake:
    """One to three base tables, and up to `most` tables made from them; each lake has few faults."""
    random = Random(seed)
    lake = Lake(
        random, faults=frozenset(random.sample([*MISHAPS, *HABITS], random.randint(0, faults)))
    )
    lake.bases = [f"db.base{number}" for number in range(random.choice([1, 1, 1, 2, 2, 3]))]
    known = list(lake.bases)
    if "ungrouped ingest" in lake.faults and "no group" not in lake.faults:
        lake.ungrouped = {base for base in lake.bases if random.random() < 0.7}
    if "dimension" in lake.faults:
        lake.dimensions = ["db.dim"]
    for name in [*lake.bases, *lake.dimensions]:
        lake.tables[name] = Table(name)
    for number in range(random.randint(1, most)):
        kind: Kind = random.choice(
            ["stream", "stream", "stream", "merge", "whole", "whole", "part", "append", "asserted"]
        )
        readable = known
        if kind in ("stream", "merge"):  # a stream reads what others append to
            whole = {job.writes for job in lake.jobs if job.kind != "stream"}
            readable = [one for one in known if one not in whole]
        reads = random.sample(readable, random.randint(1, min(3, len(readable))))
        if lake.dimensions and kind not in ("stream", "merge"):
            reads.append("db.dim")
        group = None if "no group" in lake.faults and random.random() < 0.3 else GROUP
        job = Job(f"job{number}", kind, reads, f"db.t{number}", group, random.random() < 0.3)
        lake.jobs.append(job)
        lake.tables[job.writes] = Table(job.writes)
        known.append(job.writes)
    return lake


def start_events(lake: Lake) -> Iterator[JSON]:
    """Yield the starts of all streams."""
    for base in lake.bases:
        yield started(lake, f"to_{base}", [], [base], lake.group_of_ingest(base), 1)
    for job in lake.jobs:
        if job.is_stream:
            yield started(lake, job.name, job.reads, [job.writes], job.group, job.run)


def started(
    lake: Lake, job: str, reads: list[str], writes: list[str], group: str | None, run: int
) -> JSON:
    """Return START of a run."""
    facets = {"strandline_barrier": facet({"group": group, "engine": "spark"})} if group else {}
    return event(
        "START", job, lake.tick(), run=run, run_facets=facets,
        inputs=[dataset(name, "input") for name in reads],
        outputs=[dataset(name, "output") for name in writes],
    )  # fmt: skip


def history(lake: Lake, steps: int) -> Iterator[JSON]:
    """Yield events as they arrive."""
    yield from start_events(lake)
    waiting: list[JSON] = []
    for _ in range(steps):
        for one in act(lake):
            dice = lake.random.random()
            if "lost event" in lake.faults and dice < 0.05:
                continue
            if "late" in lake.faults and dice < 0.3:
                waiting.append(one)
                continue
            yield one
            if "twice" in lake.faults and dice > 0.8:
                waiting.append(one)
        while waiting and lake.random.random() < 0.3:
            yield waiting.pop(lake.random.randrange(len(waiting)))
    lake.random.shuffle(waiting)
    yield from waiting


def act(lake: Lake) -> list[JSON]:
    """Something happens in the lake."""
    dice = lake.random.random()
    if dice < 0.3:
        return ingest(lake, lake.random.choice(lake.bases))
    if dice < 0.4:
        fault = lake.random.choice([*sorted(lake.faults), "nothing"])
        return MISHAPS[fault](lake) if fault in MISHAPS else []
    job = lake.random.choice(lake.jobs)
    if job.name in lake.retired:
        return []
    if job.is_stream:
        return micro_batch(lake, job)
    return batch_run(lake, job) if lake.random.random() < 0.5 else []


def new_rows(lake: Lake) -> Counter[int]:
    """Return rows that no table has."""
    rows = Counter[int]()
    for _ in range(lake.random.randint(1, 3)):
        lake.rows += 1
        rows[lake.rows] = 1
    return rows


def made(snapshot: Snapshot, at: float, **more: Any) -> JSON:
    """Return what an event says of a commit."""
    content: JSON = {
        "snapshotId": snapshot.id,
        "operation": snapshot.operation,
        "format": "iceberg",
    }
    if snapshot.parent is not None:
        content["parentSnapshotId"] = snapshot.parent
    return content | {"committedAt": moment(at)} | more


def ingest(lake: Lake, base: str) -> list[JSON]:
    """A micro-batch of the stream that fills a base table."""
    number = lake.ingested[base] = lake.ingested.get(base, -1) + 1
    table = lake.tables[base]
    snapshot = table.commit("append", table.rows + new_rows(lake))
    at = lake.tick()
    group = lake.group_of_ingest(base)
    facets = barrier_facet(group, number + 1, at - 0.5, at, queryId=f"q-{base}")
    output = dataset(base, "output", made(snapshot, at, barrierId=number + 1))
    return [event("RUNNING", f"to_{base}", at, run_facets=facets, outputs=[output])]


@dataclass
class Progress:
    """What a micro-batch consumes of one input: from `start`, exclusive, up to `end`."""

    start: str | None
    end: str
    rows: Counter[int]
    skips_changes: bool


def progress(lake: Lake, job: Job, source: Table) -> Progress | None:
    """Return what a stream consumes of an input next; None where there is nothing."""
    start = job.at.get(source.name)
    if source.head is None or start == source.head:
        return None
    if start is None:
        return Progress(None, source.head, source.rows, skips_changes=False)
    if job.batch >= 0 and lake.random.random() < 0.3:
        return None
    line, before = source.line(source.head), source.line(start)
    new = [snapshot for snapshot in line if snapshot not in before]
    if len(new) > 1 and lake.random.random() < 0.3:
        new = new[len(new) // 2 :]  # the newest snapshots wait
    if not new:
        return None
    rows, skips_changes = Counter[int](), start not in line
    for snapshot in map(source.snapshots.__getitem__, new):
        if snapshot.operation == "append":
            rows += snapshot.rows - (
                source.snapshots[snapshot.parent].rows if snapshot.parent else Counter()
            )
        else:
            skips_changes |= snapshot.operation != "replace"
    return Progress(start, new[0], rows, skips_changes)


def micro_batch(lake: Lake, job: Job) -> list[JSON]:
    """A micro-batch of a stream: each input is consumed a little further, or not at all."""
    moved: dict[str, Progress] = {}
    for name in job.reads:
        step = progress(lake, job, lake.tables[name])
        if step is not None:
            moved[name] = step
    if not moved or (job.batch < 0 and len(moved) < len(job.reads)):
        return []
    if any(step.skips_changes for step in moved.values()) and not job.skips:
        return []  # the query fails
    job.batch += 1
    job.at |= {name: step.end for name, step in moved.items()}
    table = lake.tables[job.writes]
    was_empty, rows = not table.rows, Counter(table.rows)
    is_corrected = table.head is not None and table.snapshots[table.head].is_corrected
    for name, step in moved.items():
        rows += step.rows
        is_corrected |= lake.tables[name].snapshots[step.end].is_corrected
    operation = "append" if job.kind == "stream" else "overwrite"
    snapshot = table.commit(operation, rows, is_corrected=is_corrected)
    at = lake.tick()
    query = f"{job.name}-{job.query}"
    facets = barrier_facet(job.group, None, at - 0.5, at, batchId=job.batch, queryId=query)
    inputs = [
        dataset(name, "input", _read(step.start, step.end, skipped=step.skips_changes))
        for name, step in moved.items()
    ]
    idle = [name for name in job.reads if name not in moved]
    inputs += [dataset(name, "input", _read(job.at[name], job.at[name])) for name in idle]
    more: JSON = {"wasEmpty": True} if was_empty and snapshot.parent is not None else {}
    output = dataset(job.writes, "output", made(snapshot, at, **more))
    return [
        event(
            "RUNNING", job.name, at, run=job.run, run_facets=facets, inputs=inputs, outputs=[output]
        )
    ]


def _read(start: str | None, end: str, *, skipped: bool = False) -> JSON:
    content: JSON = {"snapshotId": end, "format": "iceberg"}
    if start is not None:
        content["fromSnapshotId"] = start
    return content | ({"skippedChanges": True} if skipped else {})


def batch_run(lake: Lake, job: Job) -> list[JSON]:
    """A run of a batch job: it reads all its inputs as they are, sometimes as they were before."""
    read: dict[str, str] = {}
    rows = Counter[int]()
    is_corrected = False
    for name in job.reads:
        source = lake.tables[name]
        if source.head is None:
            return []
        line = source.line(source.head)
        place = min(len(line) - 1, lake.random.choice([0, 0, 0, 1, 2]))
        read[name] = line[place]
        if name not in lake.dimensions:
            rows += source.snapshots[line[place]].rows
            is_corrected |= source.snapshots[line[place]].is_corrected
    table = lake.tables[job.writes]
    more: JSON = {"replacesTable": False}
    if job.kind == "whole":
        more, operation = {"replacesTable": True}, "overwrite"
        if "own table" in lake.faults and table.head is not None and lake.random.random() < 0.3:
            line = table.line(table.head)
            read[job.writes] = line[0]
            rows = table.rows | rows  # what it read is newer, or the same
            is_corrected |= table.snapshots[line[0]].is_corrected
    elif job.kind == "part":
        part, operation = lake.random.randrange(PARTS), "overwrite"
        kept = Counter({row: n for row, n in table.rows.items() if row % PARTS != part})
        rows = kept + Counter({row: n for row, n in rows.items() if row % PARTS == part})
    elif job.kind == "append":
        rows, operation = table.rows | rows, "append"
    else:
        more, operation = {"completes": True, "replacesTable": False}, "overwrite"
    if job.kind in ("part", "append") and table.head is not None:
        is_corrected |= table.snapshots[table.head].is_corrected
    snapshot = table.commit(operation, rows, is_corrected=is_corrected)
    return of_batch(lake, job.name, read, job.writes, snapshot, job.group, **more)


def of_batch(
    lake: Lake,
    job: str,
    read: dict[str, str],
    writes: str,
    snapshot: Snapshot,
    group: str | None,
    **more: Any,
) -> list[JSON]:
    """Return START and COMPLETE of a batch run."""
    lake.runs += 1
    run = 1000 + lake.runs
    start = started(lake, job, list(read), [writes], group, run)
    at = lake.tick()
    inputs = [dataset(name, "input", _read(None, id_)) for name, id_ in read.items()]
    outputs = [dataset(writes, "output", made(snapshot, at, **more))]
    facets = {"strandline_barrier": facet({"group": group, "engine": "spark"})} if group else {}
    end = event("COMPLETE", job, at, run=run, run_facets=facets, inputs=inputs, outputs=outputs)
    for one in (start, end):
        one["job"]["facets"] = BATCH
    return [start, end]


def streams_of(lake: Lake) -> list[Job]:
    """Return the streams that are not retired."""
    return [job for job in lake.jobs if job.is_stream and job.name not in lake.retired]


def filled(lake: Lake) -> list[Table]:
    """Return the tables that have rows."""
    return [table for table in lake.tables.values() if table.rows]


def new_dimension(lake: Lake) -> list[JSON]:
    """A dimension is loaded anew, from nothing that the group has."""
    snapshot = lake.tables["db.dim"].commit("overwrite", new_rows(lake))
    return of_batch(lake, "dims", {}, "db.dim", snapshot, None, replacesTable=True)


def deletion(lake: Lake, names: list[str], *, is_correction: bool) -> list[JSON]:
    """Somebody deletes a row of one of these tables."""
    tables = [lake.tables[name] for name in names if lake.tables[name].rows]
    if not tables:
        return []
    table = lake.random.choice(tables)
    gone = lake.random.choice(sorted(table.rows))
    rows = Counter({row: n for row, n in table.rows.items() if row != gone})
    snapshot = table.commit("delete", rows, is_corrected=is_correction)
    return of_batch(lake, "forget", {}, table.name, snapshot, None)


def base_delete(lake: Lake) -> list[JSON]:
    """A row of a base table is deleted."""
    return deletion(lake, lake.bases, is_correction=False)


def correction(lake: Lake) -> list[JSON]:
    """A row is deleted that a stream derived."""
    return deletion(lake, [job.writes for job in streams_of(lake)], is_correction=True)


def compaction(lake: Lake) -> list[JSON]:
    """A table gets the same rows in other files."""
    tables = filled(lake)
    if not tables:
        return []
    table = lake.random.choice(tables)
    is_corrected = table.snapshots[table.head or ""].is_corrected
    snapshot = table.commit("replace", table.rows, is_corrected=is_corrected)
    return of_batch(lake, "compact", {}, table.name, snapshot, None)


def pointer_restore(lake: Lake) -> list[JSON]:
    """Iceberg's rollback: the table shows an earlier snapshot, and nothing is reported."""
    tables = filled(lake)
    if tables:
        table = lake.random.choice(tables)
        table.head = lake.random.choice(table.line(table.head))
    return []


def restore(lake: Lake) -> list[JSON]:
    """Delta's RESTORE: a new version has the rows of an earlier one."""
    tables = filled(lake)
    if not tables:
        return []
    table = lake.random.choice(tables)
    before = table.snapshots[lake.random.choice(table.line(table.head))]
    snapshot = table.commit("restore", before.rows, is_corrected=before.is_corrected)
    return of_batch(lake, "undo", {table.name: before.id}, table.name, snapshot, None)


def new_run(lake: Lake, job: Job) -> JSON:
    """Return START of the next run of a stream."""
    job.run += 1
    return started(lake, job.name, job.reads, [job.writes], job.group, job.run)


def lost_checkpoint(lake: Lake) -> list[JSON]:
    """A stream begins from nothing, on what its table holds."""
    streams = streams_of(lake)
    if not streams:
        return []
    job = lake.random.choice(streams)
    job.query, job.batch, job.at = job.query + 1, -1, {}
    return [new_run(lake, job)]


def unbegun(lake: Lake) -> tuple[Job, dict[str, str]] | None:
    """Return a stream without a micro-batch whose inputs have snapshots, with these."""
    streams = [job for job in streams_of(lake) if job.batch < 0]
    if not streams:
        return None
    job = lake.random.choice(streams)
    heads = {name: lake.tables[name].head for name in job.reads}
    known = {name: head for name, head in heads.items() if head is not None}
    return (job, known) if known.keys() == heads.keys() else None


def midway(lake: Lake) -> list[JSON]:
    """A stream is to begin with what its inputs get from now on."""
    found = unbegun(lake)
    if found is not None:
        found[0].at = found[1]
    return []


def initial_load(lake: Lake) -> list[JSON]:
    """A batch run fills the table of a stream, which is to go on from there."""
    found = unbegun(lake)
    if found is None:
        return []
    job, read = found
    rows = Counter[int]()
    for name in read:
        rows += lake.tables[name].rows
    is_corrected = any(lake.tables[name].snapshots[at].is_corrected for name, at in read.items())
    snapshot = lake.tables[job.writes].commit("overwrite", rows, is_corrected=is_corrected)
    job.at = read
    load = f"load_{job.name}"
    return of_batch(lake, load, read, job.writes, snapshot, GROUP, replacesTable=True)


def second_stream(lake: Lake) -> list[JSON]:
    """Another stream begins to write the table of a stream."""
    streams = [job for job in streams_of(lake) if not job.name.endswith("b")]
    if not streams:
        return []
    job = lake.random.choice(streams)
    other = Job(f"{job.name}b", job.kind, job.reads, job.writes, skips=job.skips)
    if any(one.name == other.name for one in lake.jobs):
        return []
    lake.jobs.append(other)
    return [started(lake, other.name, other.reads, [other.writes], other.group, 1)]


def retirement(lake: Lake) -> list[JSON]:
    """A stream is retired: whoever plays the history says so to the collector."""
    streams = streams_of(lake)
    if streams:
        lake.retired.append(lake.random.choice(streams).name)
    return []


def restart(lake: Lake) -> list[JSON]:
    """A new run of a stream begins, often after the end of the one before."""
    streams = streams_of(lake)
    if not streams:
        return []
    job = lake.random.choice(streams)
    kind = lake.random.choice(["COMPLETE", "FAIL", "no end"])
    ends = [event(kind, job.name, lake.tick(), run=job.run)] if kind != "no end" else []
    return [*ends, new_run(lake, job)]


MISHAPS: dict[str, Callable[[Lake], list[JSON]]] = {
    "dimension": new_dimension,
    "base delete": base_delete,
    "correction": correction,
    "compaction": compaction,
    "pointer restore": pointer_restore,
    "restore": restore,
    "lost checkpoint": lost_checkpoint,
    "midway": midway,
    "initial load": initial_load,
    "second stream": second_stream,
    "retired": retirement,
    "restart": restart,
}
HABITS = ("no group", "ungrouped ingest", "own table", "late", "twice", "lost event")
