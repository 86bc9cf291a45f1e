"""Limits of what one text may hold before it is hidden as a whole.

Reading takes linear time, but each find costs some microseconds. A text with more finds than any
that was written for its meaning was made to cost time.
"""

MENTIONS = 5_000
OPTIONS = 20_000


class TooManyError(Exception):
    """A text has more mentions or options than any that was written for its meaning."""
