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
    several = (
        len({(o.dataset.namespace, o.dataset.name) for s in statements for o in s.outputs}) > 1
    )
    written: dict[tuple[str, str], list[Snapshot]] = {}
    for output in (output for statement in statements for output in statement.outputs):
        key = (output.dataset.namespace, output.dataset.name)
        written.setdefault(key, []).extend(output.dataset.snapshots)
    datasets: dict[tuple[str, str], OutputDataset] = {}
    for statement in statements:
        for output in statement.outputs:
            key = (output.dataset.namespace, output.dataset.name)
            dataset = replace(output.dataset, snapshots=each_written(written[key]))
            output = replace(output, dataset=dataset)
            output_dataset = _output(output, statement, explicit=several and len(statements) > 1)
            datasets[key] = (
                _joined(datasets[key], output_dataset) if key in datasets else output_dataset
            )
    return list(datasets.values())


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


def _output(output: Output, statement: Statement, *, explicit: bool) -> OutputDataset:
    dataset = output.dataset
    facets = _facets(dataset)
    if statement.columns or statement.indirect:
        facets["columnLineage"] = _columns(statement.columns, statement.indirect)
    if explicit:
        facets["lineage"] = lineage_facet([(i.namespace, i.name) for i in statement.inputs])
    if output.before is not None:
        namespace, name = output.before
        previous = lifecycle_state_change_dataset.PreviousIdentifier(name, namespace)
        facets["lifecycleStateChange"] = _Lifecycle(_State.RENAME, previousIdentifier=previous)
    elif output.operation in _STATES:
        facets["lifecycleStateChange"] = _Lifecycle(_STATES[output.operation])
    output_facets = _snapshot_facet(dataset.snapshots, StrandlineSnapshotOutputDatasetFacet)
    if output.renamed:
        output_facets["strandline_snapshot"] = StrandlineSnapshotOutputDatasetFacet(
            format=dataset.format, renamedColumns=dict(output.renamed)
        )
    if output.statistics:
        statistic = output.statistics.get
        output_facets["outputStatistics"] = (
            output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                rowCount=statistic("rowCount"),
                size=statistic("size"),
                fileCount=statistic("fileCount"),
            )
        )
    return OutputDataset(
        namespace=dataset.namespace, name=dataset.name, facets=facets, outputFacets=output_facets
    )


def _joined(first: OutputDataset, second: OutputDataset) -> OutputDataset:
    """Two statements of one run that write the same dataset.

    The later one's facets win, explicit inputs add up.

    What became of the dataset the first one says: a CREATE TABLE AS SELECT fills what it has made
    by an overwrite. One that only decides about rows (a DELETE) takes no columns away.
    """
    return OutputDataset(
        namespace=first.namespace,
        name=first.name,
        facets=_joined_facets(first.facets or {}, second.facets or {}),
        outputFacets={**(first.outputFacets or {}), **(second.outputFacets or {})},
    )


def _joined_facets(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    facets = {**first, **second}
    if "columnLineage" in first and not facets["columnLineage"]["fields"]:
        facets["columnLineage"] = first["columnLineage"]
    if "lifecycleStateChange" in first:
        facets["lifecycleStateChange"] = first["lifecycleStateChange"]
    if "lineage" in first and "lineage" in second:
        inputs = (*first["lineage"].inputs, *second["lineage"].inputs)
        facets["lineage"] = lineage_facet([(dataset.namespace, dataset.name) for dataset in inputs])
    return facets


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
