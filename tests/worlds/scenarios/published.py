"""Published reports about what two tenants have: in each a row about each, and pairs of each with the other's."""

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Protocol

from sqlalchemy import Engine

from strandline.core.openlineage.names import id_of
from strandline.store.analyses import OF_JOBS, REPORTS, PublishedReport, PublishedRow, publish


class Named(Protocol):
    """A tenant, whose word is in all its names."""

    @property
    def word(self) -> str:
        """The word."""

    @property
    def jobs(self) -> str:
        """The namespace of its jobs."""

    @property
    def lake(self) -> str:
        """The namespace of its datasets."""

    def table(self, name: str) -> str:
        """The name of a dataset."""


def publish_about(engine: Engine, tenants: Sequence[Named]) -> None:
    """Publish all reports about them."""
    with engine.begin() as connection:
        for report in _reports(tenants):
            publish(connection, report)


def _reports(tenants: Sequence[Named]) -> Iterator[PublishedReport]:
    """The evidence in each row repeats the words of whom it is about."""
    for name in REPORTS:
        rows = [PublishedRow(_subject(name, one), None, {"evidence": one.word, "readers": 2}) for one in tenants]
        rows += [
            PublishedRow(_subject(name, one), _subject("", other), {"evidence": f"{one.word} {other.word}"})
            for one, other in permutations(tenants, 2)
        ]
        yield PublishedReport(name, "a report", 0, "known", len(rows), None, rows)


def _subject(report: str, tenant: Named) -> int:
    if report == OF_JOBS:
        return id_of("job", tenant.jobs, f"{tenant.word}.first")
    return id_of("dataset", tenant.lake, tenant.table("u"))
