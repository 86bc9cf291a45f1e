"""Names joined by hand: path patterns over what is stored already, and single aliases.

Each has a dry run. Once applied, patterns are agreed on in the store, so that every writer names
new events by them (core/openlineage/names.py). Names stored before are joined to their stripped
form as aliases, so nothing is lost.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, select

from strandline.core.changes.memory import Memory
from strandline.core.changes.rows import DatasetAlias, DatasetSeen, NamespaceSeen
from strandline.core.identity import BY_HAND, PATTERN, Alias, Name
from strandline.core.openlineage.names import naming_of
from strandline.store.ingest.labels import believed_aliases, label_names, lock, relabel
from strandline.store.ingest.retention import keep_writers_out
from strandline.store.schema.dataset_tables import dataset_aliases, datasets
from strandline.store.sql.shared_settings import agree_on_patterns, agreed_naming, strip_patterns
from strandline.store.sql.upsert import upsert


class Renaming(NamedTuple):
    """A dataset or job that would be known under another name."""

    namespace: str
    name: str
    new_name: str
    id: int
    new_id: int


def planned_patterns(connection: Connection, patterns: Sequence[str]) -> list[Renaming]:
    """Return the names that these patterns would join; change nothing.

    Raises re.error for a pattern that is none.
    """
    query = select(dataset_aliases.c.dataset_id, dataset_aliases.c.alias_id).where(
        dataset_aliases.c.type == PATTERN
    )
    joined = {(row.dataset_id, row.alias_id) for row in connection.execute(query)}
    plan = _renamings(connection, Memory(naming_of(_together(connection, patterns))))
    return sorted(dataset for dataset in plan if (dataset.id, dataset.new_id) not in joined)


def apply_patterns(connection: Connection, patterns: Sequence[str]) -> int:
    """Join what these patterns join, and name by them from now on.

    Gives how many names were joined.
    """
    # A batch that had begun would name datasets as before, and nobody would join them.
    keep_writers_out(connection)
    lock(connection)
    together = _together(connection, patterns)
    memo = Memory(naming_of(together))
    plan = list(_renamings(connection, memo))
    for dataset in plan:
        alias = DatasetAlias(dataset.id, dataset.new_id, PATTERN)
        _join(connection, alias, memo.dataset(dataset.namespace, dataset.new_name))
    relabel(connection, {id_ for dataset in plan for id_ in (dataset.id, dataset.new_id)})
    agree_on_patterns(connection, together)
    return len(plan)


def _together(connection: Connection, patterns: Sequence[str]) -> list[str]:
    """Return the patterns that are agreed on already, and these."""
    return list(dict.fromkeys([*strip_patterns(connection), *patterns]))


def _join(connection: Connection, alias: DatasetAlias, *named: DatasetSeen) -> None:
    for dataset in named:
        upsert(connection, NamespaceSeen, [NamespaceSeen(dataset.namespace_id, dataset.namespace)])
        upsert(connection, DatasetSeen, [dataset])
    upsert(connection, DatasetAlias, [alias])


def apply_alias(connection: Connection, names: tuple[str, str], other: tuple[str, str]) -> None:
    """Let `one` also be called `other`."""
    lock(connection)
    memo = Memory(agreed_naming(connection))
    first, second = memo.dataset(*names), memo.dataset(*other)
    _join(connection, DatasetAlias(first.id, second.id, BY_HAND), first, second)
    relabel(connection, {first.id, second.id})


def aliases_by_hand(connection: Connection) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Return the pairs of names that `apply_alias` was given: no event has them."""
    first, other = datasets.alias("one"), datasets.alias("other")
    query = (
        select(first.c.namespace, first.c.name, other.c.namespace, other.c.name)
        .join_from(dataset_aliases, first, first.c.id == dataset_aliases.c.dataset_id)
        .join(other, other.c.id == dataset_aliases.c.alias_id)
        .where(dataset_aliases.c.type == BY_HAND)
        .order_by(first.c.id, other.c.id)
    )
    return [((row[0], row[1]), (row[2], row[3])) for row in connection.execute(query)]


def planned_alias(
    connection: Connection, one: tuple[str, str], other: tuple[str, str]
) -> list[Renaming]:
    """Return the datasets that would stand under another name if `one` were also `other`.

    Nothing is changed.
    """
    memo = Memory(agreed_naming(connection))
    first, second = memo.dataset(*one), memo.dataset(*other)
    names = [
        Name(*row)
        for row in connection.execute(select(datasets.c.id, datasets.c.namespace, datasets.c.name))
    ]
    by_id = {name.id: name for name in names}
    by_id |= {new.id: Name(new.id, new.namespace, new.name) for new in (first, second)}
    aliases = believed_aliases(connection)
    before = label_names(by_id.values(), aliases)
    after = label_names(by_id.values(), [*aliases, Alias(first.id, second.id, BY_HAND)])
    return sorted(
        Renaming(
            by_id[id_].namespace, by_id[before[id_]].name, by_id[after[id_]].name, id_, after[id_]
        )
        for id_ in by_id
        if before[id_] != after[id_] and before[id_] == id_
    )


def _renamings(connection: Connection, memo: Memory) -> Iterator[Renaming]:
    for id_, namespace, name in connection.execute(
        select(datasets.c.id, datasets.c.namespace, datasets.c.name)
    ):
        stripped = memo.dataset(namespace, name)
        if stripped.id != id_:
            yield Renaming(namespace, name, stripped.name, id_, stripped.id)
