"""The log of facts without what is forgotten.

Whoever has folded the old log folds the new one from its beginning.

A fact of a forgotten job or run goes. A forgotten table goes from a fact; a fact that names no
table any more goes too.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import msgspec
from sqlalchemy import Connection, delete, select, update

from strandline.core.changes.memory import Memory
from strandline.core.openlineage.names import id_of
from strandline.core.versions import facts as f
from strandline.core.versions.facts import Fact, Job, Table, Used, WrittenSnapshot
from strandline.store.forgetting.subjects import Target
from strandline.store.schema.run_tables import runs
from strandline.store.schema.version_tables import version_facts
from strandline.store.sql.id_lists import among
from strandline.store.versions.fact_log import DECODERS, begin_anew, lock_head

PAGE = 2000
MICRO = 1_000_000
Asks = Callable[[str, str], bool]
Snapshot = TypeVar("Snapshot", WrittenSnapshot, Used)


class _Names(NamedTuple):
    """The forgotten jobs, tables as names meant them at a moment, and runs (as sent)."""

    is_job: Asks
    is_table: Asks
    runs: frozenset[str]

    def tables(self, tables: tuple[Table, ...]) -> tuple[Table, ...]:
        """Those that stay."""
        return tuple(table for table in tables if not self.is_table(*table))

    def of_tables(self, snapshots: tuple[Snapshot, ...]) -> tuple[Snapshot, ...]:
        """Those whose tables stay."""
        return tuple(snapshot for snapshot in snapshots if not self.is_table(*snapshot.table))


def forget_facts(connection: Connection, target: Target, memory: Memory) -> tuple[int, int]:
    """Return how many facts went, and how many are others now."""
    run_names = _run_names(connection, target)
    gone: list[int] = []
    changed: dict[int, Fact] = {}
    lock_head(connection)
    for seq, kind, body in connection.execute(
        select(version_facts.c.seq, version_facts.c.kind, version_facts.c.body).order_by(
            version_facts.c.seq
        )
    ).all():
        fact = DECODERS[kind].decode(body)
        names = _Names(_is_job(target), _is_table(target, memory, fact), run_names)
        remaining = left_of_fact(fact, names)
        if remaining is None:
            gone.append(seq)
        elif remaining != fact:
            changed[seq] = remaining
    for start in range(0, len(gone), PAGE):
        connection.execute(
            delete(version_facts).where(among(version_facts.c.seq, gone[start : start + PAGE]))
        )
    for seq, fact in changed.items():
        body = msgspec.json.encode(fact)
        connection.execute(
            update(version_facts).where(version_facts.c.seq == seq).values(body=body)
        )
    if gone or changed:
        begin_anew(connection)
    return len(gone), len(changed)


def left_of_fact(fact: Fact, names: _Names) -> Fact | None:
    """Return the rest of a fact.

    Itself where it names nothing that is forgotten, None where nothing is left.
    """
    if _is_of_forgotten(fact, names):
        return None
    match fact:
        case f.GroupDeclared(roots=roots):
            return _with(fact, roots=names.tables(roots))
        case f.RootsCut(snapshots=cut):
            return _with(fact, snapshots=names.of_tables(cut))
        case f.JobRegistered(reads=reads, writes=writes):
            return _with(fact, reads=names.tables(reads), writes=names.tables(writes))
        case f.RunStarted(reads=reads, writes=writes):
            return msgspec.structs.replace(
                fact, reads=names.tables(reads), writes=names.tables(writes)
            )
        case f.BarrierCommitted(written=written, used=used, aside=aside):
            tables = {"written": names.of_tables(written), "used": names.of_tables(used)}
            return _with(fact, **tables, aside=names.tables(aside))
        case f.JobPlaced(snapshots=snapshots):
            return msgspec.structs.replace(
                fact,
                snapshots=tuple(
                    snapshot for snapshot in snapshots if not names.is_table(*snapshot[0])
                ),
            )
        case f.RolledBack(tables=tables):
            return _with(fact, tables=names.tables(tables))
        case f.TableFound() | f.TableRenamed() | f.NameReused():
            return None if any(names.is_table(*table) for table in _names_in(fact)) else fact
    return fact


def _is_of_forgotten(fact: Fact, names: _Names) -> bool:
    """Return whether a job or run that is forgotten stated it."""
    job: Job | None = getattr(fact, "job", None)
    return (job is not None and names.is_job(*job)) or getattr(fact, "run", None) in names.runs


def _names_in(fact: f.TableFound | f.TableRenamed | f.NameReused) -> tuple[Table, ...]:
    match fact:
        case f.TableFound(announced=before) | f.TableRenamed(before=before):
            return before, fact.table
        case f.NameReused():
            return (fact.table,)


def _with(fact: Fact, **tables: tuple[object, ...]) -> Fact | None:
    """Return the fact with these tables; None where it had some and has none now."""
    had = any(getattr(fact, name) for name in tables)
    return None if had and not any(tables.values()) else msgspec.structs.replace(fact, **tables)


def _is_job(target: Target) -> Asks:
    def is_forgotten(namespace: str, name: str) -> bool:
        own = id_of("namespace", namespace) in target.namespace_ids
        return own or id_of("job", namespace, name) in target.job_ids

    return is_forgotten


def _is_table(target: Target, memory: Memory, fact: Fact) -> Asks:
    """Return whether a name in a fact is a forgotten table's."""
    then = memory if (moment := _moment_of(fact)) is None else memory.at(moment)

    def is_forgotten(namespace: str, name: str) -> bool:
        own = id_of("namespace", namespace) in target.namespace_ids
        return own or id_of("dataset", *then.meaning_of((namespace, name))) in target.dataset_ids

    return is_forgotten


def _moment_of(fact: Fact) -> int | None:
    """Return when the names of a fact were used (microseconds); None: they are those of now."""
    match fact:
        case f.BarrierCommitted():
            return int(fact.started * MICRO)
        case f.RunStarted():
            return int(fact.at * MICRO)
        case f.TableRenamed() | f.NameReused():
            return int(fact.at * MICRO) - 1  # just before
    return None


def _run_names(connection: Connection, target: Target) -> frozenset[str]:
    if not target.run_ids:
        return frozenset()
    return frozenset(
        connection.scalars(select(runs.c.run_id).where(among(runs.c.id, target.run_ids)))
    )
