"""The search: a part of a name, then runs and snapshots by their ids, then tags, columns and SQL.

A scan of folded texts (store/search) says where to look, and the store what is so: every hit is
read again by the connection of who asks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, exists, or_, select, text

from strandline.errors import OverloadError
from strandline.store.catalog.lists import (
    Answer,
    is_shown,
    named_answer,
    never_made,
    placed_answer,
)
from strandline.store.catalog.writes import newest_writes
from strandline.store.lineage.lookup import labels_of
from strandline.store.lineage.nested_commands import nested_jobs
from strandline.store.lineage.run_state import View, run_states
from strandline.store.schema.annotation_tables import TAG_GIVEN, annotations
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.schema.snapshot_tables import snapshots
from strandline.store.search.finding import (
    APPLICATION,
    COLUMN,
    DATASET_NAME,
    DATASET_TAG,
    JOB_NAME,
    JOB_TAG,
    SQL,
    START,
    NameHit,
    fold,
    found_applications,
    found_by_name,
    found_by_text,
)
from strandline.store.search.texts import TEXTS
from strandline.store.search.upkeep import is_filled
from strandline.store.sql.id_lists import among
from strandline.store.sql.pages import Key, encode_cursor

TEXTS_SHOWN = 10
AT_ONCE = 100
SHORTEST_ID = 6  # characters of an id: with fewer, a word finds runs and snapshots nobody means
# Where a cursor stands: below RUN it is the length of a name.
RUN = 1 << 40
APPLICATION_ID, SNAPSHOT, TAG, IN_COLUMN, IN_SQL = range(RUN + 1, RUN + 6)
STAGES = {TAG: "tag", IN_COLUMN: "column", IN_SQL: "sql"}
KINDS = {
    TAG: {"dataset": DATASET_TAG, "job": JOB_TAG},
    IN_COLUMN: {"dataset": COLUMN},
    IN_SQL: {"job": SQL},
}
LAST = "\U0010ffff"

Found = tuple[Key, Answer]
Hit = TypeVar("Hit")


def search_page(
    connection: Connection, text: str, limit: int, after: Key | None, now: int
) -> Answer:
    """Datasets, jobs and runs with this text, in any case; each says where it was found.

    By name first (any of a dataset's, or catalog.database.table), the shortest first. Then runs
    whose ids begin so or whose Spark application has it in its id, and tables with a snapshot of
    this id. Last datasets and jobs with it in a tag, a column or an SQL text. Each has a label:
    what Spark calls the table, the application's id, or the name. What tells hits of one label
    apart is with them: catalog, database, table and `latestWrite` of datasets, state and times of
    runs. An application has a run an attempt.
    """
    if not is_filled(connection):
        raise OverloadError(
            "the tables of the search are being filled: try again in a minute", retry_after=30
        )
    hits = list(islice(Search(connection, text).results(after), limit + 1))
    ids = [int(key[3]) for key, hit in hits[:limit] if hit["type"] == "dataset"]
    writes = newest_writes(connection, ids, View(now)) if ids else {}
    run_rows = [_run_row(key) for key, hit in hits[:limit] if hit["type"] == "run"]
    states = run_states(connection, run_rows, View(now)) if run_rows else {}
    labels = labels_of(
        connection,
        [(hit["namespace"], hit["name"]) for _, hit in hits[:limit] if hit["type"] == "dataset"],
    )
    items = []
    for key, hit in hits[:limit]:
        item = {"label": hit["name"]} | hit
        if hit["type"] == "dataset":
            write = writes.get(int(key[3]))
            item["latestWrite"] = None if write is None else write.answer()
            item["label"] = labels[hit["namespace"], hit["name"]]
        elif hit["type"] == "run":
            item |= states[_run_row(key)].answer()
        items.append(item)
    next_cursor = encode_cursor(hits[limit - 1][0]) if len(hits) > limit else None
    return {"items": items, "nextCursor": next_cursor}


def _run_row(key: Key) -> int:
    """Return the row of the run of a hit; of those found by their ids the key ends with the id."""
    return int(key[2] or key[3])


@dataclass
class Search:
    """One search, by one connection."""

    connection: Connection
    text: str

    @cached_property
    def word(self) -> str:
        """The text as it is compared."""
        return fold(self.text)

    def results(self, after: Key | None) -> Iterator[Found]:
        """All that is found after a key, each with its own."""
        stage = RUN - 1 if after is None else int(after[0])
        if "\0" in self.text:
            return
        if stage < RUN:
            yield from self._by_name(after)
        if stage <= RUN:
            yield from self._runs(after if stage == RUN else None)
        if stage <= APPLICATION_ID:
            yield from self._applications(after if stage == APPLICATION_ID else None)
        if stage <= SNAPSHOT:
            yield from self._snapshots(after if stage == SNAPSHOT else None)
        for place in STAGES:
            if stage <= place:
                yield from self._by_text(place, after if stage == place else None)

    def _by_name(self, after: Key | None) -> Iterator[Found]:
        hits = merge(*(self._hits_of(kind, after) for kind in ("dataset", "job")))
        for some in _batches(hits):
            rows = {
                kind: self._named(kind, [id_ for *_, of, _, id_ in some if of == kind])
                for kind in ("dataset", "job")
            }
            for size, kind, start, id_ in some:
                row = rows[kind].get(id_)
                if row is not None and (len(fold(row.name)), fold(row.name)[:START]) == (
                    size,
                    start,
                ):
                    answer = _answer(kind, row) | {"matched": "name", "text": None}
                    yield (size, kind, start, str(id_)), answer

    def _hits_of(self, kind: str, after: Key | None) -> Iterator[tuple[int, str, str, int]]:
        """Yield (length of the name, kind, its folded start, id) of what has the word in a name."""
        start = None
        if after is not None:
            size, last_kind, name, id_ = after
            is_before = kind < str(last_kind)
            start = NameHit(int(size) + is_before, str(name), _number(id_))
            if kind != last_kind:
                start = NameHit(int(size) + is_before, "", -1)
        code = DATASET_NAME if kind == "dataset" else JOB_NAME
        for hit in found_by_name(self.connection, code, self.word, start):
            yield hit.size, kind, hit.start, hit.id

    def _named(self, kind: str, ids: Sequence[int]) -> dict[int, Any]:
        """Return the rows of those that still have the word in a name."""
        rows = self._rows(kind, ids)
        names = TEXTS[DATASET_NAME if kind == "dataset" else JOB_NAME](self.connection, list(rows))
        return {id_: row for id_, row in rows.items() if self._matches(names.get(id_, ()))}

    def _matches(self, texts: Iterable[str]) -> bool:
        return any(self.word in fold(text) for text in texts)

    def _rows(self, kind: str, ids: Sequence[int]) -> dict[int, Any]:
        """Return the rows of datasets or jobs that lists show.

        Where a job's whole name is asked for, also the row that lists fold into another.
        """
        table, shown = (
            (datasets, datasets.c.id == datasets.c.canonical_id)
            if kind == "dataset"
            else (jobs, is_shown)
        )
        rows = (
            self.connection.execute(select(table).where(among(table.c.id, ids), shown))
            if ids
            else ()
        )
        rows_by_id = {row.id: row for row in rows}
        for id_ in self._hidden(kind, rows_by_id):
            del rows_by_id[id_]
        return rows_by_id

    def _hidden(self, kind: str, rows: Mapping[int, Any]) -> set[int]:
        if kind == "dataset":
            return never_made(self.connection, list(rows)) if rows else set()
        return nested_jobs(
            self.connection,
            [(id_, row.name) for id_, row in rows.items() if fold(row.name) != self.word],
        )

    def _runs(self, after: Key | None) -> Iterator[Found]:
        """Runs whose ids begin with the text."""
        if len(self.text) < SHORTEST_ID:
            return
        while True:
            rows = self.connection.execute(
                _runs_like(self.connection.dialect.name, self.text, after)
            ).all()
            for row in rows:
                after = (RUN, "run", str(row.id), row.name)
                yield after, named_answer("run", row) | {"matched": "run", "text": row.job}
            if len(rows) < AT_ONCE:
                return

    def _applications(self, after: Key | None) -> Iterator[Found]:
        """The runs of Spark applications that have the text in their ids, not the runs below."""
        if len(self.text) < SHORTEST_ID:
            return
        start = -1 if after is None else _number(after[3])
        hits = found_applications(self.connection, self.word, start)
        for some in _batches(hits):
            ids = [hit.id for hit in some]
            application_ids = TEXTS[APPLICATION](self.connection, ids)
            for row in self.connection.execute(_runs_with(ids)):
                for application_id in application_ids.get(row.id, ()):
                    if self._matches((application_id,)):
                        found = {"matched": "application", "text": row.job, "label": application_id}
                        yield (
                            (APPLICATION_ID, "run", "", str(row.id)),
                            named_answer("run", row) | found,
                        )

    def _snapshots(self, after: Key | None) -> Iterator[Found]:
        """Tables with a snapshot that has the text as its id."""
        if len(self.text) < SHORTEST_ID or not self.text.isdecimal():
            return
        start = -1 if after is None else _number(after[3])
        ids = self.connection.scalars(_tables_with_snapshot(self.text, start)).all()
        for id_, row in sorted(self._rows("dataset", ids).items()):
            yield (
                (SNAPSHOT, "dataset", "", str(id_)),
                _answer("dataset", row) | {"matched": "snapshot", "text": self.text},
            )

    def _by_text(self, stage: int, after: Key | None) -> Iterator[Found]:
        for kind, index in KINDS[stage].items():
            if after is not None and kind < str(after[1]):
                continue
            start = _number(after[3]) if after is not None and kind == after[1] else -1
            hits = (hit.id for hit in found_by_text(self.connection, index, self.word, start))
            if stage == TAG:
                tagged = sorted(id_ for id_ in self._tagged[kind] if id_ > start)
                hits = merge(hits, tagged)
            for some in _batches(hits):
                yield from self._with_text(stage, kind, sorted(set(some)))

    def _with_text(self, stage: int, kind: str, ids: Sequence[int]) -> Iterator[Found]:
        """Yield the datasets or jobs that have the word there.

        Those that have it in a place that is searched before are left out.
        """
        rows = self._rows(kind, ids)
        names = TEXTS[DATASET_NAME if kind == "dataset" else JOB_NAME](self.connection, list(rows))
        tags = TEXTS[KINDS[TAG][kind]](self.connection, list(rows))
        texts = tags if stage == TAG else TEXTS[KINDS[stage][kind]](self.connection, list(rows))
        for id_, row in sorted(rows.items()):
            own = (*tags.get(id_, ()), *self._tagged[kind].get(id_, ()))
            before = (*names.get(id_, ()), *(() if stage == TAG else own))
            texts_found = [
                text
                for text in (own if stage == TAG else texts.get(id_, ()))
                if self.word in fold(text)
            ]
            if texts_found and not self._matches(before):
                where = ", ".join(list(dict.fromkeys(texts_found))[:TEXTS_SHOWN])
                yield (
                    (stage, kind, "", str(id_)),
                    _answer(kind, row) | {"matched": STAGES[stage], "text": where},
                )

    @cached_property
    def _tagged(self) -> dict[str, dict[int, list[str]]]:
        """The tags with the word that people gave, by kind and id of what has them.

        Of datasets the canonical one.
        """
        given = select(annotations.c.entity_id, annotations.c.name).where(
            annotations.c.kind == TAG_GIVEN
        )
        tags = [
            (row.entity_id, row.name)
            for row in self.connection.execute(given)
            if self._matches((row.name,))
        ]
        ids = sorted({id_ for id_, _ in tags})
        named = select(datasets.c.id, datasets.c.canonical_id).where(among(datasets.c.id, ids))
        canonical = (
            {row.id: row.canonical_id for row in self.connection.execute(named)} if ids else {}
        )
        tags_of: dict[str, dict[int, list[str]]] = {"dataset": {}, "job": {}}
        for id_, tag in tags:
            tags_of["dataset" if id_ in canonical else "job"].setdefault(
                canonical.get(id_, id_), []
            ).append(tag)
        return tags_of


def _answer(kind: str, row: Any) -> Answer:
    return placed_answer(row) if kind == "dataset" else named_answer(kind, row)


def _batches(hits: Iterable[Hit]) -> Iterator[list[Hit]]:
    """Yield hits in portions whose rows are read together."""
    left = iter(hits)
    while some := list(islice(left, AT_ONCE)):
        yield some


def _number(text: Any) -> int:
    return int(text) if str(text).isdecimal() else -1


def _runs_with(ids: Sequence[int]) -> Select[Any]:
    """These runs, with their jobs."""
    of = runs.alias("of")
    query = select(of.c.id, of.c.run_id.label("name"), jobs.c.namespace, jobs.c.name.label("job"))
    of_jobs = query.join(jobs, jobs.c.id == of.c.job_id)
    return of_jobs.where(among(of.c.id, ids), is_shown).order_by(of.c.id)


def _tables_with_snapshot(snapshot_id: str, after: int) -> Select[int]:
    """The canonical datasets beyond an id that have this snapshot: a look into each by its key."""
    named = datasets.alias("named")
    has = exists().where(
        snapshots.c.dataset_id == named.c.id, snapshots.c.snapshot_id == snapshot_id
    )
    return select(named.c.canonical_id).where(named.c.canonical_id > after, has).distinct()


def _runs_like(dialect: str, word: str, after: Key | None) -> Select[Any]:
    """The next runs whose ids begin with a text; as bytes sort, in the order of the index."""
    sought = runs.alias("sought")
    as_bytes = dialect == "postgresql"
    query = select(
        sought.c.id, sought.c.run_id.label("name"), jobs.c.namespace, jobs.c.name.label("job")
    )
    least, beyond = ("~>=~", "~<~") if as_bytes else (">=", "<")
    begins = [
        sought.c.run_id.op(least, is_comparison=True)(pattern)
        & sought.c.run_id.op(beyond, is_comparison=True)(pattern + LAST)
        for pattern in {word, word.lower()}
    ]
    query = query.join(jobs, jobs.c.id == sought.c.job_id).where(or_(*begins), is_shown)
    if after is not None:
        name: ColumnElement[bool] = sought.c.run_id.op(
            "~>~" if as_bytes else ">", is_comparison=True
        )(after[3])
        query = query.where(
            or_(name, (sought.c.run_id == after[3]) & (sought.c.id > _number(after[2])))
        )
    order = text("sought.run_id USING ~<~") if as_bytes else sought.c.run_id
    return query.order_by(order, sought.c.id).limit(AT_ONCE)
