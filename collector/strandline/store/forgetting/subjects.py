"""The subject to forget: as a caller names it (`Subject`), and as the store has it (`Target`).

A dataset goes under each of its names, which symlinks join. A job goes with its runs, and with the
micro-batches of its streaming query; its children are jobs of their own. A namespace goes with all
jobs and datasets in it.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, not_, or_, select

from strandline.core.changes.memory import Memory
from strandline.core.forgotten import NamesToForget, Texts
from strandline.core.openlineage.events import decoded
from strandline.core.openlineage.names import (
    DEFAULT_NAMING,
    LONGEST_NAMESPACE,
    Naming,
    id_of,
    namespace_id,
    own_job_name,
    run_id_of,
    run_ids_of,
    run_name,
    stored_name,
)
from strandline.errors import RefusedError
from strandline.store.ingest.raw_events import events_of
from strandline.store.lineage.joined_names import names_before
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.run_tables import jobs, run_queries, runs
from strandline.store.sql.id_lists import among
from strandline.store.sql.shared_settings import agreed_naming

Kind = Literal["job", "dataset", "run", "namespace", "event"]
KINDS: tuple[Kind, ...] = ("job", "dataset", "run", "namespace", "event")
Name = tuple[str, str]
UUID_LENGTH = 36
MOST_HINTS = 100
_UUID = re.compile(rb"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")
CUT = 800  # characters of a name that is stored with the hash of its rest


class Subject(NamedTuple):
    """A request to forget something.

    A job or dataset by namespace and name, a namespace, or a run by its id (within its job, if that
    is no UUID). Or an event, by the hash that lists of events show.
    """

    kind: Kind
    namespace: str = ""
    name: str = ""
    id: str = ""

    @property
    def shown(self) -> str:
        """A word for it that does not tell its name.

        What is forgotten is not written into the audit log.
        """
        return f"{self.kind} {id_of('forgotten', *self):016x}"


def _itself(name: Name) -> Name:
    return name


@dataclass(frozen=True)
class Target:
    """The ids and names of it in the store."""

    job_ids: frozenset[int] = frozenset()
    dataset_ids: frozenset[int] = frozenset()
    run_ids: frozenset[int] = frozenset()
    namespace_ids: frozenset[int] = frozenset()
    hashes: frozenset[bytes] = frozenset()
    names: frozenset[Name] = frozenset()  # of jobs and datasets
    former_names: frozenset[Name] = frozenset()  # that several tables had
    words: tuple[str, ...] = ()  # what texts call it
    dotted: bool = False
    members: tuple[str, ...] = ()  # what texts call what is in a namespace
    run_names: frozenset[str] = frozenset()  # of the runs, in lower case
    run_uuids: frozenset[str] = frozenset()  # those of them that are no other job's
    stored_names: Naming = DEFAULT_NAMING  # how names are stored
    meaning_of: Callable[[Name], Name] = _itself  # the dataset that a stored name means

    def named_by(self, memory: Memory) -> "Target":
        """Return the target under the names that its datasets have in this memory."""
        if self.namespace_ids or not self.dataset_ids:
            return self
        names = [*self.names, *self.former_names]
        is_own = {name: id_of("dataset", *memory.meaning_of(name)) for name in names}
        words = {name[1] for name, id_ in is_own.items() if id_ in self.dataset_ids}
        return replace(self, words=tuple(sorted(words)), meaning_of=memory.meaning_of)

    @property
    def under_all_names(self) -> "Target":
        """The target under each name that it ever had, for a quick look at events of any time."""
        words = {*self.words, *(name for _, name in self.former_names)}
        return replace(self, words=tuple(sorted(words)))

    @property
    def naming(self) -> NamesToForget:
        """The subject's names in documents."""
        texts = Texts(self.words, dotted=self.dotted, members=self.members, runs=self.run_uuids)
        return NamesToForget(
            self._is_job(), self._is_dataset(), self._is_run, texts, self._may_be_in()
        )

    @cached_property
    def run_texts(self) -> Texts:
        """The runs alone in texts: a UUID is nobody else's, as a name may be."""
        return Texts((), dotted=False, runs=self.run_uuids)

    @cached_property
    def namespace_texts(self) -> Texts:
        """Its namespaces in texts: whole words, or a namespace before one of its names."""
        if self.namespace_ids:
            return Texts(self.words, dotted=False)  # to look for in what its own words match
        namespaces = {namespace for namespace, _ in self.names}
        return Texts(namespaces, dotted=True, members=_with_namespace(self.names))

    def _is_run(self, run: str, namespace: str, job: str) -> bool:
        return not self.run_ids.isdisjoint(run_ids_of(run, namespace, job))

    def _is_job(self) -> Callable[[str, str], bool]:
        @lru_cache(10_000)
        def is_job(namespace: str, name: str) -> bool:
            stored = self.stored_names.job_name_of(namespace, name)
            is_inside = namespace_id(stored[0]) in self.namespace_ids
            return is_inside or id_of("job", *stored) in self.job_ids

        return is_job

    def _is_dataset(self) -> Callable[[str, str], bool]:
        naming = self.stored_names
        forms = ((iceberg, streamed) for iceberg in (False, True) for streamed in (False, True))
        ways = tuple(forms)

        @lru_cache(10_000)
        def is_dataset(namespace: str, name: str) -> bool:
            named = {
                naming.name_of(namespace, spelling, iceberg=i, streamed=s)
                for spelling in _spellings(name)
                for i, s in ways
            }
            if any(namespace_id(part) in self.namespace_ids for part, _ in named):
                return True
            ids = {id_of("dataset", *self.meaning_of(name)) for name in named}
            return not ids.isdisjoint(self.dataset_ids)

        return is_dataset

    def _may_be_in(self) -> Callable[[bytes], bool]:
        """Names that are stored otherwise than they came may be anywhere."""
        hints = {
            max(word.lower().split("."), key=len).strip("/")
            for word in (*self.words, *self.members)
        }
        uuids = {name for name in self.run_names if _UUID.fullmatch(name.encode())}
        hints |= self.run_names - uuids
        if (
            self.stored_names != DEFAULT_NAMING
            or not (hints or uuids)
            or len(hints) > MOST_HINTS
            or any(len(word) >= CUT for word in (*self.words, *self.members))
        ):
            return lambda raw: True
        escaped = (b"\\u", b"\\/", b"%")
        last = [hint.encode() for hint in hints]
        runs = {name.replace("-", "").encode() for name in uuids}  # a job may have thousands

        def may_be_in(raw: bytes) -> bool:
            lower = raw.lower()
            if any(part in lower for part in last) or any(part in raw for part in escaped):
                return True
            return bool(runs) and any(
                uuid.replace(b"-", b"") in runs for uuid in _UUID.findall(lower)
            )

        return may_be_in


def _spellings(name: str) -> set[str]:
    return {name, name.strip("/") or name}


def target_of(connection: Connection, subject: Subject) -> Target:
    """Return the subject as the store has it now.

    What is not there has a target as well: it may be named in what was set aside.
    """
    target = _TARGETS[subject.kind](connection, subject)
    named = select(runs.c.id, runs.c.run_id).where(
        or_(
            among(runs.c.id, target.get("run_ids", ())),
            among(runs.c.job_id, target.get("job_ids", ())),
        )
    )
    names = {row.id: row.run_id.lower() for row in connection.execute(named)}
    uuids = {
        name
        for id_, name in names.items()
        if len(name) == UUID_LENGTH and id_ == run_id_of(name, "", "")
    }
    return Target(
        **target,
        stored_names=agreed_naming(connection),
        run_names=frozenset(names.values()),
        run_uuids=frozenset(uuids),
    )


def _job(connection: Connection, subject: Subject) -> dict[str, Any]:
    naming = agreed_naming(connection)
    own = own_job_name(subject.namespace, subject.name)
    stored = naming.job_name_of(*own)
    if stored != own:
        raise RefusedError(
            f"{own[1]!r} is joined with other jobs: forget its runs, or all of {stored[1]!r}",
            code="joined",
        )
    names = {stored}
    if stored in naming.families:
        names |= _members_of(connection, naming, stored)
    ids = {id_of("job", *stored)}
    return {
        "job_ids": frozenset(ids),
        "run_ids": _batches_of(connection, ids),
        "names": frozenset(names),
        "words": tuple(sorted({name for _, name in names})),
        "dotted": True,
    }


def _members_of(connection: Connection, naming: Naming, family: Name) -> set[Name]:
    """Return the names in stored events of the jobs that are joined in this family."""
    members = set()
    for stored in events_of(connection):
        job = decoded(stored.body).event.job
        if job is not None and naming.job_name_of(job.namespace, job.name) == family:
            members.add(own_job_name(job.namespace, job.name))
    return members


def _dataset(connection: Connection, subject: Subject) -> dict[str, Any]:
    stored = stored_name(subject.namespace, LONGEST_NAMESPACE), stored_name(subject.name)
    own = id_of("dataset", *stored)
    group = select(datasets.c.canonical_id).where(datasets.c.id == own)
    query = select(datasets.c.id, datasets.c.namespace, datasets.c.name).where(
        datasets.c.canonical_id.in_(group)
    )
    rows = connection.execute(query).all()
    names = {stored, *((row.namespace, row.name) for row in rows)}
    ids = {own, *(row.id for row in rows)}
    former = {before.name for before in names_before(connection) if before.stored in names}
    return {
        "dataset_ids": frozenset(ids),
        "names": frozenset(names),
        "former_names": frozenset(former),
        "words": tuple(sorted({name for _, name in names})),
    }


def _run(connection: Connection, subject: Subject) -> dict[str, Any]:
    name = run_name(subject.id)
    query = select(runs.c.id).where(runs.c.run_id == name)
    ids = set(connection.scalars(query))
    if subject.name:
        stored = agreed_naming(connection).job_name_of(subject.namespace, subject.name)
        of_job = query.where(runs.c.job_id == id_of("job", *stored))
        own, shared = run_ids_of(subject.id, subject.namespace, subject.name)
        named = set(connection.scalars(of_job))
        ids = named & {own, shared} or named or {own}
    if len(ids) > 1:
        raise RefusedError(
            f"{len(ids)} jobs have a run {subject.id}: name its job as well", code="ambiguous"
        )
    owned = select(run_queries.c.run_id).where(among(run_queries.c.owner_id, ids))
    return {"run_ids": frozenset({*ids, *connection.scalars(owned)})}


def _namespace(connection: Connection, subject: Subject) -> dict[str, Any]:
    stored = stored_name(subject.namespace, LONGEST_NAMESPACE)
    ids = [namespace_id(stored)]
    of_jobs = select(jobs.c.id, jobs.c.namespace, jobs.c.name).where(
        among(jobs.c.namespace_id, ids)
    )
    of_datasets = select(datasets.c.id, datasets.c.namespace, datasets.c.name).where(
        among(datasets.c.namespace_id, ids)
    )
    job_rows, dataset_rows = (
        connection.execute(of_jobs).all(),
        connection.execute(of_datasets).all(),
    )
    job_ids = {row.id for row in job_rows}
    own_names = {row.name for row in (*job_rows, *dataset_rows)}
    shared = own_names & _names_elsewhere(connection, ids)
    return {
        "namespace_ids": frozenset(ids),
        "job_ids": frozenset(job_ids),
        "dataset_ids": frozenset(row.id for row in dataset_rows),
        "run_ids": _batches_of(connection, job_ids),
        "names": frozenset((row.namespace, row.name) for row in (*job_rows, *dataset_rows)),
        "words": (stored,),
        "members": _members(stored, own_names, shared),
        "dotted": True,
    }


def _names_elsewhere(connection: Connection, namespace_ids: list[int]) -> set[str]:
    """Return the names of jobs and datasets of all other namespaces."""
    names = set[str]()
    for table in (jobs, datasets):
        elsewhere = not_(among(table.c.namespace_id, namespace_ids))
        names.update(connection.scalars(select(table.c.name).where(elsewhere)))
    return names


def _members(namespace: str, names: set[str], shared: set[str]) -> tuple[str, ...]:
    """Return the names that texts use for a namespace's jobs and datasets.

    A name that another namespace has as well may be anybody's: it counts behind the namespace only.
    """
    words = _with_namespace((namespace, name) for name in names)
    return tuple(sorted(words | (names - shared)))


def _with_namespace(names: Iterable[Name]) -> set[str]:
    """Return the names as texts have them behind their namespace."""
    return {f"{namespace}{sign}{name}" for namespace, name in names for sign in "./:"}


def _event(_: Connection, subject: Subject) -> dict[str, Any]:
    try:
        hash_ = bytes.fromhex(subject.id)
    except ValueError:
        raise RefusedError(f"{subject.id!r} is not the hash of an event", code="hash") from None
    return {"hashes": frozenset({hash_})}


def _batches_of(connection: Connection, job_ids: Iterable[int]) -> frozenset[int]:
    """Return the runs that a streaming query among these jobs owns, whose events name another job.

    The application's.
    """
    owner = runs.alias("owner")
    query = (
        select(run_queries.c.run_id)
        .join(owner, owner.c.id == run_queries.c.owner_id)
        .where(or_(among(owner.c.job_id, job_ids), among(run_queries.c.job_id, job_ids)))
    )
    return frozenset(connection.scalars(query))


_TARGETS: dict[Kind, Callable[[Connection, Subject], dict[str, Any]]] = {
    "job": _job,
    "dataset": _dataset,
    "run": _run,
    "namespace": _namespace,
    "event": _event,
}
