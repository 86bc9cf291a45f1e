"""Forgetting something everywhere.

One transaction, so that whoever is killed has changed nothing, or all.

What is left equals a store that never got it. Events are rewritten or taken out, every row that
they had a part in is folded again, and nothing else is touched. Without `execute` the transaction
is rolled back, and the counts are exact all the same.
"""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection, Engine, select
from sqlalchemy.exc import OperationalError

from strandline.core.changes.memory import Memory, NameBefore
from strandline.core.openlineage.names import id_of, namespace_id
from strandline.store.audit import Entry, note
from strandline.store.forgetting.events import events_left, write
from strandline.store.forgetting.facts import forget_facts
from strandline.store.forgetting.folding import fold_again
from strandline.store.forgetting.keys import keys_to_fold
from strandline.store.forgetting.notes import forget_notes
from strandline.store.forgetting.subjects import Subject, Target, target_of
from strandline.store.ingest.former_names import note_names_before
from strandline.store.ingest.labels import lock, relabel
from strandline.store.ingest.retention import keep_writers_out
from strandline.store.ingest.space import give_owed_back, owe
from strandline.store.ingest.writer_state import Caches
from strandline.store.lineage.joined_names import names_before
from strandline.store.schema.relation_tables import RUN_VIEWS, TEMPLATES
from strandline.store.schema.run_tables import runs, shared_runs
from strandline.store.sql.id_lists import among
from strandline.store.sql.shared_settings import agree_on_families, raise_epoch

__all__ = ["Forgotten", "Requester", "Subject", "forget"]


@dataclass(frozen=True, slots=True)
class Requester:
    """The person or key that asked to forget, with time and address.

    For the audit log, which does not get the name.
    """

    at: datetime
    who: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The numbers of deleted and of reduced rows, by table."""

    gone: dict[str, int]
    changed: dict[str, int]
    owed: bool = False  # the old bytes are still in the file, which others read just now

    @property
    def is_nothing(self) -> bool:
        """True if the store had nothing of it."""
        return not self.gone and not self.changed


def forget(engine: Engine, subject: Subject, requester: Requester, *, execute: bool) -> Forgotten:
    """Forget something, or count what that would change. Nothing is written meanwhile by others."""
    with engine.connect() as connection, connection.begin() as transaction:
        forgotten = _forget(connection, subject)
        if execute:
            _note(connection, subject, requester, forgotten)
        else:
            transaction.rollback()
    return replace(forgotten, owed=not _gave_back(engine)) if execute else forgotten


def _gave_back(engine: Engine) -> bool:
    try:
        give_owed_back(engine)
    except OperationalError:  # it stays noted: whoever looks next does it
        return False
    return True


def _forget(connection: Connection, subject: Subject) -> Forgotten:
    keep_writers_out(connection)
    lock(connection)
    raise_epoch(connection)
    target = target_of(connection, subject)
    caches = Caches(target.stored_names)
    caches.memory.share_runs(connection.scalars(select(shared_runs.c.id)).all())
    caches.memory.learn_names_before(names_before(connection))
    left = events_left(connection, target, caches.memory)
    own_runs = {
        *target.run_ids,
        *connection.scalars(select(runs.c.id).where(among(runs.c.job_id, target.job_ids))),
    }
    gone_facts, changed_facts = forget_facts(connection, target, caches.memory)
    keys = keys_to_fold(connection, target, left, caches)
    references = write(connection, target, left, caches.memory)
    counts = fold_again(connection, target, keys, caches)
    _keep_former_names(connection, target, caches.memory)
    noted = forget_notes(connection, target, own_runs, left)
    families = target.stored_names.families
    others = {family for family in families if namespace_id(family[0]) not in target.namespace_ids}
    if others != families:
        agree_on_families(connection, others)
    gone = (
        Counter(counts.gone) + noted + Counter(version_facts=gone_facts, body_references=references)
    )
    gone += Counter(raw_events=sum(event.after is None for event in left))
    changed = Counter(counts.changed) + Counter(version_facts=changed_facts)
    changed += Counter(raw_events=sum(event.after is not None for event in left))
    return Forgotten(dict(sorted(gone.items())), dict(sorted(changed.items())))


def _keep_former_names(connection: Connection, target: Target, memory: Memory) -> None:
    """Note again that other tables had names that go: their events are still named by these."""
    others: list[NameBefore] = []
    for before in memory.names_before or ():
        ids = [id_of("dataset", *name) for name in (before.stored, before.name, before.renamed_to)]
        if ids[0] not in target.dataset_ids and not target.dataset_ids.isdisjoint(ids[1:]):
            others.append(before)
    if others:
        note_names_before(connection, others)
        relabel(connection, {id_of("dataset", *before.stored) for before in others})


def _note(
    connection: Connection, subject: Subject, requester: Requester, forgotten: Forgotten
) -> None:
    if not forgotten.is_nothing:
        owe(connection, _written_tables(forgotten))
    counted = ", ".join(
        f"{table} {count}"
        for table, count in sorted((Counter(forgotten.gone) + Counter(forgotten.changed)).items())
    )
    note(
        connection,
        Entry(
            requester.at,
            requester.who,
            f"forget {subject.shown}",
            requester.address,
            0,
            counted or "nothing",
        ),
    )


def _written_tables(forgotten: Forgotten) -> list[str]:
    """Return the tables whose rows were deleted or changed, those of the search included.

    A view's rows are in the tables of templates.
    """
    names = {*forgotten.gone, *forgotten.changed, "search_names", "search_texts"}
    if names & RUN_VIEWS.keys():
        names = names - RUN_VIEWS.keys() | {table.name for table in TEMPLATES}
    return sorted(names)
