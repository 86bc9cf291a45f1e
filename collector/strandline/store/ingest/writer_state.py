"""Memory of one writer of what is stored, so that it need not be written again.

Filled only after the commit.

A rollback must not leave anything behind here, or rows would be missing for good: `discard` forgets
what the failed transaction wrote. Expiring deletes what other writers may know of; it raises the
store's epoch, which empties these.
"""

from collections.abc import Collection, Mapping

from strandline.core.changes.facet_sets import SharedFacets
from strandline.core.changes.memory import BoundedCache, Memory
from strandline.core.openlineage.names import Naming
from strandline.store.ingest.run_templates import RunTemplates
from strandline.store.sql.compression import Compression
from strandline.store.sql.shared_settings import naming_in

KNOWN = 400_000
SETS = 50_000


class Caches:
    """The memory of one writer; not for several threads at once."""

    def __init__(self, naming: Naming | None = None) -> None:
        self._own_naming = naming  # None: what is agreed on in the store
        self.memory = Memory(naming)
        self.compression = Compression()
        self.epoch = ""
        self.shared_facets = SharedFacets(self.is_new)
        self.run_templates = RunTemplates(self.is_new)
        self.watched_facets = BoundedCache(
            SETS
        )  # those of sets that names or the search depend on, by the ids of the sets
        self.exports = ""  # what targets want to hear of; "": there are none
        self.has_renames = False  # whether the store has datasets that were renamed
        self.notes_graph = False  # whether somebody follows what changes of the graph
        self.bugs: list[Exception] = []  # that kept events of this transaction from being read
        self._stored = BoundedCache(KNOWN)
        self._pending: list[tuple[str, object]] = []
        self._pending_shared: set[int] = set()  # runs that this transaction found to be shared

    def knows(self, kind: str, key: object) -> bool:
        """Return whether a committed transaction of this writer stored it."""
        return self._stored.get((kind, key)) is not None

    def add(self, kind: str, key: object) -> None:
        """Note what this transaction stores."""
        self._pending.append((kind, key))

    def is_new(self, kind: str, key: object) -> bool:
        """Return whether no committed transaction of this writer stored it; this one does now."""
        is_stored = self.knows(kind, key)
        if not is_stored:
            self.add(kind, key)
        return not is_stored

    def share_runs(self, ids: Collection[int]) -> None:
        """Name these runs, which this transaction found to be shared, by their job as well."""
        self._pending_shared.update(ids)
        self.memory.share_runs(ids)

    def commit(self) -> None:
        """Note that the transaction is committed: its rows are known now."""
        for key in self._pending:
            self._stored.put(key, value=True)
        self._pending.clear()
        self._pending_shared.clear()
        self.compression.references.commit()

    def store_nothing(self) -> None:
        """Forget which rows the transaction was to store: they were only looked at."""
        self._pending.clear()

    def discard(self) -> None:
        """Forget what the transaction wrote: it was rolled back, or its end is unknown."""
        self._pending.clear()
        self.bugs.clear()
        self.memory.unshare_runs(self._pending_shared)
        self.memory.learn_names_before(None)
        self._pending_shared.clear()
        self.compression.references.discard()

    def renew(self, settings: Mapping[str, str]) -> None:
        """Forget everything if rows were expired since, or names are made in another way."""
        epoch = settings.get("epoch", "")
        if epoch != self.epoch:
            self._stored = BoundedCache(KNOWN)
            self.compression.references.forget()
            self.memory = Memory(self._own_naming or naming_in(settings))
            self.epoch = epoch
