"""Texts that are compared with a pattern in which `*` stands for anything."""

import re
from functools import lru_cache

ANYTHING = "*"


@lru_cache(maxsize=1_000)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, text.split(ANYTHING))), re.DOTALL)


def is_like(text: str, pattern: str) -> bool:
    """Return whether a text is this one, where `*` stands for anything.

    >>> is_like("prod.eu", "prod*"), is_like("prod", "[p]rod")
    (True, False)
    """
    return _pattern(pattern).fullmatch(text) is not None
