"""What a run's events say of each dataset that was written: the same form for every producer, to compare them.

Events of one run are one statement: its inputs, outputs and columns are the union of what its events say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]


@dataclass
class Written:
    """One dataset that was written: from what, with which columns, made of which."""

    inputs: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)
    columns: set[str] = field(default_factory=set)


def written(events: Sequence[Event], folder: str) -> dict[str, Written]:
    """Each output by its name, with the test's own folder cut out of all names."""
    found: dict[str, Written] = {}
    inputs: dict[str, set[str]] = {}
    for event in events:
        inputs.setdefault(event["run"]["runId"], set()).update(_named(one, folder) for one in event.get("inputs", ()))
    for event in events:
        for output in event.get("outputs", ()):
            told = found.setdefault(_named(output, folder), Written())
            told.inputs |= inputs[event["run"]["runId"]]
            told.fields |= set(_fields(output.get("facets", {})))
            told.columns |= set(_columns(output.get("facets", {}), folder))
    return found


def _named(dataset: dict[str, Any], folder: str) -> str:
    return f"{dataset['namespace']} {dataset['name']}".replace(folder, "")


def _fields(facets: dict[str, Any]) -> Iterator[str]:
    for one in facets.get("schema", {}).get("fields", ()):
        yield f"{one['name']} {_SQL_NAMES.get(one.get('type'), one.get('type'))}"


_SQL_NAMES = {
    "long": "bigint",
    "integer": "int",
    "short": "smallint",
    "byte": "tinyint",
}  # Spark has two names for these


def _columns(facets: dict[str, Any], folder: str) -> Iterator[str]:
    """`column <- source column` where a value comes from it; what only decides the rows is told in too many ways."""
    for name, column in facets.get("columnLineage", {}).get("fields", {}).items():
        for source in column["inputFields"]:
            if any(one.get("type") != "INDIRECT" for one in source.get("transformations") or [{}]):
                yield f"{name} <- {_named(source, folder)} {source['field']}"


def differences(ours: dict[str, Written], theirs: dict[str, Written]) -> list[str]:
    """A line a difference: what only we say, what only they say."""
    lines = [f"+ {name}" for name in ours.keys() - theirs.keys()] + [
        f"- {name}" for name in theirs.keys() - ours.keys()
    ]
    for name in ours.keys() & theirs.keys():
        for part in ("inputs", "fields", "columns"):
            lines += _between(f"{name} {part}", getattr(ours[name], part), getattr(theirs[name], part))
    return sorted(lines)


def _between(what: str, ours: Iterable[str], theirs: Iterable[str]) -> Iterator[str]:
    yield from (f"+ {what}: {one}" for one in set(ours) - set(theirs))
    yield from (f"- {what}: {one}" for one in set(theirs) - set(ours))
