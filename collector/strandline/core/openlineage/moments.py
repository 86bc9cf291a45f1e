"""Moments as people write them: an ISO 8601 time, or one that is counted from now.

Without a zone they are UTC.
"""

import re
from datetime import UTC, datetime, time, timedelta

UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
DAYS = {"today": 0, "yesterday": 1}
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
EXAMPLES = "2026-11-20T12:00:00Z, 18:00, 12h, 3d, friday, today or yesterday"

_AGO = re.compile(r"(\d{1,6}) ?([smhdw])(?: ago)?", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)", re.ASCII)


def exact_moment(text: str) -> datetime:
    """Return the moment of an ISO 8601 time, in UTC; raise ValueError if it is none.

    (A `+` that came unencoded is a space by now.)

    >>> exact_moment("2026-11-20T12:00:00+02:00")
    datetime.datetime(2026, 11, 20, 10, 0, tzinfo=datetime.timezone.utc)
    """
    try:
        moment = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("is not a time like 2026-11-20T12:00:00Z") from None


def moment(text: str, now: datetime) -> datetime:
    """Return the moment of an ISO time, or of one counted from `now`.

    12h (so long ago), 18:00 (the last one), yesterday (its 0:00), friday (0:00 of the last one that
    began before today).

    >>> noon = datetime(2026, 11, 20, 12, tzinfo=UTC)
    >>> [f"{moment(text, noon):%d %H:%M}" for text in ("90m", "yesterday", "18:00", "friday")]
    ['20 10:30', '19 00:00', '19 18:00', '13 00:00']
    """
    word = text.strip().lower()
    if word == "now":
        return now
    if word in DAYS:
        return datetime.combine(now.date() - timedelta(days=DAYS[word]), time(), UTC)
    if word in WEEKDAYS:
        days = (now.weekday() - WEEKDAYS.index(word) - 1) % 7 + 1
        return datetime.combine(now.date() - timedelta(days=days), time(), UTC)
    if ago := _AGO.fullmatch(word):
        return _before(now, int(ago[1]) * UNITS[ago[2]])
    if (clock := _CLOCK.fullmatch(word)) and int(clock[1]) < 24 and int(clock[2]) < 60:
        today = datetime.combine(now.date(), time(int(clock[1]), int(clock[2])), UTC)
        return today if today <= now else today - timedelta(days=1)
    try:
        return exact_moment(text)
    except ValueError:
        raise ValueError(f"is not a time like {EXAMPLES}") from None


def _before(now: datetime, seconds: int) -> datetime:
    """Return the moment so many seconds before; the first of the calendar where it has none."""
    try:
        return now - timedelta(seconds=seconds)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)
