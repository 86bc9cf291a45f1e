"""Content of the search index, regardless of its pages."""

from sqlalchemy import Connection

from strandline.store.search.pages import fold, pages_of
from strandline.store.search.texts import TEXTS, entries_of


def sought(connection: Connection) -> set[tuple[int, int, str]]:
    """(kind, id, word) of the pages of the search's index as far as it is so.

    What is in which page is chance.
    """
    found = set()
    for kind in TEXTS:
        for _, _, page in pages_of(connection, [kind]):
            for entry in entries_of(connection, kind, list(page.ids)):
                found |= {
                    (kind, entry.id, word) for word in map(fold, entry.words) if word in page.words
                }
    return found
