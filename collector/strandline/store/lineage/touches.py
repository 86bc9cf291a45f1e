"""Relations as they are stored, each with the run that owns it.

And which of them are known, or the newest.

A run's relation counts for the job of its owner. Which of a job's relations an answer holds is
decided here, by values alone, so that the answer is the same from wherever one came to the job.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Select,
    and_,
    column,
    exists,
    func,
    literal,
    or_,
    select,
    table,
)

from strandline.core.changes.extraction import SINK
from strandline.core.changes.snapshot_claims import STATED
from strandline.core.openlineage import run_states as states
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.run_tables import run_parents, runs
from strandline.store.schema.snapshot_tables import snapshot_uses

UNDONE = (states.ABORT, states.FAIL)

run_owners = table(
    "run_owners",
    *(column(name, BigInteger) for name in ("run_id", "owner_id", "job_id")),
)
run_ends = table(
    "run_ends", *(column(name, BigInteger) for name in ("run_id", "ended_at", "state"))
)
run_silences = table("run_silences", column("run_id", BigInteger), column("silent_at", BigInteger))
above = run_parents.alias("above")
owners = runs.alias("owners")
stated_as = datasets.alias("stated_as")


class Seen(NamedTuple):
    """When a relation or edge was last seen, in which owning runs, among which, and which of these are the newest."""

    at: int
    owners: frozenset[int]
    among: frozenset[int]
    newest: frozenset[int]

    def joined(self, other: "Seen") -> "Seen":
        """What both tell together."""
        return Seen(
            max(self.at, other.at),
            self.owners | other.owners,
            self.among | other.among,
            self.newest | other.newest,
        )


NEVER = Seen(0, frozenset(), frozenset(), frozenset())


class Related(NamedTuple):
    """A run's relation with a dataset: canonical, and `named` as the run called it.

    `owner` is the run that shows it.

    of_query: the owner is a streaming query, and the run one of its micro-batches. seen: how the
    job's relation with the dataset stands among all that the answer is about.
    """

    job: int
    direction: int
    dataset: int
    named: int
    run: int
    owner: int
    since: int
    at: int = 0
    of_query: bool = False
    seen: Seen = NEVER


class Touch(NamedTuple):
    """A stored relation with its owner; `run_at` and `run_since`.

    When its run was last and first heard of.

    is_void: it was to be written by a batch run that failed, and nothing says that it was.
    may_have_below: the application may have runs below it; that the store has them is asked only
    then.
    """

    job: int
    direction: int
    dataset: int
    named: int
    run: int
    owner: int
    since: int
    at: int
    of_query: bool
    application: int
    run_at: int
    run_since: int
    is_void: bool = False
    may_have_below: bool = False


class Window(NamedTuple):
    """The owning runs of a job that are known, the newest first."""

    owners: Sequence[int]

    @property
    def newest(self) -> int:
        """The newest of them."""
        return self.owners[0]


def touched_some(run_id: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a run touched a dataset.

    It is looked up run by run: for EXISTS, PostgreSQL may read all runs' relations first.
    """
    some = select(literal(1)).where(relations.c.run_id == run_id).limit(1)
    return some.correlate_except(relations).scalar_subquery().is_not(None)


def touched(owned: FromClause) -> FromClause:
    """Runs and their owners, joined with what they touched."""
    joined = owned.join(relations, relations.c.run_id == runs.c.id)
    joined = joined.join(datasets, datasets.c.id == relations.c.dataset_id)
    joined = joined.outerjoin(owners, owners.c.id == run_owners.c.owner_id)
    return joined.outerjoin(above, above.c.run_id == run_owners.c.owner_id)


def touching(is_void: ColumnElement[bool]) -> Select[Any]:
    """The columns of `Touch`, from whatever `touched` is joined with.

    The application of a run is the one above its owner.
    """
    return select(
        run_owners.c.job_id.label("job"),
        relations.c.direction,
        datasets.c.canonical_id.label("dataset"),
        relations.c.dataset_id.label("named"),
        runs.c.id.label("run"),
        run_owners.c.owner_id.label("owner"),
        relations.c.first_at.label("since"),
        relations.c.newest_at.label("at"),
        (func.coalesce(owners.c.query, 0) == 1).label("of_query"),
        func.coalesce(above.c.parent_run_id, run_owners.c.owner_id).label("application"),
        runs.c.newest_at.label("run_at"),
        runs.c.first_at.label("run_since"),
        is_void.label("is_void"),
        or_(above.c.parent_run_id.is_not(None), owners.c.child_received_at > 0).label(
            "may_have_below"
        ),
    )


def is_undone(sink: FromClause, run: FromClause) -> ColumnElement[bool]:
    """What a CREATE TABLE AS that failed or was canceled would have made is no table.

    A streaming job's is kept.
    """
    return and_(sink.c.creates == 1, run.c.streaming == 0, run.c.state.in_(UNDONE))


def made_nothing(sink: FromClause, run: FromClause) -> ColumnElement[bool]:
    """What a batch run that failed would have written, unless its own snapshot facet says that it did, by any name of it.

    What a failed micro-batch began the next one does again, so a streaming query's sinks stay.
    """
    stated = exists().where(
        snapshot_uses.c.run_id == sink.c.run_id,
        snapshot_uses.c.direction == SINK,
        snapshot_uses.c.rank == STATED,
        stated_as.c.id == snapshot_uses.c.dataset_id,
        stated_as.c.canonical_id == datasets.c.canonical_id,
    )
    failed = and_(sink.c.direction == SINK, run.c.state == states.FAIL, run.c.streaming == 0)
    return and_(failed, func.coalesce(owners.c.query, 0) == 0, ~stated)


_RUN = attrgetter("job", "owner", "application", "run_at", "run_since")


def windows_of(touches: Iterable[Touch], recent_runs: int) -> dict[int, Window]:
    """Of each job the owning runs that are known.

    All of its latest application, and the last few before.
    """
    heard: dict[int, dict[int, tuple[int, int, int]]] = defaultdict(dict)
    applications: dict[int, int] = {}
    # A run touches several datasets: each run once is half the work of a hub.
    for job, owner, application, run_at, run_since in set(map(_RUN, touches)):
        of_job = heard[job]
        last = of_job.get(owner)
        newest = (
            (run_at, run_since) if last is None else (max(last[0], run_at), max(last[1], run_since))
        )
        of_job[owner] = *newest, owner
        applications[owner] = application
    return {
        job: Window(
            _last(sorted(owners, key=owners.__getitem__, reverse=True), applications, recent_runs)
        )
        for job, owners in heard.items()
    }


def _last(
    owners: Sequence[int], applications: Mapping[int, int], recent_runs: int
) -> Sequence[int]:
    if len(owners) == 1:
        return owners
    newest = applications[owners[0]]
    before = [owner for owner in owners if applications[owner] != newest][:recent_runs]
    kept = {*before, *(owner for owner in owners if applications[owner] == newest)}
    return [owner for owner in owners if owner in kept]


def known_of(touches: Sequence[Touch], windows: Mapping[int, Window]) -> list[Touch]:
    """What the known runs touched."""
    kept = {job: frozenset(window.owners) for job, window in windows.items()}
    return [one for one in touches if one.owner in kept[one.job]]


def newest_of(touches: Sequence[Touch]) -> list[Touch]:
    """What the run touched that was last to read, and the one that was last to write.

    And what the latter read.
    """
    last: dict[tuple[int, int], tuple[int, int, int]] = {}
    for one in touches:
        heard = one.at, one.since, one.owner
        last[one.job, one.direction] = max(heard, last.get((one.job, one.direction), heard))
    return [
        one
        for one in touches
        if one.owner
        in (last[one.job, one.direction][2], last.get((one.job, SINK), (0, 0, None))[2])
    ]


def related(touches: Sequence[Touch], windows: Mapping[int, Window]) -> list[Related]:
    """The touches as relations, each with what all together tell of its dataset."""
    heard: dict[tuple[int, int, int], _Heard] = {}
    for one in touches:
        key = one[:3]
        of_key = heard.get(key)
        if of_key is None:
            heard[key] = _Heard(one.at, {one.owner})
            continue
        of_key.owners.add(one.owner)
        of_key.at = max(of_key.at, one.at)
    of_job = {
        job: (frozenset(window.owners), frozenset((window.newest,)))
        for job, window in windows.items()
    }
    seen = {key: Seen(of.at, frozenset(of.owners), *of_job[key[0]]) for key, of in heard.items()}
    return [Related(*one[:9], seen[one[:3]]) for one in touches]


@dataclass(slots=True)
class _Heard:
    """When a dataset was touched last, and by which owning runs."""

    at: int
    owners: set[int]
