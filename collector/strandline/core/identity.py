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
# Where that name is another table's now: a dataset of its own stands for what the name meant until
# the rename. The renamed dataset is also called that (FORMER), and that is for a name (UNTIL).
FORMER, UNTIL = "FORMER", "UNTIL"
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


class FormerName(NamedTuple):
    """What a name meant until its dataset was renamed, as a dataset of its own."""

    former_id: int
    name_id: int
    renamed_id: int
    until: int


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
    former_names = former_names_in(aliases)
    over = {alias[:2] for alias in aliases_used_again(aliases, written)}
    decided = {(former.renamed_id, former.name_id): former.until for former in former_names}
    renames = [alias for alias in aliases if alias.type == RENAMED]
    over |= {alias[:2] for alias in renames if alias.at <= decided.get(alias[:2], -1)}
    links = [
        Alias(_meant_at(former.until, former.renamed_id, former_names), former.former_id, FORMER)
        for former in former_names
    ]
    for alias in aliases:
        if alias.type in (FORMER, UNTIL):
            continue
        is_gone = alias[:2] in over
        if alias.type != RENAMED:
            is_gone |= alias.dataset_id in taken_back
        if alias.type in NO_EVENTS or not is_gone:
            if alias.type == RENAMED:
                meant = _meant_at(alias.at, alias.dataset_id, former_names)
                alias = alias._replace(dataset_id=meant)
            links.append(alias)
    return links


def former_names_in(aliases: Iterable[Alias]) -> list[FormerName]:
    """Return the former names that aliases state, the earliest first."""
    names: dict[int, int] = {}
    links: list[Alias] = []
    for alias in aliases:
        if alias.type == UNTIL:
            names[alias.dataset_id] = alias.alias_id
        elif alias.type == FORMER:
            links.append(alias)
    former_names = [
        FormerName(link.alias_id, names[link.alias_id], link.dataset_id, link.at)
        for link in links
        if link.alias_id in names
    ]
    return sorted(former_names, key=lambda former: (former.until, former.former_id))


def _meant_at(moment: int, name_id: int, former_names: Iterable[FormerName]) -> int:
    """Return the dataset that a name meant at a moment."""
    for former in former_names:
        if former.name_id == name_id and moment < former.until:
            return former.former_id
    return name_id


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
        if alias.alias_id in renames and alias.type not in (RENAMED, FORMER, UNTIL):
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
    former = {alias.alias_id for alias in linked if alias.type == FORMER}
    called = [
        name
        for name in members
        if name.id not in former and (name.id in tables or names_tables(name.namespace))
    ]
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
    FORMER: 3,
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
