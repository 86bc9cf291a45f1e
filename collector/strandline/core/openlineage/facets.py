"""Facets: the ones whose content matters as frozen values in the specification's fields.

Every other one as it came.

What is not as specified is quarantined: kept and served with the problem, but not used; its event
is taken all the same.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, NamedTuple

import msgspec

from strandline.core.openlineage.names import bare, clean, complaint, key_text
from strandline.core.redaction.json import is_suspicious, redact_json

RUN, JOB, DATASET, INPUT, OUTPUT = 1, 2, 3, 4, 5  # the kinds of entities that have facets
SHARED_SIZE = 1024  # larger bodies are stored once by their hash, smaller ones with the row
Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]  # what both databases can hold


class _Facet(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Fields are spelled as in the specification, in Python's way.

    Unknown ones are ignored here and kept in the body.
    """


class NamedEntity(_Facet, frozen=True):
    """A job, or a dataset."""

    namespace: str
    name: str


class RunRef(_Facet, frozen=True):
    """The run of a parent facet."""

    run_id: str


class Root(_Facet, frozen=True):
    """A run above others, with its job: the root of a hierarchy."""

    run: RunRef
    job: NamedEntity


class Parent(Root, frozen=True):
    """Run facet `parent`: the run that started this one, and the root of them all."""

    root: Root | None = None


class JobType(_Facet, frozen=True):
    """Job facet `jobType`."""

    processing_type: str = ""
    integration: str = ""
    job_type: str | None = None
    emission_pattern: Any = None

    @property
    def is_complete_snapshot(self) -> bool:
        """Return whether each event of the job stands for itself."""
        pattern = self.emission_pattern
        return "COMPLETE_SNAPSHOT" in (
            pattern.values() if isinstance(pattern, dict) else (pattern,)
        )


class Lease(_Facet, frozen=True):
    """Run facet `strandline_heartbeat`: a RUNNING comes at least every third of it."""

    timeout_seconds: float


class Barrier(_Facet, frozen=True):
    """Run facet `strandline_barrier`: one checkpoint of a streaming query."""

    barrier_id: Whole | None = None
    group: str | None = None
    engine: str | None = None
    query_id: str | None = None
    batch_id: Annotated[int, msgspec.Meta(ge=-(2**63), lt=2**63 - 1)] | None = (
        None  # the barrier may be one more
    )
    checkpoint_location: str | None = None
    phase: str = "committed"
    started_at: str | None = None
    committed_at: str | None = None

    @property
    def number(self) -> int | None:
        """The barrier: as stated, else one more than the batch."""
        return (
            self.batch_id + 1
            if self.barrier_id is None and self.batch_id is not None
            else self.barrier_id
        )


class Snapshot(_Facet, frozen=True):
    """Input or output facet `strandline_snapshot`: the snapshot read or made; `observed`.

    Seen, not proven. Without a snapshot it states that columns were renamed, or that the dataset
    was read through views.
    """

    snapshot_id: str = ""
    format: str | None = None
    parent_snapshot_id: str | None = None
    from_snapshot_id: str | None = None
    barrier_id: Whole | None = None
    committed_at: str | None = None
    operation: str | None = None
    number_of_rows: Whole | None = None
    replaces_table: bool | None = None  # the commit replaced all that the table held
    was_empty: bool = False  # the table had no rows before the commit
    completes: bool = False  # the author asserts that the table shows the state of its inputs
    renamed_columns: dict[str, str] | None = None  # old -> new
    skipped_changes: bool = False  # the read passed over deletes or overwrites
    through: list[NamedEntity] | None = None  # the views whose queries read the dataset
    direct: bool = False  # the statement also reads it itself
    observed: bool = False
    branch: str | None = None
    staged: bool = False  # no branch has it
    others: list["Snapshot"] | None = None  # that the same statement read of the table
    same_rows_as: list["Snapshot"] | None = (
        None  # before it, the newest first: back to the one that changed rows
    )

    def __post_init__(self) -> None:
        if not (self.snapshot_id or self.renamed_columns or self.through):
            raise ValueError("states none of snapshotId, renamedColumns and through")


class Report(_Facet, frozen=True):
    """`icebergScanReport`, `icebergCommitReport`.

    The stock listener writes the id as a double, so digits are lost.
    """

    snapshot_id: int | float | str | None = None
    operation: str | None = None
    commit_metrics: Any = None


class Version(_Facet, frozen=True):
    """Dataset facet `version`."""

    dataset_version: str


class Catalog(_Facet, frozen=True):
    """Dataset facet `catalog`."""

    name: str
    framework: str | None = None
    type: str | None = None

    @property
    def is_iceberg(self) -> bool:
        """Return whether the catalog's tables are Iceberg's."""
        return "iceberg" in ((self.framework or "") + (self.type or "")).lower()


class Identifier(_Facet, frozen=True):
    """Another name of a dataset: a TABLE or a LOCATION."""

    namespace: str | None = None
    name: str | None = None
    type: str = ""


class Lifecycle(_Facet, frozen=True):
    """Dataset facet `lifecycleStateChange`; a dataset that was renamed had another name before."""

    lifecycle_state_change: str
    previous_identifier: Identifier | None = None

    @property
    def previous_name(self) -> tuple[str, str] | None:
        """Namespace and name before a RENAME; None if nothing was renamed."""
        before = self.previous_identifier
        if self.lifecycle_state_change.upper() != "RENAME" or before is None:
            return None
        return (before.namespace, before.name) if before.namespace and before.name else None


class Symlinks(_Facet, frozen=True):
    """Dataset facet `symlinks`."""

    identifiers: list[Identifier] = []


class Transformation(_Facet, frozen=True):
    """The derivation of an output field from an input field."""

    type: str = ""
    subtype: str | None = None
    description: str | None = None
    masking: bool | None = None


class InputField(_Facet, frozen=True):
    """One origin of a column or dataset; in the lineage facet its `type` is DATASET or JOB."""

    namespace: str = ""
    name: str = ""
    field: str | None = None
    transformations: list[Transformation] | None = None
    type: str | None = None


class ColumnOrigins(_Facet, frozen=True):
    """The origins of one column, in the older form with one transformation for all."""

    input_fields: list[InputField] = []
    transformation_description: str | None = None
    transformation_type: str | None = None


class ColumnLineage(_Facet, frozen=True):
    """Dataset facet `columnLineage`."""

    fields: dict[str, ColumnOrigins] = {}
    dataset: list[InputField] | None = None


class FieldInputs(_Facet, frozen=True):
    """The inputs of one field in a lineage facet."""

    inputs: list[InputField] = []


class Lineage(_Facet, frozen=True):
    """Dataset facet `lineage`, and an entry of the job facet `lineage`.

    Inputs [] says "none", no inputs say nothing.
    """

    namespace: str | None = None
    name: str | None = None
    type: str | None = None
    inputs: list[InputField] | None = None
    fields: dict[str, FieldInputs] | None = None


class JobLineage(_Facet, frozen=True):
    """Job facet `lineage`."""

    entries: list[Lineage]


class JobDetails(_Facet, frozen=True):
    """Run facet `spark_jobDetails`: a micro-batch's description has query id and batch."""

    job_description: str | None = None


class ApplicationDetails(_Facet, frozen=True):
    """Run facet `spark_applicationDetails`: the id that Spark's UI and YARN show."""

    application_id: str | None = None


class Properties(_Facet, frozen=True):
    """Run facet `spark_properties`."""

    properties: dict[str, Any] = {}


class _Field(_Facet, frozen=True):
    name: str
    type: str | None = None
    description: str | None = None
    fields: list["_Field"] | None = None


class Schema(_Facet, frozen=True):
    """Dataset facet `schema`."""

    fields: list[_Field] | None = None


class _Owner(_Facet, frozen=True):
    name: str
    type: str | None = None


class Ownership(_Facet, frozen=True):
    """`ownership` of a job or dataset."""

    owners: list[_Owner] | None = None


class _Tag(_Facet, frozen=True):
    key: str
    value: str | bool | int | float | None = None
    source: str | None = None
    field: str | None = None


class Tags(_Facet, frozen=True):
    """`tags` of a run, job or dataset."""

    tags: list[_Tag] | None = None


class Documentation(_Facet, frozen=True):
    """`documentation` of a job or dataset."""

    description: str


class Sql(_Facet, frozen=True):
    """Job facet `sql`."""

    query: str
    dialect: str | None = None


class SourceCodeLocation(_Facet, frozen=True):
    """Job facet `sourceCodeLocation`."""

    type: str
    url: str
    version: str | None = None
    tag: str | None = None
    branch: str | None = None


class ProcessingEngine(_Facet, frozen=True):
    """Run facet `processing_engine`."""

    version: str
    name: str | None = None
    openlineage_adapter_version: str | None = None


class NominalTime(_Facet, frozen=True):
    """Run facet `nominalTime`."""

    nominal_start_time: str
    nominal_end_time: str | None = None


class ErrorMessage(_Facet, frozen=True):
    """Run facet `errorMessage`."""

    message: str | None = None  # of an exception that has none
    programming_language: str = ""
    stack_trace: str | None = None


class Statistics(_Facet, frozen=True):
    """`inputStatistics`, `outputStatistics`.

    Numbers of rows are whole, but 1.0 and 1e3 are so as well.
    """

    row_count: Whole | None = None
    size: Whole | None = None
    file_count: Whole | None = None


class Subset(_Facet, frozen=True):
    """`subset` of an input or output."""

    input_condition: Any = None
    output_condition: Any = None


class Plain(_Facet, frozen=True):
    """Any other facet: it has to be an object, nothing more."""


MODELS: dict[tuple[int, str], type[_Facet]] = {
    (RUN, "parent"): Parent,
    (RUN, "parentRun"): Parent,  # its name before 0.5
    (RUN, "strandline_heartbeat"): Lease,
    (RUN, "strandline_barrier"): Barrier,
    (RUN, "spark_jobDetails"): JobDetails,
    (RUN, "spark_applicationDetails"): ApplicationDetails,
    (RUN, "spark_properties"): Properties,
    (RUN, "processing_engine"): ProcessingEngine,
    (RUN, "nominalTime"): NominalTime,
    (RUN, "errorMessage"): ErrorMessage,
    (RUN, "tags"): Tags,
    (JOB, "jobType"): JobType,
    (JOB, "lineage"): JobLineage,
    (JOB, "sql"): Sql,
    (JOB, "sourceCodeLocation"): SourceCodeLocation,
    (JOB, "ownership"): Ownership,
    (JOB, "documentation"): Documentation,
    (JOB, "tags"): Tags,
    (DATASET, "schema"): Schema,
    (DATASET, "columnLineage"): ColumnLineage,
    (DATASET, "lineage"): Lineage,
    (DATASET, "symlinks"): Symlinks,
    (DATASET, "symlink"): Symlinks,  # of Airflow's Google operators
    (DATASET, "catalog"): Catalog,
    (DATASET, "version"): Version,
    (DATASET, "lifecycleStateChange"): Lifecycle,
    (DATASET, "ownership"): Ownership,
    (DATASET, "documentation"): Documentation,
    (DATASET, "tags"): Tags,
    **{(kind, "strandline_snapshot"): Snapshot for kind in (DATASET, INPUT, OUTPUT)},
    (INPUT, "icebergScanReport"): Report,
    (INPUT, "inputStatistics"): Statistics,
    (INPUT, "subset"): Subset,
    (OUTPUT, "icebergCommitReport"): Report,
    (OUTPUT, "outputStatistics"): Statistics,
    (OUTPUT, "subset"): Subset,
}
_DECODERS = {
    key: msgspec.json.Decoder(model, strict=model is not Statistics)
    for key, model in MODELS.items()
}
_PLAIN = msgspec.json.Decoder(Plain)
_DELETED = msgspec.json.Decoder(dict[str, Any])


class Facet(NamedTuple):
    """One facet of an entity in one event, under its key as it is stored.

    value: its content, None for one that is deleted or, for the `problem`, quarantined. redacted:
    a secret was taken out of its body.
    """

    key: str
    hash: bytes
    body: bytes
    value: Any
    deleted: bool
    problem: str
    redacted: bool


class Facets(dict[str, Facet]):
    """The facets of one entity in one event that count, by the keys that the event has.

    stored: these, and those that are deleted or quarantined. redacted: a secret was taken out.
    """

    __slots__ = ("redacted", "stored")

    def __init__(
        self, facets: Mapping[str, Facet] | None = None, *, redacted: bool = False
    ) -> None:
        facets = facets or {}
        super().__init__({key: facet for key, facet in facets.items() if facet.value is not None})
        self.stored: Sequence[Facet] = tuple(facets.values())
        self.redacted = redacted or any(facet.redacted for facet in self.stored)

    def value(self, key: str) -> Any:
        """Return the content of a facet, or None."""
        facet = self.get(key)
        return None if facet is None else facet.value


NO_FACETS = Facets()  # shared: nobody may change it


def facet_of(kind: int, key: str, raw: bytes) -> Facet:
    """Read a facet: take secrets out, decode it if it is modelled, quarantine a malformed one."""
    try:
        body = redact_json(key, raw) if is_suspicious(key, raw) else raw
        deleted = b'"_deleted"' in body and _DELETED.decode(body).get("_deleted") is True
        value = None if deleted else _DECODERS.get((kind, key), _PLAIN).decode(body)
        body.decode()
    except (ValueError, RecursionError) as error:  # msgspec's, json's and UTF-8's are ValueErrors
        return _quarantined(key, raw, error)
    return Facet(key_text(bare(key)), content_hash(body), body, value, deleted, "", body is not raw)


def content_hash(content: bytes) -> bytes:
    """Return the key of stored content: the first 16 bytes of its SHA-256."""
    return sha256(content).digest()[:16]


def _quarantined(key: str, raw: bytes, error: Exception) -> Facet:
    try:
        body = redact_json(key, raw)
    except (ValueError, RecursionError):
        body = b"{}"  # not even JSON: nothing that could be served, or searched for secrets
    problem = f"{clean(bare(key))}: {complaint(str(error))}"[:300]
    stored_key, hash_ = key_text(bare(key)), content_hash(body)
    return Facet(
        stored_key, hash_, body, None, deleted=False, problem=problem, redacted=body != raw
    )
