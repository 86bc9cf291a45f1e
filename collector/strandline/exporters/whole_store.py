"""Export everything that a store holds at once, without the outbox.

New targets and files need that.
"""

from collections.abc import Callable, Iterator

from sqlalchemy import Connection, Engine, select

from strandline.errors import RefusedItemError
from strandline.exporters.target import Change, ExportTarget, Item, Key
from strandline.store.ingest.export_news import EVENT, EVENTS, RUN
from strandline.store.schema.received_tables import raw_events
from strandline.store.schema.run_tables import runs
from strandline.store.sql.engine import read_from

AT_ONCE = 200


def export_all(
    engine: Engine,
    target: ExportTarget,
    now: float,
    on_refusal: Callable[[str], None],
    dry: Callable[[Item], None] | None = None,
) -> int:
    """Send everything, the oldest runs first, and return how many items were taken.

    Items that the target rejects are reported and left out.
    """
    count = 0
    last: dict[Key, bytes] = {}
    with read_from(engine) as connection:
        for changes in _pages(connection, target.kinds):
            items = [
                item
                for item in target.items(connection, changes, now)
                if last.get(item.key) != item.detail
            ]
            whole = [item if item.key in last else item.with_beginning() for item in items]
            last |= {item.key: item.detail for item in items if target.kinds != EVENTS}
            if dry is None:
                _send(target, whole, on_refusal)
            else:
                for item in whole:
                    dry(item)
            count += len(whole)
    return count


def _send(target: ExportTarget, items: list[Item], on_refusal: Callable[[str], None]) -> None:
    for start in range(0, len(items), target.at_once):
        batch = items[start : start + target.at_once]
        try:
            target.send(batch)
        except RefusedItemError as error:
            if len(batch) == 1:
                on_refusal(f"{batch[0].about}: {error}")
                continue
            for item in batch:
                _send(target, [item], on_refusal)


def _pages(connection: Connection, kinds: str) -> Iterator[list[Change]]:
    rows = _events(connection) if kinds == EVENTS else _runs(connection)
    page: list[Change] = []
    for change in rows:
        page.append(change)
        if len(page) == AT_ONCE:
            yield page
            page = []
    if page:
        yield page


def _runs(connection: Connection) -> Iterator[Change]:
    query = select(runs.c.id, runs.c.job_id).where(runs.c.newest_at.is_not(None))
    for run, job in connection.execute(query.order_by(runs.c.newest_at, runs.c.id)).all():
        yield Change(0, RUN, run, job, 0, None, None)


def _events(connection: Connection) -> Iterator[Change]:
    query = select(raw_events.c.received_at, raw_events.c.hash).order_by(
        raw_events.c.received_at, raw_events.c.hash
    )
    for at, hash_ in connection.execute(query).all():
        key = bytes(hash_)
        yield Change(0, EVENT, int.from_bytes(key[:8], "big") >> 1, 0, at, key, None)
