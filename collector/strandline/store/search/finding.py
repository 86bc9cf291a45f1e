"""The datasets, jobs and runs that have a text, as the database finds it by a scan.

A scan finds any part of a name, one letter too, and needs no index that the texts would have to be
kept in. A text that few have is looked for once; what many have is read in its order, page by page.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    Table,
    Text,
    bindparam,
    exists,
    func,
    select,
    tuple_,
)

from strandline.store.schema.run_tables import run_parents
from strandline.store.schema.search_tables import search_names, search_texts

DATASET_NAME, JOB_NAME, DATASET_TAG, JOB_TAG, COLUMN, SQL, APPLICATION = range(1, 8)
NAMES = (DATASET_NAME, JOB_NAME)
START = 100  # characters of a name by which names of one length are sorted
FEW = 1_000
AT_ONCE = 200


class NameHit(NamedTuple):
    """A dataset or job that has a text in a name; hits come in this order."""

    size: int
    start: str
    id: int


class TextHit(NamedTuple):
    """A dataset, job or run that has a text in its tags, columns, SQL or application id."""

    id: int


def fold(text: str) -> str:
    """Return a text as it is compared: in lower case, whatever stands around a letter.

    >>> fold("ΟΔΟΣ") == fold("οδος"), fold("ΟΔΟ").startswith(fold("ΟΔ"))
    (True, True)
    """
    return text.lower().replace("\u03c2", "\u03c3")  # the sigma at a word's end is no letter apart


def found_by_name(
    connection: Connection, kind: int, word: str, after: NameHit | None
) -> Iterator[NameHit]:
    """Yield what has a folded word in a name, the shortest first."""
    for row in _rows(connection, search_names, {"kind": kind, "word": word}, after):
        yield NameHit(*row)


def found_by_text(connection: Connection, kind: int, word: str, after: int) -> Iterator[TextHit]:
    """Yield what has a folded word in its texts of a kind, the least id first."""
    for row in _rows(connection, search_texts, {"kind": kind, "word": word}, (after,)):
        yield TextHit(*row)


def found_applications(connection: Connection, word: str, after: int) -> Iterator[TextHit]:
    """Yield the runs that have a folded word in their application id, the least id first.

    The stock listener gives the id to each run of an application: those below another run with the
    same id are left out.
    """
    bound = {"kind": APPLICATION, "word": word}
    for row in _rows(connection, search_texts, bound, (after,), _has_same_text_above()):
        yield TextHit(*row)


@cache
def _has_same_text_above() -> ColumnElement[bool]:
    above = search_texts.alias("above")
    return exists().where(
        run_parents.c.run_id == search_texts.c.id,
        above.c.kind == search_texts.c.kind,
        above.c.id.in_((run_parents.c.parent_run_id, run_parents.c.root_run_id)),
        above.c.id != search_texts.c.id,
        above.c.texts == search_texts.c.texts,
    )


def _rows(
    connection: Connection,
    table: Table,
    bound: dict[str, Any],
    after: tuple[Any, ...] | None,
    hidden: ColumnElement[bool] | None = None,
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table that have a word and are not hidden, in order, after a key."""
    dialect = connection.dialect.name
    with_word = _with_word(table, dialect)
    if hidden is not None:
        with_word = with_word.where(~hidden)
    few = connection.execute(with_word.limit(FEW + 1), bound).all()
    if len(few) <= FEW:
        yield from sorted(row for row in map(tuple, few) if after is None or row > after)
        return
    while rows := connection.execute(*_following(with_word, table, bound, after)).all():
        yield from map(tuple, rows)
        after = tuple(rows[-1])


def _following(
    with_word: Select[Any], table: Table, bound: dict[str, Any], after: tuple[Any, ...] | None
) -> tuple[Select[Any], dict[str, Any]]:
    """Return the query for the next rows in order, and its parameters."""
    query = with_word.order_by(*_order(table)).limit(AT_ONCE)
    if after is None:
        return query, bound
    key = [bindparam(f"after_{column.key}", type_=column.type) for column in _order(table)]
    values = {param.key: value for param, value in zip(key, after, strict=True)}
    return query.where(tuple_(*_order(table)) > tuple_(*key)), bound | values


def _order(table: Table) -> tuple[ColumnElement[Any], ...]:
    if table is search_names:
        return table.c.size, table.c.start, table.c.id
    return (table.c.id,)


@cache
def _with_word(table: Table, dialect: str) -> Select[Any]:
    """Select the rows of a kind that have a word."""
    position = func.strpos if dialect == "postgresql" else func.instr
    return select(*_order(table)).where(
        table.c.kind == bindparam("kind", type_=Integer),
        position(table.c.texts, bindparam("word", type_=Text)) > 0,
    )
