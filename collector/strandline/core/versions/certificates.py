"""Certificates: the closure of data lineage from an answer down to the base tables.

A reader can check it by itself. An entry is a snapshot with the snapshots that it was made from.
`verify` needs nothing but the certificate, and, to trust nobody at all, a way to look into the
tables' own metadata.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from strandline.core.versions.choice import newest_choice
from strandline.core.versions.completions import Completion
from strandline.core.versions.facts import Table, Used
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import Reading
from strandline.errors import RefusedError

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Certificate:
    """The tables that were answered, and the entries under them; `digest` is of exactly these."""

    answer: tuple[Entry, ...]
    entries: tuple[Entry, ...]

    def as_document(self) -> dict[str, Any]:
        """The form that travels."""
        body = {"answer": list(self.answer), "entries": list(self.entries)}
        return {**body, "digest": digest(body)}


def certify(model: Model, readings: Iterable[Reading]) -> Certificate:
    """The certificate of an answer: everything upstream of its tables at the answered barriers."""
    answered = sorted(readings, key=lambda reading: reading.table)
    entries: dict[tuple[Table, str], Entry] = {}
    for barrier in sorted({reading.barrier for reading in answered}):
        shown = {
            completion.table: completion.snapshot
            for completion in answered
            if completion.barrier == barrier
        }
        waiting = list(shown)
        choice = newest_choice(model, waiting, barrier, shown) or {}
        while waiting:
            table = waiting.pop()
            entry = _entry(choice, table)
            if (table, entry["snapshotId"]) not in entries:
                entries[table, entry["snapshotId"]] = entry
                sources = model.sources(table)
                inputs = {use.table for use in choice[table].used}
                waiting.extend(sorted(sources & inputs & choice.keys()))
    answer = tuple(
        _named(completion.table, completion.snapshot) | {"barrier": completion.barrier}
        for completion in answered
    )
    return Certificate(answer, tuple(entries[key] for key in sorted(entries)))


def _entry(choice: Mapping[Table, Completion], table: Table) -> Entry:
    completion = choice[table]
    used = {
        use.table: _shown(choice, use)
        for use in completion.used
        if use.table != table and use.exact and not use.lookup
    }
    inputs = [_named(source, used[source]) for source in sorted(used)]
    return _named(table, completion.snapshot) | {"barrier": completion.barrier, "inputs": inputs}


def _shown(choice: Mapping[Table, Completion], used: Used) -> str:
    """The snapshot that was read; of a compacted one that whose rows it shows."""
    chosen = choice.get(used.table)
    return used.shows if chosen is not None and chosen.snapshot == used.shows else used.snapshot


def refuse_contradictions(document: Mapping[str, Any]) -> None:
    """Raise where the data lineage of an answer contradicts itself: it is not given then."""
    faults = _disagreements(document, {})
    if faults:
        raise RefusedError(
            f"the recorded data lineage contradicts this version: {'; '.join(faults)}",
            "no_version",
        )


def _named(table: Table, snapshot: str) -> Entry:
    return {"namespace": table[0], "name": table[1], "snapshotId": snapshot}


def digest(body: Mapping[str, Any]) -> str:
    """SHA-256 over the canonical JSON of answer and entries."""
    shown = {"answer": body["answer"], "entries": body["entries"]}
    return hashlib.sha256(
        json.dumps(shown, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


def verify(
    document: Mapping[str, Any],
    properties: Callable[[str, str, str], Mapping[str, str]] | None = None,
) -> list[str]:
    """Every fault of a certificate, in words.

    An empty list is a proof that its tables belong together.

    `properties(namespace, name, snapshot id)` gives the properties that the table's own metadata
    has for a snapshot; where they name barrier and inputs (`strandline.barrier`,
    `strandline.inputs`), both must agree.
    """
    faults = (
        []
        if document.get("digest") == digest(document)
        else ["digest: does not belong to these entries"]
    )
    chosen: dict[tuple[str, str], Entry] = {}
    faults += _disagreements(document, chosen)
    for entry in document["entries"]:
        faults += _against_table(entry, properties) if properties is not None else []
    return faults


def _disagreements(document: Mapping[str, Any], chosen: dict[tuple[str, str], Entry]) -> list[str]:
    """Tables at two snapshots, and inputs that are not those of the version.

    `chosen` is filled with the entries.
    """
    faults: list[str] = []
    for entry in document["entries"]:
        other = chosen.setdefault((entry["namespace"], entry["name"]), entry)
        if (other["snapshotId"], other["barrier"]) != (entry["snapshotId"], entry["barrier"]):
            faults.append(f"{entry['name']}: at {other['snapshotId']} and at {entry['snapshotId']}")
    for answer in document["answer"]:
        faults += _differs(answer, chosen.get((answer["namespace"], answer["name"])), "answer")
    for entry in document["entries"]:
        for used in entry["inputs"]:
            entry_of_input = chosen.get((used["namespace"], used["name"]))
            faults += (
                _differs(used, entry_of_input, f"input of {entry['name']}")
                if entry_of_input is not None
                else []
            )
    return faults


def _differs(wanted: Mapping[str, Any], entry: Entry | None, role: str) -> list[str]:
    if entry is None:
        return [f"{wanted['name']}: {role} without an entry"]
    if entry["snapshotId"] != wanted["snapshotId"]:
        return [
            (
                f"{wanted['name']}: {role} is {wanted['snapshotId']}, "
                f"the version has {entry['snapshotId']}"
            )
        ]
    return []


def _against_table(
    entry: Entry, properties: Callable[[str, str, str], Mapping[str, str]]
) -> list[str]:
    stated = properties(entry["namespace"], entry["name"], entry["snapshotId"])
    faults = []
    if stated.get("strandline.barrier", str(entry["barrier"])) != str(entry["barrier"]):
        faults.append(
            f"{entry['name']}: the table says barrier {stated['strandline.barrier']}, "
            f"not {entry['barrier']}"
        )
    inputs = {used["name"]: used["snapshotId"] for used in entry["inputs"]}
    inputs_of_table = json.loads(stated.get("strandline.inputs", "{}"))
    for name, snapshot in inputs_of_table.items():
        if name in inputs and str(snapshot) != inputs[name]:
            faults.append(
                f"{entry['name']}: the table says it read {name} at {snapshot}, not {inputs[name]}"
            )
    return faults
