"""Families of job names that differ only in a date, a number or a UUID."""

import re
from collections.abc import Iterable
from typing import NamedTuple

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_DATE = r"(?:19|20)\d\d([-_]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])"
_QUERY = r"20\d{6}_\d{6}_\d{5}_[a-z0-9]{5}"
_PARTS = (
    ("{uuid}", re.compile(rf"(?<![0-9a-fA-F]){_UUID}(?![0-9a-fA-F])")),
    ("{query}", re.compile(rf"(?<![0-9A-Za-z]){_QUERY}(?![0-9A-Za-z])")),
    ("{date}", re.compile(rf"(?<!\d){_DATE}(?!\d)")),
    ("{number}", re.compile(r"(?<!\d)\d+(?!\d)")),
)
"""Placeholders, and the values that they stand for; {query} is an id of a query of Trino."""

_SURE = re.compile(r"\{(?:uuid|query|date)\}")
_PLACEHOLDER = re.compile(r"\{(?:uuid|query|date|number)\}")


class JobFamily(NamedTuple):
    """Jobs of one namespace whose names are one pattern."""

    namespace: str
    pattern: str
    names: tuple[str, ...]

    @property
    def is_sure(self) -> bool:
        """True if the names differ in dates and ids; numbers alone may tell jobs apart."""
        return _SURE.search(self.pattern) is not None


def pattern_of(name: str) -> str:
    """Return the name with placeholders for its dates and ids, or for its numbers if it has none.

    The pattern of a pattern is itself.

    Numbers beside a date stay: the jobs `stage1_{date}` and `stage2_{date}` are not one.

    >>> pattern_of("stage1_2026-11-27"), pattern_of("etl_v2")
    ('stage1_{date}', 'etl_v{number}')
    """
    pattern = name
    for placeholder, values in _PARTS:
        if placeholder != "{number}" or not _SURE.search(pattern):
            pattern = values.sub(placeholder, pattern)
    return pattern


def is_pattern(text: str) -> bool:
    """Return whether a text is the pattern of some names.

    >>> is_pattern("daily_{date}"), is_pattern("daily_2026-11-27"), is_pattern("daily")
    (True, False, False)
    """
    return _PLACEHOLDER.search(text) is not None and pattern_of(text) == text


def families_of(jobs: Iterable[tuple[str, str]]) -> list[JobFamily]:
    """Return the families of two or more jobs, given as (namespace, name), sorted."""
    names_by_pattern: dict[tuple[str, str], set[str]] = {}
    for namespace, name in jobs:
        names_by_pattern.setdefault((namespace, pattern_of(name)), set()).add(name)
    return [
        JobFamily(namespace, pattern, tuple(sorted(names)))
        for (namespace, pattern), names in sorted(names_by_pattern.items())
        if len(names) > 1
    ]
