"""The texts that the search looks through, folded, in tables that the database scans."""

from sqlalchemy import Column, Index, Integer, PrimaryKeyConstraint, Table, Text

from strandline.store.schema.columns import (
    CLUSTERED,
    code_column,
    id_column,
    metadata,
    text_column,
)

BY_CODE_POINT = Text().with_variant(Text(collation="C"), "postgresql")

# Apart from other texts, which are many times as long: a search for a name reads all of it.
search_names = Table(
    "search_names",
    metadata,
    code_column("kind", "1 dataset, 2 job"),
    id_column("id", "the canonical dataset, or the job"),
    id_column("namespace_id", "its namespace, as keys see some of them"),
    Column("size", Integer, nullable=False, comment="the length of its name: the shortest first"),
    Column("start", BY_CODE_POINT, nullable=False, comment="its first 100 characters, folded"),
    text_column("texts", "its names, folded, a line each, without those that another contains"),
    PrimaryKeyConstraint("kind", "id"),
    Index(None, "kind", "size", "start", "id"),
    comment="the names of datasets and jobs, as the search compares them",
    **CLUSTERED,
)

search_texts = Table(
    "search_texts",
    metadata,
    code_column("kind", "3 tags of a dataset, 4 of a job, 5 columns, 6 SQL, 7 application"),
    id_column("id", "the canonical dataset, the job or the run"),
    id_column("namespace_id", "its namespace, as keys see some of them"),
    text_column("texts", "its texts of this kind, folded, a line each"),
    PrimaryKeyConstraint("kind", "id"),
    comment="tags, columns, SQL and application ids, as the search compares them",
    **CLUSTERED,
)
