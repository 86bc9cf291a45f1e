"""POST /api/v2/compare: why tables disagree, in one answer.

Their newest snapshots, and those that agree in each way.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection

from strandline.api.endpoints.version_requests import (
    TABLES,
    Named,
    body_as,
    follower_of,
    named,
    tables_of,
)
from strandline.api.http.operations import Ask, Operation
from strandline.core.versions.facts import Table
from strandline.core.versions.strong_weak import Reading, held_by, strong, weak
from strandline.errors import RefusedError
from strandline.store.lineage.lookup import dataset_of
from strandline.store.lineage.snapshot_lineage import snapshot_answer, snapshots_of
from strandline.store.lineage.table_labels import labels_of
from strandline.store.sql.engine import read_from
from strandline.store.versions.answers import (
    cut_answer,
    holders_answer,
    reading_answer,
    with_latest,
)

Answer = dict[str, Any]


class Compared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tables to compare."""

    tables: tuple[Named, ...]


def compare(ask: Ask) -> Answer:
    """Each table with its newest snapshot.

    The strong, the weak and the cut version, or why there is none.
    """
    asked, now = body_as(ask, Compared), time.time()
    with follower_of(ask).question(ask.access) as (connection, model):
        tables = tables_of(connection, model, asked.tables)
        strongly, weakly = (
            _tried(lambda: strong(model, tables)),
            _tried(lambda: weak(model, tables)),
        )
        answered = () if isinstance(strongly, RefusedError) else strongly
        held = holders_answer(held_by(model, tables, answered), now)
    with read_from(ask.engine) as connection, read_from(ask.whole_engine) as whole:
        versions = {
            "strong": _answer(strongly, lambda found: [reading_answer(one, now) for one in found]),
            "weak": _answer(
                weakly,
                lambda found: [
                    reading_answer(one, now) for one in with_latest(connection, found, tables)
                ],
            ),
            "cut": _answer([], lambda _: cut_answer(whole, tables)),
        }
        newest = _newest(connection, tables)
    return {"tables": newest, "versions": versions, "blockedBy": held}


def _tried(ask: Callable[[], list[Reading]]) -> list[Reading] | RefusedError:
    try:
        return ask()
    except RefusedError as error:
        return error


def _answer(
    found: list[Reading] | RefusedError, show: Callable[[list[Reading]], list[Answer]]
) -> Answer:
    try:
        if isinstance(found, RefusedError):
            raise found
        return {"tables": show(found), "refused": None}
    except RefusedError as error:
        return {"tables": None, "refused": {"code": error.code, "detail": str(error)}}


def _newest(connection: Connection, tables: Sequence[Table]) -> list[Answer]:
    labels = labels_of(connection, tables)
    answers = []
    for table in tables:
        page = snapshots_of(connection, dataset_of(connection, *table), 1, None)
        shown = snapshot_answer(page.rows[0]) if page.rows else None
        answers.append(dict(named(table)) | {"label": labels[table], "newest": shown})
    return answers


OPERATIONS = (
    Operation(
        "POST", "/api/v2/compare", "Why tables disagree: their newest snapshots beside those that agree", compare,
        body={"type": "object", "properties": {"tables": TABLES}, "required": ["tables"]},
        answer={"type": "object"}, refusals=(404,), scope="read",
    ),
)  # fmt: skip
