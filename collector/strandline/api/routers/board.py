"""The consistency board of a group.

Which table completed, skipped or lacks which barrier, and what blocks the strong version.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired

from fastapi import APIRouter
from fastapi import Query as InQuery
from sqlalchemy import Connection
from typing_extensions import TypedDict

from strandline.api.http.answers import JSON, Hidden
from strandline.api.http.route import Route, refused
from strandline.api.http.session import ReadSession
from strandline.core.access.granted import Access
from strandline.core.openlineage.names import named
from strandline.core.versions.delays import staleness
from strandline.core.versions.facts import Table
from strandline.core.versions.members import version, versions
from strandline.core.versions.model import Group, Model, upstream_first
from strandline.core.versions.strong_weak import held_by
from strandline.errors import NotFoundError
from strandline.questions.versions import BoardQuery
from strandline.store.lineage.lookup import labels_of
from strandline.store.sql.engine import read_from
from strandline.store.versions.answers import holders_answer
from strandline.store.versions.hidden_names import sees_group
from strandline.store.versions.snapshot_history import heads_of

router = APIRouter(prefix="/api/v2", tags=["versions"], route_class=Route)


class Board(TypedDict):
    """Tables by barriers, and what blocks the strong version."""

    group: str
    generation: int
    newest: int | None
    barriers: list[int]
    gapAfter: int | None
    births: dict[str, float]
    hiddenBarriers: int
    hiddenParts: dict[str, int]
    tables: list[JSON]
    blockedBy: list[JSON]
    hidden: NotRequired[Hidden]


@router.get("/groups/board", response_model=Board, responses=refused(404))
def get_board(query: Annotated[BoardQuery, InQuery()], session: ReadSession) -> dict[str, Any]:
    """Show the completed barriers of a group's tables.

    Tables upstream come first; the newest barriers ascend.
    """
    name, now = query.group, time.time()
    with session.follower.model() as model:
        group = _group_called(model, name, session.access)
        up_to = query.up_to
        whole = _tables(model, name)
        tables = [table for table in whole if session.access.allows(table[0])]
        order = [barrier for barrier in group.order if up_to is None or barrier <= up_to]
        shown, gap_after = _window(order, _strong(model, whole), query.columns)
        rows = [_row(model, table, shown, now) for table in tables]
        held = holders_answer(held_by(model, tables), now)
        births = {str(barrier): group.births[barrier] for barrier in shown}
        hidden = _hidden(group.order, shown)
    with read_from(session.engine) as connection:
        _label(connection, dict(zip(tables, rows, strict=True)))
    return {
        "group": name,
        "generation": group.generation,
        "newest": group.newest,
        "barriers": shown,
        "gapAfter": gap_after,
        "births": births,
        "hiddenBarriers": sum(hidden.values()),
        "hiddenParts": hidden,
        "tables": rows,
        "blockedBy": held,
    } | ({"hidden": {"access": len(whole) - len(tables)}} if len(whole) > len(tables) else {})


def _strong(model: Model, tables: Sequence[Table]) -> int | None:
    """Return the barrier at which all tables agree, as far as they have one."""
    barriers = versions(model, filter(model.is_tracked, tables)).values()
    return min((barrier for barrier in barriers if barrier is not None), default=None)


def _window(order: Sequence[int], strong: int | None, most: int) -> tuple[list[int], int | None]:
    """Return the newest barriers, and where the strong one is older than those, the ones around it.

    After which some are left out.

    Where there is room for one only it is the newest.
    """
    newest = list(order[-most:])
    if most < 2 or strong is None or strong in newest or strong not in order:
        return newest, None
    half = most // 2
    place = order.index(strong)
    around = list(order[max(0, place - half // 2) : place + (half + 1) // 2])
    rest = list(order[max(place + (half + 1) // 2, len(order) - (most - len(around))) :])
    return around + rest, around[-1]


def _hidden(order: Sequence[int], shown: Sequence[int]) -> dict[str, int]:
    """Count the barriers that are not shown: before, between and after those that are."""
    older = sum(barrier < shown[0] for barrier in order) if shown else 0
    newer = sum(barrier > shown[-1] for barrier in order) if shown else len(order)
    return {"older": older, "between": len(order) - len(shown) - older - newer, "newer": newer}


def _tables(model: Model, name: str) -> list[Table]:
    return upstream_first(model, [table for table, of in model.group_of.items() if of == name])


def _group_called(model: Model, name: str, access: Access) -> Group:
    """Return the group, or a NotFoundError with those that the key sees."""
    group = model.groups.get(name)
    if group is None or not sees_group(model, access, name):
        others = (
            group for group in sorted(model.groups) if group and sees_group(model, access, group)
        )
        raise NotFoundError(f"unknown group: {name!r}", [f"group:{other}" for other in others])
    return group


def _label(connection: Connection, rows: Mapping[Table, dict[str, Any]]) -> None:
    """Give each row its table's label, newest snapshot and sources, as far as these are shown."""
    labels, heads = labels_of(connection, list(rows)), heads_of(connection, list(rows))
    for table, row in rows.items():
        row["label"], row["latestSnapshotId"] = labels[table], heads.get(table)
        row["sources"] = sorted(labels[source] for source in row["sources"] if source in rows)


def _row(model: Model, table: Table, shown: Sequence[int], now: float) -> dict[str, Any]:
    done, writer = model.done[table], model.writer(table)
    tracked = model.is_tracked(table)
    age = staleness(model, table, now) if tracked else None
    return {
        **named(table),
        "baseTable": table in model.roots or not model.sources(table),
        "sources": sorted(model.sources(table)),
        "writer": _writer(model, writer) if writer is not None else None,
        "state": "untracked" if not tracked else "joining" if model.is_joining(table) else "counts",
        "why": None if tracked else model.why_untracked(table),
        "strong": version(model, [table]) if tracked else None,
        "weak": done.last,
        "stalenessSeconds": round(age.seconds, 3) if age is not None else None,
        "cells": [_cell(model, table, barrier) for barrier in shown],
    }


def _cell(model: Model, table: Table, barrier: int) -> dict[str, Any]:
    done = model.done[table]
    if barrier in done:
        completion = done.of[barrier]
        return {
            "state": "done",
            "snapshotId": completion.snapshot,
            "committedAt": completion.committed,
        }
    passed = done.last is not None and done.last > barrier
    return {"state": "skipped" if passed else "missing", "snapshotId": None, "committedAt": None}


def _writer(model: Model, job: tuple[str, str]) -> dict[str, Any]:
    place = model.places[job]
    ended = place.ended
    return {
        **named(job),
        "state": "RUNNING" if ended is None else ended.how,
        "endedAt": None if ended is None else ended.at,
    }
