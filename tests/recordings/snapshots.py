"""Snapshots of a lake's tables, read from metadata files without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Snapshot = dict[str, Any]


def snapshots_in(folder: Path) -> dict[str, list[Snapshot]]:
    """The snapshots of every table below a folder, by database.table, the oldest first."""
    iceberg = {
        name_of(file.parent.parent): iceberg_snapshots(file.parent)
        for file in folder.rglob("version-hint.text")
    }
    logs = [log for log in folder.rglob("_delta_log") if log.is_dir()]
    return dict(
        sorted((iceberg | {name_of(log.parent): delta_versions(log) for log in logs}).items())
    )


def name_of(table: Path) -> str:
    """The database and the table of a table's folder."""
    return f"{table.parent.name.removesuffix('.db')}.{table.name}"


def iceberg_snapshots(metadata: Path) -> list[Snapshot]:
    """Of the newest metadata file of a Hadoop catalog's table."""
    newest = (metadata / "version-hint.text").read_text().strip()
    found = json.loads((metadata / f"v{newest}.metadata.json").read_text()).get("snapshots", [])
    return [dict(_iceberg(one)) for one in sorted(found, key=lambda one: one["sequence-number"])]


def _iceberg(one: Snapshot) -> Iterator[tuple[str, Any]]:
    yield "id", str(one["snapshot-id"])
    yield "parent", str(one["parent-snapshot-id"]) if one.get("parent-snapshot-id") else None
    yield "operation", one["summary"]["operation"]
    yield "milliseconds", one["timestamp-ms"]
    if query := one["summary"].get("spark.sql.streaming.queryId"):
        yield "query", query
        yield "batch", int(one["summary"]["spark.sql.streaming.epochId"])


def delta_versions(log: Path) -> list[Snapshot]:
    """Of the commits in a Delta log."""
    return [_delta(file) for file in sorted(log.glob("*.json"))]


def _delta(file: Path) -> Snapshot:
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    commit = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    streamed = next((action["txn"] for action in actions if "txn" in action), None)
    version = int(file.stem)
    parent = str(version - 1) if version else None
    found = {
        "id": str(version),
        "parent": parent,
        "operation": commit["operation"],
        "milliseconds": commit["timestamp"],
    }
    return found | ({"query": streamed["appId"], "batch": streamed["version"]} if streamed else {})
