"""Facets and events of attrs classes as what JSON is made of.

Dictionaries and lists, without nulls.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import attr

from strandline_spark.openlineage.facets import PRODUCER
from strandline_spark.openlineage.redaction import Clean, redacted

_fields_by_class: dict[type, tuple[str, ...] | None] = {}
_AS_THEY_ARE = frozenset({str, int, float, bool, type(None), Clean})


def shared(facet: Any) -> Clean:
    """A facet that several events say: made ready and redacted once."""
    return Clean(redacted(as_json(facet)))


def as_json(value: Any) -> Any:
    """Return a facet or event of attrs classes as dictionaries and lists.

    Nulls and empty facets are left out. This takes one pass where openlineage-python's own takes
    two, with the same result but for the producer, which is ours.
    """
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if (names := _fields_of(kind)) is not None:
        return _object(value, names)
    if isinstance(value, Mapping):
        return {key: as_json(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return _list(value)
    if isinstance(value, (str, int, float)) and not isinstance(value, Enum):
        return value
    return value.value if isinstance(value, Enum) else str(value)


def _object(value: Any, names: tuple[str, ...]) -> dict[str, Any]:
    fields = {name: as_json(item) for name in names if (item := getattr(value, name)) is not None}
    return {**fields, "_producer": PRODUCER} if "_producer" in fields else fields


def _list(items: list[Any] | tuple[Any, ...]) -> list[Any]:
    return [converted for item in items if item is not None and (converted := as_json(item)) != {}]


def _fields_of(kind: type) -> tuple[str, ...] | None:
    """The names of an attrs class's fields; None for another class."""
    if kind not in _fields_by_class:
        _fields_by_class[kind] = (
            tuple(field.name for field in attr.fields(kind)) if attr.has(kind) else None
        )
    return _fields_by_class[kind]
