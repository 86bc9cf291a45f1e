"""The index of the search."""

from sqlalchemy import Column, Index, Integer, Table

from strandline.store.schema.columns import (
    bytes_column,
    code_column,
    id_column,
    metadata,
    own_id,
)

search_pages = Table(
    "search_pages",
    metadata,
    own_id(),
    id_column("namespace_id", "the namespace whose texts it has, as keys see some of them"),
    code_column("kind", "the kind of text: names, columns, ..."),
    Column("size", Integer, nullable=False, comment="how many datasets or jobs it has"),
    bytes_column("words", "a zstd frame of words with NUL between them"),
    bytes_column("owners", "a zstd frame of arrays of the datasets or jobs of each word"),
    Index(None, "kind", "namespace_id", "size"),
    comment="pages of the search's index (store/search/pages.py)",
)
