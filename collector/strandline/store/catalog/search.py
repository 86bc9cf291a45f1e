"""The search: a part of a name of datasets and jobs first, then of their columns, then of the SQL texts of jobs.

Names are looked for by the database. Columns and SQL are kept as producers send them, compressed, so they are read a chunk
at a time: a search that finds little costs a look at every table and job, and a page reads so many of them and no more.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, Table, func, literal, or_, select

from strandline.core.changes.edges import edges_in
from strandline.core.openlineage.facets import DATASET, JOB, MODELS
from strandline.store.catalog.lists import Answer, is_shown, named_answer, never_made
from strandline.store.catalog.table_labels import labels_of
from strandline.store.schema.tables import datasets, edge_columns, edge_uses, facet_bodies, facets, jobs
from strandline.store.sql.compression import expand
from strandline.store.sql.id_lists import among
from strandline.store.sql.pages import Key, Order, encode_cursor

LONGEST_PATTERN = 10_000  # characters: SQLite takes no pattern of more than 50,000 bytes
COLUMNS_SHOWN = 10
AT_ONCE = 500
MOST_READ = 20_000  # datasets and jobs whose texts one page looks into
BEYOND_NAMES = 1 << 40  # in place of a name's length, in the cursor of what is found by its texts


def search_page(connection: Connection, text: str, limit: int, after: Key | None) -> Answer:
    """Datasets and jobs with this text, in any case; each says where it was found.

    By name (any of a dataset's, or catalog.database.table) the shortest first; the rest in the order of their names.
    Each has a label: what Spark calls the table, or the name.
    """
    page = _found_page(connection, text, limit, after)
    labels = labels_of(
        connection, [(one["namespace"], one["name"]) for one in page["items"] if one["type"] == "dataset"]
    )
    return page | {"items": [one | {"label": _label(one, labels)} for one in page["items"]]}


def _label(one: Answer, labels: Mapping[tuple[str, str], str]) -> str:
    name: str = one["name"]
    return labels.get((one["namespace"], name), name) if one["type"] == "dataset" else name


def _found_page(connection: Connection, text: str, limit: int, after: Key | None) -> Answer:
    items: list[Answer] = []
    if after is None or int(after[0]) < BEYOND_NAMES:
        page = _names_page(connection, text, limit, after)
        if page["nextCursor"] is not None:
            return page
        items, after = page["items"], (BEYOND_NAMES, "", "", "")
    for read, found in enumerate(_with_texts(connection, text.lower(), after), 1):
        if read > MOST_READ or (found.where and len(items) == limit):
            return {"items": items, "nextCursor": encode_cursor(after)}
        after = (BEYOND_NAMES, found.kind, found.row.namespace, found.row.name)
        if found.where:
            items.append(named_answer(found.kind, found.row) | {"matched": found.matched, "text": found.where})
    return {"items": items, "nextCursor": None}


class Found(NamedTuple):
    """A dataset or job that was looked into, and where in its texts the word stands, if it does."""

    kind: str
    row: Any
    matched: str
    where: str | None


def _names_page(connection: Connection, text: str, limit: int, after: Key | None) -> Answer:
    """Datasets (by any of their names, or catalog.database.table) and jobs with this text, the shortest names first."""
    canonical = datasets.alias("canonical")
    place = datasets.c.catalog + "." + datasets.c.database_name + "." + datasets.c.table_name
    named = or_(_has(datasets.c.name, text), _has(place, text))
    found_datasets = (
        select(literal("dataset").label("kind"), canonical.c.namespace, canonical.c.name, canonical.c.id)
        .join_from(datasets, canonical, canonical.c.id == datasets.c.canonical_id)
        .where(named)
    )
    found_jobs = select(literal("job").label("kind"), jobs.c.namespace, jobs.c.name, jobs.c.id).where(
        is_shown, _has(jobs.c.name, text)
    )
    found = found_datasets.union(found_jobs).subquery("found")
    order = Order((func.length(found.c.name), found.c.kind, found.c.namespace, found.c.name))
    page = order.page(connection, select(found), limit, after)
    unmade = never_made(connection, [row.id for row in page.rows if row.kind == "dataset"])
    shown = [row for row in page.rows if row.id not in unmade]
    return page.of([named_answer(row.kind, row) | {"matched": "name", "text": None} for row in shown])


def _has(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
    """Whether the text is in there, in any case; one that is too long for a pattern would leave something out of it."""
    if len(text) <= LONGEST_PATTERN:
        return column.icontains(text, autoescape=True)
    return func.replace(func.lower(column), func.lower(text), "") != func.lower(column)


def _with_texts(connection: Connection, word: str, after: Key) -> Iterator[Found]:
    """Every dataset after the key with the columns that hold the word, then every job with its SQL."""
    kind, namespace, name = map(str, after[1:])
    if kind <= "dataset":
        start = (namespace, name) if kind else None
        own = datasets.c.id == datasets.c.canonical_id
        yield from _looked_into(connection, _Texts("dataset", "column", datasets, own, _columns_of, word), start)
    start = (namespace, name) if kind == "job" else None
    yield from _looked_into(connection, _Texts("job", "sql", jobs, is_shown, _sql_of, word), start)


class _Texts(NamedTuple):
    """Where a word is looked for: rows of one kind, and the function that reads their texts."""

    kind: str
    matched: str
    table: Table
    which: ColumnElement[bool]
    texts: Callable[[Connection, Sequence[int]], dict[int, list[str]]]
    word: str


def _looked_into(connection: Connection, asked: _Texts, after: Key | None) -> Iterator[Found]:
    order = Order((asked.table.c.namespace, asked.table.c.name))
    more = True
    while more:
        page = order.page(connection, select(asked.table).where(asked.which), AT_ONCE, after)
        texts = asked.texts(connection, [row.id for row in page.rows])
        where = {row.id: _where(asked.word, row.name, texts.get(row.id, ())) for row in page.rows}
        hidden = never_made(connection, [id_ for id_, found in where.items() if found])  # ids of jobs are others
        for row in page.rows:
            yield Found(asked.kind, row, asked.matched, None if row.id in hidden else where[row.id])
        more = page.next_cursor is not None
        after = (page.rows[-1].namespace, page.rows[-1].name) if more else None


def _where(word: str, name: str, texts: Iterable[str]) -> str | None:
    """The texts that hold the word; None for what was found by its name already."""
    if word in name.lower():
        return None
    found = list(dict.fromkeys(text for text in texts if word in text.lower()))
    return ", ".join(found[:COLUMNS_SHOWN]) or None


def _columns_of(connection: Connection, canonical_ids: Sequence[int]) -> dict[int, list[str]]:
    """The columns of each dataset, under any of its names: of its schema (those inside a struct with their path), else
    those that edges into it name.
    """
    found: dict[int, list[str]] = defaultdict(list)
    named = select(datasets.c.id, datasets.c.canonical_id).where(among(datasets.c.canonical_id, canonical_ids))
    canonical = {row.id: row.canonical_id for row in connection.execute(named)}
    for id_, schema in _facets(connection, DATASET, "schema", list(canonical)):
        found[canonical[id_]] += _paths(schema.fields or ())
    without = [id_ for id_, of in canonical.items() if of not in found]
    for id_, edges in connection.execute(_edges_into(without)):
        found[canonical[id_]] += [edge.sink_column for edge in edges_in(expand(edges)) if edge.sink_column]
    return found


def _edges_into(names: Sequence[int]) -> Select[Any]:
    """The edges into these datasets, each set once however many runs have stated it."""
    stated = select(edge_uses.c.sink_id, edge_uses.c.set_hash).where(among(edge_uses.c.sink_id, names)).distinct()
    sets = stated.subquery("sets")
    return select(sets.c.sink_id, edge_columns.c.columns).join(edge_columns, edge_columns.c.set_hash == sets.c.set_hash)


def _paths(fields: Iterable[Any], above: str = "") -> Iterator[str]:
    for field in fields:
        yield above + field.name
        if field.fields:
            yield from _paths(field.fields, f"{above}{field.name}.")


def _sql_of(connection: Connection, job_ids: Sequence[int]) -> dict[int, list[str]]:
    """The SQL of each job, a text a line: an answer shows the lines that hold the word."""
    found = _facets(connection, JOB, "sql", job_ids)
    return {job: [line.strip() for line in sql.query.splitlines()] for job, sql in found}


def _facets(connection: Connection, kind: int, key: str, ids: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """(entity, decoded facet) of the entities that have a good one."""
    body = func.coalesce(facets.c.body, facet_bodies.c.body)
    query = (
        select(facets.c.entity_id, body)
        .outerjoin(facet_bodies, facet_bodies.c.hash == facets.c.hash)
        .where(among(facets.c.entity_id, ids), facets.c.key == key, facets.c.kind == kind)
        .where(facets.c.deleted == 0, facets.c.problem == "", body.is_not(None))
    )
    for entity, said in connection.execute(query):
        yield entity, msgspec.json.decode(expand(said), type=MODELS[kind, key])
