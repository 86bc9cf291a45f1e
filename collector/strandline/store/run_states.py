"""The state of runs at a moment, as every answer shows it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, Select, select

from strandline.core.states import NONE, RUNNING, state_of
from strandline.core.times import moment_of
from strandline.store.among import among_given
from strandline.store.relations import View, run_silences
from strandline.store.tables import runs


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
        return {"runId": self.run_id, "state": self.state, "live": self.live, "startedAt": since, "endedAt": until}


def iso(at: int | None) -> str | None:
    """A moment as text."""
    return None if at is None else moment_of(at).isoformat().replace("+00:00", "Z")


def with_state() -> Select[Any]:
    """Runs with what `run_state` needs."""
    return select(runs, run_silences.c.silent_at).join(run_silences, run_silences.c.run_id == runs.c.id)


def run_state(row: Row[*tuple[Any, ...]], at: int, *, past: bool = False) -> RunState:
    """The state of a row of `with_state` at a moment.

    Only of a past one is it asked whether the run had ended by then: now an end is an end, also one by a clock ahead of
    this one. Whether it was silent for too long depends on the moment always.
    """
    ended = row.ended_at is not None and (not past or row.ended_at <= at)
    rank = row.state if ended or row.ended_at is None else RUNNING
    state = "NONE" if row.design or rank == NONE else state_of(rank, row.silent_at, at)
    until = row.ended_at if ended else row.silent_at if state == "LOST" else None
    return RunState(row.run_id, state, row.started_at or row.first_at, until, bool(row.streaming))


def run_states(connection: Connection, ids: Iterable[int], view: View) -> dict[int, RunState]:
    """The states of these runs at the moment of a view."""
    rows = connection.execute(_states(), {"ids": list(set(ids))})
    return {row.id: run_state(row, view.at, past=view.past) for row in rows}


@cache
def _states() -> Select[Any]:
    return with_state().where(among_given(runs.c.id, "ids"))
