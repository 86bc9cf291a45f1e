"""The outbox: news in order, cursors, what each target has and what it refused.

Every function runs in the caller's transaction.

News of ingest get their numbers here, under the lock of one row. An entity that changes again moves
to the end, so at most one row an entity waits for a dead target. Beyond a bound only the newest of
each job (of an event as received: of each run) stays.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from strandline.exporters.target import Change, Item, Key
from strandline.store.ingest.export_news import ALERT, ALERTS, DATASET, EVENT, EVENTS, RUN, RUNS
from strandline.store.lineage.run_state import StateColumns
from strandline.store.schema.export_tables import (
    export_changes,
    export_news,
    export_parked,
    export_sent,
    export_targets,
)
from strandline.store.schema.received_tables import EXPORT_CHANGES, numbers
from strandline.store.schema.run_tables import runs
from strandline.store.sql.id_lists import among
from strandline.store.sql.shared_settings import agree

MICRO = 1_000_000
AT_ONCE = 2000
LEASE_SECONDS = 60
FORGET_SECONDS = 7 * 86_400  # a target that no process has in its settings for so long is given up
KEPT_SECONDS = 7 * 86_400  # what a target has of a run that ended is remembered for so long
ALERT_SECONDS = 86_400
PASSING = (EVENT, ALERT)  # have no newer state: the cursor alone tells that they were sent
WANTED = {RUNS: (RUN, DATASET), EVENTS: (EVENT,), ALERTS: (ALERT,)}


@dataclass(frozen=True, slots=True)
class ExportCursor:
    """The position of a target."""

    cursor: int
    failures: int
    next_at: int
    problem: str


def register(connection: Connection, name: str, kinds: str, now: float) -> None:
    """Note that a process has this target in its settings.

    A new one begins with what changes from now on.
    """
    lock_head(connection)
    at = round(now * MICRO)
    registered = connection.execute(
        select(export_targets.c.kinds).where(export_targets.c.name == name)
    ).first()
    if registered is None:
        begin = 0 if kinds == ALERTS else put_in_order(connection)
        connection.execute(
            insert(export_targets).values(name=name, kinds=kinds, cursor=begin, heard_at=at)
        )
    else:
        own = export_targets.c.name == name
        connection.execute(update(export_targets).where(own).values(kinds=kinds, heard_at=at))
    forget(connection, _unheard(connection, at))


def note_heard(connection: Connection, name: str, now: float) -> None:
    """Note, at most once an hour, that a process still has the target in its settings."""
    at = round(now * MICRO)
    old = and_(export_targets.c.name == name, export_targets.c.heard_at < at - 3600 * MICRO)
    connection.execute(update(export_targets).where(old).values(heard_at=at))


def _unheard(connection: Connection, at: int) -> list[str]:
    long_ago = export_targets.c.heard_at < at - FORGET_SECONDS * MICRO
    return list(connection.scalars(select(export_targets.c.name).where(long_ago)))


def forget(connection: Connection, names: Collection[str]) -> None:
    """Give targets up, with all that is noted of them."""
    for table in (export_sent, export_parked):
        connection.execute(delete(table).where(table.c.target.in_(names)))
    connection.execute(delete(export_targets).where(export_targets.c.name.in_(names)))
    wanted = sorted(set(connection.scalars(select(export_targets.c.kinds))) - {ALERTS})
    agree(connection, "exports", ",".join(wanted))
    _clean(connection)


def lock_head(connection: Connection) -> int:
    """Take the lock that gives out numbers; the last number."""
    head = select(numbers.c.seq).where(numbers.c.name == EXPORT_CHANGES)
    return int(connection.execute(head.with_for_update()).scalar_one())


def put_in_order(connection: Connection) -> int:
    """Give waiting news their numbers; the last number."""
    seq = lock_head(connection)
    while rows := connection.execute(
        select(export_news).order_by(export_news.c.id).limit(AT_ONCE)
    ).all():
        newest = {(row.kind, row.id if row.kind == ALERT else row.entity_id): row for row in rows}
        seq = _append(connection, seq, newest)
        connection.execute(
            delete(export_news).where(among(export_news.c.id, [row.id for row in rows]))
        )
    connection.execute(update(numbers).where(numbers.c.name == EXPORT_CHANGES).values(seq=seq))
    return seq


def _append(connection: Connection, seq: int, newest: dict[Key, Any]) -> int:
    for kind in {kind for kind, _ in newest}:
        ids = [id_ for of, id_ in newest if of == kind]
        connection.execute(
            delete(export_changes).where(
                export_changes.c.kind == kind, among(export_changes.c.entity_id, ids)
            )
        )
    ordered = sorted(newest.items(), key=lambda item: item[1].id)
    values = [
        {"seq": seq + place, "kind": kind, "entity_id": id_, **_rest(row)}
        for place, ((kind, id_), row) in enumerate(ordered, 1)
    ]
    connection.execute(insert(export_changes), values)
    return seq + len(values)


def _rest(row: Any) -> dict[str, Any]:
    return {"group_id": row.group_id, "at": row.at, "hash": row.hash, "body": row.body}


def has_news(connection: Connection) -> bool:
    """Return whether anything waits for a number."""
    return bool(connection.scalar(select(exists(select(export_news.c.id)))))


def is_due(connection: Connection, name: str, kinds: str, holder: str, now: float) -> bool:
    """Return whether there is anything to do for a target, as far as reading can tell.

    An idle one costs no write.
    """
    at = round(now * MICRO)
    row = connection.execute(select(export_targets).where(export_targets.c.name == name)).first()
    if row is None or row.next_at > at or (row.holder != holder and row.held_until >= at):
        return False
    waiting = and_(export_changes.c.seq > row.cursor, export_changes.c.kind.in_(WANTED[kinds]))
    return has_news(connection) or bool(connection.scalar(select(exists().where(waiting))))


def claim(connection: Connection, name: str, holder: str, now: float) -> ExportCursor | None:
    """Claim a target for this process; None while another one sends to it, or it is not due."""
    at = round(now * MICRO)
    free = or_(export_targets.c.holder == holder, export_targets.c.held_until < at)
    due = and_(export_targets.c.name == name, export_targets.c.next_at <= at, free)
    statement = (
        update(export_targets)
        .where(due)
        .values(holder=holder, held_until=at + LEASE_SECONDS * MICRO, heard_at=at)
    )
    if connection.execute(statement).rowcount == 0:
        return None
    columns = (export_targets.c[column] for column in ("cursor", "failures", "next_at", "problem"))
    return ExportCursor(
        *connection.execute(select(*columns).where(export_targets.c.name == name)).one()
    )


def is_claimed(connection: Connection, name: str, holder: str, now: float) -> bool:
    """Return whether the claim is still this process's; it is made longer."""
    own = and_(export_targets.c.name == name, export_targets.c.holder == holder)
    held_until = round(now * MICRO) + LEASE_SECONDS * MICRO
    return (
        connection.execute(update(export_targets).where(own).values(held_until=held_until)).rowcount
        == 1
    )


def changes_after(connection: Connection, seq: int, kinds: str, most: int) -> list[Change]:
    """Return the waiting items of a target, in order."""
    wanted = export_changes.c.kind.in_(WANTED[kinds])
    query = select(*(export_changes.c[field] for field in Change._fields)).where(
        wanted, export_changes.c.seq > seq
    )
    return [
        Change(*row) for row in connection.execute(query.order_by(export_changes.c.seq).limit(most))
    ]


def changes_waiting(connection: Connection, name: str, kinds: str) -> list[Change]:
    """Return the oldest changes that wait for a target."""
    cursor = (
        connection.scalar(select(export_targets.c.cursor).where(export_targets.c.name == name)) or 0
    )
    return changes_after(connection, cursor, kinds, AT_ONCE)


def sent_of(connection: Connection, name: str, keys: Collection[Key]) -> dict[Key, Any]:
    """Return the rows of export_sent of these entities at a target."""
    sent: dict[Key, Any] = {}
    for kind in {kind for kind, _ in keys}:
        own = and_(export_sent.c.target == name, export_sent.c.kind == kind)
        ids = among(export_sent.c.entity_id, [id_ for of, id_ in keys if of == kind])
        sent |= {
            (kind, row.entity_id): row
            for row in connection.execute(select(export_sent).where(own, ids))
        }
    return sent


def note_sent(connection: Connection, name: str, items: Sequence[Item], now: float) -> None:
    """Note that the target has these now."""
    at = round(now * MICRO)
    for item in items:
        own = (
            export_sent.c.target == name,
            export_sent.c.kind == item.kind,
            export_sent.c.entity_id == item.entity_id,
        )
        connection.execute(delete(export_sent).where(*own))
        connection.execute(delete(export_parked).where(*_parked_as(name, item.key)))
    rows = [
        {
            "target": name,
            "kind": item.kind,
            "entity_id": item.entity_id,
            "shape": item.shape,
            "detail": item.detail,
        }
        | {"at": at, "run_id": item.run, "live": int(item.live), "stale": 0}
        for item in items
        if item.kind not in PASSING
    ]
    if rows:
        connection.execute(insert(export_sent), rows)
    own_row = update(export_targets).where(export_targets.c.name == name)
    connection.execute(own_row.values(sent=export_targets.c.sent + len(items), sent_at=at))


def note_stale(connection: Connection, name: str, items: Sequence[Item]) -> None:
    """Note that a detail of these has changed, which may wait for a while."""
    for item in items:
        own = (
            export_sent.c.target == name,
            export_sent.c.kind == item.kind,
            export_sent.c.entity_id == item.entity_id,
        )
        connection.execute(update(export_sent).where(*own).values(stale=1))


def park(
    connection: Connection, name: str, item: Item, reason: str, attempts: int, now: float
) -> None:
    """Set an item aside that the target refuses, in the place of an older state of the same."""
    own = _parked_as(name, item.key)
    before = connection.scalar(select(export_parked.c.attempts).where(*own)) or 0
    connection.execute(delete(export_parked).where(*own))
    change = item.change
    values = {
        "target": name,
        "kind": item.kind,
        "entity_id": item.entity_id,
        "at": round(now * MICRO),
    }
    values |= {
        "attempts": before + attempts,
        "about": item.about,
        "reason": reason[:1000],
        "change_kind": change.kind,
    }
    values |= {"change_id": change.entity_id, "group_id": change.group_id, "change_at": change.at}
    connection.execute(insert(export_parked).values(**values, hash=change.hash, body=change.body))


def _parked_as(name: str, key: Key) -> tuple[ColumnElement[bool], ...]:
    return (
        export_parked.c.target == name,
        export_parked.c.kind == key[0],
        export_parked.c.entity_id == key[1],
    )


def move_on(connection: Connection, name: str, cursor: int) -> None:
    """All up to this number has arrived, or is parked."""
    own = export_targets.c.name == name
    connection.execute(
        update(export_targets).where(own).values(cursor=cursor, failures=0, next_at=0, problem="")
    )


def retry_later(connection: Connection, name: str, until: float, problem: str) -> None:
    """Try the target, which takes nothing, again at that moment."""
    own = update(export_targets).where(export_targets.c.name == name)
    connection.execute(
        own.values(
            failures=export_targets.c.failures + 1,
            next_at=round(until * MICRO),
            problem=problem[:1000],
        )
    )


def release(connection: Connection, name: str, holder: str) -> None:
    """Give up the claim on a target, for whoever wants it next."""
    own = and_(export_targets.c.name == name, export_targets.c.holder == holder)
    connection.execute(update(export_targets).where(own).values(holder="", held_until=0))


def tidy(connection: Connection, most: int, now: float, refresh_seconds: float) -> None:
    """Mark what ended by silence and what may be refreshed.

    Drop what all targets have, and fold what is too much.
    """
    at = round(now * MICRO)
    for kind, id_ in _due(connection, at, at - round(refresh_seconds * MICRO)):
        connection.execute(insert(export_news).values(kind=kind, entity_id=id_, group_id=id_, at=0))
    put_in_order(connection)
    old = and_(
        export_sent.c.live == 0,
        export_sent.c.stale == 0,
        export_sent.c.at < at - KEPT_SECONDS * MICRO,
    )
    connection.execute(delete(export_sent).where(old, export_sent.c.kind == RUN))
    clean(connection, now)
    _fold(connection, most)


def clean(connection: Connection, now: float) -> None:
    """Drop what all targets have, and alerts that are too old to be of use to anybody."""
    too_old = export_changes.c.at < round((now - ALERT_SECONDS) * MICRO)
    connection.execute(delete(export_changes).where(export_changes.c.kind == ALERT, too_old))
    _clean(connection)


def _due(connection: Connection, at: int, refresh_before: int) -> set[Key]:
    """Return the runs that a target still has as running, and entities with a waiting detail.

    The runs are not running any more, and the detail has waited long enough.
    """
    state = StateColumns.of(connection.dialect.name)
    sent = state.joined(export_sent.join(runs, runs.c.id == export_sent.c.run_id))
    is_over = or_(state.has_ended, state.is_silent(at))
    run_ids = connection.scalars(
        select(export_sent.c.run_id).select_from(sent).where(export_sent.c.live == 1, is_over)
    )
    waiting = and_(export_sent.c.stale == 1, export_sent.c.at < refresh_before)
    return {
        (RUN, run)
        for run in (*run_ids, *connection.scalars(select(export_sent.c.run_id).where(waiting)))
        if run
    }


def _clean(connection: Connection) -> None:
    """Drop what every target has that wants it."""
    for kinds, wanted in WANTED.items():
        least = connection.scalar(
            select(func.min(export_targets.c.cursor)).where(export_targets.c.kinds == kinds)
        )
        of_kind = export_changes.c.kind.in_(wanted)
        gone = of_kind if least is None else and_(of_kind, export_changes.c.seq <= least)
        connection.execute(delete(export_changes).where(gone))


def _fold(connection: Connection, most: int) -> None:
    """Keep only the newest item of each group where too much waits.

    Events as received are cut off at the bound.
    """
    waiting = connection.scalar(select(func.count()).select_from(export_changes)) or 0
    if waiting <= most:
        return
    newest = select(func.max(export_changes.c.seq)).group_by(
        export_changes.c.kind, export_changes.c.group_id
    )
    folded = export_changes.c.seq.not_in(newest)
    connection.execute(delete(export_changes).where(export_changes.c.kind == RUN, folded))
    lost = connection.execute(
        delete(export_changes).where(export_changes.c.kind == EVENT, folded)
    ).rowcount
    events = (
        select(export_changes.c.seq)
        .where(export_changes.c.kind == EVENT)
        .order_by(export_changes.c.seq.desc())
    )
    if bound := connection.scalar(events.offset(most).limit(1)):
        old = and_(export_changes.c.kind == EVENT, export_changes.c.seq <= bound)
        lost += connection.execute(delete(export_changes).where(old)).rowcount
    if lost:
        all_of_them = update(export_targets).where(export_targets.c.kinds == EVENTS)
        connection.execute(all_of_them.values(dropped=export_targets.c.dropped + lost))


def replay_parked(connection: Connection, name: str, now: float) -> int:
    """Let a target have its parked items again; how many there were.

    An alert gets another number, so that its arrival would not end this parking: it ends here. It
    counts as an alert of now, or one that is a day old would be dropped.
    """
    rows = connection.execute(
        select(export_parked).where(export_parked.c.target == name).order_by(export_parked.c.at)
    ).all()
    lock_head(connection)
    for row in rows:
        at = round(now * MICRO) if row.kind == ALERT else row.change_at
        change = {
            "kind": row.change_kind,
            "entity_id": row.change_id,
            "group_id": row.group_id,
            "at": at,
        }
        connection.execute(insert(export_news).values(**change, hash=row.hash, body=row.body))
        own = (
            export_sent.c.target == name,
            export_sent.c.kind == row.kind,
            export_sent.c.entity_id == row.entity_id,
        )
        connection.execute(delete(export_sent).where(*own))
    connection.execute(
        delete(export_parked).where(export_parked.c.target == name, export_parked.c.kind == ALERT)
    )
    connection.execute(
        update(export_targets).where(export_targets.c.name == name).values(next_at=0)
    )
    return len(rows)


def resend(connection: Connection, name: str) -> int:
    """Let a target have every run once more, as if it had none; how many runs there are."""
    lock_head(connection)
    connection.execute(delete(export_sent).where(export_sent.c.target == name))
    columns = ("kind", "entity_id", "group_id", "at")
    every = select(literal(RUN), runs.c.id, runs.c.job_id, literal(0)).where(
        runs.c.newest_at.is_not(None)
    )
    connection.execute(
        insert(export_news).from_select(columns, every.order_by(runs.c.newest_at, runs.c.id))
    )
    connection.execute(
        update(export_targets).where(export_targets.c.name == name).values(next_at=0)
    )
    return (
        connection.scalar(
            select(func.count()).select_from(runs).where(runs.c.newest_at.is_not(None))
        )
        or 0
    )
