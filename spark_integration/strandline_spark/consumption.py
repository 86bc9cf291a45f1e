"""What the collector has to know to derive barriers: where each source was consumed, what was only looked up, of which domain.

A commit states a barrier if its snapshot does (an aligned job's), or if no table with snapshots is streamed: then its own
micro-batches are what others are aligned to. Of everything else the number of the micro-batch is no barrier.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from strandline_spark.facets import Lookup, StrandlineBarrierRunFacet
from strandline_spark.statement import VERSIONED, Dataset, Output, Snapshot, Statement

_CONTRIBUTES = {"append", "overwrite", "create", "replace", "merge"}


def of_domain(domain: str | None, statements: Sequence[Statement]) -> StrandlineBarrierRunFacet | None:
    """The facet of a batch run that makes a table out of tables with snapshots; None where it takes no part.

    A DELETE, an UPDATE and rows from elsewhere leave a table at no barrier.
    """
    outputs = [output for statement in statements for output in statement.outputs]
    own = {_key(output.dataset) for output in outputs}
    inputs = {_key(one) for statement in statements for one in statement.inputs if one.format in VERSIONED}
    if domain is None or not inputs - own or not all(output.operation in _CONTRIBUTES for output in outputs):
        return None
    return StrandlineBarrierRunFacet(domain=domain)


def is_root(statements: Iterable[Statement]) -> bool:
    """Whether a micro-batch streams from no table with snapshots."""
    inputs = (one for statement in statements for one in statement.inputs)
    return not any(one.streamed and one.format in VERSIONED for one in inputs)


def lookups_of(statements: Iterable[Statement]) -> list[Lookup] | None:
    """The tables that a micro-batch read as they were then."""
    inputs = [one for statement in statements for one in statement.inputs]
    streamed = {_key(one) for one in inputs if one.streamed}
    own = {_key(output.dataset) for statement in statements for output in statement.outputs}
    found = {_key(one) for one in inputs if one.format in VERSIONED} - streamed - own
    return [Lookup(*one) for one in sorted(found)] or None


def with_barrier(statements: Sequence[Statement], barrier: int) -> list[Statement]:
    """The statements of a root's micro-batch, whose snapshots carry its number."""
    return [
        replace(statement, outputs=tuple(_carrying(output, barrier) for output in statement.outputs))
        for statement in statements
    ]


def _carrying(output: Output, barrier: int) -> Output:
    snapshots = tuple(replace(one, barrier_id=barrier) for one in output.dataset.snapshots)
    return replace(output, dataset=replace(output.dataset, snapshots=snapshots))


def with_sources(statements: Sequence[Statement], sources: Sequence[Dataset]) -> list[Statement]:
    """The statements of a micro-batch, and those sources of its query that had nothing new for it."""
    read = {_key(one) for statement in statements for one in statement.inputs if one.streamed}
    idle = tuple(one for one in sources if _key(one) not in read and one.snapshots)
    if not idle or not statements:
        return list(statements)
    first, *others = statements
    return [replace(first, inputs=(*first.inputs, *idle)), *others]


def certain(statements: Sequence[Statement]) -> list[Statement]:
    """The statements of a micro-batch, where a table that was read at two snapshots is read at neither for certain."""
    seen: dict[tuple[str, str], set[str]] = {}
    for one in (one for statement in statements for one in statement.inputs):
        seen.setdefault(_key(one), set()).update(snapshot.snapshot_id for snapshot in one.snapshots)
    doubtful = {key for key, ids in seen.items() if len(ids) > 1}
    if not doubtful:
        return list(statements)
    return [replace(one, inputs=tuple(_doubted(dataset, doubtful) for dataset in one.inputs)) for one in statements]


def _doubted(dataset: Dataset, doubtful: set[tuple[str, str]]) -> Dataset:
    if _key(dataset) not in doubtful:
        return dataset
    snapshots: Iterable[Snapshot] = (replace(one, observed=True) for one in dataset.snapshots)
    return replace(dataset, snapshots=tuple(snapshots))


def _key(dataset: Dataset) -> tuple[str, str]:
    return dataset.namespace, dataset.name
