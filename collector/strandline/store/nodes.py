"""Which dataset or job is meant: `dataset:NAMESPACE:NAME`, `job:NAMESPACE:NAME`, a pair of names, a place, a short name.

A dataset is answered under its canonical name, whichever of its names was asked. What is unknown, or could be several,
is a NotFoundError with the candidates.
"""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, or_, select

from strandline.core.naming import Naming, Place, id_of, naming_of, place_id
from strandline.errors import NotFoundError
from strandline.store.agreed import strip_patterns
from strandline.store.tables import datasets, jobs

MOST_SPLITS = 500  # a name has a few colons; one of thousands is no name
MOST_CANDIDATES = 10
MOST_COMPARED = 2_000
MOST_LIKE = 200  # characters; SQLite takes no pattern of more than 50,000 bytes

canonical = datasets.alias("canonical")


@dataclass(frozen=True, slots=True)
class Node:
    """A dataset (`id` is its canonical row's) or a job."""

    kind: str
    id: int
    namespace: str
    name: str

    def __str__(self) -> str:
        return node_text(self.kind, self.namespace, self.name)


def node_text(kind: str, namespace: str, name: str) -> str:
    """How answers and questions name a node."""
    return f"{kind}:{namespace}:{name}"


def node_of(connection: Connection, text: str) -> Node:
    """The node that `dataset:NAMESPACE:NAME` or `job:NAMESPACE:NAME` means: of all splits, the longest known namespace."""
    kind, _, rest = text.partition(":")
    if kind not in ("dataset", "job") or ":" not in rest:
        raise NotFoundError(f"not a node: {text!r} is neither dataset:NAMESPACE:NAME nor job:NAMESPACE:NAME")
    ends = [found.start() for found in re.finditer(":", rest)][:MOST_SPLITS]
    names = [(rest[:end], rest[end + 1 :]) for end in ends]
    found = _stored(connection, kind, names)
    if not found:
        raise NotFoundError(f"unknown {kind}: {rest}", _near(connection, kind, names[-1][1]))
    return max(found, key=lambda one: len(one[0]))[1]


def dataset_of(connection: Connection, namespace: str, name: str) -> Node:
    """The dataset of this name, or of which it is a symlink."""
    return _named(connection, "dataset", namespace, name)


def job_of(connection: Connection, namespace: str, name: str) -> Node:
    """The job of this name."""
    return _named(connection, "job", namespace, name)


def dataset_at(connection: Connection, place: Place) -> Node:
    """The one dataset at catalog, database and table."""
    found = _datasets(connection, datasets.c.place_id == place_id(place))
    return _the_one(connection, ".".join(filter(None, place)), "dataset", found)


def node_called(connection: Connection, text: str) -> Node:
    """The node that a person means: as `node_of`, or a job's or dataset's name, or [catalog.][database.]table."""
    if re.match("(dataset|job):.*:", text, re.DOTALL):
        return node_of(connection, text)
    found = _datasets(connection, or_(datasets.c.name == text, _placed(text)))
    found += _nodes(connection, "job", select(jobs).where(jobs.c.name == text))
    return _the_one(connection, text, "dataset or job", found)


def _placed(text: str) -> ColumnElement[bool]:
    *catalog, database, table = ["", *text.split(".")] if "." not in text else text.split(".")
    clauses = [datasets.c.table_name == table]
    clauses += [datasets.c.database_name == database] if database else []
    clauses += [datasets.c.catalog == ".".join(catalog)] if catalog and database else []
    return and_(*clauses)


def _named(connection: Connection, kind: str, namespace: str, name: str) -> Node:
    found = _stored(connection, kind, [(namespace, name)])
    if not found:
        raise NotFoundError(f"unknown {kind}: {name!r} in namespace {namespace!r}", _near(connection, kind, name))
    return found[0][1]


def _stored(connection: Connection, kind: str, names: Sequence[tuple[str, str]]) -> list[tuple[str, Node]]:
    """(namespace, node) of the names that are known, as producers write them; then as what is stripped of them leaves them."""
    known = _known(connection, kind, [id_of(kind, *Naming().name_of(*name)) for name in names])
    if known or kind == "job":
        return known
    naming = naming_of(strip_patterns(connection))
    return _known(connection, kind, [id_of(kind, *naming.name_of(*name)) for name in names])


def _known(connection: Connection, kind: str, ids: Sequence[int]) -> list[tuple[str, Node]]:
    """(namespace as asked, node) of the ids that are known."""
    if kind == "job":
        return [(job.namespace, job) for job in _nodes(connection, kind, select(jobs).where(jobs.c.id.in_(ids)))]
    named = _canonical(datasets.c.id.in_(ids)).add_columns(datasets.c.namespace.label("asked"))
    return [(row.asked, _node(kind, row)) for row in connection.execute(named)]


def _datasets(connection: Connection, clause: ColumnElement[bool]) -> list[Node]:
    return _nodes(connection, "dataset", _canonical(clause).distinct())


def _canonical(clause: ColumnElement[bool]) -> Select[Any]:
    return (
        select(canonical.c.id, canonical.c.namespace, canonical.c.name)
        .join_from(datasets, canonical, canonical.c.id == datasets.c.canonical_id)
        .where(clause)
    )


def _nodes(connection: Connection, kind: str, query: Select[Any]) -> list[Node]:
    return [_node(kind, row) for row in connection.execute(query.limit(MOST_CANDIDATES + 1))]


def _node(kind: str, row: Row[Any]) -> Node:
    return Node(kind, row.id, row.namespace, row.name)


def _the_one(connection: Connection, text: str, kind: str, found: Sequence[Node]) -> Node:
    if len(found) == 1:
        return found[0]
    if found:
        raise NotFoundError(f"several are called {text!r}", sorted(map(str, found))[:MOST_CANDIDATES])
    near = [*_near(connection, "dataset", text), *(_near(connection, "job", text) if "job" in kind else ())]
    raise NotFoundError(f"unknown {kind}: {text!r}", near[:MOST_CANDIDATES])


def _near(connection: Connection, kind: str, name: str) -> tuple[str, ...]:
    """Nodes whose names are like `name`, the likeliest first."""
    named = jobs if kind == "job" else datasets
    last = re.split(r"[./:]", name.rstrip("./:"))[-1][-MOST_LIKE:]
    rows = _some(connection, kind, named.c.name.icontains(last, autoescape=True)) if last else []
    rows = rows or _some(connection, kind, named.c.name != "")
    likeness = {row: difflib.SequenceMatcher(None, name[-100:], row.name[-100:]).ratio() for row in rows}
    likely = sorted((row for row in rows if likeness[row] > 0.5 or last in row.name), key=lambda row: -likeness[row])
    return tuple(node_text(kind, row.namespace, row.name) for row in likely[:MOST_CANDIDATES])


def _some(connection: Connection, kind: str, clause: ColumnElement[bool]) -> Sequence[Row[Any, str, str]]:
    shown = select(jobs.c.id, jobs.c.namespace, jobs.c.name).where(clause) if kind == "job" else _canonical(clause)
    return connection.execute(shown.distinct().limit(MOST_COMPARED)).all()
