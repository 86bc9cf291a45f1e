"""The results of a benchmark.

One row a figure in `bench/results.json`, replaced by name, and a line on stdout.

A row says the target beside the value and whether it was met; figures without a target are told for
what they are.
"""

import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results.json"


def record(
    name: str, value: float, unit: str, target: str = "", met: bool | None = None, note: str = ""
) -> None:
    """Write down one figure, e.g.

    `record("ingest.postgres", 8200, "events/s", ">= 8000", True)`.
    """
    row = {
        "name": name,
        "value": round(value, 3),
        "unit": unit,
        "target": target,
        "met": met,
        "note": note,
    }
    document = read()
    rows = {row["name"]: row for row in document["rows"]} | {name: row}
    document |= {"machine": machine(), "at": datetime.now(UTC).isoformat(timespec="seconds")}
    document["rows"] = [rows[key] for key in sorted(rows)]
    RESULTS.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(line(row), flush=True)


def read() -> dict[str, Any]:
    """All rows so far."""
    if not RESULTS.is_file():
        return {"rows": []}
    document: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return document


def table() -> str:
    """All rows as a table for people."""
    return "\n".join(line(row) for row in read()["rows"])


def line(row: dict[str, Any]) -> str:
    """One row for people."""
    verdict = {True: "met", False: "MISSED", None: ""}[row["met"]]
    target = f"target {row['target']}" if row["target"] else ""
    return f"{row['name']:<44} {row['value']:>12,.2f} {row['unit']:<14} {target:<22} {verdict:<7} {row['note']}".rstrip()


def machine() -> str:
    """On what it was measured."""
    return f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
