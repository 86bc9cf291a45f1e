"""Questions for what was received: events, and the records that are none."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from strandline.core.openlineage.moments import EXAMPLES
from strandline.questions.parameters import (
    CURSOR,
    OPAQUE,
    Limit,
    ListQuery,
    PageQuery,
    When,
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

    job: Annotated[
        Word | None,
        Field(description="Of this job: job:NAMESPACE:NAME, or its name where only one has it"),
    ] = None
    run_id: Annotated[Word | None, Field(description="Of this run")] = None
    dataset: Annotated[
        Word | None,
        Field(
            description="That name this dataset: dataset:NAMESPACE:NAME, or a short name like "
            "database.table"
        ),
    ] = None
    since: Annotated[When | None, Field(description=f"From this time on: {EXAMPLES}")] = None
    until: Annotated[When | None, Field(description="Before this time")] = None


class RejectedQuery(ListQuery):
    """The kinds of what was rejected."""

    limit: Limit = 100
