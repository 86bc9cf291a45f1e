"""The tables that names mean, where datasets were renamed.

A rename is certain if no other table had the new name before. That is: no other rename leads to or
from one of the names but the next of a chain, and no snapshot was reported under the new name
before. Otherwise both names begin anew at the rename; so does the old name of a certain one that is
used again. This follows from stored rows alone, whatever order they came in; what was certain may
turn out not to be, never the other way round.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, Connection, case, func, insert, or_, select, true

from strandline.core.identity import RENAMED, UNTIL, Alias, Name, labels_of
from strandline.core.openlineage.names import id_of
from strandline.core.versions.facts import NameReused, Table, TableRenamed
from strandline.core.versions.renames import NameFact
from strandline.store.lineage.lookup import ids_of_names
from strandline.store.schema.dataset_tables import dataset_aliases, datasets
from strandline.store.schema.snapshot_tables import snapshots
from strandline.store.schema.version_tables import group_roots, version_news
from strandline.store.sql.id_lists import among
from strandline.store.sql.shared_settings import agreed
from strandline.store.versions.fact_log import RENAME, ROOT, VersionNews

MICRO = 1_000_000
WHEN = func.coalesce(snapshots.c.committed_at, snapshots.c.first_at)


@dataclass(slots=True)
class Names:
    """The names of some datasets and of all that renames lead to or from.

    `called`: what facts call each dataset, by its id; `moved`: the certain renames by the name
    before; `uncertain`: the others; `reused`: since when a name means its table (microseconds).
    """

    called: dict[int, Table] = field(default_factory=dict)
    moved: dict[Table, TableRenamed] = field(default_factory=dict)
    uncertain: list[TableRenamed] = field(default_factory=list)
    reused: dict[Table, int] = field(default_factory=dict)

    def facts(self) -> list[NameFact]:
        """Return these names as facts, in a fixed order."""
        every = [*self.moved.values(), *self.uncertain]
        moves = sorted(every, key=lambda move: (move.at, move.before))
        reused = [NameReused(name, at / MICRO) for name, at in sorted(self.reused.items())]
        return [*moves, *reused]

    def all_of(self, table: Table) -> set[Table]:
        """Return the names that a table has and had."""
        names, new = set[Table](), {table}
        while new:
            names |= new
            new = {move.before for move in self.moved.values() if move.table in new} - names
        return names


def names_in_news(connection: Connection, updates: Iterable[VersionNews]) -> list[NameFact]:
    """Return the facts about the names of the datasets that news tell of."""
    ids = {item.entity_id for item in updates if item.kind == RENAME}
    return names_around(connection, ids).facts() if ids else []


def called(connection: Connection, ids: Collection[int]) -> Mapping[int, Table]:
    """Return the names in facts of datasets that were renamed."""
    if "has_renames" not in agreed(connection):
        return {}
    return names_around(connection, ids).called


def names_around(connection: Connection, ids: Collection[int]) -> Names:
    """Return the names of datasets and of all that renames and symlinks join them with."""
    links = _links_around(connection, ids)
    if not any(link.type == RENAMED for link in links):
        return Names()
    around = {*ids, *(id_ for link in links for id_ in link[:2])}
    columns = datasets.c.id, datasets.c.namespace, datasets.c.name, datasets.c.canonical_id
    rows = connection.execute(select(*columns).where(among(datasets.c.id, around))).all()
    names = {row.id: Name(row.id, row.namespace, row.name) for row in rows}
    now = {row.id: row.canonical_id for row in rows}
    known = [link for link in links if link.dataset_id in now and link.alias_id in now]
    # Facts have the names of their time, so what is of a former name is called so.
    former = {link.dataset_id: link.alias_id for link in known if link.type == UNTIL}
    joined = [
        link
        for link in known
        if link.type != RENAMED
        and former.keys().isdisjoint(link[:2])
        and now[link.dataset_id] == now[link.alias_id]
    ]
    labels = labels_of(names.values(), joined)
    result = Names({id_: names[labels[former.get(id_, id_)].canonical_id][1:3] for id_ in names})
    at_one_place = {link[:2] for link in known if link.type != RENAMED}
    moves = {
        (result.called[link.alias_id], result.called[link.dataset_id], link.at)
        for link in known
        if link.type == RENAMED and link[:2] not in at_one_place
    }
    _judge(connection, result, sorted(move for move in moves if move[0] != move[1]))
    return result


def _links_around(connection: Connection, ids: Collection[int]) -> set[Alias]:
    links, found = dataset_aliases.c, set[Alias]()
    visited, new = set[int](), set(ids)
    while new:
        visited |= new
        ends = or_(among(links.dataset_id, new), among(links.alias_id, new))
        found |= {Alias(*row) for row in connection.execute(select(dataset_aliases).where(ends))}
        new = {id_ for link in found for id_ in link[:2]} - visited
    return found


def _judge(connection: Connection, names: Names, moves: Sequence[tuple[Table, Table, int]]) -> None:
    """Tell certain renames from others."""
    made = _made(connection, names)
    for before, table, at in moves:
        others = [move for move in moves if move != (before, table, at)]
        is_only = not any(before == move[0] or table == move[1] for move in others)
        in_turn = all(move[2] < at for move in others if move[1] == before) and all(
            move[2] > at for move in others if move[0] == table
        )
        first, last = made.get(table, (at, at))[0], made.get(before, (at, at))[1]
        is_certain = is_only and in_turn and first >= at
        if is_certain:
            names.moved[before] = TableRenamed(before, table, at / MICRO)
        else:
            names.uncertain.append(TableRenamed(before, table, at / MICRO, certain=False))
        anew = [before] if last > at else []
        for name in anew if is_certain else (before, table):
            names.reused[name] = max(at, names.reused.get(name, at))


def _made(connection: Connection, names: Names) -> dict[Table, tuple[int, int]]:
    """Return when a first snapshot was reported and a last one made, by the name of the table."""
    of = snapshots.c
    query = (
        select(
            of.dataset_id, func.min(of.first_at), func.max(case((of.run_id != 0, WHEN), else_=0))
        )
        .where(among(of.dataset_id, names.called))
        .group_by(of.dataset_id)
    )
    made: dict[Table, tuple[int, int]] = {}
    for dataset_id, first, last in connection.execute(query):
        name = names.called[dataset_id]
        before = made.get(name, (first, last))
        made[name] = min(first, before[0]), max(last, before[1])
    return made


@dataclass(frozen=True, slots=True)
class TableRows:
    """The condition that rows of `snapshots` are of a table, and the names that it has and had.

    `since`: when it got its name, where other tables had it before (microseconds).
    """

    condition: ColumnElement[bool]
    names: frozenset[Table]
    since: int | None = None


def rows_of(connection: Connection, table: Table) -> TableRows:
    """Return which rows of `snapshots` are of the table that has a name now."""
    plain = snapshots.c.dataset_id.in_(ids_of_names(table))
    names = Names()
    if "has_renames" in agreed(connection):
        names = names_around(connection, set(connection.scalars(ids_of_names(table))))
    own = names.called.get(id_of("dataset", *table))
    if own is None:
        return TableRows(plain, frozenset([table]))
    all_names = names.all_of(own)
    parts = []
    for name in sorted(all_names):
        ids = [id_ for id_, other in names.called.items() if other == name]
        bound: ColumnElement[bool] = true()
        if name in names.reused and name == own:
            bound = names.reused[name] <= WHEN
        elif name in names.reused:
            bound = names.reused[name] > WHEN
        parts.append(among(snapshots.c.dataset_id, ids) & bound)
    return TableRows(or_(*parts), frozenset(all_names), names.reused.get(own))


def follow_base_tables(connection: Connection, facts: Sequence[NameFact]) -> None:
    """Let the snapshots of a base table become barriers under its new name, too.

    Those of a name that begins anew are looked at again.
    """
    for fact in facts:
        if isinstance(fact, TableRenamed) and not fact.certain:
            continue
        before = id_of("dataset", *(fact.before if isinstance(fact, TableRenamed) else fact.table))
        after = id_of("dataset", *fact.table)
        query = select(group_roots.c.group_name).where(group_roots.c.dataset_id == before)
        group = connection.scalar(query)
        if group is None:
            continue
        known = select(group_roots.c.group_name).where(group_roots.c.dataset_id == after)
        if connection.scalar(known) is None:
            connection.execute(insert(group_roots).values(dataset_id=after, group_name=group))
        connection.execute(insert(version_news).values(kind=ROOT, entity_id=after, barrier=0))
