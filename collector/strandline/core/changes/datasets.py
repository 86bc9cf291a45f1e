"""Datasets as an event uses them: their rows, facets and other names.

What is read of a table beside its rows is a read of the table: an Iceberg table's metadata
(`t.snapshots`) and changes (`t.changes`), Delta's change feed. The columns are not the table's.

Of a dataset that is in no namespace of the sender's key the event may say that it is read. The
collector notes the key's namespaces in the event (`strandline_sender`) where it names a dataset
beyond them, so that reading the stored event again leads to the same rows.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import msgspec

from strandline.core.access.granted import Access
from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.changes.memory import Memory
from strandline.core.changes.rows import (
    CREATES,
    DEFINES,
    ELSEWHERE,
    AliasSet,
    DatasetAlias,
    DatasetSeen,
)
from strandline.core.changes.snapshot_claims import SnapshotClaim, claim_of
from strandline.core.identity import FORMER, RENAMED, UNTIL
from strandline.core.openlineage import facets as f
from strandline.core.openlineage.facets import DATASET, NO_FACETS, Facet, Facets, content_hash
from strandline.core.openlineage.names import (
    bare,
    former_name,
    id_of,
    is_object_store,
    is_of_a_session,
    is_whole_name,
    key_text,
    may_be_metadata_table,
    metadata_table_in,
    plain_namespace,
)

NOWHERE = -1
SENDER = "strandline_sender"
CHANGES, FEED = "changes", ""  # a feed has the table's own name
_CHANGE_COLUMNS = {"_change_type", "_change_ordinal", "_commit_snapshot_id"}
_FEED_COLUMNS = {"_change_type", "_commit_version", "_commit_timestamp"}
_OF_THE_PART = frozenset(("schema", "symlinks", "symlink"))
_NO_CHANGE = f.Lifecycle("")
_CREATES = {
    "CREATE": CREATES,
    "ALTER": DEFINES,
    "DROP": DEFINES,
    "RENAME": DEFINES,
    "TRUNCATE": DEFINES,
}

NamedDataset = tuple[str, str, bytes]  # namespace, name and facets, as an event has them
OtherName = tuple[str, str, str]  # namespace, name and type
Owns: TypeAlias = Callable[[str], bool]  # whether what is in a namespace is the sender's


class DescribedDataset(NamedTuple):
    """A dataset's row without times, its facets, and its other names, as one event states them.

    redacted: a secret was taken out of its name or facets.
    """

    dataset: DatasetSeen
    facets: Facets
    aliases: AliasSet | None
    redacted: bool


class NamedBefore(NamedTuple):
    """A dataset that was renamed, and the one that its name before names."""

    dataset: DatasetSeen
    before: DatasetSeen

    def alias_at(self, at: int) -> AliasSet | None:
        """Return the name before as an alias up to this moment; None if it is the same name."""
        if self.before.id == self.dataset.id:
            return None
        id_, before = self.dataset.id, self.before
        names = (before.namespace, before.name), (self.dataset.namespace, self.dataset.name)
        former_id = id_of("dataset", *former_name(*names, at))
        aliases = (
            DatasetAlias(id_, before.id, RENAMED, at),
            DatasetAlias(id_, former_id, FORMER, at),
            DatasetAlias(former_id, before.id, UNTIL),
        )
        hash_ = content_hash(repr(aliases).encode())
        return AliasSet(id_, hash_, aliases, (before, self.dataset))


def is_rename(change: object) -> bool:
    """Return whether a change says that a dataset was renamed."""
    return isinstance(change, AliasSet) and change.aliases[0].type == RENAMED


@dataclass(frozen=True, slots=True, eq=False)
class DatasetUse:
    """A dataset that a job reads (direction 0) or writes (1), as an event states it.

    sent_as: namespace and name as they came, without secrets. stored: the facets to store of it.
    claim: the snapshot that its facets claim.
    place: where it is among the inputs or outputs, NOWHERE if only a facet names it.
    elsewhere: it is in no namespace of the sender's, so the event names it and does not say what it
    is.
    """

    direction: int
    dataset: DatasetSeen
    sent_as: tuple[str, str]
    facets: Facets = field(default_factory=lambda: NO_FACETS)
    stored: Sequence[Facet] = ()
    aliases: AliasSet | None = None
    creates: int = 0
    place: int = NOWHERE
    claim: SnapshotClaim | None = None
    elsewhere: bool = False
    redacted: bool = False

    @property
    def change(self) -> f.Lifecycle:
        """The change of the dataset that the event reports."""
        return self.facets.value("lifecycleStateChange") or _NO_CHANGE


def use_of(
    memory: Memory, direction: int, named: NamedDataset, place: int, *, streamed: bool
) -> DatasetUse:
    """Return the use of an input or output."""
    namespace, name, _ = named
    described = described_dataset(memory, named, read=direction == SOURCE, streamed=streamed)
    facets = described.facets
    change: f.Lifecycle = facets.value("lifecycleStateChange") or _NO_CHANGE
    creates = _CREATES.get(change.lifecycle_state_change.upper(), 0) if direction == SINK else 0
    return DatasetUse(
        direction,
        described.dataset,
        (bare(namespace), bare(name)),
        facets,
        facets.stored,
        described.aliases,
        creates,
        place,
        claim_of(facets, NO_FACETS),
        redacted=described.redacted,
    )


def described_dataset(
    memory: Memory, named: NamedDataset, *, read: bool = False, streamed: bool = False
) -> DescribedDataset:
    """Return the dataset of this name, and what its facets say. read: it is an input."""
    namespace, name, raw = named
    return memory.result(
        ("dataset", namespace, name, raw, read, streamed),
        lambda: _described(memory, named, read=read, streamed=streamed),
        lambda _: len(raw) + len(namespace) + len(name) + 1000,
    )


def _described(
    memory: Memory, named: NamedDataset, *, read: bool, streamed: bool
) -> DescribedDataset:
    namespace, name, raw = named
    facets = memory.facets(DATASET, raw)
    redacted = facets.redacted or bare(namespace) != namespace or bare(name) != name
    part = part_read(name, facets) if read else None
    is_iceberg = part not in (None, FEED, CHANGES)
    dataset = memory.dataset(namespace, name, iceberg=is_iceberg, streamed=streamed)
    others = other_names(facets, namespace)
    if part is not None:
        others = [(space, without(other, part), type_) for space, other, type_ in others]
        facets = _of_the_table(facets, part)
    if part == CHANGES:
        # A name of its own, so that the table's names can be taken out of events by their own.
        others.append((namespace, without(name, part), "LOCATION"))
    now = memory.now.dataset(namespace, name, iceberg=is_iceberg, streamed=streamed)
    return DescribedDataset(dataset, facets, _aliases(memory.now, now.id, others), redacted)


def other_names(facets: Facets, namespace: str) -> list[OtherName]:
    """Return the other names of a dataset in this namespace."""
    symlinks: f.Symlinks | None = facets.value("symlinks") or facets.value("symlink")
    names = []
    for identifier in symlinks.identifiers if symlinks else ():
        space, name, type_ = identifier.namespace, identifier.name, identifier.type
        if not space or not name or is_of_a_session(namespace, space, name):
            continue
        if type_.upper() == "TABLE" and name.startswith("/") and is_object_store(space):
            # A path in an object store is no table. Airflow has both of Athena's.
            names.append((space, name.strip("/") or name, "LOCATION"))
        else:
            names.append((space, name, type_))
    return names


def _aliases(memory: Memory, dataset_id: int, others: Iterable[OtherName]) -> AliasSet | None:
    """Return the other names as rows; None without any."""
    if not others:
        return None
    named = [(memory.dataset(space, name), type_) for space, name, type_ in others]
    named = [(other, type_) for other, type_ in named if other.id != dataset_id]
    aliases = tuple(
        [DatasetAlias(dataset_id, other.id, key_text(type_.upper())) for other, type_ in named]
    )
    hash_ = content_hash(repr(aliases).encode())
    return AliasSet(dataset_id, hash_, aliases, tuple([other for other, _ in named]))


def part_read(name: str, facets: Facets) -> str | None:
    """Return the part of a table that an input is: `snapshots`, CHANGES and so on.

    None for its rows.
    """
    schema: f.Schema | None = facets.value("schema")
    columns = {column.name for column in (schema and schema.fields) or ()}
    catalog: f.Catalog | None = facets.value("catalog")
    part = None
    if catalog is not None and catalog.is_iceberg:
        part = _part_among((name, *_symlink_names(facets)), catalog.name, columns)
    if part is None and columns >= _FEED_COLUMNS:
        return FEED
    return part


def _part_among(names: Sequence[str], catalog: str, columns: Collection[str]) -> str | None:
    """Return the part by one of a dataset's names, of which the first is its own."""
    own = names[0]
    for name in names:
        part = _part_in(name, catalog, changes=_CHANGE_COLUMNS.issubset(columns))
        is_folder = name != own and own.endswith(f"/{part}")  # of a table that is called so
        if part == CHANGES or (part and not is_folder):
            return part
    return None


def _part_in(name: str, catalog: str, *, changes: bool) -> str:
    is_part = name.endswith(f".{CHANGES}") and "." in without(name, CHANGES)
    if changes and is_part and not is_whole_name(name, catalog):
        return CHANGES
    return metadata_table_in(name) if may_be_metadata_table(name, catalog) else ""


def _symlink_names(facets: Facets) -> Iterable[str]:
    symlinks: f.Symlinks | None = facets.value("symlinks")
    return [link.name for link in symlinks.identifiers if link.name] if symlinks else []


def without(name: str, part: str) -> str:
    """Return the name of the table that has a part of this name.

    >>> without("/lake/bank/orders/changes", "changes")
    '/lake/bank/orders'
    >>> without("bank.orders.snapshots", "snapshots")
    'bank.orders'
    """
    table = name[: -len(part) - 1]
    return table if part and table and name.endswith(tuple(mark + part for mark in "/.#")) else name


def is_of_the_table(key: str, part: str) -> bool:
    """Return whether a facet of a part that was read is the table's as well."""
    return key != "schema" if part == FEED else key not in _OF_THE_PART


def _of_the_table(facets: Facets, part: str) -> Facets:
    """Return the facets of a part of a table that are the table's as well."""
    of_table = Facets(redacted=facets.redacted)
    of_table.update({key: facet for key, facet in facets.items() if is_of_the_table(key, part)})
    of_table.stored = tuple([facet for facet in facets.stored if is_of_the_table(facet.key, part)])
    return of_table


class SenderFacet(msgspec.Struct, frozen=True):
    """Job facet `strandline_sender`: the namespaces of the key that sent the event."""

    namespaces: tuple[str, ...]


_SENDER = msgspec.json.Decoder(SenderFacet)


def everything(_: str) -> bool:
    """Return True: the sender owns all namespaces, or nobody asked for a key."""
    return True


def owner_of(facet: Facet | None) -> Owns:
    """Return whether the sender owns a namespace: every one, unless the collector noted a facet."""
    if facet is None:
        return everything
    try:
        namespaces = _SENDER.decode(facet.body).namespaces
    except msgspec.MsgspecError:
        return everything
    return owns_by(Access("", frozenset(), namespaces))


def owns_by(access: Access) -> Owns:
    """Return the namespaces that a key may write in, in their plain spelling as well.

    What is said of a place under one spelling counts for all of them.
    """
    return lambda name: access.allows(name) and access.allows(plain_namespace(name))


def owned(use: DatasetUse, owns: Owns) -> DatasetUse:
    """Return the use without what is not the sender's to say.

    Of a dataset elsewhere its name stays, that the job reads it, and edges from it.
    """
    if owns is everything:
        return use
    if owns(use.dataset.namespace):
        return replace(use, aliases=owned_aliases(use.aliases, owns))
    creates = ELSEWHERE if use.direction == SOURCE else 0
    return replace(use, stored=(), aliases=None, creates=creates, elsewhere=True)


def owned_aliases(aliases: AliasSet | None, owns: Owns) -> AliasSet | None:
    """Return the other names of a dataset without those that are not the sender's to give."""
    if aliases is None or owns is everything:
        return aliases
    mentions = tuple([other for other in aliases.mentions if owns(other.namespace)])
    if len(mentions) == len(aliases.mentions):
        return aliases
    ids = {other.id for other in mentions}
    owned = tuple([alias for alias in aliases.aliases if alias.alias_id in ids])
    if not owned:
        return None
    hash_ = content_hash(aliases.hash + b"".join(id_.to_bytes(8, "big") for id_ in sorted(ids)))
    return AliasSet(aliases.dataset_id, hash_, owned, mentions)
