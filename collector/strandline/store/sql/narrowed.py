"""A database as one key sees it: tables that hold names only show the rows of its namespaces.

Each SELECT on a narrowed engine begins with common table expressions that stand for those tables,
so no query can forget the rule. A table that is in none of the lists below shows nothing: a new
table is hidden until it is listed.
"""

import re
from functools import cache, lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine

from strandline.core.access.granted import EVERYTHING, Access, glob_of, like_of
from strandline.store.schema.tables import metadata
from strandline.store.schema.views import views

OPTION = "strandline_access"
# The rows of a table that a key sees; {seen}: the ids of its namespaces.
BY_NAMESPACE = {
    "namespaces": "id IN ({seen})",
    "jobs": "namespace_id IN ({seen})",
    "datasets": "namespace_id IN ({seen})",
    "search_names": "namespace_id IN ({seen})",
    "search_texts": "namespace_id IN ({seen})",
    "annotations": "entity_id IN (SELECT id FROM {datasets} WHERE namespace_id IN ({seen})"
    " UNION ALL SELECT id FROM {jobs} WHERE namespace_id IN ({seen})"
    " UNION ALL {seen})",
    "catalog_options": "catalog IN (SELECT catalog FROM {datasets} WHERE namespace_id IN ({seen}))",
}
# Tables of ids and numbers about one job, run or dataset. A query finds their rows by the id of one
# that the key sees, and the answers that are computed from them must be the same for every key.
BY_ID = frozenset(
    (
        "body_references",
        "dataset_aliases",
        "group_roots",
        "edge_columns",
        "facet_bodies",
        "facet_sets",
        "facet_uses",
        "facets",
        "job_barriers",
        "job_groups",
        "job_relations",
        "group_jobs",
        "numbers",
        "reader_leases",
        "run_leases",
        "run_parents",
        "run_queries",
        "run_templates",
        "runs",
        "snapshot_uses",
        "snapshots",
        "startup_snapshots",
        "store_settings",
        "template_edges",
        "template_relations",
    )
)
VIEWS_OF_IDS = (
    "canonical_ids",
    "run_relations",
    "run_edges",
    "run_owners",
    "run_ends",
    "run_silences",
    "run_lives",
    "relation_lives",
    "snapshot_lineage",
)


class DatabaseSchema(NamedTuple):
    """The place of the real tables."""

    dialect: str
    schema: str


def narrowed(engine: Engine, access: Access) -> Engine:
    """Return the engine as a key with this access sees it."""
    return engine if access.everything else engine.execution_options(**{OPTION: access})


def access_of(connection: Connection) -> Access:
    """Return the access of a connection."""
    access: Access = connection.get_execution_options().get(OPTION, EVERYTHING)
    return access


def narrow(
    connection: Connection, statement: str, parameters: Any, context: Any
) -> tuple[str, Any]:
    """Let a SELECT see what its connection's access allows."""
    options = connection.get_execution_options() if context is None else context.execution_options
    access = options.get(OPTION, EVERYTHING)
    if access.everything or not re.match(r"\s*(?:SELECT|WITH)\b", statement, re.IGNORECASE):
        return statement, parameters
    place = DatabaseSchema(connection.dialect.name, connection.dialect.default_schema_name or "")
    names = _narrowed_names(statement, place.dialect)
    if not names:
        return statement, parameters
    head = ",\n".join(_definition(name, place, access) for name in names)
    if connection.dialect.paramstyle in ("format", "pyformat"):
        head = head.replace("%", "%%")
    return _joined(head, statement), parameters


def _joined(head: str, statement: str) -> str:
    """Return the statement with these expressions before its own, in one WITH."""
    own = re.match(r"\s*WITH\s+(RECURSIVE\s+)?", statement, re.IGNORECASE)
    if own is None:
        return f"WITH {head}\n{statement}"
    return f"WITH {own[1] or ''}{head},\n{statement[own.end() :]}"


@lru_cache(maxsize=2_000)
def _narrowed_names(statement: str, dialect: str) -> tuple[str, ...]:
    """Return the narrowed tables and views of a statement, each after those that it uses."""
    words = set(re.findall(r"\w+", statement.lower()))
    used_views: set[str] = set()
    queries = _views(dialect)
    for name in reversed([*queries]):
        if name.lower() in words:
            used_views.add(name)
            words.update(re.findall(r"\w+", queries[name].lower()))
    tables = [name for name in metadata.tables if name in words and name not in BY_ID]
    return (*tables, *(name for name in queries if name in used_views))


@cache
def _views(dialect: str) -> dict[str, str]:
    return {name: query for name, query in views(dialect).items() if name not in VIEWS_OF_IDS}


def _definition(name: str, place: DatabaseSchema, access: Access) -> str:
    if name in _views(place.dialect):
        return f"{name} AS ({_views(place.dialect)[name].strip()})"
    hint = "NOT MATERIALIZED " if place.dialect == "postgresql" else ""
    condition = _condition(name, place, access)
    return f"{name} AS {hint}(SELECT * FROM {_real(name, place)} WHERE {condition})"


def _condition(name: str, place: DatabaseSchema, access: Access) -> str:
    condition = BY_NAMESPACE.get(name)
    if condition is None or not access.patterns:
        return "1 = 0"
    tests = " OR ".join(_test(pattern, place.dialect) for pattern in access.patterns)
    visible = f"SELECT id FROM {_real('namespaces', place)} WHERE {tests}"
    return condition.format(
        seen=visible, datasets=_real("datasets", place), jobs=_real("jobs", place)
    )


def _real(name: str, place: DatabaseSchema) -> str:
    """Return the name of the table itself: its bare name would be the new expression."""
    return f'"{place.schema}"."{name}"'


def _test(pattern: str, dialect: str) -> str:
    if not re.search(r"[*?]", pattern):
        return f"name = {_quoted(pattern)}"
    if dialect == "sqlite":
        return f"name GLOB {_quoted(glob_of(pattern))}"
    return f"name LIKE {_quoted(like_of(pattern))} ESCAPE '!'"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
