"""Bugs, each a line of the program changed, that the harness has to catch.

31 by worlds, 4 by kills.

A bug is planted while its module is loaded, in a process of its own; no file is changed.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any

STORE, TRANSPORTS, CHANGES = (
    "strandline.store.ingest",
    "strandline.transports",
    "strandline.core.changes",
)


@dataclass(frozen=True)
class Bug:
    """A line that somebody might write instead of the right one.

    `about` says what is wrong with it.
    """

    module: str
    right: str
    wrong: str
    about: str

    def planted_in(self, source: str) -> str:
        """Return the source with the bug; the layout of the right code does not count."""
        places = list(_in_any_layout(self.right).finditer(source))
        assert len(places) == 1, f"{len(places)} places in {self.module} are {self.right!r}"
        (place,) = places
        return source[: place.start()] + (self.wrong.strip() or "pass") + source[place.end() :]


def _in_any_layout(code: str) -> re.Pattern[str]:
    """Return a pattern of the code with any line breaks, blanks and trailing commas."""
    pattern = ""
    for token in re.findall(r"\w+|[^\w\s]", code):
        is_word = token[0].isalnum() or token[0] == "_"
        pattern += r"\b" if is_word else ""
        pattern += rf",?\s*{re.escape(token)}\s*" if token in ")]}" else rf"{re.escape(token)}\s*"
    return re.compile(pattern.removesuffix(r"\s*"))


# Few worlds reach these; tests of their own find them (tests/store/test_retention.py).
FOUND_DIRECTLY = ("retention drops what is used",)

BUGS = {
    "cache survives a rollback": Bug(
        f"{STORE}.writer_state",
        "        self._pending.clear()\n        self.bugs.clear()\n",
        "        self.commit()\n        self.bugs.clear()\n",
        "what a rolled back transaction wrote is believed to be stored",
    ),
    "offset moves blindly": Bug(
        f"{STORE}.offsets",
        'update(offsets).where(_OWNED, offsets.c.next_offset == bindparam("old"))',
        "update(offsets).where(_OF_PARTITION)",
        "whoever comes last wins, also backwards",
    ),
    "claim forgets its token": Bug(
        f"{STORE}.offsets",
        '    connection.execute(_OWN, _key(partition) | {"new": token})\n',
        "",
        "a partition that was another's is never ours",
    ),
    "claim starts over": Bug(
        f"{STORE}.offsets",
        "    return Claim(stored.next_offset, abandoned",
        "    return Claim(beginning, abandoned",
        "a new owner reads from the beginning, and its batches fit nowhere",
    ),
    "nobody ever dies": Bug(
        f"{STORE}.offsets",
        'abandoned=stored.token not in ("", token))',
        "abandoned=False)",
        "a record that ends its process does so for ever",
    ),
    "marks are not counted": Bug(
        f"{STORE}.offsets",
        "offsets.c.crashes + 1), else_=1",
        "1), else_=1",
        "a record that ends its process does so for ever",
    ),
    "marks are cleared too early": Bug(
        f"{TRANSPORTS}.partitions",
        "                self._killer = positions.mark_attempt(connection, *mark) >= CRASHES\n",
        "                self._killer = positions.mark_attempt(connection, *mark) >= CRASHES\n"
        "                positions.clear_mark(connection, holding.partition)\n",
        "how often a record ended its process is not remembered",
    ),
    "one crash too few": Bug(
        f"{TRANSPORTS}.partitions",
        "CRASHES = 3\n",
        "CRASHES = 1\n",
        "a record that was in hand when a process was killed is given up",
    ),
    "suspected records are trusted": Bug(
        f"{TRANSPORTS}.partitions",
        "                if _offset(record) < until:\n                    yield",
        "                if _offset(record) < 0:\n                    yield",
        "a record that ends its process is never taken alone, so nobody finds it",
    ),
    "suspicion ends too early": Bug(
        f"{TRANSPORTS}.partitions",
        "holding.suspected_until = holding.next_offset + self._batch_records",
        "holding.suspected_until = holding.next_offset",
        "of the records of a killed process none is suspected",
    ),
    "a lost commit is believed": Bug(
        f"{TRANSPORTS}.partitions",
        "        if all(places[partition] == self._held[partition].next_offset for partition in part):\n            return None\n",
        "        if all(places[partition] == self._held[partition].next_offset for partition in part):\n"
        "            self._moved(part, uncertain)\n            return uncertain\n",
        "a commit that failed is taken for done: its records are skipped",
    ),
    "records are skipped": Bug(
        f"{TRANSPORTS}.partitions",
        "if message.offset >= holding.next_offset]",
        "if message.offset > holding.next_offset]",
        "the first record of each batch is left out",
    ),
    "offset is one short": Bug(
        f"{TRANSPORTS}.partitions",
        "            after = _offset(records[-1]) + 1\n",
        "            after = _offset(records[-1])\n",
        "the last record of each batch is read again",
    ),
    "committed before they are": Bug(
        f"{TRANSPORTS}.partitions",
        "        self._limit = self._next_limit\n        self._silences = 0\n        self.committed += outcomes\n",
        "        self._limit = self._next_limit\n        self._silences = 0\n        self.committed += outcomes + outcomes\n",
        "outcomes are told twice",
    ),
    "clocks are believed": Bug(
        f"{TRANSPORTS}.partitions",
        "datetime.fromtimestamp(min(millis / 1000, now + DAY_SECONDS), UTC)",
        "datetime.fromtimestamp(millis / 1000, UTC)",
        "a producer's clock ten years ahead keeps its runs alive for ten years",
    ),
    "a repeated record ends the batch": Bug(
        f"{STORE}.take",
        "        if hash_ in hashes:\n            continue\n",
        "        if hash_ in hashes:\n"
        "            hashes.update(content_hash(trimmed(one.value)) for one in records)\n            continue\n",
        "what follows a repeated record in a batch is not decoded",
    ),
    "a dead letter ends the batch": Bug(
        f"{STORE}.take",
        "            arrival.outcome = _dead(record, hash_, str(error))\n",
        "            arrival.outcome = _dead(record, hash_, str(error))\n"
        "            hashes.update(content_hash(trimmed(one.value)) for one in records)\n",
        "what follows a dead letter in a batch is taken for a duplicate",
    ),
    "dead letters share one id": Bug(
        f"{STORE}.take",
        'id=content_hash(record.place.encode() + b"\\0" + body)',
        "id=content_hash(body)",
        "of two equal records that are no events one is forgotten",
    ),
    "duplicates are folded again": Bug(
        f"{STORE}.take",
        "    return [event for event in events if event.hash in new]\n",
        "    return events if new else []\n",
        "an event that is known is stored once more",
    ),
    "changes of one event only": Bug(
        f"{STORE}.take",
        "[change for arrival in arrivals for change in arrival.changes]",
        "[change for arrival in arrivals[-1:] for change in arrival.changes]",
        "of a batch the last event alone is folded",
    ),
    "bodies are not stored": Bug(
        f"{STORE}.take",
        "    insert_events(connection, events)\n",
        "    insert_events(connection, events[:1])\n",
        "of a batch the first body alone is kept",
    ),
    "every key is new": Bug(
        f"{STORE}.raw_events",
        "    new = [key for key in keys if key[0] not in stored]\n",
        "    new = list(keys)\n",
        "a repeated event breaks its batch",
    ),
    "relations in the wrong order": Bug(
        "strandline.store.sql.upsert",
        '    return f"({new}) > ({old})"\n',
        '    return f"({new}) <> ({old})"\n',
        "who comes last wins, whatever its time",
    ),
    "compacted by who came last": Bug(
        f"{CHANGES}.compact",
        "_any(key, sorted(rows, key=rank, reverse=True)[::-1])",
        "_any(key, rows)",
        "of two changes in a batch the last wins, whatever its time",
    ),
    "least is most": Bug(
        f"{CHANGES}.compact",
        "            row[index] = _extreme(min, columns[index])\n",
        "            row[index] = _extreme(max, columns[index])\n",
        "a run begins when it was last heard of",
    ),
    "retention drops what is used": Bug(
        f"{STORE}.retention",
        "WHERE NOT EXISTS (SELECT 1 FROM template_edges WHERE template_edges.set_hash = edge_columns.set_hash)",
        "WHERE EXISTS (SELECT 1 FROM template_edges WHERE template_edges.set_hash = edge_columns.set_hash)",
        "column lineage that is in use goes",
    ),
    "the first row stays": Bug(
        "strandline.store.sql.upsert",
        '_update(fold, columns, dialect) if has_winner else "DO NOTHING"',
        '"DO NOTHING"',
        "what is stored is never changed",
    ),
    "what one event leaves out is forgotten": Bug(
        f"{CHANGES}.compact",
        "return which((value for value in values if value is not None), default=None)",
        "return None",
        "a value that one of two events does not say is lost",
    ),
    "what is new is left out": Bug(
        f"{STORE}.writer_state",
        "        return not is_stored\n",
        "        return bool(is_stored)\n",
        "rows that nobody has stored yet are taken for stored",
    ),
    "dead letters vanish": Bug(
        f"{STORE}.take",
        "        insert_set_aside(connection, letters)\n",
        "",
        "records that are no events leave no trace",
    ),
    "an ABORT ends nothing": Bug(
        "strandline.core.openlineage.run_states",
        "    return rank >= ABORT\n",
        "    return rank > ABORT\n",
        "a run that was aborted goes on for ever",
    ),
}

KILLS_BUGS = {
    "commits are not synced": Bug(
        "strandline.store.sql.engine",
        '        "synchronous = FULL",\n',
        '        "synchronous = NORMAL",\n',
        "a power cut takes events that were answered",
    ),
    "what a killed process left is not synced": Bug(
        "strandline.store.sql.engine",
        '    event.listen(engine, "connect", LogSync())\n',
        "",
        "an event that was written and not synced is answered when it comes again, and goes with a power cut",
    ),
    "the offset is committed first": Bug(
        f"{STORE}.transactions",
        "                also(connection)\n",
        "                also(connection)\n                connection.exec_driver_sql('COMMIT')\n"
        "                connection.exec_driver_sql('BEGIN IMMEDIATE')\n",
        "events of a batch are lost where its process is killed after its offset moved",
    ),
    "keys are committed first": Bug(
        f"{STORE}.take",
        "    new = claim(connection, [(event.hash, event.received_at) for event in events])\n",
        "    new = claim(connection, [(event.hash, event.received_at) for event in events])\n    if connection.dialect.name == 'sqlite':\n"
        "        connection.exec_driver_sql('COMMIT')\n        connection.exec_driver_sql('BEGIN IMMEDIATE')\n",
        "events that are believed to be stored when they come again, and are not",
    ),
}


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles a module's source with one place changed."""

    def __init__(self, fullname: str, path: str, bug: Bug) -> None:
        super().__init__(fullname, path)
        self._bug = bug

    def get_code(self, fullname: str) -> CodeType:
        """The code of the changed source; never that of a cache."""
        source = self.get_source(fullname) or ""
        return compile(self._bug.planted_in(source), self.path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the one module with the bug."""

    def __init__(self, bug: Bug) -> None:
        self._bug = bug

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module's specification, with the loader that changes it."""
        if fullname != self._bug.module:
            return None
        spec: Any = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        spec.loader = _Loader(fullname, spec.origin, self._bug)
        found: importlib.machinery.ModuleSpec = spec
        return found


def plant(name: str) -> None:
    """Plant a bug into this process, before its module is loaded."""
    bug = {**BUGS, **KILLS_BUGS}[name]
    assert bug.module not in sys.modules, f"{bug.module} is loaded already"
    sys.meta_path.insert(0, _Finder(bug))


def catch(chosen: str, bugs: Mapping[str, Bug], play: Callable[[], int]) -> int:
    """Plant each chosen bug (names with commas, or all) in a child, and say which are caught.

    A bug is caught if `play` returns 1. Return 1 if one survives.
    """
    names = list(bugs) if chosen == "all" else chosen.split(",")
    survived = [name for name in names if not _is_caught(name, bugs[name], play)]
    caught = len(names) - len(survived)
    print(f"{caught} of {len(names)} bugs caught; survived: {', '.join(survived) or 'none'}")
    return 1 if survived else 0


def _is_caught(name: str, bug: Bug, play: Callable[[], int]) -> bool:
    print(f"{name} ({bug.about}):", end=" ", flush=True)
    child = os.fork()
    if child == 0:
        code = 3  # of a child that cannot play at all
        try:
            plant(name)
            code = play()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
