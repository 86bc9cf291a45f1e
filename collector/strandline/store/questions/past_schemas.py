"""Schemas at past moments: the columns of a dataset then, and how they differ between two moments.

The store keeps the newest schema of a dataset; what it was before stands in the events as received.
The newest event by its own time that states one counts, as it does for what is current. Where no
event that is kept and looked into tells the schema of a moment, nothing is claimed: the dataset is
counted as unclear. So it is where the key does not see all events.

Of columns at a past moment, what came later is unknown then, and what went since is not.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from hashlib import sha256
from itertools import chain, repeat
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Select, func, select

from strandline.core.changes.datasets import part_read
from strandline.core.openlineage.events import Dataset, Event, decode
from strandline.core.openlineage.facets import DATASET, Facet, Facets, Schema, facet_of
from strandline.core.openlineage.names import Naming, id_of
from strandline.errors import DamagedError, InvalidEventError, NotFoundError
from strandline.store.lineage.column_lineage import columns_named, refuse_unknown
from strandline.store.lineage.lookup import MOST_CANDIDATES, Node
from strandline.store.lineage.run_state import View, iso
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.received_tables import raw_events
from strandline.store.sql.compression import Expansion, expand
from strandline.store.sql.facet_rows import facet_rows, one_of
from strandline.store.sql.id_lists import among
from strandline.store.sql.narrowed import access_of
from strandline.store.sql.shared_settings import agreed_naming

Types = Mapping[str, str]  # of each column its type; one inside of another is called outer.inner

MOST_READ = 10_000  # events that one moment looks into
MOST_LATER = 20_000  # events that were received since a moment of which columns alone are asked
AT_ONCE = 200
_FACETS = msgspec.json.Decoder(dict[str, msgspec.Raw])
CLOCKS = 60_000_000  # microseconds that a producer's clock may be ahead of ours


class ColumnChange(NamedTuple):
    """A column of a dataset that has another type at the later moment; None: it is not there."""

    dataset: int
    column: str
    before: str | None
    after: str | None


class _Stated(NamedTuple):
    """A schema facet as an event stated it; the greatest counts."""

    at: int
    hash: bytes
    body: bytes

    @property
    def types(self) -> Types | None:
        """The types of the schema, or None if it cannot be read."""
        try:
            schema = msgspec.json.decode(self.body, type=Schema)
        except msgspec.MsgspecError:
            return None
        return dict(_columns(schema.fields or ()))


@dataclass(slots=True)
class _Sought:
    """The newest schemas by a moment: of the datasets that these names are of."""

    moment: int
    canonical: Mapping[int, int]
    naming: Naming
    found: dict[int, _Stated] = field(default_factory=dict)

    def look(self, event: Event, at: int) -> None:
        """Take what an event of this time states."""
        others = (*(event.outputs or ()), *filter(None, [event.dataset]))
        for dataset, read in chain(
            zip(event.inputs or (), repeat(True)), zip(others, repeat(False))
        ):
            of = self.canonical.get(
                id_of("dataset", *self.naming.name_of(dataset.namespace, dataset.name))
            )
            if of is not None and (body := _schema_in(dataset, read=read)) is not None:
                stated = _Stated(at, sha256(body).digest()[:16], body)
                self.found[of] = max(self.found.get(of, stated), stated)

    def is_settled(self, received_at: int) -> bool:
        """Return whether nothing that was received by then can be newer than what is found."""
        if len(self.found) < len(set(self.canonical.values())):
            return False
        return received_at + CLOCKS < min(schema.at for schema in self.found.values())


def column_changes(
    connection: Connection, since: int, until: int, ids: Collection[int]
) -> tuple[list[ColumnChange], int]:
    """The columns of these datasets that came, went or changed their type.

    The second value is the number of datasets for which that is unclear.
    """
    names = _names(connection, since, ids)
    current = _current(connection, names)
    changed = {of for of, schema in current.items() if schema.at > since}
    renamed = {name: of for name, of in names.items() if of in changed}
    if not renamed:
        return [], 0
    before = _stated_by(connection, since, renamed)
    after = {of: current[of] for of in changed if current[of].at <= until}
    after |= _stated_by(
        connection, until, {name: of for name, of in renamed.items() if of not in after}
    )
    old, new = _readable(before), _readable(after)
    clear = changed & old.keys() & new.keys()
    changes = chain.from_iterable(_between(of, old[of], new[of]) for of in sorted(clear))
    return list(changes), len(changed) - len(clear)


def columns_at(
    connection: Connection, moment: int, dataset: int, most: int | None = None
) -> Types | None:
    """The columns that a dataset had at a moment.

    None where that is not certain, or too long ago to look for it.

    most: how many events are looked into, MOST_READ if not given.
    """
    names = _names(connection, moment, [dataset])
    current = _current(connection, names).get(dataset)
    if current is None:
        return None
    if current.at <= moment:
        return current.types
    later = (
        select(raw_events.c.hash)
        .where(raw_events.c.received_at > moment)
        .limit(MOST_LATER + 1)
        .subquery()
    )
    if connection.execute(select(func.count()).select_from(later)).scalar_one() > MOST_LATER:
        return None
    return _readable(_stated_by(connection, moment, names, most)).get(dataset)


def _readable(stated: Mapping[int, _Stated]) -> dict[int, Types]:
    """The columns of each schema that can be read."""
    read = {of: facet.types for of, facet in stated.items()}
    return {of: types for of, types in read.items() if types is not None}


def _between(dataset: int, old: Types, new: Types) -> Iterator[ColumnChange]:
    for column in dict.fromkeys([*old, *new]):
        if old.get(column) != new.get(column):
            yield ColumnChange(dataset, column, old.get(column), new.get(column))


def _columns(fields: Iterable[Any], above: str = "") -> Iterator[tuple[str, str]]:
    for column in fields:
        yield f"{above}{column.name}", column.type or ""
        yield from _columns(column.fields or (), f"{above}{column.name}.")


def _schema_in(dataset: Dataset, *, read: bool) -> bytes | None:
    """The schema that an event states of a dataset; none where it has read a part of a table.

    That has columns of its own.
    """
    try:
        facets = _FACETS.decode(dataset.facets)
    except msgspec.MsgspecError:
        return None
    body = facets.get("schema")
    if body is None:
        return None
    if read:
        stated: dict[str, Facet] = {
            facet: facet_of(DATASET, facet, bytes(facets[facet]))
            for facet in ("catalog", "schema", "symlinks")
            if facet in facets
        }
        if part_read(dataset.name, Facets(stated)) is not None:
            return None
    return bytes(body)


def _names(connection: Connection, since: int, ids: Collection[int]) -> dict[int, int]:
    """Return all names of those datasets that an event had named by then.

    Each with the dataset that it is one of.
    """
    rows = connection.execute(
        select(datasets.c.id, datasets.c.canonical_id, datasets.c.first_at).where(
            among(datasets.c.canonical_id, ids)
        )
    ).all()
    there = {row.canonical_id for row in rows if row.first_at is not None and row.first_at <= since}
    return {row.id: row.canonical_id for row in rows if row.canonical_id in there}


def _current(connection: Connection, names: Mapping[int, int]) -> dict[int, _Stated]:
    """The newest schema of each dataset, whatever name it was stated under."""
    held = facet_rows(one_of(names), (DATASET,), one_of(["schema"]))
    by_dataset: dict[int, _Stated] = {}
    for row in connection.execute(select(held).where(held.c.content.is_not(None))):
        stated = _Stated(row.at, bytes(row.hash), expand(row.content))
        by_dataset[names[row.entity_id]] = max(by_dataset.get(names[row.entity_id], stated), stated)
    return by_dataset


def _stated_by(
    connection: Connection, moment: int, names: Mapping[int, int], most: int | None = None
) -> dict[int, _Stated]:
    """Return the newest schema of each dataset by a moment.

    Only what the stored events tell for certain counts.
    """
    if not names or not access_of(connection).everything:
        return {}
    most = MOST_READ if most is None else most
    sought = _Sought(moment, names, agreed_naming(connection))
    rows = connection.execute(_events(moment, most).execution_options(yield_per=AT_ONCE))
    for read, (row, body) in enumerate(Expansion(connection).expanded(rows)):
        if sought.is_settled(row.received_at):
            break
        if read == most or isinstance(body, DamagedError):
            rows.close()
            return _settled(sought, row.received_at)
        if b'"schema"' in body and (event := _read(body)) is not None:
            sought.look(event, row.event_time)
    rows.close()
    return sought.found


def _settled(sought: _Sought, received_at: int) -> dict[int, _Stated]:
    """Return what cannot have been stated anew by an event that was not looked into."""
    return {of: schema for of, schema in sought.found.items() if received_at + CLOCKS < schema.at}


def _read(body: bytes) -> Event | None:
    try:
        return decode(body)
    except InvalidEventError:  # an older version took it
        return None


def _events(moment: int, most: int) -> Select[Any]:
    """Return events from before a moment, by the newest received first.

    There is one row more than will be read.
    """
    by_then = select(raw_events).where(raw_events.c.event_time <= moment)
    return by_then.order_by(raw_events.c.received_at.desc(), raw_events.c.hash.desc()).limit(
        most + 1
    )


Answer = dict[str, Any]

MOST_READ_FOR_ALL = 2_000  # events, a tenth of a second: nobody has asked for one of these columns


def refuse_absent(connection: Connection, dataset: Node, column: str, view: View) -> None:
    """A NotFoundError where a dataset had no such column at a past moment.

    Without certainty its newest schema decides.
    """
    if dataset.kind != "dataset" or _stands_for(column, columns_named(connection, dataset, view)):
        return
    then = columns_at(connection, view.at, dataset.id)
    if then is None:
        refuse_unknown(connection, dataset, column, view)
    elif not _stands_for(column, then):
        near = get_close_matches(column, then) or list(then)[:MOST_CANDIDATES]
        raise NotFoundError(f"unknown column of {dataset} at {iso(view.at)}: {column!r}", near)


def refuse_misspelt(connection: Connection, dataset: Node, column: str, view: View) -> None:
    """A NotFoundError where a dataset has no such column, and had none at a past moment."""
    try:
        refuse_unknown(connection, dataset, column, view)
    except NotFoundError:
        if not view.past:
            raise
        refuse_absent(connection, dataset, column, view)


def without_later(connection: Connection, answer: Answer, dataset: Node, view: View) -> Answer:
    """The lineage of all columns of a dataset at a past moment without those that came later."""
    ends = {edge[end] for edge in answer["edges"] for end in ("source", "target")}
    idle = {
        node["id"]
        for node in answer["nodes"]
        if node["type"] == "column" and not (node["distance"] or node["id"] in ends)
    }
    then = columns_at(connection, view.at, dataset.id, MOST_READ_FOR_ALL) if idle else None
    if then is None:
        return answer
    nodes = [
        node
        for node in answer["nodes"]
        if node["id"] not in idle or _stands_for(node["column"], then)
    ]
    return answer | {"nodes": nodes}


def _stands_for(column: str, columns: Any) -> bool:
    """Return whether a column is one of these, or inside of one."""
    return column in columns or column.partition(".")[0] in columns
