"""The kinds of consistency, and what each promises."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

Consistency: TypeAlias = Literal["strong", "weak", "cut"]

PROMISES: Mapping[Consistency, str] = {
    "strong": "the newest barrier that all tables which depend on each other have completed",
    "weak": "the newest barrier that the tables asked for have completed",
    "cut": "the newest snapshots found that agree by data lineage; no barrier is promised",
}
