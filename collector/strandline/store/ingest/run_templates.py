"""The templates of runs in the store (core/changes/run_templates).

A run's rows come with the row of the run itself, which is written first. So on PostgreSQL a writer
that reads a run's templates, to fold new rows into them, has the run for itself until the end of
the transaction. SQLite has one writer at a time.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, select

from strandline.core.changes.compact import fold_rows
from strandline.core.changes.memory import BoundedCache
from strandline.core.changes.rows import EdgesUsed, RelationSeen
from strandline.core.changes.run_templates import RunTemplate, Template, TimeSpan, rows_in, split
from strandline.store.schema.relation_tables import (
    run_templates,
    template_edges,
    template_relations,
)
from strandline.store.sql.id_lists import among_given
from strandline.store.sql.upsert import apply, insert_values, values_of

IN_TEMPLATES = (RelationSeen, EdgesUsed)
HELD_BYTES = 8 << 20
Rows = tuple[list[RelationSeen], list[EdgesUsed]]
Spans = dict[int, TimeSpan]  # by the id of a template
Split = dict[Template, TimeSpan]


class RunTemplates:
    """Writes templates, and remembers some; not for several threads at once.

    is_new: whether this writer has not stored what a key stands for; it does now.
    """

    def __init__(self, is_new: Callable[[str, object], bool]) -> None:
        self._is_new = is_new
        self._ids = BoundedCache(HELD_BYTES)
        self._templates = BoundedCache(HELD_BYTES)

    def store(self, connection: Connection, rows: Mapping[type[Any], Sequence[Any]]) -> None:
        """Write the rows of every kind, those of relations and edges in templates."""
        apply(connection, {kind: some for kind, some in rows.items() if kind not in IN_TEMPLATES})
        self.write(connection, rows.get(RelationSeen, ()), rows.get(EdgesUsed, ()))

    def write(
        self, connection: Connection, relations: Iterable[RelationSeen], edges: Iterable[EdgesUsed]
    ) -> int:
        """Fold rows, one a key, into what is stored of their runs.

        Gives how many runs these are.
        """
        new: dict[int, Rows] = defaultdict(lambda: ([], []))
        for relation in relations:
            new[relation[0]][0].append(relation)
        for edge in edges:
            new[edge[0]][1].append(edge)
        if not new:
            return 0
        stored, parts = _spans_of(connection, new), dict[int, Split]()
        others: list[int] = []
        for run, rows in new.items():
            alike = self._alike(split(*rows), stored.get(run, {}))
            if alike is None:
                others.append(run)
            else:
                parts[run] = alike
        for run, (before_relations, before_edges) in self._rows_of(
            connection, stored, others
        ).items():
            relations, edges = new[run]
            parts[run] = split(
                fold_rows(RelationSeen, [*before_relations, *relations]),
                fold_rows(EdgesUsed, [*before_edges, *edges]),
            )
        self._replace(connection, stored, parts)
        return len(new)

    def take_out(
        self,
        connection: Connection,
        relations: Collection[tuple[Any, ...]],
        edges: Collection[tuple[Any, ...]],
    ) -> None:
        """Delete the rows with these keys."""
        of_relations, of_edges = {*relations}, {*edges}
        stored, parts = (
            _spans_of(connection, {key[0] for key in (*relations, *edges)}),
            dict[int, Split](),
        )
        for run, rows in self._rows_of(connection, stored, [*stored]).items():
            left = [row for row in rows[0] if row[:3] not in of_relations]
            parts[run] = split(left, [row for row in rows[1] if row[:3] not in of_edges])
        self._replace(connection, stored, parts)

    def _alike(self, new: Split, stored: Spans) -> Split | None:
        """Return the templates of a run that has none yet, or that does the same again.

        None of any other.
        """
        if not stored:
            return new
        if len(new) != 1 or len(stored) != 1:
            return None
        ((template, span),), ((id_, before),) = new.items(), stored.items()
        if self._id_of(template) != id_:
            return None
        newest_at = max(span.newest_at, before.newest_at)
        return {
            template: TimeSpan(
                min(span.first_at, before.first_at) if template.relations else newest_at, newest_at
            )
        }

    def _rows_of(
        self, connection: Connection, stored: Mapping[int, Spans], runs: Sequence[int]
    ) -> dict[int, Rows]:
        """Return the rows that are stored of some of these runs."""
        templates = self._look_up(connection, {id_ for run in runs for id_ in stored[run]})
        rows_of: dict[int, Rows] = {}
        for run in runs:
            own = [rows_in(run, templates[id_], span) for id_, span in stored[run].items()]
            rows_of[run] = (
                [row for rows, _ in own for row in rows],
                [row for _, rows in own for row in rows],
            )
        return rows_of

    def _look_up(self, connection: Connection, ids: Collection[int]) -> dict[int, Template]:
        """Return the templates with these ids, from memory or the store."""
        held = ((id_, self._templates.get(id_)) for id_ in ids)
        templates: dict[int, Template] = {
            id_: template for id_, template in held if template is not None
        }
        if missing := [id_ for id_ in ids if id_ not in templates]:
            parts: dict[int, Template] = {id_: Template() for id_ in missing}
            for id_, *relation in connection.execute(_relations_in(), {"ids": missing}):
                parts[id_] = parts[id_]._replace(relations=(*parts[id_].relations, tuple(relation)))
            for id_, sink_id, rule, set_hash in connection.execute(_edges_in(), {"ids": missing}):
                edge = sink_id, rule, bytes(set_hash)
                parts[id_] = parts[id_]._replace(edges=(*parts[id_].edges, edge))
            for id_, template in parts.items():
                templates[id_] = self._hold(id_, template)
        return templates

    def _id_of(self, template: Template) -> int:
        id_: int | None = self._ids.get(template)
        if id_ is None:
            id_ = template.id
            self._hold(id_, template)
        return id_

    def _hold(self, id_: int, template: Template) -> Template:
        size = 200 + 150 * (len(template.relations) + len(template.edges))
        self._ids.put(template, id_, size)
        self._templates.put(id_, template, size)
        return template

    def _replace(
        self, connection: Connection, stored: Mapping[int, Spans], parts: Mapping[int, Split]
    ) -> None:
        """Let these runs have these templates, and no others."""
        new: dict[int, Template] = {}
        written: list[RunTemplate] = []
        gone: list[tuple[int, int]] = []
        for run, templates in parts.items():
            before, now = stored.get(run, {}), dict[int, TimeSpan]()
            for template, span in templates.items():
                id_ = self._id_of(template)
                now[id_] = span
                if id_ not in before and self._is_new("template", id_):
                    new[id_] = template
            written += [
                RunTemplate(run, id_, *span) for id_, span in now.items() if before.get(id_) != span
            ]
            gone += [(run, id_) for id_ in before if id_ not in now]
        _insert_templates(connection, new)
        _delete_templates(connection, gone)
        _write_templates(connection, sorted(written))


def _insert_templates(connection: Connection, templates: Mapping[int, Template]) -> None:
    of_relations = [
        (id_, *relation) for id_, template in templates.items() for relation in template.relations
    ]
    of_edges = [(id_, *edge) for id_, template in templates.items() for edge in template.edges]
    for table, rows in ((template_relations, of_relations), (template_edges, of_edges)):
        if rows:
            columns = table.columns.keys()
            values = insert_values(table, columns, connection.dialect.name)
            statement = (
                f"INSERT INTO {table.name} ({', '.join(columns)}) {values} ON CONFLICT DO NOTHING"
            )
            connection.exec_driver_sql(
                statement, values_of(connection, table, columns, sorted(rows))
            )


def _write_templates(connection: Connection, rows: Sequence[RunTemplate]) -> None:
    if not rows:
        return
    columns = run_templates.columns.keys()
    values = insert_values(run_templates, columns, connection.dialect.name)
    statement = f"""INSERT INTO run_templates ({", ".join(columns)}) {values}
        ON CONFLICT (run_id, template_id)
        DO UPDATE SET first_at = excluded.first_at, newest_at = excluded.newest_at"""
    connection.exec_driver_sql(statement, values_of(connection, run_templates, columns, rows))


def _delete_templates(connection: Connection, keys: Sequence[tuple[int, int]]) -> None:
    if not keys:
        return
    columns = ("run_id", "template_id")
    if connection.dialect.name == "postgresql":
        gone = insert_values(run_templates, columns, "postgresql")
        where = f"(run_id, template_id) IN ({gone})"
    else:
        where = "run_id = ? AND template_id = ?"
    values = values_of(connection, run_templates, columns, keys)
    connection.exec_driver_sql(f"DELETE FROM run_templates WHERE {where}", values)


def _spans_of(connection: Connection, runs: Iterable[int]) -> dict[int, Spans]:
    """Return the stored rows of these runs."""
    spans: dict[int, Spans] = {}
    for run, id_, first_at, newest_at in connection.execute(_of_runs(), {"runs": list(runs)}):
        spans.setdefault(run, {})[id_] = TimeSpan(first_at, newest_at)
    return spans


@cache
def _of_runs() -> Select[Any]:
    return select(run_templates).where(among_given(run_templates.c.run_id, "runs"))


@cache
def _relations_in() -> Select[Any]:
    query = select(template_relations).where(among_given(template_relations.c.template_id, "ids"))
    return query.order_by(template_relations.c.direction, template_relations.c.dataset_id)


@cache
def _edges_in() -> Select[Any]:
    query = select(template_edges).where(among_given(template_edges.c.template_id, "ids"))
    return query.order_by(template_edges.c.sink_id, template_edges.c.rule)
