"""The map of all lineage: at most 40 boxes of datasets, and how many jobs lead from box to box.

It counts all that was reported by a moment, as the overview of namespaces does, each dataset once
under its canonical name. Of the present it reads `job_relations`, which is as large as the graph;
of the past every relation.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    Select,
    Text,
    case,
    cast,
    func,
    not_,
    or_,
    select,
)

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.places import (
    Box,
    Path,
    PlacedDataset,
    fold_places,
    folders_of_table,
    id_of_path,
    opening_of,
    placed_by_path,
)
from strandline.store.catalog.lists import inner_commands, never_made, was_named, written_by_others
from strandline.store.catalog.writes import newest_writes
from strandline.store.lineage.hidden_nodes import deleted_jobs, seen_jobs
from strandline.store.lineage.lookup import node_text
from strandline.store.lineage.nested_commands import nested_jobs
from strandline.store.lineage.run_state import View, iso, run_owners
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations, relations
from strandline.store.schema.run_tables import IS_RENAMED, run_queries, runs
from strandline.store.sql.id_lists import among, among_given
from strandline.store.sql.narrowed import access_of

Answer = dict[str, Any]


class JobUse(NamedTuple):
    """The datasets that a job reads and writes, as one text.

    Each is a direction and the id of a name.
    """

    job: int
    names: Sequence[str]


class _End(NamedTuple):
    """The end of a job's use: its direction, and the place of the dataset's box."""

    direction: int
    box: int


@dataclass(slots=True)
class _Counts:
    """The jobs of a box: all, and those that both read and write in it."""

    jobs: int = 0
    jobs_inside: int = 0


def lineage_map(connection: Connection, view: View, opened: Iterable[str]) -> Answer:
    """Return the boxes of a map with counts, and the jobs between them.

    `opened` are ids of boxes to open.
    """
    rows = connection.execute(_datasets()).all()
    uses = _past_uses(connection, view) if view.past else _uses(connection)
    hidden_jobs = _hidden_jobs(connection, view)
    visible = seen_jobs(connection, (use.job for use in uses))
    uses = [use for use in uses if use.job in visible and use.job not in hidden_jobs]
    canonical = {id_: canonical_id for id_, canonical_id, *_ in rows}
    states = _states_of_writes(connection, view, canonical, uses)
    shown = _datasets_to_show(connection, view, rows, states)
    folded = fold_places(shown, [opening_of(text) for text in opened])
    boxes = [*folded.boxes, *folded.frames]
    edges, counts = _count_jobs(uses, canonical, boxes)
    nodes = _names_of_datasets(connection, folded.boxes)
    answers = [
        _box_answer(box, nodes, count, states) for box, count in zip(boxes, counts, strict=True)
    ]
    ids = [answer["id"] for answer in answers]
    unseen = 0 if access_of(connection).everything else _unseen(uses, canonical)
    return {
        "nodes": answers[: len(folded.boxes)],
        "frames": answers[len(folded.boxes) :],
        "edges": [
            {"source": ids[source], "target": ids[target], "jobs": jobs}
            for (source, target), jobs in sorted(edges.items())
        ],
        "totals": {
            "datasets": len(shown),
            "jobs": len(uses),
            "states": _state_counts(shown, states),
        },
        "complete": not unseen,
        "truncatedBy": "access" if unseen else None,
        "asOf": iso(view.at),
        "hidden": {"nodes": 0, "edges": 0} | ({"access": unseen} if unseen else {}),
    }


@cache
def _datasets() -> Select[Any]:
    """Select all datasets, whatever name they are, each with its canonical id and its place."""
    last = case((datasets.c.database_name == "", datasets.c.name), else_=datasets.c.table_name)
    return select(
        datasets.c.id,
        datasets.c.canonical_id,
        datasets.c.namespace,
        datasets.c.catalog,
        datasets.c.database_name,
        last,
    )


def _uses(connection: Connection) -> list[JobUse]:
    """Return all inputs and outputs ever reported of each job.

    The database joins the relations of a job to one text: as rows they would take twice the time.
    """
    owners = dict(map(tuple, connection.execute(_owners_by_other_names())))
    uses = []
    for text in connection.scalars(_relations_of_jobs(), {"others": list(owners)}):
        job, *names = text.split(",")
        uses.append(JobUse(int(job), names))
    if not owners:
        return uses
    rows = connection.execute(_relations_of_runs(), {"runs": list(owners)})
    of_owners = _collected((owners[run], *use) for run, *use in rows)
    return [*(use for use in uses if use.job not in of_owners), *_merged(uses, of_owners)]


@cache
def _owners_by_other_names() -> Select[Any]:
    """Select the runs that may belong to a job of another name than they were reported under.

    They are micro-batches and renamed runs; `run_owners` decides.
    """
    newest = select(job_relations.c.run_id)
    in_query = select(run_queries.c.run_id).where(run_queries.c.run_id == runs.c.id).exists()
    return (
        select(run_owners.c.run_id, run_owners.c.job_id)
        .join(runs, runs.c.id == run_owners.c.run_id)
        .where(runs.c.id.in_(newest), or_(runs.c.streaming == 1, IS_RENAMED, in_query))
    )


@cache
def _relations_of_jobs() -> Select[Any]:
    of = job_relations.c
    name = cast(of.direction, Text) + cast(of.dataset_id, Text)
    text = cast(of.job_id, Text) + "," + func.aggregate_strings(name, ",")
    return select(text).where(not_(among_given(of.run_id, "others"))).group_by(of.job_id)


@cache
def _relations_of_runs() -> Select[Any]:
    of = job_relations.c
    query = select(of.run_id, of.direction, of.dataset_id)
    return query.where(among_given(of.run_id, "runs"))


def _collected(rows: Iterable[Any]) -> dict[int, set[str]]:
    """Map each job to what it reads and writes, from rows of (job, direction, dataset)."""
    by_job: dict[int, set[str]] = {}
    for job, direction, dataset in rows:
        by_job.setdefault(job, set()).add(f"{direction}{dataset}")
    return by_job


def _merged(uses: Iterable[JobUse], others: Mapping[int, set[str]]) -> list[JobUse]:
    """Return the datasets of these jobs, under their own name and under others."""
    own = {use.job: use.names for use in uses if use.job in others}
    return [JobUse(job, [*names.union(own.get(job, ()))]) for job, names in others.items()]


def _past_uses(connection: Connection, view: View) -> list[JobUse]:
    """Return all inputs and outputs reported of each job by a moment."""
    joined = relations.join(run_owners, run_owners.c.run_id == relations.c.run_id)
    use = run_owners.c.job_id, relations.c.direction, relations.c.dataset_id
    query = select(*use).distinct().select_from(joined).where(relations.c.first_at <= view.at)
    by_job = _collected(connection.execute(query))
    return [JobUse(job, [*names]) for job, names in by_job.items()]


def _hidden_jobs(connection: Connection, view: View) -> set[int]:
    """Return the jobs that are deleted, and those that are a part of another's command."""
    commands = connection.execute(inner_commands()).all()
    moment = view.at if view.past else None
    nested = nested_jobs(connection, [(row.id, row.name) for row in commands], moment)
    return nested | deleted_jobs(connection, None, view)


def _states_of_writes(
    connection: Connection, view: View, canonical: Mapping[int, int], uses: Iterable[JobUse]
) -> dict[int, str]:
    """Return the state of the newest write of each canonical dataset that a run has written."""
    if view.past:
        writes = newest_writes(connection, set(canonical.values()), view)
        return {id_: write.run.state for id_, write in writes.items()}
    sink = str(SINK)
    names = {int(name[1:]) for use in uses for name in use.names if name.startswith(sink)}
    written = {canonical[name] for name in names if name in canonical}
    unsure = set(connection.scalars(written_by_others()))
    writes = newest_writes(connection, unsure, view)
    states = dict.fromkeys(written - unsure, "COMPLETE")
    return states | {id_: write.run.state for id_, write in writes.items()}


def _datasets_to_show(
    connection: Connection, view: View, rows: Iterable[Any], states: Mapping[int, str]
) -> list[PlacedDataset]:
    """Return the datasets that lists show, with their folders."""
    failed = [id_ for id_, state in states.items() if state in ("FAIL", "ABORT")]
    hidden = never_made(connection, failed, view.at if view.past else None)
    named = None
    if view.past:
        own = datasets.c.id == datasets.c.canonical_id
        named = set(connection.scalars(select(datasets.c.id).where(own, was_named(view.at))))
    folders: dict[tuple[str, str, str], Path] = {}
    shown: list[PlacedDataset] = []
    for id_, canonical_id, namespace, catalog, database, name in rows:
        if id_ != canonical_id or id_ in hidden or (named is not None and id_ not in named):
            continue
        if not database:
            shown.append(placed_by_path(id_, namespace, name))
            continue
        place = namespace, catalog, database
        if place not in folders:
            folders[place] = folders_of_table(*place)
        shown.append(PlacedDataset(id_, folders[place], name))
    return shown


def _count_jobs(
    uses: Iterable[JobUse], canonical: Mapping[int, int], boxes: Sequence[Box]
) -> tuple[Counter[tuple[int, int]], list[_Counts]]:
    """Return how many jobs lead from box to box, and the jobs of each box.

    Many jobs lead between the same boxes: each such combination is looked at once.
    """
    ends = _ends_in_boxes(canonical, boxes)
    combinations = Counter(frozenset(map(ends.get, use.names)) - {None} for use in uses)
    counts = [_Counts() for _ in boxes]
    around = [_frames_around(box, boxes) for box in boxes]
    edges: Counter[tuple[int, int]] = Counter()
    for combination, jobs_alike in combinations.items():
        reads = {end.box for end in combination if end and end.direction == SOURCE}
        writes = {end.box for end in combination if end and end.direction == SINK}
        for source in reads:
            for target in writes - {source}:
                edges[source, target] += jobs_alike
        reads.update(*(around[box] for box in reads))
        writes.update(*(around[box] for box in writes))
        for box in reads | writes:
            counts[box].jobs += jobs_alike
        for box in reads & writes:
            counts[box].jobs_inside += jobs_alike
    return edges, counts


def _ends_in_boxes(canonical: Mapping[int, int], boxes: Sequence[Box]) -> dict[str, _End]:
    """Map each name of a dataset in a box, as `JobUse` has it, to its end there."""
    box_of = {
        dataset.id: place
        for place, box in enumerate(boxes)
        if not box.is_open
        for dataset in box.datasets
    }
    return {
        f"{direction}{id_}": _End(direction, box_of[canonical_id])
        for id_, canonical_id in canonical.items()
        if canonical_id in box_of
        for direction in (SOURCE, SINK)
    }


def _frames_around(box: Box, boxes: Sequence[Box]) -> list[int]:
    """Return the places of the frames that a box stands in."""
    return [
        place
        for place, frame in enumerate(boxes)
        if frame.is_open and frame is not box and box.frame[: len(frame.path)] == frame.path
    ]


def _unseen(uses: Iterable[JobUse], canonical: Mapping[int, int]) -> int:
    """Return how many datasets the jobs use that the key does not see."""
    used = {int(name[1:]) for use in uses for name in use.names}
    return len(used - canonical.keys())


def _names_of_datasets(connection: Connection, boxes: Iterable[Box]) -> dict[int, Any]:
    """Return namespace and name of the datasets that have a box of their own."""
    alone = [box.datasets[0].id for box in boxes if box.type == "dataset"]
    query = select(datasets.c.id, datasets.c.namespace, datasets.c.name)
    rows = connection.execute(query.where(among(datasets.c.id, alone)))
    return {row.id: row for row in rows}


def _state_counts(shown: Iterable[PlacedDataset], states: Mapping[int, str]) -> dict[str, int]:
    return dict(Counter(states.get(dataset.id, "NONE") for dataset in shown))


def _box_answer(
    box: Box, names: Mapping[int, Any], counts: _Counts, states: Mapping[int, str]
) -> Answer:
    """Return a box as JSON shows it; one of a single dataset has its node's id."""
    id_, namespace = box.id, ""
    if box.type == "dataset":
        row = names[box.datasets[0].id]
        id_, namespace = node_text("dataset", row.namespace, row.name), row.namespace
    answer = {
        "id": id_,
        "type": box.type,
        "namespace": namespace,
        "name": box.name,
        "within": id_of_path(box.frame) if box.frame else None,
        "datasets": len(box.datasets),
        "jobs": counts.jobs,
        "jobsInside": counts.jobs_inside,
        "states": _state_counts(box.datasets, states),
    }
    return answer | ({"boxes": box.boxes} if box.type == "rest" else {})
