"""The state of runs at a moment, as every answer shows it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import Connection, Row, Select, select

from strandline.core.openlineage.run_states import NONE, RUNNING, state_of
from strandline.core.openlineage.times import moment_of
from strandline.store.lineage.relations import View, run_ends, run_owners, run_silences
from strandline.store.schema.run_tables import runs
from strandline.store.sql.each import of_each
from strandline.store.sql.id_lists import among_given

AT_ONCE = 10_000  # runs of a statement
MOMENTS = 20_000  # as texts: two megabytes at most


@dataclass(frozen=True, slots=True)
class RunState:
    """One run at a moment; `until` is the moment it ended, or was silent for too long."""

    run_id: str
    state: str
    since: int | None
    until: int | None
    streaming: bool

    @property
    def live(self) -> bool:
        """Whether it runs."""
        return self.state in ("START", "RUNNING")

    def answer(self) -> dict[str, Any]:
        """As JSON shows it."""
        since, until = iso(self.since), iso(self.until)
        return {
            "runId": self.run_id,
            "state": self.state,
            "running": self.live,
            "startedAt": since,
            "endedAt": until,
        }


@lru_cache(maxsize=MOMENTS)
def iso(at: int | None) -> str | None:
    """A moment as text.

    An answer has few moments, and each many times: when a run began is in all of its edges.
    """
    return None if at is None else moment_of(at).isoformat().replace("+00:00", "Z")


def with_state(dialect: str) -> Select[Any]:
    """Runs with what `run_state` needs.

    `end_at` and `end_state` are the run's own end, or that of the run above it.
    """
    ends, silences = (
        of_each(dialect, run_ends, runs.c.id),
        of_each(dialect, run_silences, runs.c.id),
    )
    return (
        select(
            runs,
            silences.c.silent_at,
            ends.c.ended_at.label("end_at"),
            ends.c.state.label("end_state"),
        )
        .join(silences, silences.c.run_id == runs.c.id)
        .join(ends, ends.c.run_id == runs.c.id)
    )


def run_state(
    row: Row[*tuple[Any, ...]], at: int, *, past: bool = False, begun: int | None = None
) -> RunState:
    """The state of a row of `with_state` at a moment.

    Only of a past one is it asked whether the run had ended by then: now an end is an end, also one
    by a clock ahead of this one. Whether it was silent for too long depends on the moment always.
    begun: when a micro-batch of it did, by which one runs that reported nothing of itself.
    """
    ended = row.end_at is not None and (not past or row.end_at <= at)
    rank = _rank(row, ended, begun)
    state = "NONE" if row.design or rank == NONE else state_of(rank, row.silent_at, at)
    until = row.end_at if ended else row.silent_at if state == "LOST" else None
    return RunState(
        row.run_id, state, row.started_at or begun or row.first_at, until, bool(row.streaming)
    )


def _rank(row: Row[*tuple[Any, ...]], ended: bool, begun: int | None) -> Any:
    if ended:
        return row.end_state if begun is None or row.end_state != NONE else RUNNING
    rank = row.state if row.ended_at is None else RUNNING
    return RUNNING if rank == NONE and begun is not None else rank


def run_states(
    connection: Connection, ids: Iterable[int], view: View, told_by: Iterable[int] = ()
) -> dict[int, RunState]:
    """The states of these runs at the moment of a view; told_by.

    Runs that may be micro-batches of theirs.
    """
    rows = list(_rows(connection, ids))
    mute = any(row.state == NONE and not row.design for row in rows)
    begun = _begun(connection, told_by, view) if mute else {}
    return {
        row.id: run_state(row, view.at, past=view.past, begun=begun.get(row.id)) for row in rows
    }


def _begun(connection: Connection, told_by: Iterable[int], view: View) -> dict[int, int]:
    """When the first of these micro-batches of each owner began."""
    found: dict[int, int] = {}
    for owner, started_at in connection.execute(_batches(), {"ids": list(set(told_by))}):
        if not view.past or started_at <= view.at:
            found[owner] = min(started_at, found.get(owner, started_at))
    return found


def rows_of_runs(connection: Connection, ids: Iterable[int]) -> dict[int, Row[*tuple[Any, ...]]]:
    """Rows of `with_state` by their ids."""
    return {row.id: row for row in _rows(connection, ids)}


def _rows(connection: Connection, ids: Iterable[int]) -> Iterator[Row[*tuple[Any, ...]]]:
    listed, dialect = list(set(ids)), connection.dialect.name
    for start in range(0, len(listed), AT_ONCE):
        yield from connection.execute(_states(dialect), {"ids": listed[start : start + AT_ONCE]})


@cache
def _states(dialect: str) -> Select[Any]:
    return with_state(dialect).where(among_given(runs.c.id, "ids"))


@cache
def _batches() -> Select[Any]:
    owned = run_owners.join(runs, runs.c.id == run_owners.c.run_id)
    begun = (runs.c.started_at.is_not(None), run_owners.c.owner_id != runs.c.id)
    return (
        select(run_owners.c.owner_id, runs.c.started_at)
        .select_from(owned)
        .where(among_given(runs.c.id, "ids"), *begun)
    )
