"""The facts from which the collector derives barriers.

Where each source was consumed, what was only looked up, of which group.

A commit states a barrier if its snapshot does (an aligned job's), or if no table with snapshots is
streamed: then its own micro-batches are what others are aligned to. Of everything else the number
of the micro-batch is no barrier.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from strandline_spark.jvm.iceberg_snapshot import INPUTS, Commit
from strandline_spark.model.statement import VERSIONED, Dataset, Output, Snapshot, Statement
from strandline_spark.openlineage.facets import Lookup, StrandlineBarrierRunFacet

_CONTRIBUTES = {"append", "overwrite", "create", "replace", "merge"}


def of_group(
    group: str | None, statements: Sequence[Statement]
) -> StrandlineBarrierRunFacet | None:
    """The facet of a batch run that makes a table out of tables with snapshots.

    None where it takes no part.

    A DELETE, an UPDATE and rows from elsewhere leave a table at no barrier.
    """
    outputs = _outputs(statements)
    own = {_key(output.dataset) for output in outputs}
    inputs = {_key(dataset) for dataset in _inputs(statements) if dataset.format in VERSIONED}
    if (
        group is None
        or not inputs - own
        or not all(output.operation in _CONTRIBUTES for output in outputs)
    ):
        return None
    return StrandlineBarrierRunFacet(group=group)


def numbered(statements: Sequence[Statement], batch_id: int) -> tuple[int | None, list[Statement]]:
    """The barrier that a micro-batch states, and its statements with it: its snapshot's own.

    Of a base table the next number.
    """
    own = max(
        (output.barrier_id for output in written_by(statements) if output.barrier_id is not None),
        default=None,
    )
    if own is not None or not is_root(statements):
        return own, list(statements)
    return batch_id + 1, with_barrier(statements, batch_id + 1)


def written_by(statements: Sequence[Statement]) -> list[Snapshot]:
    """The snapshots that statements wrote."""
    return [snapshot for output in _outputs(statements) for snapshot in output.dataset.snapshots]


def committed_at(statements: Sequence[Statement]) -> str | None:
    """Return when the written snapshots say that they were committed."""
    return max(
        (
            output.committed_at
            for output in written_by(statements)
            if output.committed_at is not None
        ),
        default=None,
    )


def group_of(statements: Sequence[Statement]) -> str | None:
    """The group that the written snapshots say their barrier is of."""
    return next(
        (output.group for output in written_by(statements) if output.group is not None), None
    )


def is_root(statements: Iterable[Statement]) -> bool:
    """Return whether a micro-batch streams from no table with snapshots."""
    return not any(
        dataset.streamed and dataset.format in VERSIONED for dataset in _inputs(statements)
    )


def lookups_of(statements: Sequence[Statement]) -> list[Lookup] | None:
    """The tables that a micro-batch read as they were then."""
    inputs = _inputs(statements)
    streamed = {_key(dataset) for dataset in inputs if dataset.streamed}
    own = {_key(output.dataset) for output in _outputs(statements)}
    keys = {_key(dataset) for dataset in inputs if dataset.format in VERSIONED} - streamed - own
    return [Lookup(*key) for key in sorted(keys)] or None


def with_barrier(statements: Sequence[Statement], barrier: int) -> list[Statement]:
    """Return the statements of a base table's micro-batch, whose snapshots carry its number.

    Of several commits to one table the last one carries it.
    """
    last = {
        _key(output.dataset): output.dataset.snapshots[-1].snapshot_id
        for output in _outputs(statements)
        if output.dataset.snapshots
    }
    return [
        replace(
            statement,
            outputs=tuple(_carrying(output, barrier, last) for output in statement.outputs),
        )
        for statement in statements
    ]


def _carrying(output: Output, barrier: int, last: Mapping[tuple[str, str], str]) -> Output:
    carrier = last.get(_key(output.dataset))
    snapshots = tuple(
        replace(snapshot, barrier_id=barrier) if snapshot.snapshot_id == carrier else snapshot
        for snapshot in output.dataset.snapshots
    )
    return replace(output, dataset=replace(output.dataset, snapshots=snapshots))


def with_sources(statements: Sequence[Statement], sources: Sequence[Dataset]) -> list[Statement]:
    """Return a micro-batch's statements, and those sources of its query without anything new."""
    read = streamed_tables(statements)
    idle = {
        _key(source): source for source in sources if _key(source) not in read and source.snapshots
    }
    if not idle or not statements:
        return list(statements)
    first, *others = [
        replace(statement, inputs=tuple(idle.pop(_key(i), i) for i in statement.inputs))
        for statement in statements
    ]
    return [replace(first, inputs=(*first.inputs, *idle.values())), *others]


def streamed_tables(statements: Iterable[Statement]) -> set[tuple[str, str]]:
    """The tables that a micro-batch streamed from, and got snapshots of."""
    return {
        _key(dataset) for dataset in _inputs(statements) if dataset.streamed and dataset.snapshots
    }


def _inputs(statements: Iterable[Statement]) -> list[Dataset]:
    return [dataset for statement in statements for dataset in statement.inputs]


def _outputs(statements: Iterable[Statement]) -> list[Output]:
    return [output for statement in statements for output in statement.outputs]


def certain(statements: Sequence[Statement]) -> list[Statement]:
    """Return the statements, with a table that was read at two snapshots certain at neither."""
    snapshots: dict[tuple[str, str], set[str]] = {}
    for one in _inputs(statements):
        snapshots.setdefault(_key(one), set()).update(
            snapshot.snapshot_id for snapshot in one.snapshots
        )
    doubtful = {key for key, ids in snapshots.items() if len(ids) > 1}
    if not doubtful:
        return list(statements)
    return [
        replace(
            statement, inputs=tuple(_doubted(dataset, doubtful) for dataset in statement.inputs)
        )
        for statement in statements
    ]


def as_committed(statements: Sequence[Statement], exact: Statement) -> list[Statement]:
    """Return the statements of an aligned job's micro-batch with its commit's snapshots.

    With those that its own commit names, and no others.
    """
    return [
        *(_without_snapshots(statement) for statement in statements),
        replace(exact, columns=(), indirect=()),
    ]


def reads_exactly(statements: Sequence[Statement], named: Mapping[str, str]) -> bool:
    """Return true if the observed reads are those that the commit names.

    Of each table that is one snapshot.
    """
    own = {_key(output.dataset) for statement in statements for output in statement.outputs}
    snapshots: dict[str, set[str]] = {}
    for dataset in (
        one for statement in statements for one in statement.inputs if _key(one) not in own
    ):
        snapshots.setdefault(str(dataset.table), set()).update(
            snapshot.snapshot_id for snapshot in dataset.snapshots
        )
    return snapshots == {table: {snapshot} for table, snapshot in named.items()}


def doubted(statements: Sequence[Statement]) -> list[Statement]:
    """The statements, where nothing that was read is certain."""
    everything = {_key(dataset) for statement in statements for dataset in statement.inputs}
    return [
        replace(
            statement, inputs=tuple(_doubted(dataset, everything) for dataset in statement.inputs)
        )
        for statement in statements
    ]


def named_inputs(commits: Iterable[Any], batch: tuple[str, int]) -> Mapping[str, str]:
    """The inputs that the commit of a micro-batch names: each table with its snapshot."""
    own = [
        commit
        for commit in commits
        if isinstance(commit, Commit) and commit.batch == batch and INPUTS in commit.summary
    ]
    inputs: dict[str, str] = json.loads(own[-1].summary[INPUTS]) if own else {}
    return inputs


def _without_snapshots(statement: Statement) -> Statement:
    inputs = tuple(replace(dataset, snapshots=()) for dataset in statement.inputs)
    outputs = tuple(
        replace(output, dataset=replace(output.dataset, snapshots=()))
        for output in statement.outputs
    )
    return replace(statement, inputs=inputs, outputs=outputs)


def _doubted(dataset: Dataset, doubtful: set[tuple[str, str]]) -> Dataset:
    if _key(dataset) not in doubtful:
        return dataset
    snapshots: Iterable[Snapshot] = (
        replace(snapshot, observed=True) for snapshot in dataset.snapshots
    )
    return replace(dataset, snapshots=tuple(snapshots))


def _key(dataset: Dataset) -> tuple[str, str]:
    return dataset.namespace, dataset.name
