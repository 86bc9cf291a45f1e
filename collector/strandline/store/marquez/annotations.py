"""Tags and deletions: what people note, beside what events state.

No event overwrites an annotation. Every change of one is in the annotation log, with the moment and
the name of the key that it came with.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from secrets import randbits

from sqlalchemy import Connection, delete, exists, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from strandline.store.lineage.graph_log import note_jobs
from strandline.store.schema.annotation_tables import (
    DELETED,
    TAG_GIVEN,
    annotation_id,
    annotation_log,
    annotations,
)
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.run_tables import runs
from strandline.store.sql.id_lists import among

TAG, TAG_ITSELF = TAG_GIVEN, 3
_ACTIONS = {TAG: "tag", DELETED: "delete", TAG_ITSELF: "tag"}


@dataclass(frozen=True, slots=True)
class Author:
    """The author of an annotation, with time (microseconds)."""

    at: int
    actor: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """One annotation: of the entity with this id, which the log calls `entity`.

    `field` is a column's name or empty.
    """

    entity_id: int
    entity: str
    kind: int
    field: str = ""
    name: str = ""
    value: str = ""

    @property
    def id(self) -> int:
        """The same for every value."""
        return annotation_id(self.entity_id, self.kind, self.field, self.name)


@dataclass(slots=True)
class Annotations:
    """All annotations of one entity."""

    tags: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


def annotate(connection: Connection, note: Note, author: Author) -> None:
    """Write an annotation in place of what it was, and log it.

    One that is there already changes nothing, except that a deletion counts from now on.
    """
    before = connection.execute(
        select(annotations.c.value).where(annotations.c.id == note.id)
    ).first()
    if before is not None and before.value == note.value and note.kind != DELETED:
        return
    if before is None:
        row = {
            "id": note.id,
            "entity_id": note.entity_id,
            "kind": note.kind,
            "field": note.field,
            "name": note.name,
        }
        connection.execute(insert(annotations).values(row | {"value": note.value, "at": author.at}))
    else:
        changed = update(annotations).where(annotations.c.id == note.id)
        connection.execute(changed.values(value=note.value, at=author.at))
    if note.kind == DELETED:
        note_jobs(connection, [note.entity_id])
    _log(connection, _ACTIONS[note.kind], note, author)


def withdraw(connection: Connection, note: Note, author: Author) -> None:
    """Take a tag away, and log it; one that is not there changes nothing."""
    if connection.execute(delete(annotations).where(annotations.c.id == note.id)).rowcount:
        _log(connection, "untag", note, author)


def _log(connection: Connection, action: str, note: Note, author: Author) -> None:
    what = {
        "action": action,
        "entity": note.entity,
        "field": note.field,
        "name": note.name,
        "value": note.value,
    }
    connection.execute(
        insert(annotation_log).values(
            what | {"id": randbits(63), "at": author.at, "actor": author.actor}
        )
    )


def annotations_of(connection: Connection, groups: dict[int, int]) -> dict[int, Annotations]:
    """The annotations of entities, each of which may have several ids.

    `groups` leads from an id to the entity's own.
    """
    by_node: dict[int, Annotations] = defaultdict(Annotations)
    query = (
        select(annotations).where(among(annotations.c.entity_id, groups)).order_by(annotations.c.at)
    )
    for row in connection.execute(query):
        of = by_node[groups[row.entity_id]]
        if row.kind == TAG:
            of.tags[row.field].add(row.name)
    return by_node


def dataset_is_deleted() -> ColumnElement[bool]:
    """Return the condition that a row of `datasets` is marked as deleted under any of its names.

    An event of a run that reads or writes it, received after the deletion, brings it back.
    """
    other, used_as = datasets.alias("other_name"), datasets.alias("used_as")
    named = other.join(annotations, annotations.c.entity_id == other.c.id)
    used = used_as.join(relations, relations.c.dataset_id == used_as.c.id)
    used_since = (
        exists()
        .select_from(used.join(runs, runs.c.id == relations.c.run_id))
        .where(used_as.c.canonical_id == other.c.canonical_id)
        .where(runs.c.received_at > annotations.c.at, runs.c.design == 0)
        .correlate(other, annotations)
    )
    under_a_name = (
        exists()
        .select_from(named)
        .where(annotations.c.kind == DELETED, other.c.canonical_id == datasets.c.canonical_id)
        .where(~used_since)
    )
    return under_a_name.correlate(datasets)


def tag_meanings(connection: Connection) -> dict[str, str]:
    """Map each tag that somebody has explained to what it means."""
    query = select(annotations.c.name, annotations.c.value).where(annotations.c.kind == TAG_ITSELF)
    return {row.name: row.value for row in connection.execute(query)}


def tags_in_use(connection: Connection) -> Iterable[str]:
    """The names of all tags that something has."""
    return connection.scalars(
        select(annotations.c.name).distinct().where(annotations.c.kind == TAG)
    )


def carry_over(source: Connection, target: Connection) -> int:
    """Take people's notes, with their log, into a store that was rebuilt from events.

    Events say nothing of notes. Return how many rows that were. Doing it again adds what has come
    since.
    """
    count = 0
    for table in (annotations, annotation_log):
        present = set(target.scalars(select(table.c.id)))
        new = [
            dict(row)
            for row in source.execute(select(table)).mappings()
            if row["id"] not in present
        ]
        if new:
            target.execute(insert(table), new)
        count += len(new)
    return count
