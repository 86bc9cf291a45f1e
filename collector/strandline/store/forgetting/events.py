"""The events that name what is to be forgotten, and what is left of each.

Names count in their places. What texts say (SQL, plans, messages) counts in events of the jobs that
named it, and of the jobs above and below these. Another job may mean something else by the same
word. Only the UUID of a run goes from all texts.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, or_, select, tuple_

from strandline.core.changes.extract import memory_for
from strandline.core.changes.extraction import Stamp
from strandline.core.changes.memory import Memory
from strandline.core.forgotten import NamesToForget, left_of
from strandline.core.openlineage.events import Event, decoded
from strandline.core.openlineage.facets import Parent
from strandline.core.openlineage.times import LATEST
from strandline.errors import DamagedError, InvalidEventError
from strandline.store.forgetting.subjects import Target
from strandline.store.ingest.bodies import replace_bodies, replace_references
from strandline.store.ingest.raw_events import Stored, events_of
from strandline.store.schema.received_tables import raw_events
from strandline.store.schema.run_tables import run_parents, runs
from strandline.store.sql.body_references import stored_references
from strandline.store.sql.compression import Expansion
from strandline.store.sql.id_lists import among

Key = tuple[int, bytes]
PAGE = 500

__all__ = ["Left", "Parent", "events_left", "write"]


class Left(NamedTuple):
    """An event before and after; None: it goes as a whole."""

    before: Stored
    after: bytes | None


class _Found(NamedTuple):
    """The events that name it in its place, the jobs that they are of, and other events.

    Those that have the UUID of one of its runs, and by job those whose texts may name it.
    """

    keys: set[Key]
    jobs: set[int]
    with_run: set[Key]
    texts: dict[int, list[Key]]


class _NamesByTime:
    """The names of the target in each event, as several tables may have had one name."""

    def __init__(self, target: Target, memory: Memory) -> None:
        self._target = target
        self._memory = memory
        names = {*target.names, *target.former_names}
        self._has_former = any(before.name in names for before in memory.names_before or ())
        self.any_time = target.under_all_names.naming if self._has_former else target.naming
        self._now = target.naming
        self._then = memory, self._now  # of the last event that was before a rename

    def in_event(self, body: bytes, hash_: bytes = b"", received_at: int = LATEST) -> NamesToForget:
        """Return the names as an event has them."""
        if not self._has_former:
            return self._now
        try:
            event = decoded(body).event
        except InvalidEventError:
            return self._now
        at = Stamp.of(event.at, hash_, received_at).at
        memory = memory_for(event, at, self._memory)
        if memory is self._memory:
            return self._now
        if memory is not self._then[0]:
            self._then = memory, self._target.named_by(memory).naming
        return self._then[1]


def events_left(connection: Connection, target: Target, memo: Memory) -> list[Left]:
    """Every event that changes, in the order of receipt."""
    if target.hashes:
        return [Left(one, None) for one in _stored(connection, _keys_of(connection, target.hashes))]
    naming = _NamesByTime(target, memo)
    mentions = _find(connection, naming, memo)
    jobs = _around(connection, {*mentions.jobs, *target.job_ids})
    own = {*mentions.keys, *(key for job in jobs for key in mentions.texts.get(job, ()))}
    left = []
    for stored in _stored(connection, sorted(own | mentions.with_run)):
        names = naming.in_event(stored.body, stored.hash, stored.received_at)
        if (stored.received_at, stored.hash) not in own:
            names = names._replace(texts=target.run_texts)
        left.append(Left(stored, left_of(stored.body, names, prose=True)))
    return [event for event in left if event.after is not event.before.body]


def write(connection: Connection, target: Target, left: Sequence[Left], memo: Memory) -> int:
    """Take out what goes, and write what stays.

    Each is still known by its hash, so that it does not come again.

    References that name it go as well, and what is packed with them stays; gives how many.
    """
    after = {event.before.hash: event.after for event in left}
    named = dict(_references_left(connection, target, after, memo))
    replace_bodies(
        connection, {(event.before.received_at, event.before.hash): event.after for event in left}
    )
    replace_references(connection, named)
    return len(named)


def _references_left(
    connection: Connection, target: Target, left: Mapping[bytes, bytes | None], memo: Memory
) -> Iterator[tuple[int, bytes | None]]:
    """Yield the references that name it, and what is left of each.

    The event that one was made of may have gone long ago.
    """
    names = _NamesByTime(target, memo)
    for id_, reference in stored_references(connection):
        if isinstance(reference, DamagedError) or reference.source in target.hashes:
            yield id_, None
        elif reference.source in left:
            yield id_, left[reference.source]
        elif not target.hashes and names.any_time.may_be_in(reference.content):
            naming = names.in_event(reference.content)
            rest = left_of(reference.content, naming, prose=True)
            if rest is not reference.content:
                yield id_, rest


def _find(connection: Connection, names: _NamesByTime, memo: Memory) -> _Found:
    mentions = _Found(set(), set(), set(), defaultdict(list))
    for event in events_of(connection):
        if not names.any_time.may_be_in(event.body):
            continue
        naming = names.in_event(event.body, event.hash, event.received_at)
        key = event.received_at, event.hash
        text = event.body.decode("utf-8", "replace")
        if left_of(event.body, naming, prose=False) is not event.body:
            mentions.keys.add(key)
            mentions.jobs.update(_jobs_in(event.body, memo))
            continue
        if naming.texts.has_run(text):
            mentions.with_run.add(key)
        if naming.texts.are_in(text) or b"\\u" in event.body:
            for job in _jobs_in(event.body, memo)[:1]:
                mentions.texts[job].append(key)
    return mentions


def _jobs_in(body: bytes, memo: Memory) -> list[int]:
    """Return the job of an event, and those of its parent facet."""
    try:
        event = decoded(body).event
    except InvalidEventError:
        return []
    return (
        []
        if event.job is None
        else [memo.job(event.job.namespace, event.job.name).id, *_above(event, memo)]
    )


def _above(event: Event, memo: Memory) -> Iterator[int]:
    import msgspec

    raw = (event.run.facets or {}).get("parent") if event.run else None
    if raw is None:
        return
    try:
        parent = msgspec.json.decode(raw, type=Parent)
    except msgspec.MsgspecError:
        return
    for run in (parent, parent.root or parent):
        yield memo.job(run.job.namespace, run.job.name).id


def _around(connection: Connection, jobs: set[int]) -> set[int]:
    """Return these jobs, those that their runs belong to, and those whose runs belong to theirs."""
    above = select(run_parents.c.parent_job_id, run_parents.c.root_job_id).join(
        runs, runs.c.id == run_parents.c.run_id
    )
    below = select(runs.c.job_id).join(run_parents, runs.c.id == run_parents.c.run_id)
    related = {
        id_ for row in connection.execute(above.where(among(runs.c.job_id, jobs))) for id_ in row
    }
    theirs = or_(among(run_parents.c.parent_job_id, jobs), among(run_parents.c.root_job_id, jobs))
    return {*jobs, *related, *connection.scalars(below.where(theirs))}


def _keys_of(connection: Connection, hashes: frozenset[bytes]) -> list[Key]:
    query = select(raw_events.c.received_at, raw_events.c.hash).where(raw_events.c.hash.in_(hashes))
    return sorted((row.received_at, bytes(row.hash)) for row in connection.execute(query))


def _stored(connection: Connection, keys: Sequence[Key]) -> Iterator[Stored]:
    expansion = Expansion(connection)
    for start in range(0, len(keys), PAGE):
        chosen = tuple_(raw_events.c.received_at, raw_events.c.hash).in_(keys[start : start + PAGE])
        for row in connection.execute(
            select(raw_events).where(chosen).order_by(raw_events.c.received_at, raw_events.c.hash)
        ):
            yield Stored(
                bytes(row.hash), row.received_at, expansion.expand(row.reference_id, row.body)
            )
