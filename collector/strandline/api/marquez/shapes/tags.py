"""Tags: those that people gave, and those that events state in OpenLineage's `tags` facet."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from strandline.store.marquez.annotations import Annotations


def tags_by_field(
    noted: Annotations, facets: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[str]]:
    """Return the tags of an entity by its columns, '' for the entity itself, sorted.

    >>> tags = [{"key": "pii", "value": "true"}, {"key": "tier", "value": "1"}]
    >>> tags_by_field(Annotations(), {"tags": {"tags": tags}})
    {'': ['pii', 'tier:1']}
    """
    by_field: dict[str, set[str]] = defaultdict(set)
    for field, names in noted.tags.items():
        by_field[field] |= names
    stated = facets.get("tags", {}).get("tags")
    for one in stated if isinstance(stated, list) else ():
        if isinstance(one, dict) and isinstance(one.get("key"), str):
            value = str(one.get("value") or "")
            column = one.get("field")
            name = one["key"] if value.lower() in ("", "true") else f"{one['key']}:{value}"
            by_field[column if isinstance(column, str) else ""].add(name)
    return {field: sorted(names) for field, names in by_field.items()}
