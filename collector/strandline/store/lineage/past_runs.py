"""Runs as they were at a past moment, by what had been heard of them then.

Of a run the store keeps its first and newest moment, when it began and when it ended, and the state
that counts of all. So whether it had begun or ended by then is certain. Judged by everything that
was heard, also later: how a run ended that reported two ends. So is whether a run was lost or had
ended with the run above it: it was not, if it was heard of again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, select

from strandline.core.openlineage.run_states import NONE, RUNNING, START, state_of
from strandline.store.lineage.run_state import RunState, run_silences
from strandline.store.schema.run_tables import run_parents, runs
from strandline.store.sql.id_lists import among_given

PARENT, ROOT, HIGHER, HIGHEST = (
    "parent",
    "root",
    "higher",
    "highest",
)  # the last two: those of the parent


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run at a past moment.

    heard_at: when it was last heard of by then; the moment itself if the run was under way and was
    heard of again later.
    settled: nothing more was heard of it after the moment, so `heard_at` is when its newest event
    was.
    """

    id: int
    state: RunState
    heard_at: int
    first_at: int
    settled: bool

    @property
    def place(self) -> tuple[int, int, int]:
        """Of a job's runs the one with the greatest is the newest.

        Of those that were under way, the last to begin.
        """
        return self.heard_at, 0 if self.settled else self.first_at, self.id


def past_runs(connection: Connection, ids: Iterable[int], moment: int) -> dict[int, PastRun]:
    """Those of these runs of which an event by the moment tells."""
    rows = connection.execute(_rows(), {"ids": list(set(ids))})
    return {
        row.id: _at(row, moment)
        for row in rows
        if row.first_at is not None and row.first_at <= moment
    }


def _at(row: Any, moment: int) -> PastRun:
    settled = row.newest_at <= moment
    end = _end_of(row, moment)
    rank = _rank_of(row, moment) if end is None else end[1]
    state = "NONE" if row.design or rank == NONE else state_of(rank, row.silent_at, moment)
    until = end[0] if end is not None else row.silent_at if state == "LOST" else None
    began = row.first_at if row.started_at is None or row.started_at > moment else row.started_at
    shown = RunState(row.run_id, state, began, until, bool(row.streaming))
    return PastRun(row.id, shown, _heard_at(row, shown, moment), row.first_at, settled)


def _heard_at(row: Any, state: RunState, moment: int) -> int:
    if row.newest_at <= moment:
        return int(row.newest_at)
    if row.ended_at is not None and row.ended_at <= moment:
        return int(row.ended_at)
    return moment if state.live else int(row.first_at)


def _rank_of(row: Any, moment: int) -> int:
    """Of a run that had not ended: one that reports RUNNING later may have done so before."""
    if row.started_at is None or row.started_at > moment:
        return NONE
    return START if row.state == START else RUNNING


def _end_of(row: Any, moment: int) -> tuple[int, int] | None:
    """Return the time and kind of a run's end as in `run_ends`.

    Only runs that had ended by then count.
    """
    if row.ended_at is not None and row.ended_at <= moment:
        return row.ended_at, row.state
    until = 0 if row.query else row.newest_at
    return next((end for end in _ends_above(row._mapping, moment) if end[0] >= until), None)


def _ends_above(row: Any, moment: int) -> Iterator[tuple[int, int]]:
    """The ends of those above a run that had ended by then, the nearest first.

    Those above its parent count if it had none.
    """

    def ended(name: str) -> bool:
        return row[f"{name}_ended_at"] is not None and row[f"{name}_ended_at"] <= moment

    beyond = [] if ended(PARENT) else [HIGHER, HIGHEST]
    for name in (PARENT, ROOT, *beyond):
        above = row[f"{name}_ended_at"]
        if ended(name) and (name not in beyond or above >= (row["parent_newest_at"] or 0)):
            yield above, row[f"{name}_state"]


@cache
def _rows() -> Select[Any]:
    above = {name: runs.alias(name) for name in (PARENT, ROOT, HIGHER, HIGHEST)}
    link, next_link = run_parents.alias("link"), run_parents.alias("next_link")
    ends = [
        parent.c[name].label(f"{of}_{name}")
        for of, parent in above.items()
        for name in ("ended_at", "state")
    ]
    return (
        select(
            runs,
            run_silences.c.silent_at,
            above[PARENT].c.newest_at.label("parent_newest_at"),
            *ends,
        )
        .join(run_silences, run_silences.c.run_id == runs.c.id)
        .outerjoin(link, link.c.run_id == runs.c.id)
        .outerjoin(above[PARENT], above[PARENT].c.id == link.c.parent_run_id)
        .outerjoin(above[ROOT], above[ROOT].c.id == link.c.root_run_id)
        .outerjoin(next_link, next_link.c.run_id == link.c.parent_run_id)
        .outerjoin(above[HIGHER], above[HIGHER].c.id == next_link.c.parent_run_id)
        .outerjoin(above[HIGHEST], above[HIGHEST].c.id == next_link.c.root_run_id)
        .where(among_given(runs.c.id, "ids"))
    )
