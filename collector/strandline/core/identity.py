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
# The name that a dataset had before it was renamed; `at`: the newest event that says so.
RENAMED = "RENAMED"
# Each event that states a rename leaves two more links: the renamed dataset is also called what
# the name meant until then (FORMER), and that is for a name (UNTIL). It is a dataset of its own
# once another table had the name: then `at` of UNTIL is APART.
FORMER, UNTIL = "FORMER", "UNTIL"
APART = 1
OF_RENAMES = frozenset((RENAMED, FORMER, UNTIL))
NO_EVENTS = frozenset((PATTERN, BY_HAND, SPELLING))
NEVER = -(2**63)


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


class Rename(NamedTuple):
    """A rename as an event states it: `dataset_id` had this name until then.

    former_id: what the name meant. apart: whether that is a dataset of its own.
    """

    at: int
    former_id: int
    name_id: int
    dataset_id: int
    apart: bool


class StatedNames(NamedTuple):
    """The other names of a dataset by its newest symlinks facet, and the facet's time."""

    at: int
    ids: frozenset[int]


class Label(NamedTuple):
    """The id of a name's group, and its place."""

    canonical_id: int
    place: TableName


def believed(
    aliases: Iterable[Alias], taken_back: Collection[int], stated: Mapping[int, StatedNames]
) -> list[Alias]:
    """Return the links that hold.

    taken_back: datasets whose symlinks were deleted. stated: what datasets state that have or had a
    name that several tables had. All events say alike that a dataset has such a name, so there the
    newest symlinks facet of each table counts.
    """
    aliases = list(aliases)
    renames = [rename for rename in renames_in(aliases) if rename.apart]
    decided = {(rename.dataset_id, rename.name_id): rename.at for rename in renames}
    meanings: dict[int, list[int]] = {}
    for rename in renames:
        meanings.setdefault(rename.name_id, [rename.name_id]).append(rename.former_id)
    links = [
        Alias(meaning_at(rename.at, rename.dataset_id, renames), rename.former_id, FORMER)
        for rename in renames
    ]
    for alias in aliases:
        if alias.type == RENAMED and alias.at > decided.get(alias[:2], NEVER):
            meant = meaning_at(alias.at, alias.dataset_id, renames)
            links.append(alias._replace(dataset_id=meant))
        elif alias.type in OF_RENAMES:
            continue
        elif alias.type in NO_EVENTS:
            links.append(alias)
        elif alias.dataset_id in meanings or alias.alias_id in meanings:
            tables = meanings.get(alias.dataset_id, [alias.dataset_id])
            links += _stated_links(alias, tables, taken_back, stated, renames)
        elif alias.dataset_id not in taken_back:
            links.append(alias)
    return links


def _stated_links(
    alias: Alias,
    tables: Collection[int],
    taken_back: Collection[int],
    stated: Mapping[int, StatedNames],
    renames: Sequence[Rename],
) -> list[Alias]:
    """Return a symlink of each of the tables that had one name, as far as they state it."""
    if not any(id_ in stated or id_ in taken_back for id_ in tables):
        return [alias]  # it is no facet's
    links = []
    for id_ in tables:
        names = stated.get(id_)
        if names is not None and alias.alias_id in names.ids:
            links.append(Alias(id_, meaning_at(names.at, alias.alias_id, renames), alias.type))
    return links


def renames_in(aliases: Iterable[Alias]) -> list[Rename]:
    """Return the renames that aliases state, the earliest first."""
    names: dict[int, Alias] = {}
    formers: list[Alias] = []
    for alias in aliases:
        if alias.type == UNTIL:
            names[alias.dataset_id] = alias
        elif alias.type == FORMER:
            formers.append(alias)
    renames = []
    for former in formers:
        until = names.get(former.alias_id)
        if until is not None:
            ids = former.alias_id, until.alias_id, former.dataset_id
            renames.append(Rename(former.at, *ids, apart=until.at == APART))
    return sorted(renames)


def meaning_at(moment: int, name_id: int, renames: Iterable[Rename]) -> int:
    """Return the dataset that a name meant at a moment; the renames are apart and in order."""
    for rename in renames:
        if rename.name_id == name_id and moment < rename.at:
            return rename.former_id
    return name_id


def ids_that_state(aliases: Iterable[Alias]) -> set[int]:
    """Return the datasets whose symlinks facets tell which tables have names before renames."""
    renames = renames_in(aliases)
    names = {rename.name_id for rename in renames}
    ids = {rename.former_id for rename in renames if rename.apart}
    for alias in aliases if names else ():
        is_symlink = alias.type not in OF_RENAMES | NO_EVENTS
        if is_symlink and not names.isdisjoint(alias[:2]):
            ids.add(alias.dataset_id)
    return ids


def used_again(
    aliases: Collection[Alias], written: Mapping[int, int], stated: Mapping[int, StatedNames]
) -> list[Rename]:
    """Return the renames after which another table had the name, and that are not apart yet.

    written: when each dataset was last written. The name was written, or a table that states it
    was; or a table was renamed to it, or another one from it.
    """
    renames: dict[int, list[Rename]] = {}
    for rename in renames_in(aliases):
        renames.setdefault(rename.name_id, []).append(rename)
    last_use = {name_id: written.get(name_id, NEVER) for name_id in renames}
    for alias in aliases:
        if alias.type == RENAMED and alias.dataset_id in last_use:
            last_use[alias.dataset_id] = max(last_use[alias.dataset_id], alias.at)
        moves = renames.get(alias.alias_id)
        if moves is None or alias.type in OF_RENAMES:
            continue
        if all(alias.dataset_id != move.dataset_id for move in moves):
            used_at = _last_use(alias, written, stated)
            last_use[alias.alias_id] = max(last_use[alias.alias_id], used_at)
    again = []
    for name_id, moves in renames.items():
        for move in moves:
            others = [other.at for other in moves if other.dataset_id != move.dataset_id]
            if not move.apart and move.at < max([last_use[name_id], *others]):
                again.append(move)
    return again


def _last_use(alias: Alias, written: Mapping[int, int], stated: Mapping[int, StatedNames]) -> int:
    """Return when the dataset was last written and had its other name."""
    names = stated.get(alias.dataset_id)
    written_at = written.get(alias.dataset_id, NEVER)
    if alias.type in NO_EVENTS or names is None:
        return written_at
    return min(written_at, names.at) if alias.alias_id in names.ids else NEVER


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
