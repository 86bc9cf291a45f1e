"""Keeps an event within its budget of bytes.

What can be missed goes first, snapshots last, barriers never.

What was taken out is named in the run facet `strandline_emitter`, so that nobody takes a trimmed
event for a whole one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from strandline_spark.openlineage.facets import PRODUCER, StrandlineEmitterRunFacet

_SNAPSHOTS = {"strandline_snapshot", "version"}
_KEPT = {*_SNAPSHOTS, "symlinks", "catalog", "lineage"}
_TEXT = 2000


def encoded(event: dict[str, Any], limit: int) -> bytes:
    """The event as JSON, trimmed until it fits.

    What cannot be made to fit stays as small as it became.
    """
    body = compact_json(event)
    if len(body) > limit:
        event = json.loads(body)  # what is cut is this event's own: others share its facets
    for name, trim in _STEPS:
        if len(body) <= limit:
            break
        if trim(event):
            _mark(event, name)
            body = compact_json(event)
    if len(body) > limit and event.get("inputs"):
        _mark(event, "inputs")
        _drop_inputs(event, len(compact_json(event)) - limit)
        body = compact_json(event)
    return body


def compact_json(event: dict[str, Any]) -> bytes:
    """JSON in UTF-8 without spaces. Lone surrogates, which are no text, become question marks."""
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def _datasets(event: dict[str, Any]) -> list[dict[str, Any]]:
    return [*event.get("inputs", []), *event.get("outputs", [])]


def _descriptions(event: dict[str, Any]) -> bool:
    """The expressions of column lineage: the columns stay."""
    dropped = False
    for field in _input_fields(event):
        for step in field.get("transformations", []):
            dropped |= step.pop("description", None) is not None
    return dropped


def _input_fields(event: dict[str, Any]) -> list[dict[str, Any]]:
    facets = [dataset["facets"].get("columnLineage", {}) for dataset in event.get("outputs", [])]
    direct = [
        field
        for facet in facets
        for column in facet.get("fields", {}).values()
        for field in column["inputFields"]
    ]
    return direct + [field for facet in facets for field in facet.get("dataset", [])]


def _indirect(event: dict[str, Any]) -> bool:
    """Columns that only filter, join or sort."""
    facets = [dataset["facets"].get("columnLineage", {}) for dataset in event.get("outputs", [])]
    taken = [facet.pop("dataset", None) for facet in facets]
    return any(part is not None for part in taken)


def _without(key: str) -> Callable[[dict[str, Any]], bool]:
    def trim(event: dict[str, Any]) -> bool:
        taken = [dataset["facets"].pop(key, None) for dataset in _datasets(event)]
        return any(facet is not None for facet in taken)

    return trim


def _foreign(event: dict[str, Any]) -> bool:
    """Facets of datasets that neither identify them nor tell their snapshot (a provider's own)."""
    dropped = False
    for dataset in _datasets(event):
        for key in set(dataset["facets"]) - _KEPT - {"schema", "columnLineage"}:
            dropped |= dataset["facets"].pop(key) is not None
    return dropped


def _long_texts(event: dict[str, Any]) -> bool:
    facets = event["run"]["facets"].values()
    long = [(f, k) for f in facets for k, v in f.items() if isinstance(v, str) and len(v) > _TEXT]
    for facet, key in long:
        facet[key] = facet[key][:_TEXT]
    return bool(long)


def _properties(event: dict[str, Any]) -> bool:
    return event["run"]["facets"].pop("spark_properties", None) is not None


def _sql(event: dict[str, Any]) -> bool:
    return event["job"].get("facets", {}).pop("sql", None) is not None


def _input_facets(event: dict[str, Any]) -> bool:
    """All that inputs say but their names and snapshots."""
    facets = [
        d.get(kind, {}) for d in event.get("inputs", []) for kind in ("facets", "inputFacets")
    ]
    taken = [facet.pop(key) for facet in facets for key in set(facet) - _SNAPSHOTS]
    return bool(taken)


def _offsets(event: dict[str, Any]) -> bool:
    """Long offsets of a micro-batch's sources: the barrier stays."""
    sources = event["run"]["facets"].get("strandline_barrier", {}).get("sources", [])
    long = [
        (s, k) for s in sources for k in ("startOffset", "endOffset") if len(s.get(k, "")) > _TEXT
    ]
    for source, key in long:
        del source[key]
    return bool(long)


def _drop_inputs(event: dict[str, Any], over: int) -> None:
    """As many inputs as take that many bytes; those with a snapshot last."""
    inputs = event["inputs"]
    plain = [
        dataset for dataset in inputs if "strandline_snapshot" not in dataset.get("inputFacets", {})
    ]
    with_snapshot = [
        dataset for dataset in inputs if "strandline_snapshot" in dataset.get("inputFacets", {})
    ]
    remaining = [*with_snapshot, *plain]
    while remaining and over > 0:
        over -= len(compact_json(remaining.pop())) + 1
    event["inputs"] = remaining


_STEPS: tuple[tuple[str, Callable[[dict[str, Any]], bool]], ...] = (
    ("spark_properties", _properties),
    ("errorMessage", _long_texts),
    ("sql", _sql),
    ("columnLineage.descriptions", _descriptions),
    ("columnLineage.dataset", _indirect),
    ("other facets", _foreign),
    ("columnLineage", _without("columnLineage")),
    ("schema", _without("schema")),
    ("lineage", _without("lineage")),
    ("inputs.facets", _input_facets),
    ("barrier.offsets", _offsets),
)


def _mark(event: dict[str, Any], name: str) -> None:
    empty_facet = {"_producer": PRODUCER, "_schemaURL": StrandlineEmitterRunFacet._get_schema()}
    facet = event["run"]["facets"].setdefault("strandline_emitter", empty_facet)
    facet["trimmedFacets"] = [*facet.get("trimmedFacets", []), name]
