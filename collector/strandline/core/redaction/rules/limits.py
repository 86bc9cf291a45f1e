"""How much of one kind a text may have before it is hidden as a whole.

The rules are linear, but each find costs some microseconds. A text that has more finds than any
that was written for its sense is made to cost time, so it is not looked at further.
"""

MENTIONS = 5_000
LISTS = 5_000  # of options, calls with keys, logins
ITEMS = 20_000  # options and arguments
ADDRESSES = 10_000  # that have more than a place


class TooManyError(Exception):
    """A text has more of something than any that was written for its sense."""
