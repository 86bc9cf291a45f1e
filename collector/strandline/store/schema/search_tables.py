"""The index of the search."""

from sqlalchemy import Column, Index, Integer, LargeBinary, SmallInteger, Table

from strandline.store.schema.columns import id_column, metadata, own_id

# Pages of the search's index (store/search/pages.py), each of one kind of text and one namespace:
# zstd of words with NUL between them, and of arrays that say whose they are. size: how many
# datasets or jobs.
search_pages = Table(
    "search_pages",
    metadata,
    own_id(),
    id_column("namespace_id"),
    Column("kind", SmallInteger, nullable=False),
    Column("size", Integer, nullable=False),
    Column("words", LargeBinary, nullable=False),
    Column("owners", LargeBinary, nullable=False),
    Index(None, "kind", "namespace_id", "size"),
)
