"""Pages of the search's index: words, and whose they are.

A search looks for a text in all pages that its key may see.

300,000 names are some 300 pages of three megabytes together. They are packed, never changed in
place, and unpacked once a process: looking for any part of a name, be it a single letter, is then a
scan of twelve megabytes of memory, which takes as long on every database and needs none of their
extensions. A page may hold what is no longer so: who reads one asks the store.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from secrets import randbits
from sys import getsizeof
from typing import Any, NamedTuple

import zstandard
from sqlalchemy import Connection, insert, select

from strandline.store.schema.search_tables import search_pages
from strandline.store.sql.id_lists import among
from strandline.store.sql.shared_settings import agreed

DATASET_NAME, JOB_NAME, DATASET_TAG, JOB_TAG, COLUMN, SQL = range(1, 7)
NAMES = (DATASET_NAME, JOB_NAME)
FULL = 1_000  # entities of a page
KEPT = 64 << 20  # characters of unpacked pages that a process keeps
READ_AT_ONCE = 100
END = "\0"  # no text in a store holds it

Order = tuple[Any, ...]


class IndexEntry(NamedTuple):
    """A dataset or job and its words; of names the first is the one that answers show."""

    id: int
    namespace_id: int
    words: Sequence[str]


class WordPage:
    """An unpacked page: folded words with an END between them, and for each the entities that have it."""

    __slots__ = ("_words", "bytes", "firsts", "ids", "members", "starts", "text")

    def __init__(self, words: bytes, owners: bytes) -> None:
        self.text = fold(zstandard.decompress(words).decode("utf-8", "replace"))
        packed = zstandard.decompress(owners)
        sizes = array("q", packed[:24])
        self.ids, self.firsts, self.starts, self.members = (array(kind) for kind in "qiii")
        place = 24
        parts = (
            (self.ids, sizes[0]),
            (self.firsts, sizes[0]),
            (self.starts, sizes[1] + 1),
            (self.members, sizes[2]),
        )
        for part, size in parts:
            part.frombytes(packed[place : place + size * part.itemsize])
            place += size * part.itemsize
        self._words: list[str] | None = None
        self.bytes = sum(
            map(getsizeof, (self.text, self.ids, self.firsts, self.starts, self.members))
        )

    @property
    def words(self) -> list[str]:
        """The folded words."""
        if self._words is None:
            words = self.text.split(END)
            self._words = words
            self.bytes += getsizeof(words) + sum(map(getsizeof, words))
        return self._words

    def hits(self, word: str) -> Iterator[int]:
        """The places of the words that hold this one."""
        place, counted, at = 0, 0, self.text.find(word)
        while at != -1:
            place += self.text.count(END, counted, at)
            yield place
            counted = self.text.find(END, at)
            if counted == -1:
                return
            at = self.text.find(word, counted + 1)

    def owners(self, place: int) -> "array[int]":
        """The places of the entities that have the word at this place."""
        return self.members[self.starts[place] : self.starts[place + 1]]

    def name(self, owner: int) -> str:
        """The first word of an entity."""
        return self.words[self.firsts[owner]]


class Listed(NamedTuple):
    """A page with what the list of pages says of it."""

    kind: int
    namespace_id: int
    page: WordPage


def fold(text: str) -> str:
    """A text as it is compared: in lower case, whatever stands around a letter.

    >>> fold("ΟΔΟΣ") == fold("οδος"), fold("ΟΔΟ").startswith(fold("ΟΔ"))
    (True, True)
    """
    return text.lower().replace(
        "\u03c2", "\u03c3"
    )  # the sigma at a word's end is no letter of its own


# ---- writing
# ---------------------------------------------------------------------------------------------------------


def insert_entries(connection: Connection, kind: int, entries: Iterable[IndexEntry]) -> set[int]:
    """Write entries as pages of their namespaces; gives these."""
    by_namespace: dict[int, list[IndexEntry]] = {}
    for entry in entries:
        words = [word.replace(END, "\ufffd") for word in entry.words]
        if words:
            by_namespace.setdefault(entry.namespace_id, []).append(entry._replace(words=words))
    rows = [
        _row(kind, namespace, chunk)
        for namespace, own in by_namespace.items()
        for chunk in _chunks(sorted(own, key=_order_of_name if kind in NAMES else _order_of_id))
    ]
    if rows:
        connection.execute(insert(search_pages), rows)
    return set(by_namespace)


def _order_of_name(entry: IndexEntry) -> Order:
    name = fold(entry.words[0])
    return len(name), name, entry.id


def _order_of_id(entry: IndexEntry) -> Order:
    return (entry.id,)


def _chunks(entries: Iterable[IndexEntry]) -> Iterator[list[IndexEntry]]:
    left = iter(entries)
    while chunk := list(islice(left, FULL)):
        yield chunk


def _row(kind: int, namespace: int, entries: Sequence[IndexEntry]) -> dict[str, Any]:
    words, owners = _packed(entries, shared=kind not in NAMES)
    return {"id": randbits(62), "namespace_id": namespace, "kind": kind, "size": len(entries)} | {
        "words": words,
        "owners": owners,
    }


def _packed(entries: Sequence[IndexEntry], *, shared: bool) -> tuple[bytes, bytes]:
    """The words and whose they are.

    Words of names stay in the order of the names; others are there once a page.
    """
    words: list[str] = []
    owners: list[list[int]] = []
    places: dict[str, int] = {}
    firsts = array("i")
    for owner, entry in enumerate(entries):
        firsts.append(len(words))
        for word in entry.words:
            if shared and word in places:
                owners[places[word]].append(owner)
                continue
            places[word] = len(words)
            words.append(word)
            owners.append([owner])
    starts, members = array("i", [0]), array("i")
    for own in owners:
        members.extend(own)
        starts.append(len(members))
    ids = array("q", [entry.id for entry in entries])
    parts = (array("q", [len(ids), len(words), len(members)]), ids, firsts, starts, members)
    pack = zstandard.ZstdCompressor(level=1).compress
    return pack(END.join(words).encode("utf-8", "replace")), pack(
        b"".join(part.tobytes() for part in parts)
    )


# ---- reading
# ---------------------------------------------------------------------------------------------------------

_kept: dict[tuple[str, int], WordPage] = {}


def kept_bytes() -> int:
    """The memory of the unpacked pages that this process keeps."""
    return sum(page.bytes for page in list(_kept.values()))


def pages_of(connection: Connection, kinds: Sequence[int]) -> list[Listed]:
    """The pages of some kinds that the connection may see."""
    epoch = agreed(connection).get("epoch", "")
    query = select(search_pages.c.id, search_pages.c.kind, search_pages.c.namespace_id)
    rows = connection.execute(query.where(search_pages.c.kind.in_(kinds))).all()
    kept = {row.id: page for row in rows if (page := _kept.get((epoch, row.id))) is not None}
    missing = iter([row.id for row in rows if row.id not in kept])
    while ids := list(islice(missing, READ_AT_ONCE)):
        kept |= _read(connection, epoch, ids)
    return [Listed(row.kind, row.namespace_id, kept[row.id]) for row in rows if row.id in kept]


def _read(connection: Connection, epoch: str, ids: Sequence[int]) -> dict[int, WordPage]:
    query = select(search_pages.c.id, search_pages.c.words, search_pages.c.owners).where(
        among(search_pages.c.id, ids)
    )
    found = {
        row.id: WordPage(bytes(row.words), bytes(row.owners)) for row in connection.execute(query)
    }
    if sum(len(page.text) for page in [*_kept.values(), *found.values()]) > KEPT:
        _kept.clear()
    _kept.update({(epoch, id_): page for id_, page in found.items()})
    return found
