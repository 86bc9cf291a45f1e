"""The alias of a view's query that stands in a statement in place of the view.

A view that is read at a version is replaced by its query. The alias says which view it was, so that
lineage names it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

_MARK = "strandline view "


def alias_of(parts: Sequence[str]) -> str:
    """Return the alias for a view of this catalog, namespace and name.

    >>> alias_of(["spark_catalog", "db", "v"])
    'strandline view ["spark_catalog", "db", "v"]'
    """
    return _MARK + json.dumps(list(parts))


def parts_in(alias: str) -> list[str] | None:
    """Return catalog, namespace and name of the view of such an alias; None for any other alias.

    >>> parts_in('strandline view ["spark_catalog", "db", "v"]'), parts_in("v")
    (['spark_catalog', 'db', 'v'], None)
    """
    return (
        [str(part) for part in json.loads(alias[len(_MARK) :])] if alias.startswith(_MARK) else None
    )
