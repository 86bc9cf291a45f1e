"""Notes of people: tags, what a tag means, and deletions, logged with the name of the key."""

from collections.abc import Iterable

from strandline.api.http.session import Session
from strandline.store.marquez.annotations import Author, Note, annotate, withdraw


def write_notes(session: Session, new: Iterable[Note], withdrawn: Iterable[Note] = ()) -> None:
    """Store new annotations and take others away, in one transaction."""
    author = Author(session.micros, session.access.who)
    with session.engine.begin() as connection:
        for note in new:
            annotate(connection, note, author)
        for note in withdrawn:
            withdraw(connection, note, author)
