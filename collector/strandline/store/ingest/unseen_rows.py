"""Leaving out rows that are known to be stored already and can never change."""

from typing import Any

from strandline.core.changes.bundles import AliasSet, EdgeSet
from strandline.core.changes.compact import Rows
from strandline.core.changes.rows import Change, DatasetAlias, DatasetSeen, EdgeSeen, FacetBody, JobSeen, NamespaceSeen
from strandline.store.ingest.writer_state import Caches

Row = tuple[Any, ...]


def only_news(rows: Rows, caches: Caches) -> Rows:
    """The rows without what this writer stored before; sets of edges and aliases become rows of their own."""
    edge_sets = _unknown(rows.pop(EdgeSet, []), "edges", caches)
    alias_sets = [row for row in rows.pop(AliasSet, []) if caches.is_new("aliases", row[:2])]
    shrink = caches.compression.shrink
    _keep(rows, EdgeSeen, sorted([(*edge[:2], shrink(edge[2])) for edge_set in edge_sets for edge in edge_set[1]]))
    _keep(rows, DatasetAlias, sorted({alias for alias_set in alias_sets for alias in alias_set[2]}))
    mentions = [mention for bundle in (*edge_sets, *alias_sets) for mention in bundle[-1]]
    _keep(rows, DatasetSeen, _datasets([*rows.get(DatasetSeen, []), *mentions], caches))
    _keep(rows, JobSeen, [row for row in rows.get(JobSeen, []) if row[4] is not None or caches.is_new("job", row[0])])
    namespaces = {row[1]: NamespaceSeen(row[1], row[2]) for row in (*rows.get(JobSeen, []), *rows.get(DatasetSeen, []))}
    _keep(rows, NamespaceSeen, _unknown([namespaces[key] for key in sorted(namespaces)], "namespace", caches))
    bodies = _unknown(rows.get(FacetBody, []), "body", caches)
    _keep(rows, FacetBody, [(hash_, shrink(body)) for hash_, body in bodies])
    return rows


def _datasets(seen: list[Row], caches: Caches) -> list[Row]:
    """One row a dataset; mentions only of those that nobody here has stored."""
    by_id: dict[int, Row] = {}
    for row in seen:
        if row[0] not in by_id:
            by_id[row[0]] = row
    return [
        row for key, row in sorted(by_id.items()) if caches.is_new("dataset", key) or row[9] is not None
    ]  # fmt: skip


def _unknown(rows: list[Row], kind: str, caches: Caches) -> list[Row]:
    return [row for row in rows if caches.is_new(kind, row[0])]


def _keep(rows: Rows, kind: type[Change], kept: list[Row]) -> None:
    if kept:
        rows[kind] = kept
    else:
        rows.pop(kind, None)
