"""What a compression dictionary may hold of what is forgotten.

Pieces of its names, and of texts that only its events had.

A dictionary is made of pieces of the bodies that it was trained on. One that may hold a forgotten
piece goes; the events that need it are packed without, and writers train a new one on what comes
next.
"""

import re
from collections.abc import Iterable
from itertools import islice

from sqlalchemy import Connection

from strandline.store.forgetting.events import Left
from strandline.store.forgetting.subjects import Target
from strandline.store.ingest.forget import pieces_of
from strandline.store.ingest.raw_events import events_of

OTHERS = 1000  # events that are looked at for what everybody says
PIECE = 16  # bytes of a text: a shorter one may be anybody's
_STRING = re.compile(rb'"((?:[^"\\]|\\.)*)"')


def pieces_to_drop(connection: Connection, target: Target, left: list[Left]) -> set[bytes]:
    """The pieces that no dictionary may hold. The events are changed already."""
    found = {
        piece
        for word in (*target.words, *(name for _, name in target.names))
        for piece in pieces_of(word)
    }
    own_texts = _texts(one.before.body for one in left) - _texts(
        one.after for one in left if one.after
    )
    for one in islice(events_of(connection), OTHERS):
        if not own_texts:
            break
        own_texts -= _texts([one.body])
    return found | {
        piece for text in own_texts for piece in pieces_of(text.decode("utf-8", "replace"), PIECE)
    }


def _texts(bodies: Iterable[bytes]) -> set[bytes]:
    return {text for body in bodies for text in _STRING.findall(body) if len(text) >= PIECE}
