"""The snapshots that were made from a snapshot, and those that it was made from.

The walk goes from snapshot to snapshot through checkpoints (a job's barrier, or a batch run). What
was only observed is marked; what came as a double that matches no id of the table has no id in any
answer, but the double.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice, product
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    Select,
    TextClause,
    func,
    select,
    text,
    true,
)

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.changes.snapshots import double_of, marked, unmarked
from strandline.core.walk import MOST_NODES, Direction, WalkStep, walk
from strandline.errors import NotFoundError
from strandline.store.lineage.checkpoints import inputs_of_unknown_snapshots
from strandline.store.lineage.hidden_nodes import hidden_beside, seen_datasets, seen_jobs
from strandline.store.lineage.lookup import Node, node_text
from strandline.store.lineage.run_state import View, iso
from strandline.store.lineage.snapshot_reads import (
    Range,
    between,
    origins,
    reading_across,
    showing,
    tell_same_rows,
)
from strandline.store.lineage.stated_edges import StatedInputs, stated_inputs
from strandline.store.lineage.table_graph import outcome
from strandline.store.lineage.table_lineage import Answer, in_order, nodes_of
from strandline.store.lineage.table_snapshots import (
    BEFORE_ALL,
    approximate_ids,
    newest_approximate,
    newest_ids_of,
    of_this_table,
    seen_at,
    snapshot_answer,
    snapshot_rows,
)
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.snapshot_tables import snapshot_uses, snapshots
from strandline.store.schema.snapshot_views import snapshot_lineage_from
from strandline.store.sql.engine import by_index
from strandline.store.sql.id_lists import among, among_text, given

At = tuple[int, str]  # a snapshot (canonical dataset, id), or a checkpoint (job, what it was)


class UsedSnapshot(NamedTuple):
    """A snapshot that a checkpoint read or made."""

    run: int
    job: int
    direction: int
    dataset: int
    snapshot: str
    after: str | None  # exclusive start of an incremental read
    barrier: int | None
    query_id: str
    observed: int

    @property
    def at(self) -> At:
        """The snapshot."""
        return self.dataset, self.snapshot

    @property
    def checkpoint(self) -> At:
        """Return the checkpoint.

        Of a streaming job that is its barrier, whichever run (a replay may have another) reported
        it.
        """
        return (
            self.job,
            f"run {self.run}" if self.barrier is None else f"{self.query_id} {self.barrier}",
        )


Pair = tuple[UsedSnapshot | None, UsedSnapshot | None]


def checkpoints_in(
    used: Iterable[UsedSnapshot],
) -> Iterable[tuple[list[UsedSnapshot], list[UsedSnapshot]]]:
    """Return the snapshots that each checkpoint read and made."""
    uses: dict[At, tuple[list[UsedSnapshot], list[UsedSnapshot]]] = {}
    for use in used:
        uses.setdefault(use.checkpoint, ([], []))[use.direction].append(use)
    return uses.values()


def made_of(
    stated: StatedInputs, reads: Sequence[UsedSnapshot], writes: Sequence[UsedSnapshot]
) -> Iterator[Pair]:
    """Yield each snapshot with a known input, or with none."""
    for write in writes:
        of = [read for read in reads if stated.admit(write.run, write.dataset, read.dataset)]
        yield from product(of or (None,), (write,))


def made_into(
    stated: StatedInputs, reads: Sequence[UsedSnapshot], writes: Sequence[UsedSnapshot]
) -> Iterator[Pair]:
    """Yield each snapshot with a known output, or with none."""
    for read in reads:
        into = [write for write in writes if stated.admit(write.run, write.dataset, read.dataset)]
        yield from product((read,), into or (None,))


USED = (
    "run_id, job_id, direction, dataset_id, snapshot_id, from_snapshot_id, "
    "barrier, query_id, observed"
)

Reasons = dict[WalkStep[At], Pair]


@dataclass(slots=True)
class Snapshots:
    """The graph of snapshots.

    `reasons` has the use of each step's source and target, where there is one.

    `whole` is false once steps may have been left out before the walk could count them. moment:
    only snapshots that were there by then.
    """

    connection: Connection
    moment: int | None = None
    reasons: Reasons = field(default_factory=dict)
    whole: bool = True

    def steps(self, nodes: Sequence[At], way: Direction, limit: int) -> Sequence[WalkStep[At]]:
        """Return the steps that leave these snapshots; see core.walk.Graph."""
        direction = SINK if way is Direction.UPSTREAM else SOURCE
        used = self._by_then(
            covered(self.connection, self._seen(self._uses(nodes, direction, limit)))
        )
        near_by = set(nodes)
        reasons: Reasons = {}
        stated = stated_inputs(self.connection, {use.run for use in used if use.direction == SINK})
        for reads, writes in checkpoints_in(used):
            near = [
                write for write in (writes if direction == SINK else reads) if write.at in near_by
            ]
            pairs = (
                made_of(stated, reads, near)
                if direction == SINK
                else made_into(stated, near, writes)
            )
            reasons |= {_step(*pair): pair for pair in islice(pairs, limit)}
        self.reasons |= reasons
        return list(reasons)[:limit]

    def _seen(self, used: Sequence[UsedSnapshot]) -> list[UsedSnapshot]:
        """Those by jobs and of datasets that the key sees."""
        jobs = seen_jobs(self.connection, {use.job for use in used})
        tables = seen_datasets(self.connection, {use.dataset for use in used})
        return [use for use in used if use.job in jobs and use.dataset in tables]

    def _by_then(self, used: Sequence[UsedSnapshot]) -> Sequence[UsedSnapshot]:
        """Those of snapshots that were there; what is known by its use alone always was."""
        if self.moment is None:
            return used
        later = _later_than(self.connection, {use.at for use in used}, self.moment)
        return [use for use in used if use.at not in later]

    def _uses(self, nodes: Sequence[At], direction: int, limit: int) -> list[UsedSnapshot]:
        later, all_later = (
            showing(self.connection, nodes) if direction == SOURCE else (set[At](), True)
        )
        batches_found = self.connection.execute(
            _batches_with({*nodes, *later}, direction).limit(limit)
        )
        batches = {SnapshotBatch(*row) for row in batches_found}
        self.whole &= all_later and len(batches) < limit
        if direction == SOURCE:
            across, all_of_them = reading_across(self.connection, nodes)
            batches |= {SnapshotBatch(*use) for use in across}
            self.whole &= all_of_them
        parameters = {
            "runs": list({batch.run for batch in batches}),
            "barriers": list({batch.barrier for batch in batches}),
        }
        rows = self.connection.execute(_uses_of(self.connection.dialect.name), parameters)
        return [
            _used(row) for row in rows if SnapshotBatch(row.run_id, row.told_barrier) in batches
        ]


def _later_than(connection: Connection, wanted: Collection[At], moment: int) -> set[At]:
    """Those of the snapshots that nobody can have seen by then."""
    tables, ids = {dataset for dataset, _ in wanted}, {snapshot for _, snapshot in wanted}
    query = (
        select(datasets.c.canonical_id, snapshots.c.snapshot_id)
        .join(datasets, datasets.c.id == snapshots.c.dataset_id)
        .where(among(datasets.c.canonical_id, tables), among(snapshots.c.snapshot_id, ids))
        .group_by(datasets.c.canonical_id, snapshots.c.snapshot_id)
        .having(func.min(seen_at) > moment)
    )
    return {(dataset, snapshot) for dataset, snapshot in connection.execute(query)}


def _used(row: Any) -> UsedSnapshot:
    """A row of the view; what has no id is called by its double."""
    used = UsedSnapshot(*row[:-2])
    return (
        used if row.approximate_id is None else used._replace(snapshot=marked(row.approximate_id))
    )


def covered(connection: Connection, used: Sequence[UsedSnapshot]) -> list[UsedSnapshot]:
    """Select the uses, with those that follow from incremental reads and rewritten snapshots.

    An incremental read uses the snapshots between, and a rewritten snapshot shows the rows of
    another.
    """
    ranges = {
        use: Range(use.dataset, use.after, use.snapshot) for use in used if use.after is not None
    }
    inner = between(connection, ranges.values())
    more = [
        range_._replace(snapshot=snapshot)
        for range_, span in ranges.items()
        for snapshot in inner[span]
    ]
    reads = [use for use in (*used, *more) if use.direction == SOURCE]
    earlier = origins(connection, {read.at for read in reads})
    return [
        *used,
        *more,
        *(read._replace(snapshot=earlier[read.at][1]) for read in reads if read.at in earlier),
    ]


class SnapshotBatch(NamedTuple):
    """The report of a run about one barrier.

    0 where it named none, as a batch run, or a micro-batch of its own.
    """

    run: int
    barrier: int


def _batches_with(nodes: Collection[At], direction: int) -> Select[Any]:
    ids = {snapshot for _, snapshot in nodes}
    lossy = {double for double in map(double_of, ids) if double is not None}
    return (
        select(snapshot_uses.c.run_id, snapshot_uses.c.barrier)
        .distinct()
        .join(datasets, datasets.c.id == snapshot_uses.c.dataset_id)
        .where(
            among(datasets.c.canonical_id, {dataset for dataset, _ in nodes}),
            among(snapshot_uses.c.snapshot_id, ids | lossy),
            snapshot_uses.c.direction == direction,
        )
    )


@cache
def _uses_of(dialect: str) -> TextClause:
    runs, barriers = (
        among_text(dialect, *names) for names in (("run_id", "runs"), ("barrier", "barriers"))
    )
    rows = snapshot_lineage_from(f"SELECT * FROM snapshot_uses WHERE {runs} AND {barriers}")
    lists = given("runs", BigInteger), given("barriers", BigInteger)
    return text(f"SELECT {USED}, approximate_id, told_barrier FROM ({rows}) AS told").bindparams(
        *lists
    )


def _step(read: UsedSnapshot | None, written: UsedSnapshot | None) -> WalkStep[At]:
    version = read or written
    assert version is not None
    return WalkStep(read and read.at, version.checkpoint, written and written.at)


def snapshot_lineage_of(
    connection: Connection,
    dataset: Node,
    snapshot_id: str | None,
    view: View,
    direction: Direction = Direction.BOTH,
    depth: int | None = None,
    most: int = MOST_NODES,
) -> Answer:
    """Return the snapshots from which a snapshot was made, and those made from it.

    The snapshot is the newest by default. At a past moment only those of then count. Each also
    names inputs without a known snapshot.
    """
    by_index(connection)
    moment = view.at if view.past else None
    start = _resolved_snapshot(connection, dataset, snapshot_id, moment)
    graph = Snapshots(connection, moment)
    walked = walk(
        graph, _starts(connection, (dataset.id, start), direction), direction, depth, most
    )
    if not graph.whole:
        walked.truncated_by = walked.truncated_by or "edges"
    reasons = {step: graph.reasons[step] for step in walked.steps}
    checkpoints = {step.via for step in walked.steps}
    distances = {
        node: distance for node, distance in walked.nodes.items() if node not in checkpoints
    }
    named = dict.fromkeys([node[0] for node in (*distances, *checkpoints)], 0)
    names = nodes_of(connection, named)
    nodes = _nodes(connection, distances, names, (dataset.id, start))
    edges = [
        _edge(nodes, names, *reasons[step]) for step in walked.steps if step.source and step.target
    ]
    tell_same_rows(connection, nodes)
    _tell_makers(nodes, names, reasons)
    _tell_unknown_inputs(connection, nodes, reasons, moment)
    return {"nodes": list(nodes.values()), "edges": in_order(edges)} | outcome(
        walked, view, 0, hidden_beside(connection, names)
    )


def _starts(connection: Connection, start: At, direction: Direction) -> list[At]:
    """The snapshot; what it was made from is what made the rows that it shows."""
    return (
        [start]
        if direction is Direction.DOWNSTREAM
        else [start, *origins(connection, [start]).values()]
    )


def _resolved_snapshot(
    connection: Connection, dataset: Node, snapshot_id: str | None, moment: int | None
) -> str:
    """The snapshot to start from.

    An id of which the events hold but the double is called by that.
    """
    if snapshot_id is not None:
        if moment is not None and _later_than(connection, {(dataset.id, snapshot_id)}, moment):
            raise NotFoundError(
                f"snapshot {snapshot_id} of {dataset} was not there yet at {iso(moment)}"
            )
        if snapshot_rows(connection, [(dataset.id, snapshot_id)]):
            return snapshot_id
        double = double_of(snapshot_id)
        if double is not None and double in approximate_ids(connection, dataset.id):
            return marked(double)
    of_this = true() if moment is not None else of_this_table(connection, dataset)
    newest = connection.execute(newest_ids_of(dataset, moment).where(of_this)).all()
    if snapshot_id is not None:
        raise NotFoundError(
            f"unknown snapshot of {dataset}: {snapshot_id}", [id_ for id_, _ in newest]
        )
    id_, at = newest[0] if newest else (None, BEFORE_ALL)
    resolved = newest_approximate(connection, dataset.id, at, moment) or id_
    if resolved is None:
        raise NotFoundError(
            f"no snapshot of {dataset} is known{'' if moment is None else f' at {iso(moment)}'}"
        )
    return resolved


def _nodes(
    connection: Connection, distances: Mapping[At, int], names: Mapping[int, Answer], start: At
) -> dict[At, Answer]:
    info = snapshot_rows(connection, distances)
    nodes = {}
    nearest_first = sorted(
        distances, key=lambda at: (distances[at], at != start, names[at[0]]["id"], at[1])
    )
    for dataset, snapshot in nearest_first:
        name = names[dataset]
        row = info.get((dataset, snapshot))
        described = snapshot_answer(row) if row else _without_row(snapshot)
        id_ = f"{node_text('snapshot', name['namespace'], name['name'])}:{snapshot}"
        nodes[dataset, snapshot] = (
            name
            | {"id": id_, "type": "snapshot", "distance": distances[dataset, snapshot]}
            | described
        )
    return nodes


def _without_row(snapshot: str) -> Answer:
    """A snapshot that is known by its use alone, or that has no id."""
    if unmarked(snapshot) is None:
        return {"snapshotId": snapshot, "observed": True}
    return {"snapshotId": None, "approximateSnapshotId": snapshot, "observed": True}


def _edge(
    nodes: Mapping[At, Answer],
    names: Mapping[int, Answer],
    read: UsedSnapshot | None,
    written: UsedSnapshot | None,
) -> Answer:
    assert read is not None
    assert written is not None
    return {
        "source": nodes[read.at]["id"],
        "target": nodes[written.at]["id"],
        "job": names[written.job]["id"],
        "barrierId": written.barrier,
        "fromSnapshotId": read.after,
        "observed": bool(read.observed or written.observed),
    }


def _tell_makers(
    nodes: Mapping[At, Answer],
    names: Mapping[int, Answer],
    reasons: Reasons,
) -> None:
    """Show with each snapshot the job that made it, also where it made it from nothing known."""
    for _, written in reasons.values():
        if written is not None and written.at in nodes:
            nodes[written.at].setdefault(
                "madeBy", {"job": names[written.job]["id"], "barrierId": written.barrier}
            )


def _tell_unknown_inputs(
    connection: Connection, nodes: Mapping[At, Answer], reasons: Reasons, moment: int | None
) -> None:
    """Show with each snapshot what else its run read: of that nobody can say at which snapshot."""
    runs_of: dict[At, set[int]] = defaultdict(set)
    sources_of: dict[At, set[int]] = defaultdict(set)
    for read, written in reasons.values():
        if written is None or written.at not in nodes:
            continue
        runs_of[written.at].add(written.run)
        if read is not None:
            sources_of[written.at].add(read.dataset)
    runs = set[int]().union(*runs_of.values())
    unknown = inputs_of_unknown_snapshots(connection, runs, moment)
    stated = stated_inputs(connection, runs)
    names = nodes_of(connection, dict.fromkeys(set[int]().union(*unknown.values()), 0))
    for node in names.values():
        del node["distance"]
    for at, makers in runs_of.items():
        besides = {
            input_
            for run in makers
            for input_ in unknown.get(run, ())
            if input_ not in sources_of[at] and stated.admit(run, at[0], input_)
        }
        if besides:
            nodes[at]["inputsOfUnknownSnapshots"] = [
                node for id_, node in names.items() if id_ in besides
            ]
