"""Entries of the graph from the database, many at once, by the same functions that answer without them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, select

from strandline.core.changes.extraction import SINK
from strandline.core.changes.rows import QUARANTINED
from strandline.core.openlineage.facets import DATASET
from strandline.core.openlineage.run_states import FAIL, NONE
from strandline.core.walk import WalkStep
from strandline.store.graph.entries import (
    FOREVER,
    DatasetEntry,
    EdgeText,
    GraphStep,
    JobEntry,
    NodeLabel,
    part_of,
)
from strandline.store.graph.news import LIFECYCLE
from strandline.store.lineage.children import outcomes
from strandline.store.lineage.hidden import Key
from strandline.store.lineage.nested_commands import nested_runs
from strandline.store.lineage.relations import JobEdge, Seen, View, job_edges_of, names_by_job
from strandline.store.lineage.run_state import RunState, rows_of_runs, run_owners, run_state
from strandline.store.lineage.table_edges import FoundEdge, read_edge, written_edge
from strandline.store.lineage.table_graph import EVERY_STEP, Reason, by_job, stated_sources
from strandline.store.lineage.table_lineage import begun_at, nodes_of, relations_in
from strandline.store.schema.tables import datasets, facets, job_relations, run_parents, runs
from strandline.store.sql.id_lists import among_given

FoundStep = tuple[WalkStep[int], Reason]


def load_datasets(connection: Connection, ids: Collection[int]) -> dict[int, DatasetEntry]:
    """The entries of datasets by their canonical ids."""
    given = {"ids": list(ids)}
    labels = nodes_of(connection, dict.fromkeys(ids, 0))
    touching: dict[int, tuple[dict[int, None], dict[int, None]]] = {id_: ({}, {}) for id_ in ids}
    for dataset, direction, job in connection.execute(_touching(), given):
        touching[dataset][direction][job] = None
    names: dict[int, list[int]] = defaultdict(list)
    for id_, canonical in connection.execute(_names(), given):
        names[canonical].append(id_)
    lifecycles = set(connection.scalars(_lifecycles(), given))
    return {
        id_: DatasetEntry(
            NodeLabel.of(labels[id_]) if id_ in labels else None,
            tuple(names[id_]),
            touching[id_],
            id_ in lifecycles,
        )
        for id_ in ids
    }


@cache
def _touching() -> Select[Any]:
    joined = job_relations.join(datasets, datasets.c.id == job_relations.c.dataset_id)
    columns = (datasets.c.canonical_id, job_relations.c.direction, job_relations.c.job_id)
    return (
        select(*columns)
        .distinct()
        .select_from(joined)
        .where(among_given(datasets.c.canonical_id, "ids"))
    )


@cache
def _names() -> Select[Any]:
    others = datasets.c.id != datasets.c.canonical_id
    return select(datasets.c.id, datasets.c.canonical_id).where(
        among_given(datasets.c.canonical_id, "ids"), others
    )


@cache
def _lifecycles() -> Select[Any]:
    joined = datasets.join(facets, facets.c.entity_id == datasets.c.id)
    is_lifecycle = (facets.c.key == LIFECYCLE, facets.c.kind.in_((DATASET, DATASET + QUARANTINED)))
    return (
        select(datasets.c.canonical_id)
        .distinct()
        .select_from(joined)
        .where(among_given(datasets.c.canonical_id, "ids"), *is_lifecycle)
    )


def load_jobs(connection: Connection, names: Collection[int], view: View) -> dict[int, JobEntry]:
    """The entries of these jobs, and of those that runs of these names belong to."""
    reported: dict[int, set[Key]] = defaultdict(set)
    asked, new = set[int](), set(names)
    while new:
        for name, *key in connection.execute(_reported(), {"ids": list(new)}):
            reported[name].add((key[0], key[1], key[2]))
        asked |= new
        new = {key[0] for name in new for key in reported[name]} - asked
    loading = _Loading(connection, view, asked)
    return {id_: loading.entry(id_, reported[id_]) for id_ in asked}


@cache
def _reported() -> Select[Any]:
    """What was ever reported under these names, and of which job."""
    joined = job_relations.join(run_owners, run_owners.c.run_id == job_relations.c.run_id)
    joined = joined.join(datasets, datasets.c.id == job_relations.c.dataset_id)
    key = run_owners.c.job_id.label("owner"), job_relations.c.direction, datasets.c.canonical_id
    named = select(job_relations.c.job_id, *key).distinct().select_from(joined)
    return named.where(among_given(job_relations.c.job_id, "ids"))


class _Loading:
    """What the entries of some jobs are made from, each question asked once for all of them."""

    def __init__(self, connection: Connection, view: View, ids: Collection[int]) -> None:
        every = job_edges_of(connection, view, list(ids))
        nested = nested_runs(connection, {one.run for one in every if one.direction == SINK})
        self._steps = _steps_by_job(connection, [one for one in every if one.run not in nested])
        self._nested = {one.job for one in every if one.run in nested}
        self._relations: dict[int, list[JobEdge]] = defaultdict(list)
        for one in every:
            self._relations[one.job].append(one)
        self._labels = nodes_of(connection, dict.fromkeys(ids, 0))
        self._names = names_by_job(connection, ids)
        self._runs = _LoadedRuns(connection, view, every)

    def entry(self, id_: int, reported: Collection[Key]) -> JobEntry:
        """The entry of one of the jobs, with what was reported under its name."""
        held = self._relations.get(id_, [])
        owners = {one.owner for one in held}
        states = self._runs.states_of(owners)
        since, until = self._runs.valid(owners)
        steps = graph_steps(self._steps.get(id_, ()), states)
        shown, touched = _ends(steps), {(one.direction, one.dataset) for one in held}
        return JobEntry(
            id_,
            NodeLabel.of(self._labels[id_]) if id_ in self._labels else None,
            tuple({key[0] for key in reported} - {id_}),
            tuple(self._names.get(id_, ())),
            steps,
            states,
            {owner: self._runs.shown(owner) for owner in states},
            tuple(key for key in reported if key[0] != id_ or key[1:] not in touched),
            frozenset(touched - shown),
            frozenset(shown - touched),
            self._runs.around(held),
            since,
            until,
            has_relations=bool(held),
            has_nested=id_ in self._nested,
            is_open=not owners.isdisjoint(self._runs.open),
        )


def _steps_by_job(
    connection: Connection, touched: Collection[JobEdge]
) -> dict[int, list[FoundStep]]:
    stated = stated_sources(connection, touched)
    leaving = (list(job.steps(stated, EVERY_STEP).items()) for job in by_job(touched))
    return {steps[0][0].via: steps for steps in leaving if steps}


def _ends(steps: Iterable[GraphStep]) -> set[tuple[int, int]]:
    """(direction, dataset) of all ends of these steps."""
    ends = ((step.source, step.target) for step in steps)
    return {(way, end) for both in ends for way, end in enumerate(both) if end is not None}


class _LoadedRuns:
    """The owning runs of some relations.

    Their states, what they came to, and the runs that these hang on.

    open: those whose state depends on which of their micro-batches are looked at, as they say
    nothing themselves.
    """

    def __init__(self, connection: Connection, view: View, every: Sequence[JobEdge]) -> None:
        owners = {one.owner for one in every}
        self._rows = rows_of_runs(connection, owners)
        self.states = {id_: run_state(row, view.at) for id_, row in self._rows.items()}
        failed = {id_: one.state == "FAIL" for id_, one in self.states.items()}
        self._outcomes = outcomes(connection, failed) if failed else {}
        self._above = _runs_above(connection, owners.union(one.run for one in every))
        self._below = _failed_below(connection, owners)
        self.open = _silent(self._rows.values()).intersection(
            one.owner for one in every if one.owner != one.run
        )

    def states_of(self, owners: Iterable[int]) -> dict[int, RunState]:
        """The states of those of these runs that have one."""
        return {owner: self.states[owner] for owner in owners if owner in self.states}

    def shown(self, owner: int) -> bytes:
        """What a job shows of this run, as JSON."""
        return b"," + part_of(self.states[owner].answer() | self._outcomes[owner])

    def valid(self, owners: Iterable[int]) -> tuple[int, int]:
        """Between which moments the states of these runs are what they are.

        Silence alone changes them by itself.
        """
        rows = [self._rows[owner] for owner in owners if owner in self._rows]
        lost = [row.silent_at for row in rows if self.states[row.id].state == "LOST"]
        live = [row.silent_at for row in rows if self.states[row.id].live]
        return max(lost, default=0), min(live, default=FOREVER)

    def around(self, held: Iterable[JobEdge]) -> tuple[int, ...]:
        """The runs whose news change what these relations show."""
        ids = {id_ for one in held for id_ in (one.run, one.owner)}
        hanging = {
            other for id_ in ids for other in (*self._above.get(id_, ()), *self._below.get(id_, ()))
        }
        return tuple(ids | hanging)


def _silent(rows: Iterable[Any]) -> set[int]:
    """The runs that did not say themselves when they began, or how they are."""
    return {row.id for row in rows if row.started_at is None or row.state == NONE}


def _runs_above(connection: Connection, ids: Iterable[int]) -> dict[int, set[int]]:
    """The runs that each of these may end with (store/schema/views.py)."""
    found: dict[int, set[int]] = {}
    for run, *higher in connection.execute(_above(), {"ids": list(ids)}):
        found[run] = {one for one in higher if one is not None}
    return found


@cache
def _above() -> Select[Any]:
    higher = run_parents.alias("higher")
    joined = run_parents.outerjoin(higher, higher.c.run_id == run_parents.c.parent_run_id)
    columns = [
        table.c[name]
        for table in (run_parents, higher)
        for name in ("parent_run_id", "root_run_id")
    ]
    return (
        select(run_parents.c.run_id, *columns)
        .select_from(joined)
        .where(among_given(run_parents.c.run_id, "ids"))
    )


def _failed_below(connection: Connection, owners: Iterable[int]) -> dict[int, set[int]]:
    """The runs that name each of these as parent and failed.

    They are counted, and may get another parent.
    """
    found: dict[int, set[int]] = defaultdict(set)
    for parent, run in connection.execute(_failed(), {"ids": list(owners)}):
        found[parent].add(run)
    return found


@cache
def _failed() -> Select[Any]:
    joined = run_parents.join(runs, runs.c.id == run_parents.c.run_id)
    failed = (among_given(run_parents.c.parent_run_id, "ids"), runs.c.state == FAIL)
    return select(run_parents.c.parent_run_id, runs.c.id).select_from(joined).where(*failed)


def graph_steps(steps: Iterable[FoundStep], states: Mapping[int, RunState]) -> list[GraphStep]:
    """Steps with their edges; edges that look alike but for their ends are one text."""
    texts: dict[Any, EdgeText] = {}
    shared: dict[frozenset[int], frozenset[int]] = {}

    def text(edge: FoundEdge) -> EdgeText:
        related = edge.related
        newest = None if related is None else (related.owner, related.at, related.since)
        edge.seen = Seen(edge.seen.at, *(shared.setdefault(one, one) for one in edge.seen[1:]))
        key = edge.rule, newest, edge.seen
        return texts.get(key) or texts.setdefault(key, EdgeText.of(edge, states))

    return [
        GraphStep(
            step.source,
            step.via,
            step.target,
            text(read_edge(reason)),
            text(written_edge(reason)),
            max((one.owner for one in relations_in(reason) if one.owner in states),
                key=lambda owner: begun_at(states[owner]), default=None),
        )
        for step, reason in steps
    ]  # fmt: skip
