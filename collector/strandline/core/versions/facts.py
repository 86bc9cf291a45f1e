"""Events in the life of jobs, tables and barriers, as frozen facts.

Also the barriers that one table completed.

A fact is what was seen or decided, never what follows from it: versions.py folds facts into a
model. Times are seconds since 1970. Names are (namespace, name); a snapshot id is a string, for ids
pass 2^53.
"""

from typing import TypeAlias

import msgspec

Table: TypeAlias = tuple[str, str]
Job: TypeAlias = tuple[str, str]


class WrittenSnapshot(msgspec.Struct, frozen=True, gc=False):
    """A snapshot that a micro-batch, a batch run or the cut of a base table made.

    `at`: when it was committed, where known.
    `exact`: the id is proven to be the writer's own.
    `operation`: the commit's, where known.
    `replaces`: it replaced all that the table held.
    `completes`: its author asserts that it shows the state of the run's inputs.
    `parent`: the snapshot that it was written on.
    `under`: where that is a correction, a compaction or a restore that no job of the group made,
    the snapshots below it, newest first.
    `restores`: the snapshot that it restored.
    `rows`: of the table after it, if known.
    `was_empty`: the table is known to have had no rows before it.
    """

    table: Table
    snapshot: str
    parent: str | None = None
    at: float | None = None
    exact: bool = True
    operation: str = ""
    replaces: bool = False
    completes: bool = False
    under: tuple[str, ...] = ()
    restores: str | None = None
    rows: int | None = None
    was_empty: bool = False


class Used(msgspec.Struct, frozen=True, gc=False):
    """A snapshot that a micro-batch read.

    `aligned`: the event states that it carries the micro-batch's barrier. `since`: the exclusive
    start of an incremental read. `version`: the snapshot whose rows it shows, where a compaction
    made it. `exact`: it was consumed as a whole and its id is certain; else nothing may be derived
    from it. `lookup`: it was read as it was then, not as a stream. `skipped_changes`: the read
    passed over deletes or overwrites, or over a restore. `behind`: of an input of a batch run the
    tables that it had been made from when the run ended, as far as edges are recorded.
    """

    table: Table
    snapshot: str
    aligned: bool = True
    since: str | None = None
    version: str | None = None
    exact: bool = True
    lookup: bool = False
    skipped_changes: bool = False
    behind: tuple[Table, ...] = ()

    @property
    def shows(self) -> str:
        """The snapshot whose rows were read."""
        return self.snapshot if self.version is None else self.version


class GroupDeclared(msgspec.Struct, frozen=True, gc=False):
    """Somebody put base tables together: their barriers are cut together from now on."""

    group: str
    roots: tuple[Table, ...]
    at: float


class RootsCut(msgspec.Struct, frozen=True, gc=False):
    """The coordinator cut a barrier through the latest snapshots of all base tables of a group."""

    group: str
    barrier: int
    snapshots: tuple[WrittenSnapshot, ...]
    at: float


class JobRegistered(msgspec.Struct, frozen=True, gc=False):
    """A job announced tables over REST. It shows nowhere until a run of it really runs."""

    job: Job
    reads: tuple[Table, ...]
    writes: tuple[Table, ...]
    at: float
    group: str | None = None


class RunStarted(msgspec.Struct, frozen=True, gc=False):
    """A run of a job was seen running, with the tables that its events named so far.

    `seen` is when it was last heard of.

    `batch`: its job type says that it is no stream.
    """

    job: Job
    run: str
    at: float
    group: str | None = None
    reads: tuple[Table, ...] = ()
    writes: tuple[Table, ...] = ()
    seen: float = 0.0
    batch: bool = False


class BarrierCommitted(msgspec.Struct, frozen=True, gc=False):
    """A job committed barrier `barrier`: it read `used` and wrote `written` ("made" in the log).

    Not `stated`: the commit names no barrier, and `barrier` only counts the micro-batches (0: a
    batch run). Which barriers it completes follows from what it read. `query`: the streaming query,
    which is a new one with each checkpoint folder. `aside`: the tables that got a commit which main
    has not, of a branch or staged.
    """

    job: Job
    run: str
    group: str | None
    barrier: int
    started: float
    committed: float
    written: tuple[WrittenSnapshot, ...] = msgspec.field(name="made")
    used: tuple[Used, ...] = ()
    batch: int | None = None
    checkpoint: str | None = None
    stated: bool = True
    query: str = ""
    generation: int | None = None
    aside: tuple[Table, ...] = ()


class RunEnded(msgspec.Struct, frozen=True, gc=False):
    """A run ended, in any way.

    `how` is its state (COMPLETE, FAIL, ABORT, LOST), `heard` when that became known.
    """

    job: Job
    run: str
    at: float
    how: str
    heard: float = 0.0


class JobRetired(msgspec.Struct, frozen=True, gc=False):
    """A job gave up its place: by /unregister, `strandline retire`, or staying away too long."""

    job: Job
    at: float
    why: str


class JobPlaced(msgspec.Struct, frozen=True, gc=False):
    """A new job starts from these snapshots of its sources (start-up rows).

    `barrier` is theirs, if they share one.
    """

    job: Job
    snapshots: tuple[tuple[Table, str], ...]
    barrier: int | None
    at: float


class RolledBack(msgspec.Struct, frozen=True, gc=False):
    """`tables` (one table and all its descendants) went back to `barrier`.

    The generation of the group rises.
    """

    group: str
    tables: tuple[Table, ...]
    barrier: int
    at: float


class TableFound(msgspec.Struct, frozen=True, gc=False):
    """A registered table got its name.

    It was registered by catalog, database and table before any event named it.
    """

    announced: Table
    table: Table


class TableRenamed(msgspec.Struct, frozen=True, gc=False):
    """A table got a name that no other table had before, if that is `certain`."""

    before: Table
    table: Table
    at: float
    certain: bool = True


class NameReused(msgspec.Struct, frozen=True, gc=False):
    """A name may have meant another table before `at`: its barriers begin anew then."""

    table: Table
    at: float


Fact: TypeAlias = (
    GroupDeclared
    | RootsCut
    | JobRegistered
    | RunStarted
    | BarrierCommitted
    | RunEnded
    | JobRetired
    | JobPlaced
    | RolledBack
    | TableFound
    | TableRenamed
    | NameReused
)
