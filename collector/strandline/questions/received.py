"""Questions for what was received: events, and the records that are none."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from strandline.questions import declared
from strandline.questions.parameters import (
    CURSOR,
    OPAQUE,
    Limit,
    ListQuery,
    PageQuery,
    Since,
    Until,
    Word,
)
from strandline.store.catalog.received import CURSOR as CURSOR_TYPES
from strandline.store.sql.pages import decode_cursor


def _after(text: Any) -> Any:
    if text is None:
        return None
    after = decode_cursor(text, CURSOR_TYPES)
    try:
        bytes.fromhex(str(after[1]))
    except ValueError:
        raise ValueError("is not a cursor of this list") from None
    return after


class ReceivedQuery(PageQuery):
    """A page of what was received, the newest first."""

    cursor: Annotated[Any, BeforeValidator(_after), OPAQUE, CURSOR] = None


class EventsQuery(ReceivedQuery):
    """Events as they were received."""

    job: Annotated[Word | None, Field(description=declared.EVENTS_OF_JOB.sentence)] = None
    run_id: Annotated[Word | None, Field(description=declared.EVENTS_OF_RUN.sentence)] = None
    dataset: Annotated[Word | None, Field(description=declared.EVENTS_OF_DATASET.sentence)] = None
    since: Since = None
    until: Until = None


class RejectedQuery(ListQuery):
    """The kinds of what was rejected."""

    limit: Limit = 100
