"""The numbers of started and ended runs, and of jobs, datasets and sources, at intervals."""

from collections.abc import Sequence
from itertools import pairwise

from sqlalchemy import Connection, Subquery, func, literal, select

from strandline.core.openlineage.run_states import ABORT, COMPLETE, FAIL
from strandline.store.catalog.lists import is_shown
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.sql.narrowed import access_of

QUARTER = 15 * 60 * 10**6  # every time zone is a multiple of it away from UTC
ENDS = {FAIL: "fail", COMPLETE: "complete", ABORT: "abort"}


def run_counts(connection: Connection, edges: Sequence[int]) -> list[dict[str, int]]:
    """Count the runs that started, completed, failed and were aborted in each span.

    A span lies between two of these moments.

    A run counts once, however many events of it came, and however often.
    """
    counts = [{"fail": 0, "start": 0, "complete": 0, "abort": 0} for _ in edges[1:]]
    started = _quarters(connection, "started_at", edges[0], (0,))
    for quarter, _, count in started:
        _add(counts, edges, quarter, "start", count)
    for quarter, state, count in _quarters(connection, "ended_at", edges[0], tuple(ENDS)):
        _add(counts, edges, quarter, ENDS[state], count)
    return counts


def _quarters(
    connection: Connection, column: str, since: int, states: tuple[int, ...]
) -> list[tuple[int, int, int]]:
    """(beginning of a quarter of an hour, state, how many runs) from a moment on.

    With the states (0,) all runs count, whatever their state.
    """
    quarter, state = runs.c[column] // QUARTER, literal(0) if states == (0,) else runs.c.state
    query = select(quarter, state, func.count()).where(
        runs.c.newest_at >= since, runs.c[column] >= since
    )
    query = query.where(runs.c.design == 0).group_by(quarter, *([] if states == (0,) else [state]))
    if not access_of(connection).everything:
        query = query.where(runs.c.job_id.in_(select(jobs.c.id)))
    if states != (0,):
        query = query.where(state.in_(states))
    return [(at * QUARTER, rank, count) for at, rank, count in connection.execute(query)]


def _add(
    counts: list[dict[str, int]], edges: Sequence[int], at: int, name: str, count: int
) -> None:
    for place, (begin, end) in enumerate(pairwise(edges)):
        if begin <= at < end:
            counts[place][name] += count


def counts_at(connection: Connection, what: str, edges: Sequence[int]) -> list[int]:
    """Count the jobs, datasets or sources known at the end of each span.

    A span lies between two of these moments.
    """
    first_seen = _first_seen(what)
    before = (
        connection.scalar(
            select(func.count()).select_from(first_seen).where(first_seen.c.at < edges[0])
        )
        or 0
    )
    quarter = first_seen.c.at // QUARTER
    rows = connection.execute(
        select(quarter, func.count()).where(first_seen.c.at >= edges[0]).group_by(quarter)
    ).all()
    return [before + sum(count for at, count in rows if at * QUARTER < end) for end in edges[1:]]


def _first_seen(what: str) -> Subquery:
    if what == "jobs":
        return select(jobs.c.first_at.label("at")).where(is_shown).subquery("known")
    if what == "datasets":
        own = datasets.c.id == datasets.c.canonical_id
        return select(datasets.c.first_at.label("at")).where(own).subquery("known")
    named = select(datasets.c.namespace.label("name"), func.min(datasets.c.first_at).label("at"))
    return (
        named.where(datasets.c.first_at.is_not(None), datasets.c.namespace != "")
        .group_by(datasets.c.namespace)
        .subquery("known")
    )
