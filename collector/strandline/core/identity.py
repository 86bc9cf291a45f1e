"""The names of one dataset, the name that stands for all of them, and the place of its table.

Names joined by symlinks are a group. For all stands the physical one: what others call their
LOCATION, then what nobody calls their TABLE, then the smallest (namespace, name); a name before a
rename comes last. A function of the set of links, so their order cannot matter.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from strandline.core.openlineage.names import TableName, names_tables, place_of, table_place

# Links that no event stated, so that no event takes them back.
PATTERN, BY_HAND, SPELLING = "PATTERN", "BY_HAND", "SPELLING"
# The name that a dataset had before it was renamed.
RENAMED = "RENAMED"
NO_EVENTS = frozenset((PATTERN, BY_HAND, SPELLING))


class Name(NamedTuple):
    """A dataset as named; catalog: what its catalog facet says."""

    id: int
    namespace: str
    name: str
    catalog: str | None = None


class Alias(NamedTuple):
    """`dataset_id` is also called `alias_id`.

    Type is TABLE, LOCATION, PATTERN, BY_HAND, RENAMED or another word. at: when it was renamed.
    """

    dataset_id: int
    alias_id: int
    type: str
    at: int = 0


class Label(NamedTuple):
    """The id of a name's group, and its place."""

    canonical_id: int
    place: TableName


def believed(
    aliases: Iterable[Alias], taken_back: Collection[int], written: Mapping[int, int]
) -> list[Alias]:
    """Return the links that hold.

    taken_back: datasets whose symlinks were deleted. written: when each dataset was last written
    under its own name. A name that is used after a rename belongs to another table and cannot be
    told from the renamed one's. So the rename joins nothing, nor does a symlink from before it.
    """
    aliases = list(aliases)
    over = {alias[:2] for alias in aliases_used_again(aliases, written)}
    links = []
    for alias in aliases:
        is_gone = alias[:2] in over
        if alias.type != RENAMED:
            is_gone |= alias.dataset_id in taken_back
        if alias.type in NO_EVENTS or not is_gone:
            links.append(alias)
    return links


def aliases_used_again(aliases: Collection[Alias], written: Mapping[int, int]) -> list[Alias]:
    """Return the renames whose former name was used again.

    It was written, a table that is called so now was, or another table was renamed from it later.
    """
    renames: dict[int, list[Alias]] = {}
    for alias in aliases:
        if alias.type == RENAMED:
            renames.setdefault(alias.alias_id, []).append(alias)
    users = {name: {name} for name in renames}
    for alias in aliases:
        if alias.alias_id in renames and alias.type != RENAMED:
            users[alias.alias_id].add(alias.dataset_id)
    used_again = []
    for name, moves in renames.items():
        users[name] -= {move.dataset_id for move in moves}
        last_use = max([move.at for move in moves] + [written.get(id_, 0) for id_ in users[name]])
        used_again += [move for move in moves if move.at < last_use]
    return used_again


def labels_of(names: Collection[Name], aliases: Collection[Alias]) -> dict[int, Label]:
    """Return the label of every name."""
    labels: dict[int, Label] = {}
    by_id = {name.id: name for name in names}
    tables = {alias.alias_id for alias in aliases if alias.type == "TABLE"}
    links: dict[int, list[Alias]] = {}
    for alias in aliases:
        links.setdefault(alias.dataset_id, []).append(alias)
    for group in groups_of(by_id, aliases):
        members = [by_id[label] for label in group]
        linked = [alias for label in group for alias in links.get(label, ())]
        labels |= _labels_in(members, linked, tables)
    return labels


def _labels_in(
    members: Sequence[Name], linked: Sequence[Alias], tables: Collection[int]
) -> dict[int, Label]:
    """Return the labels of the names of one dataset."""
    canonical_id, catalogs = canonical_of(members, linked).id, _catalogs_of(members, linked)
    called = [name for name in members if name.id in tables or names_tables(name.namespace)]
    before = {alias.alias_id for alias in linked if alias.type == RENAMED}
    current = [name for name in called if name.id not in before] or called
    return {
        member.id: Label(
            canonical_id,
            _place_of(member, [member] if member in called else current, tables, catalogs),
        )
        for member in members
    }


def groups_of(ids: Iterable[int], aliases: Iterable[Alias]) -> list[set[int]]:
    """Return the ids that are joined by aliases, group by group."""
    group_of = {id_: {id_} for id_ in ids}
    for alias in aliases:
        one, other = group_of[alias.dataset_id], group_of[alias.alias_id]
        if one is not other:
            small, large = sorted((one, other), key=len)
            large |= small
            group_of.update(dict.fromkeys(small, large))
    return list({id(group): group for group in group_of.values()}.values())


def canonical_of(members: Iterable[Name], aliases: Iterable[Alias]) -> Name:
    """Return the name that stands for its group."""
    ranks: dict[int, int] = {}
    for alias in aliases:
        rank = _RANKS.get(alias.type, 1)
        ranks[alias.alias_id] = max(ranks.get(alias.alias_id, rank), rank)
    return min(members, key=lambda name: (ranks.get(name.id, 1), name.namespace, name.name))


_RANKS = {
    PATTERN: 0,
    BY_HAND: 0,
    SPELLING: 0,
    "LOCATION": 0,
    "TABLE": 2,
    RENAMED: 3,
}  # what an alias of that type is: others are 1


def _place_of(
    member: Name, called: Sequence[Name], tables: Collection[int], catalogs: Mapping[int, str]
) -> TableName:
    """Return the member's own place if it names a table, else that of its group's table."""
    if called and member not in called:
        member = min(
            called, key=lambda name: (catalogs.get(name.id) is None, name.namespace, name.name)
        )
    if member.id in tables:
        return table_place(member.namespace, member.name, catalogs.get(member.id))
    return place_of(member.namespace, member.name, catalogs.get(member.id))


def _catalogs_of(members: Iterable[Name], aliases: Iterable[Alias]) -> Mapping[int, str]:
    """Return the catalog of each member: its facet's, or that of the names it is linked with."""
    own = {name.id: name.catalog for name in members if name.catalog}
    catalogs = dict(own)
    for alias in sorted(aliases):
        for id_, other in ((alias.dataset_id, alias.alias_id), (alias.alias_id, alias.dataset_id)):
            if id_ in own and other not in own:
                catalogs[other] = min(catalogs.get(other, own[id_]), own[id_])
    return catalogs
