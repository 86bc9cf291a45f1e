"""Permissions of a key for the events that it sends.

A key sends events of its own jobs, which write its own datasets, run its own runs and join its own
groups. An event may name datasets of any namespace as inputs. The namespaces of its key are then
noted in the event, and nothing of a dataset elsewhere is stored but that it was read
(`core/changes/datasets`).
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import orjson
from sqlalchemy import Connection, Engine, select

from strandline.core.access.granted import Access
from strandline.core.changes.datasets import SENDER, DatasetUse, owns_by
from strandline.core.changes.extract import changes_of
from strandline.core.changes.extraction import SINK, Stamp
from strandline.core.changes.lineage import EventChange, JobLineage, LineageSeen
from strandline.core.changes.memory import BoundedCache, Memory
from strandline.core.changes.rows import AliasSet, BarrierSeen, DatasetSeen, JobGroup, RunSeen
from strandline.core.openlineage.events import decoded
from strandline.core.openlineage.names import LONGEST_NAMESPACE, stored_name
from strandline.errors import ForbiddenError, InvalidEventError
from strandline.store.ingest.take import Record
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.run_tables import job_groups, jobs, runs
from strandline.store.schema.version_tables import group_roots
from strandline.store.sql.engine import read_from

REMEMBERED = 50_000
INFERRED = "job:"  # how the group of a job without one is called
PRODUCER = "https://github.com/strandline/strandline"
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Claims(NamedTuple):
    """The ids of an event's runs and job, and the groups that the job joins."""

    runs: frozenset[int]
    job: int
    groups: frozenset[str]


class Senders:
    """The check of events sent with keys of some namespaces; for several threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._memo = Memory()
        self._own = BoundedCache(REMEMBERED)

    def permitted(self, record: Record, access: Access) -> Record:
        """Return the record as it may be stored.

        Raises:
            ForbiddenError: the event states something that its key may not state.
        """
        if access.everything or record.read is None:
            return record
        event = record.read.event
        about = event.job or event.dataset
        if about is None or not access.allows(stored_name(about.namespace, LONGEST_NAMESPACE)):
            raise ForbiddenError(
                f"this key may not send events of namespace {about.namespace if about else ''!r}"
            )
        changes = self._changes(record)
        if event.job and (
            _names_elsewhere(changes, access) or SENDER in _facets_of(bytes(event.job.facets))
        ):
            value = with_sender(record.read.value, access.patterns)
            record = record._replace(value=value, read=decoded(value))
            changes = self._changes(record)
        _refuse_elsewhere(changes, access)
        self._refuse_claims(_claims_of(changes), access)
        return record

    def _changes(self, record: Record) -> list[EventChange]:
        assert record.read is not None
        event = record.read.event
        with self._lock:
            try:
                return changes_of(event, Stamp(event.at, 0, 0), self._memo).changes
            except (
                Exception
            ) as error:  # a fault of ours: nobody can tell what the event would change
                raise InvalidEventError(f"it cannot be read: {type(error).__name__}") from error

    def _refuse_claims(self, claims: Claims, access: Access) -> None:
        """Raise a ForbiddenError for another's run or group.

        A run or group once found to be the key's stays so, and is remembered.
        """
        asked: list[tuple[Any, ...]] = [(access.patterns, "run", run) for run in claims.runs]
        asked += [(access.patterns, claims.job, group) for group in claims.groups]
        with self._lock:
            if all(self._own.get(one) for one in asked):
                return
        with read_from(self._engine) as connection:
            own: list[tuple[Any, ...]] = [
                (access.patterns, "run", run) for run in own_runs(connection, claims, access)
            ]
            for group in claims.groups:
                joined = refuse_group(connection, group, claims.job, access)
                own += [(access.patterns, claims.job, group)] if joined else []
        with self._lock:
            for claim in own:
                self._own.put(claim, value=True)


def own_runs(connection: Connection, claims: Claims, access: Access) -> list[int]:
    """Return the ids of the claimed runs that have had events.

    Raises:
        ForbiddenError: a run had events of a job that is not the key's.
    """
    had = (runs.c.first_at.is_not(None), runs.c.id.in_(claims.runs))
    query = select(runs.c.id, jobs.c.namespace).join(jobs, jobs.c.id == runs.c.job_id).where(*had)
    rows = connection.execute(query).all()
    if not all(access.allows(row.namespace) for row in rows):
        raise ForbiddenError("the run of this event belongs to a job outside this key's namespaces")
    return [row.id for row in rows]


def refuse_group(connection: Connection, group: str, job: int, access: Access) -> bool:
    """Return True if the job is in this group already.

    Raises:
        ForbiddenError: it is not, and the group has jobs or tables that are not the key's.
    """
    if access.everything:
        return True
    members = select(jobs.c.id, jobs.c.namespace).join(job_groups, job_groups.c.job_id == jobs.c.id)
    by_id = {
        row.id: row.namespace
        for row in connection.execute(members.where(job_groups.c.group_name == group))
    }
    if job in by_id:
        return True
    roots = select(datasets.c.namespace).join(
        group_roots, group_roots.c.dataset_id == datasets.c.id
    )
    namespaces = {
        *by_id.values(),
        *connection.scalars(roots.where(group_roots.c.group_name == group)),
    }
    inferred = group.startswith(INFERRED) and not access.allows_text(group.removeprefix(INFERRED))
    if inferred or not all(map(access.allows, namespaces)):
        raise ForbiddenError(f"group {group!r} has jobs or tables outside this key's namespaces")
    return False


def _names_elsewhere(changes: Sequence[EventChange], access: Access) -> bool:
    """Return whether the event names a dataset, or another name of one, that is not the key's."""
    named = [use.dataset.namespace for use in _uses(changes)]
    named += [other.namespace for other in _other_names(changes)]
    return not all(map(owns_by(access), named))


def _refuse_elsewhere(changes: Sequence[EventChange], access: Access) -> None:
    """Raise a ForbiddenError if the event does more with another's dataset than read it."""
    written = [*_written(changes), *(other.namespace for other in _other_names(changes))]
    written += [use.dataset.namespace for use in _uses(changes) if not use.elsewhere]
    owns = owns_by(access)
    hidden = sorted({namespace for namespace in written if not owns(namespace)})
    if hidden:
        raise ForbiddenError(
            f"this key may not write namespace {hidden[0]!r}: add it to the key with --namespace"
        )


def _written(changes: Sequence[EventChange]) -> Iterator[str]:
    """Yield the namespaces of outputs, declared outputs and sinks of edges."""
    for lineage in _lineages(changes):
        named = {use.dataset.id: use.dataset.namespace for use in lineage.uses}
        for use in lineage.uses:
            if use.aliases is not None:
                named |= {other.id: other.namespace for other in use.aliases.mentions}
        yield from (use.dataset.namespace for use in lineage.uses if use.direction == SINK)
        yield from (named.get(sink, "") for sink, _, _ in lineage.edges)


def _other_names(changes: Sequence[EventChange]) -> Iterator[DatasetSeen]:
    sets = [use.aliases for use in _uses(changes) if use.aliases is not None]
    sets += [change for change in changes if isinstance(change, AliasSet)]
    for aliases in sets:
        yield from aliases.mentions


def _uses(changes: Sequence[EventChange]) -> list[DatasetUse]:
    return [use for lineage in _lineages(changes) for use in lineage.uses]


def _lineages(changes: Sequence[EventChange]) -> list[JobLineage]:
    return [change.lineage for change in changes if isinstance(change, LineageSeen)]


def _claims_of(changes: Sequence[EventChange]) -> Claims:
    own = [change.id for change in changes if isinstance(change, RunSeen) and not change.design]
    groups = {
        change.group_name for change in changes if isinstance(change, JobGroup | BarrierSeen)
    } - {""}
    jobs_ = [lineage.job.id for lineage in _lineages(changes)]
    return Claims(frozenset(own), jobs_[0] if jobs_ else 0, frozenset(groups))


def with_sender(value: bytes, patterns: Sequence[str]) -> bytes:
    """Return the event with the namespaces of its key in place of any that it states itself."""
    event = _MEMBERS.decode(value)
    job = _MEMBERS.decode(event["job"])
    facet = {"_producer": PRODUCER, "_schemaURL": PRODUCER, "namespaces": list(patterns)}
    facets = _facets_of(bytes(job.get("facets", b""))) | {SENDER: msgspec.Raw(orjson.dumps(facet))}
    job["facets"] = msgspec.Raw(msgspec.json.encode(facets))
    event["job"] = msgspec.Raw(msgspec.json.encode(job))
    return msgspec.json.encode(event)


def _facets_of(raw: bytes) -> dict[str, msgspec.Raw]:
    return {} if raw in (b"", b"null") else _MEMBERS.decode(raw)
