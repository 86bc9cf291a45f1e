"""Changes as items of whole runs and datasets.

What all targets that take OpenLineage events have in common.
"""

import fnmatch
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from strandline.exporters.run_records import DatasetRecord, RunRecord, dataset_records, run_records
from strandline.exporters.target import Change, Item, digest
from strandline.store.ingest.export_news import DATASET, RUN

Content = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Which namespaces of jobs (of datasets by themselves: theirs) are exported.

    Patterns, those with ! before them are not.

    >>> Namespaces(("bank*", "!bank.test")).allow("bank.test"), Namespaces(("!test",)).allow("bank"), Namespaces().allow("x")
    (False, True, True)
    """

    patterns: tuple[str, ...] = ()

    def allow(self, namespace: str) -> bool:
        """Whether it is exported."""
        refused = [one[1:] for one in self.patterns if one.startswith("!")]
        allowed = [one for one in self.patterns if not one.startswith("!")]
        if any(fnmatch.fnmatchcase(namespace, one) for one in refused):
            return False
        return not allowed or any(fnmatch.fnmatchcase(namespace, one) for one in allowed)


def records_of(
    connection: Connection, changes: Sequence[Change], now: float, namespaces: Namespaces
) -> list[tuple[RunRecord, Change]]:
    """The runs that changed, each with its newest change, in the order of those.

    Noise and other namespaces are left out.
    """
    marks = {change.entity_id: change for change in changes if change.kind == RUN}
    found = []
    for record in run_records(connection, list(marks), now):
        if not record.job.hidden and namespaces.allow(record.job.namespace):
            found.append((record, marks.get(record.id, changes[-1])))
    return found


def run_item(
    record: RunRecord, change: Change, first: Content, content: Content, shape: Any
) -> Item:
    """A run as an item."""
    about = f"run {record.run_id} of job {record.job.namespace} {record.job.name} ({record.state.state})"
    is_live = not record.is_over and not record.design
    hashes = digest(shape), digest(content)
    return Item(RUN, record.id, change, about, content, *hashes, record.id, is_live, first=first)


def dataset_items(
    connection: Connection,
    changes: Iterable[Change],
    namespaces: Namespaces,
    content_of: Callable[[DatasetRecord, Change], Content],
    shape_of: Callable[[DatasetRecord], Any],
) -> list[Item]:
    """The datasets that have events of their own."""
    marks = {change.entity_id: change for change in changes if change.kind == DATASET}
    found = []
    for record in dataset_records(connection, list(marks)).values():
        if namespaces.allow(record.namespace) and record.id in marks:
            change, about = marks[record.id], f"dataset {record.namespace} {record.name}"
            content, shape = content_of(record, change), shape_of(record)
            found.append(
                Item(DATASET, record.id, change, about, content, digest(shape), digest(shape))
            )
    return found
