"""Checks an event against the schemas of `schemas/`: the core's, and those of our facets wherever they stand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

FOLDER = Path(__file__).resolve().parents[3] / "schemas"


def documents() -> dict[str, dict[str, Any]]:
    """All schemas by the path below `schemas/`."""
    return {str(file.relative_to(FOLDER)): json.loads(file.read_text()) for file in sorted(FOLDER.rglob("*.json"))}


@cache
def _validator(reference: str) -> Any:
    resources = [(document["$id"], document) for document in documents().values()]
    registry = jsonschema_rs.Registry(resources)
    return jsonschema_rs.Draft202012Validator({"$ref": reference}, registry=registry, validate_formats=True)


def faults_of(event: dict[str, Any]) -> list[str]:
    """What is wrong with an event; nothing for one that follows the core and our facets."""
    found = [f"{fault.instance_path}: {fault.message}" for fault in _validator(_core(event)).iter_errors(event)]
    for where, facet in _facets(event):
        key = where.rsplit("/", 1)[1]
        if key.startswith("strandline_"):
            found += [f"{where}: {fault.message}" for fault in _validator(facet["_schemaURL"]).iter_errors(facet)]
    return found


def _core(event: dict[str, Any]) -> str:
    kind = "RunEvent" if "run" in event else "JobEvent" if "job" in event else "DatasetEvent"
    return str(documents()["openlineage/2-0-2.json"]["$id"]) + f"#/$defs/{kind}"


def _facets(event: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    holders: list[tuple[str, dict[str, Any], str]] = [
        (name, event[name], "facets") for name in ("run", "job", "dataset") if name in event
    ]
    for side in ("inputs", "outputs"):
        for dataset in event.get(side, []):
            holders += [(side, dataset, key) for key in ("facets", "inputFacets", "outputFacets")]
    for where, holder, kind in holders:
        for key, facet in holder.get(kind, {}).items():
            yield f"{where}/{key}", facet
