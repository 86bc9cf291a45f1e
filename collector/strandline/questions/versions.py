"""Questions for versions that belong together, and what changes what they are answered from."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from strandline.core.access.granted import SCOPES
from strandline.core.versions.checkpoint import FEW
from strandline.core.versions.version_answer import Asked
from strandline.questions import declared
from strandline.questions.parameters import (
    CURSOR,
    OPAQUE,
    Limit,
    ListQuery,
    NamedQuery,
    Query,
    Text,
    Whole,
    Word,
    cursor_of,
)
from strandline.store.api_keys import LONGEST_DAYS
from strandline.store.forgetting.subjects import KINDS

A_YEAR = 366 * 86_400
Seconds = Annotated[float, Field(ge=0, le=A_YEAR)]


class Body(BaseModel):
    """The JSON body of a change or a question; an unknown member is refused."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        frozen=True,
        extra="forbid",
        strict=True,
    )


class Identifier(BaseModel):
    """A table or job in a body; what else an answer says of it is not looked at."""

    model_config = ConfigDict(frozen=True, strict=True)
    namespace: str
    name: str

    @property
    def pair(self) -> tuple[str, str]:
        """The name as the model has it."""
        return (self.namespace, self.name)


Tables = Annotated[list[Identifier], Field(min_length=1)]


class Versions(Body):
    """The question for a version of tables."""

    tables: Tables
    consistency: Asked = "auto"
    max_lag_seconds: Seconds | None = None
    wait_for_barrier: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    timeout_seconds: Seconds = 30.0
    lease_seconds: Seconds | None = None
    holder: str = ""


class Renewal(Body):
    """The extension of a lease."""

    lease_seconds: Seconds | None = None


class Compared(Body):
    """Tables to compare."""

    tables: list[Identifier]


class Declaration(Body):
    """A group with its base tables."""

    name: str
    tables: list[Identifier]


class Position(Body):
    """A job that is about to checkpoint, and the barrier of its last checkpoint.

    max_behind: how many barriers it takes one after the other before it drains; None: it takes
    each.
    """

    namespace: str
    name: str
    position: int | None = None
    max_behind: int | None = FEW


class Rollback(Body):
    """The table to take back, and how far; `lost_state`: jobs whose checkpoints are gone."""

    namespace: str
    name: str
    barrier: int
    lost_state: list[Identifier] = []
    retained_from: int | None = None


class Forgetting(Body):
    """A request to forget; only a `dry_run` that is false does so."""

    kind: Literal[KINDS]  # type: ignore[valid-type]
    namespace: str = ""
    name: str = ""
    id: str = ""
    dry_run: bool = True


class WantedKey(Body):
    """A key that shall be made, valid for `days` or until it is revoked."""

    name: Annotated[str, Field(min_length=1)]
    scopes: Annotated[list[Literal[SCOPES]], Field(min_length=1)]  # type: ignore[valid-type]
    namespaces: Annotated[list[str], Field(min_length=1)]
    days: Annotated[int, Field(ge=1, le=LONGEST_DAYS)] | None = None


class CatalogOption(Body):
    """An option of a catalog."""

    catalog: str
    key: str
    value: str


class GroupsQuery(ListQuery):
    """All groups by name."""

    limit: Limit = 100
    cursor: Annotated[Any, cursor_of(str), OPAQUE, CURSOR] = None


class AuditQuery(ListQuery):
    """A list of changes with their authors, the newest first."""

    limit: Limit = 100
    cursor: Annotated[Any, cursor_of(int), OPAQUE, CURSOR] = None


class BoardQuery(Query):
    """The consistency board of a group."""

    group: Annotated[Word, Field(description="The group's name", examples=["lake"])]
    columns: Annotated[
        int, Whole(1, 200), Field(description="Maximum number of barriers; the newest are shown")
    ] = 20
    up_to: Annotated[
        Annotated[int, Whole(0)] | None,
        Field(description="The newest barrier to show; without it the newest there is"),
    ] = None


class DelaysQuery(NamedQuery):
    """The delay of a table at a barrier."""

    barrier: Annotated[
        Annotated[int, Whole()] | None, Field(description=declared.BARRIER.sentence)
    ] = None


class ExpirableQuery(NamedQuery):
    """The expirable snapshots of a table."""

    limit: Limit = 100


class CatalogOptionQuery(Query):
    """An option of a catalog."""

    catalog: Annotated[Word, Field(description="The catalog")]
    key: Annotated[Word, Field(description="The option: table-lineage, data-lineage or another")]


class RegisteredQuery(Query):
    """The group of a job that is registered, and its namespace."""

    namespace: Annotated[Word, Field(description="Namespace of the job")] = "default"
    group: Annotated[
        Word | None, Field(description="Group of the job, unless its sources determine it")
    ] = None


class RetiredQuery(Query):
    """The namespace of a job that is retired."""

    namespace: Annotated[Word, Field(description="Namespace of the job")] = "default"


Database = Annotated[Text, Field(description="Database of the table; may be empty")]
