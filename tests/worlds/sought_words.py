"""Content of the search's tables."""

from sqlalchemy import Connection, select

from strandline.store.schema.search_tables import search_names, search_texts
from strandline.store.search.finding import fold
from strandline.store.search.texts import entries_of


def sought(connection: Connection) -> set[tuple[int, int, str]]:
    """(kind, id, word) of the search's tables as far as it is so."""
    found = set()
    for table in (search_names, search_texts):
        for row in connection.execute(select(table)).all():
            (entry,) = entries_of(connection, row.kind, [row.id]) or (None,)
            if entry is not None:
                words = set(row.texts.split("\n"))
                found |= {
                    (row.kind, row.id, word) for word in map(fold, entry.texts) if word in words
                }
    return found
