"""Notes of people, and their log."""

from sqlalchemy import Index, Table

from strandline.core.openlineage.names import id_of
from strandline.store.schema.columns import (
    code_column,
    id_column,
    metadata,
    own_id,
    text_column,
    time_column,
)

TAG_GIVEN, DELETED = 1, 2


def annotation_id(entity_id: int, kind: int, field: str, name: str) -> int:
    """Return the id of an annotation, the same for every value: an entity has each tag once."""
    return id_of("annotation", str(entity_id), str(kind), field, name)


annotations = Table(
    "annotations",
    metadata,
    own_id("a hash of entity, kind, field and name"),
    id_column("entity_id", "the job, dataset or tag"),
    code_column("kind", "1 tag, 2 deleted, 3 the tag itself"),
    text_column("field", "the column, if the note is about one"),
    text_column("name", "the tag"),
    text_column("value", "of a tag itself: its description"),
    time_column("at", "when it was noted; a later event brings a deleted job back"),
    Index(None, "entity_id"),
    Index(None, "kind"),
    comment="what people noted; no event overwrites it and no replay brings it back",
)

annotation_log = Table(
    "annotation_log",
    metadata,
    own_id("a hash of the row"),
    time_column("at", "when"),
    text_column("actor", "who"),
    text_column("action", "what was done"),
    text_column("entity", "kind, namespace and name"),
    text_column("field", "the column"),
    text_column("name", "the tag"),
    text_column("value", "the new value"),
    Index(None, "at"),
    comment="every change of an annotation; rows are only added",
)
