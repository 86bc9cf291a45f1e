"""Strandline's own facets, as classes on those of openlineage-python.

And a Statement's datasets as OpenLineage's. The JSON Schemas of `schemas/` say the same of the
three facets; a test holds the two together.
"""

from __future__ import annotations

import attr
from openlineage.client.facet_v2 import InputDatasetFacet, OutputDatasetFacet, RunFacet

from strandline_spark.version import __version__

PRODUCER = f"https://github.com/strandline/strandline/tree/{__version__}/spark_integration"
SCHEMAS = "https://github.com/strandline/strandline/schemas"


@attr.define
class SourceOffsets:
    """The start and end of one source of a micro-batch, as the source itself writes its offsets."""

    description: str
    endOffset: str | None = None  # noqa: N815
    startOffset: str | None = None  # noqa: N815
    """Absent in the first micro-batch of a source."""
    initialOffset: str | None = None  # noqa: N815
    """Of a query that ends by itself: where it began, which its restart reads again."""


@attr.define
class Lookup:
    """A table that a micro-batch read as it was then, and not as a stream."""

    namespace: str
    name: str


@attr.define(kw_only=True)
class StrandlineBarrierRunFacet(RunFacet):
    """The committed micro-batch, and its barrier where the commit states one.

    Of a batch run the group alone.
    """

    barrierId: int | None = None  # noqa: N815
    engine: str = "spark"
    queryId: str | None = None  # noqa: N815
    batchId: int | None = None  # noqa: N815
    phase: str | None = None
    group: str | None = None
    generation: int | None = None
    checkpointLocation: str | None = None  # noqa: N815
    startedAt: str | None = None  # noqa: N815
    committedAt: str | None = None  # noqa: N815
    sources: list[SourceOffsets] | None = None
    lookups: list[Lookup] | None = None

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMAS}/strandline_barrier/1-0-0.json#/$defs/StrandlineBarrierRunFacet"


@attr.define(kw_only=True)
class OtherSnapshot:
    """A further snapshot of the same table.

    One that the same statement read (a self-join), or of which another shows the rows.
    """

    format: str
    snapshotId: str  # noqa: N815
    parentSnapshotId: str | None = None  # noqa: N815
    fromSnapshotId: str | None = None  # noqa: N815
    barrierId: int | None = None  # noqa: N815
    committedAt: str | None = None  # noqa: N815
    operation: str | None = None
    numberOfRows: int | None = None  # noqa: N815
    branch: str | None = None
    sameRowsAs: list[OtherSnapshot] | None = None  # noqa: N815
    skippedChanges: bool | None = None  # noqa: N815
    replacesTable: bool | None = None  # noqa: N815
    wasEmpty: bool | None = None  # noqa: N815
    completes: bool | None = None


@attr.define(kw_only=True, slots=False)  # two bases with slots would conflict
class _Snapshot:
    format: str
    snapshotId: str | None = None  # noqa: N815
    parentSnapshotId: str | None = None  # noqa: N815
    fromSnapshotId: str | None = None  # noqa: N815
    barrierId: int | None = None  # noqa: N815
    committedAt: str | None = None  # noqa: N815
    operation: str | None = None
    numberOfRows: int | None = None  # noqa: N815
    observed: bool | None = None
    branch: str | None = None
    staged: bool | None = None
    others: list[OtherSnapshot] | None = None
    sameRowsAs: list[OtherSnapshot] | None = None  # noqa: N815


@attr.define
class View:
    """A view whose query read the dataset."""

    namespace: str
    name: str


@attr.define(kw_only=True)
class StrandlineSnapshotInputDatasetFacet(_Snapshot, InputDatasetFacet):
    """The snapshot of a table that was read, or the views that a dataset was read through."""

    skippedChanges: bool | None = None  # noqa: N815
    through: list[View] | None = None
    direct: bool | None = None

    @staticmethod
    def _get_schema() -> str:
        return (
            f"{SCHEMAS}/strandline_snapshot/1-0-0.json#/$defs/StrandlineSnapshotInputDatasetFacet"
        )


@attr.define(kw_only=True)
class StrandlineSnapshotOutputDatasetFacet(_Snapshot, OutputDatasetFacet):
    """The snapshot of a table that was made, or the columns of it that were renamed."""

    replacesTable: bool | None = None  # noqa: N815
    wasEmpty: bool | None = None  # noqa: N815
    completes: bool | None = None
    renamedColumns: dict[str, str] | None = None  # noqa: N815

    @staticmethod
    def _get_schema() -> str:
        return (
            f"{SCHEMAS}/strandline_snapshot/1-0-0.json#/$defs/StrandlineSnapshotOutputDatasetFacet"
        )


@attr.define(kw_only=True)
class StrandlineHeartbeatRunFacet(RunFacet):
    """The time that the run may be silent before it counts as lost."""

    timeoutSeconds: float  # noqa: N815

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMAS}/strandline_heartbeat/1-0-0.json#/$defs/StrandlineHeartbeatRunFacet"


@attr.define(kw_only=True)
class StrandlineEmitterRunFacet(RunFacet):
    """The losses and unknowns of the emitter since the application started.

    Sent only when there is something.
    """

    droppedEvents: int = 0  # noqa: N815
    rejectedEvents: int = 0  # noqa: N815
    damagedEvents: int = 0  # noqa: N815
    missedExecutions: int = 0  # noqa: N815
    unavailable: list[str] | None = None
    swallowedErrors: dict[str, int] | None = None  # noqa: N815
    trimmedFacets: list[str] | None = None  # noqa: N815

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMAS}/strandline_emitter/1-0-0.json#/$defs/StrandlineEmitterRunFacet"
