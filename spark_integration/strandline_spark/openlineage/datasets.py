"""A Statement's datasets as OpenLineage's.

With the facets of the specification and our snapshot facet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass, replace
from functools import lru_cache
from typing import Any

from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    catalog_dataset,
    column_lineage_dataset,
    dataset_type_dataset,
    dataset_version_dataset,
    lifecycle_state_change_dataset,
    output_statistics_output_dataset,
    schema_dataset,
    symlinks_dataset,
)
from openlineage.client.generated import lineage

from strandline_spark.model.statement import (
    Catalog,
    Column,
    Dataset,
    Field,
    Origin,
    Output,
    Snapshot,
    Statement,
    Symlink,
    each_once,
    each_written,
)
from strandline_spark.openlineage.facets import (
    PRODUCER,
    OtherSnapshot,
    StrandlineSnapshotInputDatasetFacet,
    StrandlineSnapshotOutputDatasetFacet,
    View,
)
from strandline_spark.openlineage.redaction import Clean
from strandline_spark.openlineage.to_json import shared

_ANY_FACET = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetFacet"
_State = lifecycle_state_change_dataset.LifecycleStateChange
_Lifecycle = lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet
_STATES = {
    "create": _State.CREATE,
    "replace": _State.OVERWRITE,
    "overwrite": _State.OVERWRITE,
    "restore": _State.OVERWRITE,
    "drop": _State.DROP,
    "truncate": _State.TRUNCATE,
    "rename": _State.ALTER,  # until it is known that the rename was done
    "alter": _State.ALTER,
}
# A statement's end says what its start said, and the next statement often the same. Columns may be
# thousands.
_REMEMBERED, _REMEMBERED_COLUMNS = 16, 4
_Transformation = column_lineage_dataset.Transformation


def inputs_of(statements: Sequence[Statement]) -> list[InputDataset]:
    """Everything the statements read, each dataset once."""
    datasets: dict[tuple[str, str], Dataset] = {}
    for dataset in (dataset for statement in statements for dataset in statement.inputs):
        key = (dataset.namespace, dataset.name)
        datasets[key] = merged(datasets[key], dataset) if key in datasets else dataset
    return [_input(dataset) for dataset in datasets.values()]


def outputs_of(statements: Sequence[Statement]) -> list[OutputDataset]:
    """Everything the statements write, each dataset once.

    Where several statements are one run (writes inside foreachBatch), each output says by the
    `lineage` facet which inputs are its own, because "all inputs to all outputs" would be wrong.
    """
    written: dict[tuple[str, str], list[tuple[Output, Statement]]] = {}
    for statement in statements:
        for output in statement.outputs:
            key = (output.dataset.namespace, output.dataset.name)
            written.setdefault(key, []).append((output, statement))
    several = len(written) > 1 and len(statements) > 1
    return [_output(writes, explicit=several) for writes in written.values()]


def merged(first: Dataset, second: Dataset) -> Dataset:
    """One dataset met twice: what either knows, and all snapshots."""
    return replace(
        first,
        schema=first.schema or second.schema,
        catalog=first.catalog or second.catalog,
        table=first.table or second.table,
        symlinks=tuple(dict.fromkeys((*first.symlinks, *second.symlinks))),
        snapshots=each_once((*first.snapshots, *second.snapshots)),
        facets={**first.facets, **second.facets},
        streamed=first.streamed or second.streamed,
        through=tuple(dict.fromkeys((*first.through, *second.through))),
    )


def _input(dataset: Dataset) -> InputDataset:
    return InputDataset(
        namespace=dataset.namespace,
        name=dataset.name,
        facets=_facets(dataset),
        inputFacets=_input_facets(dataset),
    )


def _input_facets(dataset: Dataset) -> dict[str, Any]:
    """The snapshot that was read, and the views that the dataset was read through."""
    facets = _snapshot_facet(dataset.snapshots, StrandlineSnapshotInputDatasetFacet)
    through = [
        View(namespace=view[0], name=view[1]) for view in dataset.through if view is not None
    ]
    if not through:
        return facets
    facet = facets.setdefault(
        "strandline_snapshot", StrandlineSnapshotInputDatasetFacet(format=dataset.format)
    )
    facet.through = through
    facet.direct = True if None in dataset.through else None
    return facets


def _output(writes: Sequence[tuple[Output, Statement]], *, explicit: bool) -> OutputDataset:
    """Return one dataset as all writes of a run left it.

    The last write describes the dataset. The first one says what became of it: a CREATE TABLE AS
    SELECT fills what it has made by an overwrite.
    """
    outputs = [output for output, _ in writes]
    snapshots = each_written(one for output in outputs for one in output.dataset.snapshots)
    dataset = replace(outputs[-1].dataset, snapshots=snapshots)
    facets: dict[str, Any] = {}
    for output in outputs:
        facets |= _facets(replace(output.dataset, snapshots=snapshots))
    columns, indirect = _all_columns([statement for _, statement in writes])
    if columns or indirect:
        facets["columnLineage"] = _columns(columns, indirect)
    if explicit:
        inputs = [dataset for _, statement in writes for dataset in statement.inputs]
        facets["lineage"] = lineage_facet([(one.namespace, one.name) for one in inputs])
    changes = [change for output in outputs if (change := _lifecycle(output)) is not None]
    if changes:
        facets["lifecycleStateChange"] = changes[0]
    output_facets = _snapshot_facet(snapshots, StrandlineSnapshotOutputDatasetFacet)
    if outputs[-1].renamed:
        output_facets["strandline_snapshot"] = StrandlineSnapshotOutputDatasetFacet(
            format=dataset.format, renamedColumns=dict(outputs[-1].renamed)
        )
    statistics = _statistics(outputs)
    if statistics:
        output_facets["outputStatistics"] = (
            output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                rowCount=statistics.get("rowCount"),
                size=statistics.get("size"),
                fileCount=statistics.get("fileCount"),
            )
        )
    return OutputDataset(
        namespace=dataset.namespace, name=dataset.name, facets=facets, outputFacets=output_facets
    )


def _all_columns(
    statements: Sequence[Statement],
) -> tuple[tuple[Column, ...], tuple[Origin, ...]]:
    """Return the columns with what any of the statements made them of, and what decided rows."""
    if len(statements) == 1:
        return statements[0].columns, statements[0].indirect
    origins: dict[str, dict[Origin, None]] = {}
    for column in (column for statement in statements for column in statement.columns):
        origins.setdefault(column.name, {}).update(dict.fromkeys(column.origins))
    indirect = dict.fromkeys(one for statement in statements for one in statement.indirect)
    return tuple(Column(name, tuple(made_of)) for name, made_of in origins.items()), tuple(indirect)


def _lifecycle(output: Output) -> _Lifecycle | None:
    before = _identity_before(output)
    if before is not None:
        previous = lifecycle_state_change_dataset.PreviousIdentifier(before[1], before[0])
        return _Lifecycle(_State.RENAME, previousIdentifier=previous)
    return _Lifecycle(_STATES[output.operation]) if output.operation in _STATES else None


def _identity_before(output: Output) -> tuple[str, str] | None:
    """Return the identity that a rename ends: the old place, or else the old name."""
    before, now = output.before, output.dataset
    if before is None:
        return None
    if (before.namespace, before.name) != (now.namespace, now.name):
        return before.namespace, before.name
    return next(((link.namespace, link.name) for link in before.symlinks), None)


def _statistics(outputs: Sequence[Output]) -> Mapping[str, int]:
    """Return the last write's counts; of several commits the sum.

    A CREATE TABLE AS and the append inside it count the same commit.
    """
    by_commit = {
        output.dataset.snapshots[-1].snapshot_id: output.statistics
        for output in outputs
        if output.dataset.snapshots
    }
    if len(by_commit) < 2:
        return next((output.statistics for output in reversed(outputs) if output.statistics), {})
    counted = [
        name for name in outputs[-1].statistics if all(name in one for one in by_commit.values())
    ]
    return {name: sum(one[name] for one in by_commit.values()) for name in counted}


def lineage_facet(sources: Sequence[tuple[str, str]]) -> lineage.LineageDatasetFacet:
    """The explicit lineage of one output: exactly these datasets."""
    return lineage.LineageDatasetFacet(
        inputs=[
            lineage.LineageDatasetInput(namespace=namespace, name=name, type="DATASET")
            for namespace, name in dict.fromkeys(sources)
        ]
    )


def _facets(dataset: Dataset) -> dict[str, Any]:
    facets: dict[str, Any] = provider_facets(dataset.facets)
    if dataset.is_view:
        facets["datasetType"] = dataset_type_dataset.DatasetTypeDatasetFacet("VIEW")
    if dataset.schema:
        facets["schema"] = _schema(dataset.schema)
    if dataset.catalog is not None:
        facets["catalog"] = _catalog(dataset.catalog)
    if dataset.symlinks:
        facets["symlinks"] = _symlinks(dataset.symlinks)
    if dataset.snapshots:
        version = dataset.snapshots[-1].snapshot_id
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(
            datasetVersion=version
        )
    return facets


@lru_cache(maxsize=_REMEMBERED)
def _schema(fields: tuple[Field, ...]) -> Clean:
    return shared(schema_dataset.SchemaDatasetFacet(fields=[_field(field) for field in fields]))


@lru_cache(maxsize=_REMEMBERED)
def _catalog(catalog: Catalog) -> Clean:
    return shared(
        catalog_dataset.CatalogDatasetFacet(
            framework=catalog.framework,
            type=catalog.type,
            name=catalog.name,
            metadataUri=catalog.metadata_uri,
            warehouseUri=catalog.warehouse_uri,
            source="spark",
            catalogProperties=None,
        )
    )


@lru_cache(maxsize=_REMEMBERED)
def _symlinks(symlinks: tuple[Symlink, ...]) -> Clean:
    identifiers = [
        symlinks_dataset.Identifier(symlink.namespace, symlink.name, symlink.type)
        for symlink in symlinks
    ]
    return shared(symlinks_dataset.SymlinksDatasetFacet(identifiers=identifiers))


def _field(field: Field) -> schema_dataset.SchemaDatasetFacetFields:
    return schema_dataset.SchemaDatasetFacetFields(
        name=field.name, type=field.type, fields=[_field(inner) for inner in field.fields] or None
    )


def _snapshot_facet(snapshots: Sequence[Snapshot], facet: Any) -> dict[str, Any]:
    """The newest snapshot; a second one (a table read at two versions) stands under `others`."""
    if not snapshots:
        return {}
    last = snapshots[-1]
    own: dict[str, Any]
    if facet is StrandlineSnapshotOutputDatasetFacet:
        own = {
            "replacesTable": last.replaces_table,
            "wasEmpty": last.was_empty or None,
            "completes": last.completes or None,
        }
    else:
        own = {"skippedChanges": last.skipped_changes or None}
    return {
        "strandline_snapshot": facet(
            format=last.format,
            snapshotId=last.snapshot_id,
            parentSnapshotId=last.parent_snapshot_id,
            fromSnapshotId=last.from_snapshot_id,
            barrierId=last.barrier_id,
            committedAt=last.committed_at,
            operation=last.operation,
            numberOfRows=last.number_of_rows,
            observed=True if last.observed else None,
            branch=last.branch,
            staged=True if last.staged else None,
            others=[_other(snapshot, facet) for snapshot in snapshots[:-1]] or None,
            sameRowsAs=[_other(snapshot) for snapshot in last.same_rows_as] or None,
            **own,
        )
    }


def _other(snapshot: Snapshot, facet: Any = None) -> OtherSnapshot:
    written = facet is StrandlineSnapshotOutputDatasetFacet
    return OtherSnapshot(
        format=snapshot.format,
        snapshotId=snapshot.snapshot_id,
        parentSnapshotId=snapshot.parent_snapshot_id,
        fromSnapshotId=snapshot.from_snapshot_id,
        barrierId=snapshot.barrier_id,
        committedAt=snapshot.committed_at,
        operation=snapshot.operation,
        numberOfRows=snapshot.number_of_rows,
        branch=snapshot.branch,
        sameRowsAs=[_other(other) for other in snapshot.same_rows_as] or None,
        skippedChanges=snapshot.skipped_changes or None,
        replacesTable=snapshot.replaces_table if written else None,
        wasEmpty=(snapshot.was_empty or None) if written else None,
        completes=(snapshot.completes or None) if written else None,
    )


@lru_cache(maxsize=_REMEMBERED_COLUMNS)
def _columns(columns: tuple[Column, ...], indirect: tuple[Origin, ...]) -> Clean:
    """Return column lineage.

    DIRECT origins by column, INDIRECT ones of the whole output under `dataset`.
    """
    fields = {
        column.name: column_lineage_dataset.Fields(inputFields=_input_fields(column.origins))
        for column in columns
        if column.origins
    }
    return shared(
        column_lineage_dataset.ColumnLineageDatasetFacet(
            fields=fields, dataset=_input_fields(indirect)
        )
    )


def _input_fields(origins: Sequence[Origin]) -> list[column_lineage_dataset.InputField]:
    """Origins by source column.

    One that counts twice (filtered and grouped by) has two transformations.
    """
    fields: dict[tuple[str, str, str], list[_Transformation]] = {}
    for origin in origins:
        fields.setdefault((*origin.dataset, origin.column), []).append(_transformation(origin))
    return [
        column_lineage_dataset.InputField(
            namespace=namespace, name=name, field=field, transformations=steps
        )
        for (namespace, name, field), steps in fields.items()
    ]


def _transformation(origin: Origin) -> _Transformation:
    return _Transformation(
        type=origin.type,
        subtype=origin.subtype,
        description=origin.transform or "",
        masking=origin.masking,
    )


def provider_facets(facets: Mapping[str, Any]) -> dict[str, Any]:
    """A provider's facets as OpenLineage has facets: with producer and schema."""
    return {
        name: {"_producer": PRODUCER, "_schemaURL": _ANY_FACET, **_plain(f)}
        for name, f in facets.items()
    }


def _plain(facet: Any) -> dict[str, Any]:
    if is_dataclass(facet) and not isinstance(facet, type):
        return asdict(facet)
    return dict(facet) if isinstance(facet, Mapping) else {"value": facet}
