"""Templates: what many runs read, wrote and made into each other alike, without when they did.

All that is known of a run's relations and edges is split by its times: what was seen first and last
at the same moments is one template. Of edges is known only when they were used last, so they are
with what was seen last then, of several with what began first. The split follows from the rows
alone, so it is the same in whichever order events came; and joined again (`rows_in`) it gives these
rows. What a long run sees each time in another company is split into single rows, or there would be
a template for each event.
"""

from collections.abc import Iterable
from typing import NamedTuple

from strandline.core.changes.rows import EdgesUsed, RelationSeen
from strandline.core.openlineage.names import id_of

MOST_PARTS = 8  # of one run, before each row becomes one


class Template(NamedTuple):
    """Relations (direction, dataset, creates) and edges (sink, rule, set_hash), each sorted."""

    relations: tuple[tuple[int, int, int], ...] = ()
    edges: tuple[tuple[int, int, bytes], ...] = ()

    @property
    def id(self) -> int:
        """A hash of all that is in it."""
        edges = ((str(sink), str(rule), set_hash.hex()) for sink, rule, set_hash in self.edges)
        relations = (map(str, relation) for relation in self.relations)
        return id_of("template", *(part for one in (*relations, ("",), *edges) for part in one))


class TimeSpan(NamedTuple):
    """The times at which all of a template was first and last seen in a run, in microseconds."""

    first_at: int
    newest_at: int


class RunTemplate(NamedTuple):
    """A run has a template."""

    run_id: int
    template_id: int
    first_at: int
    newest_at: int


def split(
    relations: Iterable[RelationSeen], edges: Iterable[EdgesUsed]
) -> dict[Template, TimeSpan]:
    """Return the templates of one run, of which these are all rows, one a key."""
    begun: dict[int, int] = {}
    parts: dict[TimeSpan, tuple[list[tuple[int, int, int]], list[tuple[int, int, bytes]]]] = {}
    for _, direction, dataset_id, creates, first_at, newest_at in relations:
        span = TimeSpan(first_at, newest_at)
        parts.setdefault(span, ([], []))[0].append((direction, dataset_id, creates))
        begun[newest_at] = min(first_at, begun.get(newest_at, first_at))
    for _, sink_id, rule, set_hash, at in edges:
        span = TimeSpan(begun.get(at, at), at)
        parts.setdefault(span, ([], []))[1].append((sink_id, rule, set_hash))
    if len(parts) <= MOST_PARTS:
        return {
            Template(tuple(sorted(of[0])), tuple(sorted(of[1]))): span for span, of in parts.items()
        }
    spans: dict[Template, TimeSpan] = {}
    for span, (some_relations, some_edges) in parts.items():
        spans |= {Template(relations=(some_relation,)): span for some_relation in some_relations}
        spans |= {
            Template(edges=(some_edge,)): TimeSpan(span.newest_at, span.newest_at)
            for some_edge in some_edges
        }
    return spans


def rows_in(
    run_id: int, template: Template, span: TimeSpan
) -> tuple[list[RelationSeen], list[EdgesUsed]]:
    """Return the rows that a template of a run stands for."""
    relations = [RelationSeen(run_id, *relation, *span) for relation in template.relations]
    return relations, [EdgesUsed(run_id, *edge, span.newest_at) for edge in template.edges]
