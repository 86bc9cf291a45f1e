"""The counts of Marquez' dashboard, an hour or a day at a time."""

from datetime import datetime, time, timedelta
from itertools import pairwise
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fastapi import Query as InQuery
from pydantic import Field

from strandline.api.http.session import ReadSession, Session
from strandline.api.marquez.parameters import JSON, Period, marquez_router
from strandline.api.marquez.shapes.times import time_text
from strandline.core.openlineage.times import micros_of
from strandline.errors import ParameterError
from strandline.questions.parameters import Query, Text
from strandline.store.marquez.stats import counts_at, run_counts

HOURS, DAYS = 24, 7


router = marquez_router()


class StatsQuery(Query):
    """Of when, and where days begin."""

    period: Period = "DAY"
    timezone: Annotated[Text, Field(description="Time zone of the days, e.g. Europe/Berlin")] = (
        "UTC"
    )


@router.get("/stats/lineage-events", response_model=list[JSON])
def get_lineage_events(query: Annotated[StatsQuery, InQuery()], session: ReadSession) -> list[JSON]:
    """Count the runs by how they ended: started, completed, failed, aborted; each once."""
    edges = _edges(query, session.now)
    with session.connected() as connection:
        return [
            span | counts
            for span, counts in zip(_spans(edges), run_counts(connection, edges), strict=True)
        ]


@router.get("/stats/jobs", response_model=list[JSON])
def count_jobs(query: Annotated[StatsQuery, InQuery()], session: ReadSession) -> list[JSON]:
    """Count the jobs known at the end of each interval."""
    return _counts(query, session, "jobs")


@router.get("/stats/datasets", response_model=list[JSON])
def count_datasets(query: Annotated[StatsQuery, InQuery()], session: ReadSession) -> list[JSON]:
    """Count the datasets known at the end of each interval."""
    return _counts(query, session, "datasets")


@router.get("/stats/sources", response_model=list[JSON])
def count_sources(query: Annotated[StatsQuery, InQuery()], session: ReadSession) -> list[JSON]:
    """Count the sources known at the end of each interval."""
    return _counts(query, session, "sources")


def _counts(query: StatsQuery, session: Session, what: str) -> list[JSON]:
    edges = _edges(query, session.now)
    with session.connected() as connection:
        counts = counts_at(connection, what, edges)
    return [span | {"count": one} for span, one in zip(_spans(edges), counts, strict=True)]


def _spans(edges: list[int]) -> list[JSON]:
    return [
        {"startInterval": time_text(begin), "endInterval": time_text(end)}
        for begin, end in pairwise(edges)
    ]


def _edges(query: StatsQuery, now: datetime) -> list[int]:
    """Return the bounds of the last 24 hours, or of the last seven days where somebody lives."""
    zone = _zone(query.timezone)
    if query.period == "WEEK":
        today = now.astimezone(zone).date()
        days = [today - timedelta(days=DAYS - 1 - place) for place in range(DAYS + 1)]
        return [micros_of(datetime.combine(day, time(), zone)) for day in days]
    hour = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)
    return [micros_of(hour + timedelta(hours=place)) for place in range(HOURS + 1)]


def _zone(name: str) -> ZoneInfo:
    """Return a time zone; the `+` of Etc/GMT+1 arrives from Marquez' page as a space."""
    try:
        return ZoneInfo(name.strip().replace(" ", "+") or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ParameterError(f"unknown time zone: {name!r}") from None
