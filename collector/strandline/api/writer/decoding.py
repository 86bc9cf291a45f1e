"""Taking events apart where they are written.

The server that answers hands on bytes, and each event is decoded once.
"""

from collections.abc import Callable, Sequence

from strandline.core.openlineage.events import decoded
from strandline.errors import InvalidEventError, NotJsonError
from strandline.store.ingest.take import Outcome, Record

Write = Callable[[Sequence[Record]], list[Outcome]]


def decode_and_write(records: Sequence[Record], write: Write) -> list[Outcome]:
    """Store what is an event.

    What is none is refused with the path to its fault, and costs no transaction.
    """
    read = [_decoded(record) for record in records]
    good = [one for one in read if isinstance(one, Record)]
    stored = iter(write(good) if good else ())
    return [next(stored) if isinstance(one, Record) else one for one in read]


def _decoded(record: Record) -> Record | Outcome:
    if record.read is not None:
        return record
    try:
        return record._replace(read=decoded(record.value))
    except InvalidEventError as error:
        return Outcome(
            "refused", b"", error.reason, error.path, not isinstance(error, NotJsonError)
        )
