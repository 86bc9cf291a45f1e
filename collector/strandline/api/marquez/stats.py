"""What Marquez' dashboard counts, an hour or a day at a time."""

from datetime import datetime, time, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from strandline.api.http.operations import Ask, Operation, Parameter, ParameterError, Text
from strandline.api.http.paging import connected
from strandline.api.marquez.parameters import API, AnyCaseWord
from strandline.api.marquez.shapes.times import time_text
from strandline.core.openlineage.times import micros_of
from strandline.store.marquez.stats import counts_at, run_counts

HOURS, DAYS = 24, 7


def lineage_events(ask: Ask) -> list[dict[str, Any]]:
    """How many runs started, completed, failed and were aborted.

    Each once, however often its events came.
    """
    edges = _edges(ask)
    with connected(ask) as connection:
        return [
            span | counts
            for span, counts in zip(_spans(edges), run_counts(connection, edges), strict=True)
        ]


def _counter(what: str) -> Any:
    def count(ask: Ask) -> list[dict[str, Any]]:
        edges = _edges(ask)
        with connected(ask) as connection:
            counts = counts_at(connection, what, edges)
        return [span | {"count": one} for span, one in zip(_spans(edges), counts, strict=True)]

    count.__doc__ = f"How many {what} were known at the end of each interval."
    return count


def _spans(edges: list[int]) -> list[dict[str, Any]]:
    return [
        {"startInterval": time_text(begin), "endInterval": time_text(end)}
        for begin, end in pairwise(edges)
    ]


def _edges(ask: Ask) -> list[int]:
    """The bounds of the last 24 hours, or of the last seven days where somebody lives."""
    zone = _zone(ask.given["timezone"])
    if ask.given["period"] == "WEEK":
        today = ask.now.astimezone(zone).date()
        days = [today - timedelta(days=DAYS - 1 - place) for place in range(DAYS + 1)]
        return [micros_of(datetime.combine(day, time(), zone)) for day in days]
    hour = ask.now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)
    return [micros_of(hour + timedelta(hours=place)) for place in range(HOURS + 1)]


def _zone(name: str) -> ZoneInfo:
    """A time zone; Marquez' page does not encode the `+` of Etc/GMT+1, which arrives as a space."""
    try:
        return ZoneInfo(name.strip().replace(" ", "+") or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ParameterError(
            f"parameter timezone is no time zone that is known here: {name!r}"
        ) from None


_PERIOD = Parameter(
    "period",
    "DAY: the last 24 hours; WEEK: the last seven days",
    AnyCaseWord(("DAY", "WEEK")),
    default="DAY",
)
_ZONE = Parameter(
    "timezone", "Where days begin at midnight, as Europe/Berlin", Text(), default="UTC"
)
_COUNTS = {"type": "array", "items": {"type": "object"}}
OPERATIONS = (
    Operation(
        "GET", f"{API}/stats/lineage-events", "Runs by how they ended", lineage_events, (_PERIOD, _ZONE),
        answer=_COUNTS, scope="read",
    ),
    *(
        Operation(
            "GET", f"{API}/stats/{what}", f"How many {what} there were", _counter(what), (_PERIOD, _ZONE),
            answer=_COUNTS, scope="read",
        )
        for what in ("jobs", "datasets", "sources")
    ),
)  # fmt: skip
