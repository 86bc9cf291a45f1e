"""A database as one key sees it.

Tables that hold names show the rows of its namespaces alone, in every statement.

Each SELECT on a narrowed engine begins with common table expressions that stand for those tables,
so no query can forget to ask. A table that is in none of the lists below shows nothing: what is new
is hidden until somebody says how it is seen.
"""

import re
from functools import cache, lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine

from strandline.core.access.granted import EVERYTHING, Access, glob_of, like_of
from strandline.store.schema.tables import metadata
from strandline.store.schema.views import views

OPTION = "strandline_access"
# How a row says whose it is; {seen}: the ids of the namespaces that are seen.
BY_NAMESPACE = {
    "namespaces": "id IN ({seen})",
    "jobs": "namespace_id IN ({seen})",
    "datasets": "namespace_id IN ({seen})",
    "search_pages": "namespace_id IN ({seen})",
    "annotations": "entity_id IN (SELECT id FROM {datasets} WHERE namespace_id IN ({seen}) UNION ALL"
    " SELECT id FROM {jobs} WHERE namespace_id IN ({seen}) UNION ALL {seen})",
    "catalog_options": "catalog IN (SELECT catalog FROM {datasets} WHERE namespace_id IN ({seen}))",
}
# Rows of ids, numbers and claims about one job, run or dataset, which a query finds by the id of
# one that is seen. What an answer computes from them has to be the same for everybody: whether a
# run has ended, whether a snapshot is claimed.
BY_ID = frozenset(
    {
        *(
            "runs",
            "job_domains",
            "run_parents",
            "run_leases",
            "run_queries",
            "dataset_aliases",
            "facets",
            "facet_bodies",
            "facet_sets",
            "facet_uses",
        ),
        *("job_relations", "edge_columns", "job_barriers", "snapshots", "snapshot_uses"),
        *("run_templates", "template_relations", "template_edges"),
        *(
            "startup_snapshots",
            "store_settings",
            "body_references",
            "reader_leases",
            "domain_roots",
            "managed_jobs",
        ),
        "numbers",
    }
)
VIEWS_OF_IDS = (
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
    """Where the real tables are."""

    dialect: str
    schema: str


def narrowed(engine: Engine, access: Access) -> Engine:
    """The same engine as a key with this access sees it."""
    return engine if access.everything else engine.execution_options(**{OPTION: access})


def access_of(connection: Connection) -> Access:
    """Whose connection it is."""
    found: Access = connection.get_execution_options().get(OPTION, EVERYTHING)
    return found


def narrow(
    connection: Connection, _cursor: Any, statement: str, parameters: Any, context: Any, _many: bool
) -> tuple[str, Any]:
    """Let a SELECT see what its connection's access allows; for `before_cursor_execute`."""
    options = connection.get_execution_options() if context is None else context.execution_options
    access = options.get(OPTION, EVERYTHING)
    if access.everything or not re.match(r"\s*(?:SELECT|WITH)\b", statement, re.IGNORECASE):
        return statement, parameters
    place = DatabaseSchema(connection.dialect.name, connection.dialect.default_schema_name or "")
    asked = _asked(statement, place.dialect)
    if not asked:
        return statement, parameters
    head = ",\n".join(_definition(name, place, access) for name in asked)
    if connection.dialect.paramstyle in ("format", "pyformat"):
        head = head.replace("%", "%%")
    return _joined(head, statement), parameters


def _joined(head: str, statement: str) -> str:
    """The statement with these expressions before its own: there is one WITH."""
    own = re.match(r"\s*WITH\s+(RECURSIVE\s+)?", statement, re.IGNORECASE)
    return (
        f"WITH {own[1] or ''}{head},\n{statement[own.end() :]}"
        if own
        else f"WITH {head}\n{statement}"
    )


@lru_cache(maxsize=2_000)
def _asked(statement: str, dialect: str) -> tuple[str, ...]:
    """The tables and views of a statement that are narrowed, each after those that it asks itself."""
    words = set(re.findall(r"\w+", statement.lower()))
    wanted: set[str] = set()
    named = _views(dialect)
    for name in reversed([*named]):
        if name.lower() in words:
            wanted.add(name)
            words.update(re.findall(r"\w+", named[name].lower()))
    tables = [name for name in metadata.tables if name in words and name not in BY_ID]
    return (*tables, *(name for name in named if name in wanted))


@cache
def _views(dialect: str) -> dict[str, str]:
    return {name: query for name, query in views(dialect).items() if name not in VIEWS_OF_IDS}


def _definition(name: str, place: DatabaseSchema, access: Access) -> str:
    if name in _views(place.dialect):
        return f"{name} AS ({_views(place.dialect)[name].strip()})"
    hint = "NOT MATERIALIZED " if place.dialect == "postgresql" else ""
    return f"{name} AS {hint}(SELECT * FROM {_real(name, place)} WHERE {_condition(name, place, access)})"


def _condition(name: str, place: DatabaseSchema, access: Access) -> str:
    condition = BY_NAMESPACE.get(name)
    if condition is None or not access.patterns:
        return "1 = 0"
    tests = " OR ".join(_test(pattern, place.dialect) for pattern in access.patterns)
    seen = f"SELECT id FROM {_real('namespaces', place)} WHERE {tests}"
    return condition.format(seen=seen, datasets=_real("datasets", place), jobs=_real("jobs", place))


def _real(name: str, place: DatabaseSchema) -> str:
    """The table itself: its bare name would be the expression that is being defined."""
    return f'"{place.schema}"."{name}"'


def _test(pattern: str, dialect: str) -> str:
    if not re.search(r"[*?]", pattern):
        return f"name = {_quoted(pattern)}"
    if dialect == "sqlite":
        return f"name GLOB {_quoted(glob_of(pattern))}"
    return f"name LIKE {_quoted(like_of(pattern))} ESCAPE '!'"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
