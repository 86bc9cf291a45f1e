"""Small bodies, packed against words that facets have in common.

A body of a kilobyte or less hardly gets smaller when it is packed alone. A facet begins with its
producer and the address of its schema, which are most of it: 270 bytes become 50. Every stored
frame needs COMMON, so it never changes; other words would come with another mark.
"""

from collections.abc import Callable

import zstandard

LEAST = 64  # shorter bodies stay as they came
MARK = b"\xf5S1\n"  # no text in UTF-8 has such a byte, so no body begins so
_LEVEL = 3

_PRODUCERS = (
    "https://github.com/OpenLineage/OpenLineage/tree/main/integration/common/openlineage/schema/dbt-version-run-facet.json",
    "https://github.com/OpenLineage/OpenLineage/tree/1.54.0/client/python",
    "https://github.com/OpenLineage/OpenLineage/tree/1.54.0/integration/spark",
)
# The schema and the fields of a facet. Those of every run and relation come last, where matches
# cost least.
_SCHEMAS = (
    ("1-0-1/OwnershipJobFacet", ("owners",)),
    ("1-0-0/TagsRunFacet", ("tags", "key", "value", "source")),
    ("1-1-0/DocumentationDatasetFacet", ("description",)),
    (
        "1-2-0/ColumnLineageDatasetFacet",
        ("fields", "inputFields", "namespace", "name", "field", "transformations"),
    ),
    ("1-0-1/LifecycleStateChangeDatasetFacet", ("lifecycleStateChange",)),
    ("1-0-1/CatalogDatasetFacet", ("framework", "type", "name", "warehouseUri")),
    ("1-0-1/DatasourceDatasetFacet", ("name", "uri")),
    ("1-1-1/SchemaDatasetFacet", ("fields", "name", "type")),
    ("1-0-1/SymlinksDatasetFacet", ("identifiers", "namespace", "name", "type")),
    ("1-1-0/SQLJobFacet", ("dialect", "query")),
    ("2-0-3/JobTypeJobFacet", ("processingType", "integration", "jobType", "emissionPattern")),
    ("1-0-1/DatasetVersionDatasetFacet", ("datasetVersion",)),
    ("1-0-0/IcebergScanReportInputDatasetFacet", ("snapshotId", "filterDescription", "schemaId")),
    (
        "1-0-0/IcebergCommitReportOutputDatasetFacet",
        ("snapshotId", "sequenceNumber", "operation", "commitMetrics"),
    ),
    ("1-0-0/InputStatisticsInputDatasetFacet", ("rowCount", "size", "fileCount")),
    ("1-1-0/DataQualityAssertionsDatasetFacet", ("assertions", "assertion", "column", "success")),
    ("1-0-0/ErrorMessageRunFacet", ("message", "programmingLanguage", "stackTrace")),
    ("1-0-1/NominalTimeRunFacet", ("nominalStartTime", "nominalEndTime")),
    ("1-0-0/GcpDataprocRunFacet", ("clusterUuid", "jobId", "jobUuid", "appName", "clusterName")),
    ("1-0-0/StrandlineHeartbeatRunFacet", ("timeoutSeconds",)),
    (
        "1-0-0/StrandlineSnapshotDatasetFacet",
        ("format", "snapshotId", "parentId", "operation", "committedAt", "barrierId"),
    ),
    (
        "1-0-0/StrandlineBarrierRunFacet",
        (
            *(
                "engine",
                "queryId",
                "batchId",
                "barrierId",
                "group",
                "phase",
                "startedAt",
                "committedAt",
            ),
            *("checkpointLocation", "sources", "startOffset", "endOffset", "lookups", "generation"),
        ),
    ),
    ("1-1-1/ProcessingEngineRunFacet", ("version", "name", "openlineageAdapterVersion")),
    ("1-0-1/ParentRunFacet", ("run", "runId", "job", "namespace", "name", "root")),
    ("1-0-2/OutputStatisticsOutputDatasetFacet", ("rowCount", "size", "fileCount")),
)
__DICTIONARY = (
    *(
        "BATCH",
        "STREAMING",
        "NONE",
        "SPARK",
        "AIRFLOW",
        "DBT",
        "APPLICATION",
        "SQL_JOB",
        "JOB",
        "QUERY",
        "COMMAND",
    ),
    *(
        "COMPLETE_SNAPSHOT",
        "ACCUMULATIVE",
        "EVENT_BASED",
        "TABLE",
        "CREATE",
        "OVERWRITE",
        "iceberg",
        "committed",
        "spark",
    ),
    *(
        "spark.master",
        "spark.app.name",
        "environment-properties",
        "properties",
        "java.version",
        "_deleted",
        "dbt_version",
    ),
)
_SPARK = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunFacet"


def _common() -> bytes:
    parts = [*_PRODUCERS, *__DICTIONARY, _SPARK]
    for schema, fields in _SCHEMAS:
        name = schema.partition("/")[2]
        address = f'"_schemaURL":"https://openlineage.io/spec/facets/{schema}.json#/$defs/{name}"'
        parts += [address, *(f', "{field}": "' for field in fields)]
    heads = (
        f'{{"_producer":{space}"{_PRODUCERS[-1]}",{space}"_schemaURL":{space}"'
        for space in ("", " ")
    )
    return "".join(
        [*parts, *(head + "https://openlineage.io/spec/facets/1-0-1/" for head in heads)]
    ).encode()


COMMON = _common()
_DICTIONARY = zstandard.ZstdCompressionDict(COMMON, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
_DICTIONARY.precompute_compress(level=_LEVEL)


class SmallPacker:
    """Packs small bodies in one thread."""

    def __init__(self) -> None:
        self._compress = zstandard.ZstdCompressor(level=_LEVEL, dict_data=_DICTIONARY).compress

    def pack(self, body: bytes) -> bytes:
        """Return the frame of a small body, or the body itself if that is not longer.

        >>> SmallPacker().pack(b'{"rowCount":1}')
        b'{"rowCount":1}'
        """
        if len(body) < LEAST:
            return body
        frame: bytes = MARK + self._compress(body)[len(zstandard.FRAME_HEADER) :]
        return frame if len(frame) < len(body) else body


def small_expander() -> Callable[[bytes], bytes]:
    """Return a function that unpacks such frames, for one thread."""
    decompress = zstandard.ZstdDecompressor(dict_data=_DICTIONARY).decompress
    return lambda stored: decompress(zstandard.FRAME_HEADER + stored[len(MARK) :])
