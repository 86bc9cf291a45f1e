"""Checking an answer without trusting the collector: its certificate, and the tables' own metadata.

A reader can check that the certificate is whole, that it is for this answer, and that every table
in it, down to the base tables, is at one snapshot. For each Iceberg table that this session can
load, it can check that the snapshot itself says the same barrier and the same inputs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import SparkSession

from strandline_spark.consistency.table_history import TableAtError, TableHistory
from strandline_spark.consistency.table_identity import Identities, Identity

Chosen = Mapping[tuple[str, str], Mapping[str, Any]]


def faults_of(
    spark: SparkSession,
    certificate: Mapping[str, Any],
    answer: Mapping[Identity, Mapping[str, Any]],
) -> list[str]:
    """Every fault of an answer, in words; an empty list means that its tables belong together."""
    chosen = {(entry["namespace"], entry["name"]): entry for entry in certificate["entries"]}
    return [
        *_not_whole(certificate, chosen),
        *_not_of(answer, chosen),
        *_against_tables(spark, answer, chosen),
    ]


def _not_whole(certificate: Mapping[str, Any], chosen: Chosen) -> Iterator[str]:
    if certificate.get("digest") != digest(certificate):
        yield "the certificate's digest does not belong to its entries"
    for entry in certificate["entries"]:
        certified = chosen[entry["namespace"], entry["name"]]
        if certified["snapshotId"] != entry["snapshotId"]:
            yield f"{entry['name']} is at {certified['snapshotId']} and at {entry['snapshotId']}"
        for used in entry["inputs"]:
            read_entry = chosen.get((used["namespace"], used["name"]))
            if read_entry is not None and read_entry["snapshotId"] != used["snapshotId"]:
                yield (
                    f"{entry['name']} read {used['name']} at {used['snapshotId']}, "
                    f"the answer has {read_entry['snapshotId']}"
                )


def digest(certificate: Mapping[str, Any]) -> str:
    """SHA-256 over the canonical JSON of answer and entries."""
    body = {"answer": certificate["answer"], "entries": certificate["entries"]}
    return hashlib.sha256(
        json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


def _not_of(answer: Mapping[Identity, Mapping[str, Any]], chosen: Chosen) -> Iterator[str]:
    for identity, answered in answer.items():
        entry = chosen.get((answered["namespace"], answered["name"]))
        if answered["barrier"] is None:
            continue  # untracked: nothing is promised of it
        if entry is None:
            yield f"{identity.full_name} is not in the certificate"
        elif (entry["snapshotId"], entry["barrier"]) != (
            answered["snapshotId"],
            answered["barrier"],
        ):
            yield (
                f"{identity.full_name} is certified at {entry['snapshotId']}, "
                f"not at {answered['snapshotId']}"
            )


def _against_tables(
    spark: SparkSession, answer: Mapping[Identity, Mapping[str, Any]], chosen: Chosen
) -> Iterator[str]:
    identities, checked = Identities(spark), set[tuple[str, str]]()
    waiting = [
        (table.full_name, answered["snapshotId"])
        for table, answered in answer.items()
        if answered["barrier"] is not None
    ]
    while waiting:
        table, snapshot = waiting.pop()
        if (table, snapshot) in checked:
            continue
        checked.add((table, snapshot))
        try:
            history = TableHistory(spark, table)
        except TableAtError:  # not Iceberg, or not this session's to see
            continue
        point = history.point(snapshot)
        if point is None:
            yield (
                f"{table} has no snapshot {snapshot}: it was expired, or the table was made anew "
                "(then retire the job that wrote it: strandline retire JOB, "
                "which strandline late TABLE names)"
            )
            continue
        yield from _against(table, history, snapshot, chosen, identities)
        waiting.extend((name, used) for name, used in point.inputs.items())


def _against(
    table: str, history: TableHistory, snapshot: str, chosen: Chosen, identities: Identities
) -> Iterator[str]:
    entry, point = chosen.get(identities.at(history.location)), history.point(snapshot)
    if entry is None or point is None:
        return
    if entry["snapshotId"] != snapshot:
        yield (
            f"{table} was read at {snapshot} below the answer, "
            f"which has it at {entry['snapshotId']}"
        )
    elif point.stated and point.barrier != entry["barrier"]:
        yield (
            f"{table} says that {snapshot} is barrier {point.barrier}, "
            f"the answer says {entry['barrier']}"
        )
