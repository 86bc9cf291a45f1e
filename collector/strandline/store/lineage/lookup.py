"""The lookup of a dataset or job by name.

`dataset:NAMESPACE:NAME`, `job:NAMESPACE:NAME`, a pair of names, a place, a short name.

A dataset is answered under its canonical name, whichever of its names was asked. A name that
nothing has as it is written is looked up once more in any case. What is unknown is a NotFoundError
with names that are like it, what could be several an AmbiguousError with all of them.
"""

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, NamedTuple, NoReturn

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, or_, select

from strandline.core.job_families import pattern_of
from strandline.core.labels import told_apart
from strandline.core.openlineage.names import (
    Naming,
    TableName,
    id_of,
    joined,
    parts_of,
    place_id,
    plain_spelling,
)
from strandline.errors import AmbiguousError, NotFoundError
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.run_tables import jobs
from strandline.store.sql.id_lists import among, among_given
from strandline.store.sql.namespaces_like import in_namespaces
from strandline.store.sql.shared_settings import agreed_naming

MOST_SPLITS = 500  # a name has a few colons; one of thousands is no name
MOST_CANDIDATES = 10
MOST_CATALOG_PARTS = 3  # of a dotted name
MOST_COMPARED = 2_000
LIKE = 0.6  # how like a name has to be to what was asked: 1 is the same
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
    """Return how answers and questions name a node."""
    return f"{kind}:{namespace}:{name}"


def node_of(connection: Connection, text: str) -> Node:
    """The node that `dataset:NAMESPACE:NAME` or `job:NAMESPACE:NAME` means.

    Of all splits, the longest known namespace.
    """
    kind, _, rest = text.partition(":")
    if kind not in ("dataset", "job") or ":" not in rest:
        raise NotFoundError(
            f"not a node: {text!r} is neither dataset:NAMESPACE:NAME nor job:NAMESPACE:NAME"
        )
    ends = [match.start() for match in re.finditer(":", rest)][:MOST_SPLITS]
    names = [(rest[:end], rest[end + 1 :]) for end in ends]
    nodes = _stored(connection, kind, names)
    if not nodes:
        alike = _in_any_case(connection, kind, rest)
        return _the_one(alike, rest) if alike else _unknown(connection, kind, rest, names[-1][1])
    return max(nodes, key=lambda pair: len(pair[0]))[1]


def dataset_of(connection: Connection, namespace: str, name: str) -> Node:
    """The dataset of this name, or of which it is a symlink."""
    return _named(connection, "dataset", namespace, name)


def job_of(connection: Connection, namespace: str, name: str) -> Node:
    """The job of this name."""
    return _named(connection, "job", namespace, name)


def dataset_at(connection: Connection, place: TableName) -> Node:
    """The one dataset at catalog, database and table."""
    nodes = _datasets(connection, datasets.c.place_id == place_id(place))
    text = ".".join(filter(None, place))
    return _the_one(nodes, text) if nodes else _unknown(connection, "dataset", repr(text), text)


Equal = Callable[[Any, str], ColumnElement[bool]]


def _ways(text: str) -> tuple[tuple[str, Equal], ...]:
    """The two ways to compare names with a text: as it is written, then in any case."""
    return (text, lambda column, name: column == name), (
        text.lower(),
        lambda column, name: func.lower(column) == name,
    )


def node_called(connection: Connection, text: str) -> Node:
    """Return the node that a person means.

    The text is that of `node_of`, a job's or dataset's name, [catalog.][database.]table, or the
    last parts of a path.
    """
    if re.match("(dataset|job):.*:", text, re.DOTALL):
        return node_of(connection, text)
    for words, equal in _ways(text):
        nodes = _datasets(connection, or_(equal(datasets.c.name, words), _placed(words, equal)))
        nodes += _nodes(connection, "job", select(jobs).where(equal(jobs.c.name, words)))
        if nodes:
            return _the_one(nodes, text)
    if nodes := [*_at_address(connection, "dataset", text), *_at_address(connection, "job", text)]:
        return _the_one(nodes, text)
    if nodes := _by_end_of_path(connection, text) or _families_with(connection, text):
        return _the_one(nodes, text)
    return _unknown(connection, "dataset or job", repr(text), text)


def job_called(connection: Connection, text: str) -> Node:
    """The job that a person means, by its name or as job:NAMESPACE:NAME."""
    if re.match("job:.*:", text, re.DOTALL):
        return node_of(connection, text)
    for words, equal in _ways(text):
        if nodes := _nodes(connection, "job", select(jobs).where(equal(jobs.c.name, words))):
            return _the_one(nodes, text)
    if nodes := _at_address(connection, "job", text) or _families_with(connection, text):
        return _the_one(nodes, text)
    return _unknown(connection, "job", repr(text), text)


def dataset_called(connection: Connection, text: str) -> Node:
    """Return the dataset that a person means.

    The text is dataset:NAMESPACE:NAME, its name, [catalog.][database.]table, or the last parts of a
    path.
    """
    if re.match("dataset:.*:", text, re.DOTALL):
        return node_of(connection, text)
    if re.match("job:.*:", text, re.DOTALL):
        raise NotFoundError(f"{text}: is a job, not a table")
    for words, equal in _ways(text):
        if nodes := _datasets(
            connection, or_(equal(datasets.c.name, words), _placed(words, equal))
        ):
            return _the_one(nodes, text)
    if nodes := _at_address(connection, "dataset", text) or _by_end_of_path(connection, text):
        return _the_one(nodes, text)
    return _unknown(connection, "dataset", repr(text), text)


def _at_address(connection: Connection, kind: str, text: str) -> list[Node]:
    """Return the node whose namespace and name, joined by a colon or slash, are a text.

    Labels in answers are written so, and paths in jobs: `s3a://lake/bank/a`, `file:///lake/a`.
    """
    address = re.sub("^([a-z]+):///", r"\1:/", text)
    names: list[tuple[str, str]] = []
    for match in islice(re.finditer("[:/]", address), MOST_SPLITS):
        start, end = match.span()
        names.append((address[:start], address[end:]))
        if match[0] == "/":
            names.append((address[:start], address[start:]))
    nodes = _stored(connection, kind, names) if names else []
    longest = max((len(namespace) for namespace, _ in nodes), default=0)
    return list(dict.fromkeys(node for namespace, node in nodes if len(namespace) == longest))


def _by_end_of_path(connection: Connection, text: str) -> list[Node]:
    """Return the datasets at a path that ends with a text.

    An example is `report.csv` in `/exports/report.csv`.
    """
    last = text.strip("/")
    if not last:
        return []
    ends = (datasets.c.name.endswith(f"/{last}{end}", autoescape=True) for end in ("", "/"))
    return _datasets(connection, or_(*ends))


def _families_with(connection: Connection, name: str) -> list[Node]:
    """Return the jobs that are known under the pattern of this name."""
    families = agreed_naming(connection).families
    ids = [id_of("job", *family) for family in families if family[1] == pattern_of(name)]
    return [node for _, node in _stored_under(connection, "job", ids)]


def _placed(text: str, equal: Equal) -> ColumnElement[bool]:
    *before, table = parts_of(text)
    of_table = equal(datasets.c.table_name, table)
    if not before:
        return of_table
    places = [equal(datasets.c.database_name, joined(before))]
    for end in range(1, min(len(before), MOST_CATALOG_PARTS + 1)):
        of_database = equal(datasets.c.database_name, joined(before[end:]))
        places.append(and_(equal(datasets.c.catalog, ".".join(before[:end])), of_database))
    return and_(of_table, or_(*places))


def _in_any_case(connection: Connection, kind: str, rest: str) -> list[Node]:
    """The nodes whose NAMESPACE:NAME is this text but for the case of its letters."""
    named = jobs if kind == "job" else datasets
    same = func.lower(named.c.namespace + ":" + named.c.name) == rest.lower()
    return (
        _nodes(connection, kind, select(jobs).where(same))
        if kind == "job"
        else _datasets(connection, same)
    )


def _named(connection: Connection, kind: str, namespace: str, name: str) -> Node:
    nodes = _stored(connection, kind, [(namespace, name)])
    if not nodes:
        return _unknown(connection, kind, f"{name!r} in namespace {namespace!r}", name)
    return nodes[0][1]


def _stored(
    connection: Connection, kind: str, names: Sequence[tuple[str, str]]
) -> list[tuple[str, Node]]:
    """(namespace, node) of the names that are known, as producers write them.

    Then as what is stripped of them leaves them, or of a job as its family is called.
    """
    rows = _stored_under(
        connection, kind, [id_of(kind, *Naming().name_of(*name)) for name in names]
    )
    if rows:
        return rows
    naming = agreed_naming(connection)
    if kind == "job":
        ids = [id_of(kind, *naming.job_name_of(*name)) for name in names]
        return _stored_under(connection, kind, ids)
    ids = [id_of(kind, *naming.name_of(*name)) for name in names]
    ids += [id_of(kind, *naming.name_of(*plain_spelling(*name))) for name in names]
    return _stored_under(connection, kind, ids)


def _stored_under(connection: Connection, kind: str, ids: Sequence[int]) -> list[tuple[str, Node]]:
    """(namespace as asked, node) of the ids that are known."""
    rows = connection.execute(_of_ids(kind), {"ids": ids})
    return [(reported, Node(kind, id_, namespace, name)) for id_, namespace, name, reported in rows]


@cache
def _of_ids(kind: str) -> Select[Any]:
    """(id, namespace, name, namespace as it was reported) of nodes by their ids."""
    if kind == "job":
        of_job = jobs.c.id, jobs.c.namespace, jobs.c.name, jobs.c.namespace.label("asked")
        return select(*of_job).where(among_given(jobs.c.id, "ids"))
    return _canonical(among_given(datasets.c.id, "ids")).add_columns(
        datasets.c.namespace.label("asked")
    )


def _datasets(connection: Connection, clause: ColumnElement[bool]) -> list[Node]:
    return _nodes(connection, "dataset", _canonical(clause).distinct())


def _canonical(clause: ColumnElement[bool]) -> Select[Any]:
    return (
        select(canonical.c.id, canonical.c.namespace, canonical.c.name)
        .join_from(datasets, canonical, canonical.c.id == datasets.c.canonical_id)
        .where(clause)
    )


def _nodes(connection: Connection, kind: str, query: Select[Any]) -> list[Node]:
    ordered = query.order_by(query.selected_columns.id)  # alike on every database
    limited = ordered.limit(MOST_CANDIDATES + 1)
    rows = connection.execute(limited)
    return [Node(kind, row.id, row.namespace, row.name) for row in rows]


def _the_one(nodes: Sequence[Node], text: str) -> Node:
    if len(nodes) == 1:
        return nodes[0]
    raise AmbiguousError(f"several are called {text!r}", sorted(map(str, nodes))[:MOST_CANDIDATES])


class Candidate(NamedTuple):
    """A node that may have been meant; `likeness` is 1 for the name that was asked for."""

    kind: str
    likeness: float
    label: str
    node: str

    @property
    def place(self) -> tuple[bool, float, str]:
        """Return its place among others: tables come before jobs, of each the nearest first."""
        return self.kind == "job", -self.likeness, self.node


def _unknown(connection: Connection, kind: str, shown: str, name: str) -> NoReturn:
    """Raise a NotFoundError with the nodes of the kinds that are called like `name`.

    They are called as people call them; those that share a name, by their ids.
    """
    near = [
        candidate
        for each in ("dataset", "job")
        if each in kind
        for candidate in _near(connection, each, name)
    ]
    names = told_apart({candidate.node: candidate.label for candidate in near})
    nearest = sorted(near, key=lambda candidate: candidate.place)[:MOST_CANDIDATES]
    raise NotFoundError(
        f"unknown {kind}: {shown}", [names[candidate.node] for candidate in nearest]
    )


def _near(connection: Connection, kind: str, name: str) -> Iterator[Candidate]:
    """Yield the nodes whose names are like `name`."""
    named = jobs if kind == "job" else datasets
    last = re.split(r"[./:]", name.rstrip("./:"))[-1][-MOST_LIKE:]
    rows = _some(connection, kind, named.c.name.icontains(last, autoescape=True)) if last else []
    rows = rows or _some(connection, kind, named.c.name != "")
    tables = [(row.namespace, row.name) for row in rows] if kind == "dataset" else []
    labels = labels_of(connection, tables)
    for row in rows:
        label = labels.get((row.namespace, row.name), row.name)
        likeness = max(_likeness(name, row.name), _likeness(name, label))
        if likeness > LIKE or (last and last.lower() in row.name.lower()):
            yield Candidate(kind, likeness, label, node_text(kind, row.namespace, row.name))


def _likeness(name: str, other: str) -> float:
    """Return how like two names are, whatever stands between their parts.

    An example is `bank.balence` and `/lake/bank/balance`.
    """
    left, right = (re.sub(r"[./:]", ".", text[-100:].lower()) for text in (name, other))
    whole = difflib.SequenceMatcher(None, left, right).ratio()
    ends = difflib.SequenceMatcher(None, left.rpartition(".")[2], right.rpartition(".")[2]).ratio()
    return max(whole, ends * 0.9)


def _some(
    connection: Connection, kind: str, clause: ColumnElement[bool]
) -> Sequence[Row[Any, str, str]]:
    shown = (
        select(jobs.c.id, jobs.c.namespace, jobs.c.name).where(clause)
        if kind == "job"
        else _canonical(clause)
    )
    ordered = shown.distinct().order_by(shown.selected_columns.id)  # alike on every database
    return connection.execute(ordered.limit(MOST_COMPARED)).all()


def ids_of_names(table: tuple[str, str]) -> Select[int]:
    """A query of the ids under which a table was named."""
    canonical = (
        select(datasets.c.canonical_id)
        .where(datasets.c.id == id_of("dataset", *table))
        .scalar_subquery()
    )
    return select(datasets.c.id).where(datasets.c.canonical_id == canonical)


Table = tuple[str, str]


def labels_of(connection: Connection, tables: Iterable[Table]) -> dict[Table, str]:
    """The name that Spark has for each of these tables; its own name where it has none."""
    wanted = {id_of("dataset", *table): table for table in tables}
    labels = {table: table[1] for table in wanted.values()}
    columns = (datasets.c.id, datasets.c.catalog, datasets.c.database_name, datasets.c.table_name)
    for row in connection.execute(select(*columns).where(among(datasets.c.id, wanted))):
        place = TableName(row.catalog, row.database_name, row.table_name)
        labels[wanted[row.id]] = place.called(*wanted[row.id])
    return labels


def newest_datasets(
    connection: Connection, namespace: str | None, most: int
) -> tuple[list[int], int]:
    """The ids of the datasets that were heard of last, and how many more there are."""
    of_namespace = in_namespaces(connection, datasets, namespace)
    query = select(datasets.c.id).where(datasets.c.id == datasets.c.canonical_id, *of_namespace)
    rows = list(
        connection.scalars(
            query.order_by(datasets.c.newest_at.desc(), datasets.c.id).limit(most + 1)
        )
    )
    if len(rows) <= most:
        return rows, 0
    counted = (
        connection.scalar(select(func.count()).select_from(query.order_by(None).subquery())) or 0
    )
    return rows[:most], counted - most


def names_of_datasets(connection: Connection, ids: Collection[int]) -> dict[int, int]:
    """Map each name of these canonical datasets, by its id, to the dataset."""
    rows = connection.execute(_names_of_datasets(), {"ids": list(ids)}) if ids else ()
    return {row.id: row.canonical_id for row in rows}


@cache
def _names_of_datasets() -> Select[Any]:
    named = select(datasets.c.id, datasets.c.canonical_id).order_by(datasets.c.id)
    return named.where(among_given(datasets.c.canonical_id, "ids"))
