"""The state of a run at a moment, as an SQL expression and as a function.

They are `StateColumns` and `run_state`. Every list, graph, count and alert takes the rules of LOST
and of ends from here.

`past_runs` judges runs by what had been heard of them at a past moment. Of a run the store keeps
its first and newest moment, when it began and when it ended, and the state that counts of all. So
whether it had begun or ended by then is certain. Judged by everything that was heard, also later:
how a run ended that reported two ends. So is whether a run was lost or had ended with the run above
it: it was not, if it was heard of again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Row,
    Select,
    and_,
    bindparam,
    case,
    column,
    literal,
    select,
    table,
)

from strandline.core.openlineage.run_states import LOST, NONE, RUNNING, START, state_of
from strandline.core.openlineage.times import moment_of
from strandline.store.schema.run_tables import run_parents, runs
from strandline.store.sql.each import of_each
from strandline.store.sql.id_lists import among_given


@dataclass(frozen=True, slots=True)
class View:
    """The moment of a question in microseconds, and which runs of a job count at it.

    By default the job's recent runs count. With `live` only running ones do, with `newest` only
    the latest. `past` says that the moment is not now. `runs` is the number of recent runs before
    the latest application; None stands for the store's setting.
    """

    at: int
    live: bool = False
    past: bool = False
    newest: bool = False
    runs: int | None = None


MOMENT = bindparam("moment", type_=BigInteger)  # of a question
RUNS_PER_STATEMENT = 10_000
CACHED_MOMENTS = 20_000  # as texts: two megabytes at most

canonical_ids = table(
    "canonical_ids", column("dataset_id", BigInteger), column("canonical_id", BigInteger)
)
run_owners = table(
    "run_owners",
    *(column(name, BigInteger) for name in ("run_id", "owner_id", "job_id")),
)
run_ends = table(
    "run_ends", *(column(name, BigInteger) for name in ("run_id", "ended_at", "state"))
)
run_silences = table("run_silences", column("run_id", BigInteger), column("silent_at", BigInteger))


@dataclass(frozen=True, slots=True)
class StateColumns:
    """The columns that decide the state of a run: its own, its end's and its silence's."""

    run: FromClause
    end: FromClause
    silence: FromClause

    @classmethod
    def of(cls, dialect: str, run: FromClause = runs) -> "StateColumns":
        """Return the columns of the runs of a table."""
        ends = of_each(dialect, run_ends, run.c.id)
        silences = of_each(dialect, run_silences, run.c.id)
        return cls(run, ends, silences)

    def joined(self, to: FromClause | None = None) -> FromClause:
        """Join the columns to a FROM clause that has the run."""
        runs_with_ends = (self.run if to is None else to).join(
            self.end, self.end.c.run_id == self.run.c.id
        )
        return runs_with_ends.join(self.silence, self.silence.c.run_id == self.run.c.id)

    @property
    def has_ended(self) -> ColumnElement[bool]:
        """The condition that the run has ended, by itself or with a run above it."""
        return self.end.c.ended_at.is_not(None)

    def is_silent(self, now: Any) -> ColumnElement[bool]:
        """Return the condition that the run has not ended and its heartbeat timeout is over."""
        return and_(self.end.c.ended_at.is_(None), self.silence.c.silent_at < now)

    def is_started(self) -> ColumnElement[bool]:
        """Return the condition that the run started and sent no end of its own."""
        return and_(self.run.c.design == 0, self.run.c.state.in_((START, RUNNING)))

    def is_lost(self, now: Any) -> ColumnElement[bool]:
        """Return the condition that the run is LOST."""
        return and_(self.is_started(), self.is_silent(now))

    def is_running(self, now: Any) -> ColumnElement[bool]:
        """Return the condition that the run is running."""
        not_ended = self.end.c.ended_at.is_(None)
        return and_(self.is_started(), not_ended, self.silence.c.silent_at >= now)

    def state(self, now: Any) -> ColumnElement[int]:
        """Return the state of the run as a number of core/openlineage/run_states.py."""
        return case(
            (self.run.c.design == 1, literal(NONE)),
            (self.has_ended, self.end.c.state),
            (self.is_lost(now), literal(LOST)),
            else_=self.run.c.state,
        )


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
        """True if the run is running."""
        return self.state in ("START", "RUNNING")

    def answer(self) -> dict[str, Any]:
        """Return the state as answers show it."""
        since, until = iso(self.since), iso(self.until)
        return {
            "runId": self.run_id,
            "state": self.state,
            "running": self.live,
            "startedAt": since,
            "endedAt": until,
        }


@lru_cache(maxsize=CACHED_MOMENTS)
def iso(at: int | None) -> str | None:
    """Return a moment as text.

    Cached, because an answer repeats few moments many times: the start of a run stands at each of
    its edges.
    """
    return None if at is None else moment_of(at).isoformat().replace("+00:00", "Z")


def with_state(dialect: str) -> Select[Any]:
    """Select runs with what `run_state` needs.

    `end_at` and `end_state` are the run's own end, or that of the run above it.
    """
    columns = StateColumns.of(dialect)
    return select(
        runs,
        columns.silence.c.silent_at,
        columns.end.c.ended_at.label("end_at"),
        columns.end.c.state.label("end_state"),
    ).select_from(columns.joined())


def run_state(
    row: Row[*tuple[Any, ...]], at: int, *, past: bool = False, begun: int | None = None
) -> RunState:
    """Return the state of a row of `with_state` at a moment.

    Now, an end counts even if its clock is ahead; at a past moment it counts if it came by then.
    `begun` is the start of the first micro-batch of a streaming query that reports nothing itself.
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
    connection: Connection, ids: Iterable[int], view: View, reported_by: Iterable[int] = ()
) -> dict[int, RunState]:
    """Return the states of these runs at the moment of a view.

    `reported_by` are runs that may be micro-batches of them.
    """
    rows = list(_rows(connection, ids))
    any_unreported = any(row.state == NONE and not row.design for row in rows)
    begun = _first_batches(connection, reported_by, view) if any_unreported else {}
    return {
        row.id: run_state(row, view.at, past=view.past, begun=begun.get(row.id)) for row in rows
    }


def _first_batches(connection: Connection, batches: Iterable[int], view: View) -> dict[int, int]:
    """Map each owner of these micro-batches to the start of the first."""
    begun: dict[int, int] = {}
    for owner, started_at in connection.execute(_batches(), {"ids": list(set(batches))}):
        if not view.past or started_at <= view.at:
            begun[owner] = min(started_at, begun.get(owner, started_at))
    return begun


def rows_of_runs(connection: Connection, ids: Iterable[int]) -> dict[int, Row[*tuple[Any, ...]]]:
    """Return rows of `with_state` by their ids."""
    return {row.id: row for row in _rows(connection, ids)}


def _rows(connection: Connection, ids: Iterable[int]) -> Iterator[Row[*tuple[Any, ...]]]:
    listed, dialect = list(set(ids)), connection.dialect.name
    for start in range(0, len(listed), RUNS_PER_STATEMENT):
        page = listed[start : start + RUNS_PER_STATEMENT]
        yield from connection.execute(_states(dialect), {"ids": page}).all()


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


# The runs above a run: its parent and root, and those of its parent.
PARENT, ROOT, HIGHER, HIGHEST = "parent", "root", "higher", "highest"


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
    rows = connection.execute(_past_rows(), {"ids": list(set(ids))})
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
def _past_rows() -> Select[Any]:
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
