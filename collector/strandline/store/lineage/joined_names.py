"""Datasets that have several names, each with all of them and the reason for each."""

from collections import defaultdict
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from strandline.core.changes.memory import NameBefore
from strandline.core.identity import APART, BY_HAND, FORMER, PATTERN, RENAMED, SPELLING, UNTIL
from strandline.store.schema.dataset_tables import dataset_aliases, datasets
from strandline.store.sql.id_lists import among
from strandline.store.sql.pages import Key, Order

REASONS = {
    BY_HAND: "joined by hand",
    PATTERN: "pattern",
    RENAMED: "renamed",
    FORMER: "renamed",
    SPELLING: "spelling",
}
"""Any other type of an alias is that of a symlinks facet."""


class OtherName(NamedTuple):
    """A further name of a dataset.

    `reasons` are the types of the symlinks that join it, or what people did.
    """

    namespace: str
    name: str
    reasons: tuple[str, ...]


class JoinedNames(NamedTuple):
    """A dataset under its canonical name, with its other names."""

    namespace: str
    name: str
    others: tuple[OtherName, ...]


def joined_names(
    connection: Connection, limit: int, after: Key | None = None
) -> tuple[list[JoinedNames], str | None]:
    """Return a page of the datasets with several names.

    The cursor of the next page comes with them, if there is one.
    """
    named = datasets.alias("named")
    other = select(named.c.id).where(
        named.c.canonical_id == datasets.c.id, named.c.id != datasets.c.id
    )
    query = select(datasets).where(datasets.c.id == datasets.c.canonical_id, other.exists())
    page = Order((datasets.c.namespace, datasets.c.name)).page(connection, query, limit, after)
    others = _others(connection, [row.id for row in page.rows])
    return [
        JoinedNames(row.namespace, row.name, tuple(others[row.id])) for row in page.rows
    ], page.next_cursor


def joined_count(connection: Connection) -> int:
    """Return how many names are further names of another one's dataset."""
    query = (
        select(func.count()).select_from(datasets).where(datasets.c.id != datasets.c.canonical_id)
    )
    return connection.scalar(query) or 0


def _others(connection: Connection, canonical_ids: list[int]) -> dict[int, list[OtherName]]:
    query = select(datasets).where(
        among(datasets.c.canonical_id, canonical_ids), datasets.c.id != datasets.c.canonical_id
    )
    rows = connection.execute(query.order_by(datasets.c.namespace, datasets.c.name)).all()
    reasons = _reasons(connection, [*canonical_ids, *(row.id for row in rows)])
    others: dict[int, list[OtherName]] = defaultdict(list)
    for row in rows:
        others[row.canonical_id].append(
            OtherName(row.namespace, row.name, tuple(sorted(reasons[row.id])))
        )
    return others


def _reasons(connection: Connection, ids: list[int]) -> dict[int, set[str]]:
    """By name: the types of the aliases that it is an end of.

    An alias joins the name that has it and the one that it is.
    """
    reasons_of: dict[int, set[str]] = defaultdict(set)
    for alias in connection.execute(
        select(dataset_aliases).where(
            among(dataset_aliases.c.alias_id, ids), dataset_aliases.c.type != UNTIL
        )
    ):
        for end in (alias.dataset_id, alias.alias_id):
            reasons_of[end].add(REASONS.get(alias.type, alias.type))
    return reasons_of


def names_before(connection: Connection) -> list[NameBefore]:
    """Return all names that tables had, and that are others' now."""
    until, link = dataset_aliases.alias("until"), dataset_aliases.alias("link")
    former, name, renamed = (datasets.alias(role) for role in ("former", "name", "renamed"))
    query = (
        select(
            *(name.c.namespace, name.c.name, link.c.at),
            *(renamed.c.namespace, renamed.c.name, former.c.namespace, former.c.name),
        )
        .join_from(until, link, until.c.dataset_id == link.c.alias_id)
        .join(former, former.c.id == until.c.dataset_id)
        .join(name, name.c.id == until.c.alias_id)
        .join(renamed, renamed.c.id == link.c.dataset_id)
        .where(until.c.type == UNTIL, until.c.at == APART, link.c.type == FORMER)
    )
    return [
        NameBefore((row[0], row[1]), row[2], (row[3], row[4]), (row[5], row[6]))
        for row in connection.execute(query)
    ]
