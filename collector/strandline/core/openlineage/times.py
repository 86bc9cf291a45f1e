"""Times as microseconds since 1970 UTC, read by one total function.

What no calendar has is clamped, never an overflow.
"""

import re
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
LATEST = (datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC) - EPOCH) // timedelta(
    microseconds=1
)

_ZONE_ID = re.compile(r"\[[\w/+:-]+\]$")  # Java's, after the offset
_FAR_YEAR = re.compile(r"([+-]?)(\d{5,12})-\d\d-\d\d[Tt ]")


def micros(text: str) -> int | None:
    """Return the microseconds of an ISO 8601 time; None if it is none.

    No zone means UTC; far years are clamped.

    >>> micros("1970-01-01T00:00:01.5Z"), micros("1970-01-01T01:00:00+01:00"), micros("yesterday")
    (1500000, 0, None)
    """
    try:
        return micros_of(datetime.fromisoformat(text))
    except ValueError:
        return _odd(text.strip())


def micros_of(moment: datetime) -> int:
    """Return the microseconds of a moment; a naive one is UTC."""
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH
    total = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return total if EARLIEST <= total <= LATEST else min(max(total, EARLIEST), LATEST)


def moment_of(microseconds: int) -> datetime:
    """Return the moment that `micros_of` made microseconds of."""
    return EPOCH + timedelta(microseconds=microseconds)


def _odd(text: str) -> int | None:
    far = _FAR_YEAR.match(text)
    if far:
        return EARLIEST if far[1] == "-" else LATEST
    leap = re.fullmatch(r"(.{17})60(.*)", text)  # a leap second is the second before
    again = f"{leap[1]}59{leap[2]}" if leap else _ZONE_ID.sub("", text).upper()
    if again == text:
        return None
    try:
        return micros_of(datetime.fromisoformat(again))
    except ValueError:
        return None
