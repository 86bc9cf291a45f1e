"""The work that is due as time goes on.

Barriers are cut, runs are lost, jobs that do not come back are retired.

Every server may do this at once. What is due is looked for without any lock and decided under the
log's lock, on the newest model. So nothing happens twice, and a server that dies half-way has done
nothing.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from sqlalchemy import Connection, Engine, or_, select

from strandline.core.openlineage.names import id_of
from strandline.core.openlineage.run_states import NAMES
from strandline.core.versions.facts import Fact, JobRetired, RunEnded, Table
from strandline.core.versions.group_jobs import GroupJob
from strandline.core.versions.model import Model
from strandline.core.versions.root_barriers import (
    cut_at,
    cut_through,
    last_cut,
    to_cut,
    uncut_steps,
)
from strandline.core.versions.strong_weak import ago
from strandline.runtime.follower import Follower
from strandline.runtime.periodic import Turns
from strandline.store.lineage.run_state import StateColumns
from strandline.store.schema.run_tables import runs
from strandline.store.sql.engine import read_from
from strandline.store.versions.snapshot_history import commit_times, heads_of

Snapshot = tuple[Table, str]
MICRO = 1_000_000
TICK_SECONDS = 0.5
AT_ONCE = 500
TURNS = 10
AT_A_TURN = 200  # jobs, or a few more: who asks for a version waits meanwhile
Runs = Mapping[tuple[int, str], GroupJob]


@dataclass(frozen=True, slots=True)
class Intervals:
    """After how many seconds what is due."""

    barrier: float
    resume: float


def attend(
    engine: Engine, follower: Follower, intervals: Intervals, now: float, turn: int | None = None
) -> int:
    """Do what is due at `now`; how many facts that made.

    A `turn` asks the store of a share of the running jobs only.
    """
    with follower.model() as model:
        running, roots = _running(model, turn), _roots_to_cut(model, intervals, now)
        anything = bool(_retired(model, intervals, now))
        requests = _snapshots_asked(model)
    with read_from(engine) as connection:
        ends = runs_over(connection, running, now)
        heads, times = heads_of(connection, roots), commit_times(connection, requests)
    over = {(id_of("job", *end.job), end.run) for end in ends}
    with follower.model() as model:
        anything |= bool(_cuts(model, heads, times, intervals, now))
    if not (anything or over):
        return 0

    def decide(connection: Connection, model: Model, _: float) -> tuple[Sequence[Fact], int]:
        still = {key: place for key, place in _running(model).items() if key in over}
        newest = heads_of(connection, _roots_to_cut(model, intervals, now))
        times = commit_times(connection, _snapshots_asked(model))
        facts: list[Fact] = [*runs_over(connection, still, now), *_retired(model, intervals, now)]
        facts += _cuts(model, newest, times, intervals, now)
        return facts, len(facts)

    return follower.decide(decide)


def _running(model: Model, turn: int | None = None) -> Runs:
    places = [place for place in model.places.values() if place.ended is None]
    if turn is not None:
        turns = max(TURNS, len(places) // AT_A_TURN)
        places = places[turn % turns :: turns]
    return {(id_of("job", *place.job), place.run): place for place in places}


def runs_over(connection: Connection, running: Runs, now: float) -> list[RunEnded]:
    """Return the runs of tracked jobs that are over, though the fact log does not say so.

    They were lost, ended with a run above them, or their end was stored but not noted in the log.
    """
    at, state = round(now * MICRO), StateColumns.of(connection.dialect.name)
    ends: list[RunEnded] = []
    places = sorted(running)
    for start in range(0, len(places), AT_ONCE):
        jobs, names = zip(*places[start : start + AT_ONCE], strict=True)
        query = (
            select(
                runs.c.job_id,
                runs.c.run_id,
                state.end.c.state,
                state.end.c.ended_at,
                state.silence.c.silent_at,
            )
            .select_from(state.joined())
            .where(
                runs.c.job_id.in_(sorted(set(jobs))),
                runs.c.run_id.in_(names),
                or_(state.has_ended, state.is_silent(at)),
            )
        )
        for row in connection.execute(query):
            place = running.get((row.job_id, row.run_id))
            if place is not None:
                is_lost = row.ended_at is None
                ended_at, how = (
                    (row.silent_at, "LOST") if is_lost else (row.ended_at, NAMES[row.state])
                )
                ends.append(RunEnded(place.job, place.run, ended_at / MICRO, how, now))
    return ends


def _retired(model: Model, intervals: Intervals, now: float) -> list[JobRetired]:
    """Return the ends of places whose jobs did not come back in time."""
    return [
        JobRetired(place.job, now, _gone(place, now))
        for place in model.places.values()
        if place.ended is not None and place.ended.heard + intervals.resume < now
    ]


def _gone(place: GroupJob, now: float) -> str:
    assert place.ended is not None
    return f"did not come back within {ago(now - place.ended.at)} after {place.ended.how}"


def _roots_to_cut(model: Model, intervals: Intervals, now: float) -> list[Table]:
    return [table for group in to_cut(model, intervals.barrier, now) for table in group.bases]


def _snapshots_asked(model: Model) -> list[Snapshot]:
    """Return the base snapshots whose order decides whether a step gets a barrier."""
    return [
        (table, snapshot)
        for _, stands in uncut_steps(model)
        for table, at in stands.items()
        for snapshot in (at, last_cut(model, table))
        if snapshot is not None
    ]


def _cuts(
    model: Model,
    heads: Mapping[Table, str],
    times: Mapping[Snapshot, int],
    intervals: Intervals,
    now: float,
) -> list[Fact]:
    """Return the next barriers, one a group: where a step stands, or at the interval."""
    cuts: dict[str, Fact] = {}
    for group, stands in uncut_steps(model):
        cuts |= {cut.group: cut for cut in cut_at(model, group, stands, times, now)}
    for group in to_cut(model, intervals.barrier, now):
        if group.name not in cuts:
            cuts |= {cut.group: cut for cut in cut_through(model, group, heads, now)}
    return list(cuts.values())


def attendance(
    engine: Engine, follower: Follower, intervals: Intervals, complain: Callable[[str], None]
) -> Turns:
    """Return the thread that does what is due until it is stopped."""
    turn = count()

    def attend_in_turn() -> None:
        attend(engine, follower, intervals, time.time(), next(turn))

    return Turns("attendance", attend_in_turn, TICK_SECONDS, complain)
