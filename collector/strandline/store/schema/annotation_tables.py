"""What people note, and its log."""

from sqlalchemy import Column, Index, SmallInteger, Table

from strandline.store.schema.columns import id_column, metadata, own_id, text_column, time_column

# What people note of a job, dataset, column (`field`) or tag, which no event overwrites and no
# replay brings back. kind: 1 tag (`name`), 2 deleted, 3 the tag itself (value: what it means). id
# is a hash of entity, kind, field and name.
TAG_GIVEN, DELETED = 1, 2
annotations = Table(
    "annotations",
    metadata,
    own_id(),
    id_column("entity_id"),
    Column("kind", SmallInteger, nullable=False),
    text_column("field"),
    text_column("name"),
    text_column("value"),
    time_column("at"),
    Index(None, "entity_id"),
    Index(None, "kind"),
)

# Every change of an annotation: who did what to which entity, when. Only ever added to.
annotation_log = Table(
    "annotation_log",
    metadata,
    own_id(),
    time_column("at"),
    text_column("actor"),
    text_column("action"),
    text_column("entity"),
    text_column("field"),
    text_column("name"),
    text_column("value"),
    Index(None, "at"),
)
