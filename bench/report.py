"""The results of benchmarks: one row a figure in `bench/results.json`, replaced by name."""

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results.json"
judging = True  # a short run says nothing about speed


def record(
    name: str,
    value: float,
    unit: str,
    *,
    least: float | None = None,
    most: float | None = None,
    note: str = "",
) -> None:
    """Write down and print one figure, with its target if it has one."""
    target, met = "", None
    if least is not None:
        target, met = f">= {least:g}", value >= least
    elif most is not None:
        target, met = f"<= {most:g}", value <= most
    row = {
        "name": name,
        "value": round(value, 3),
        "unit": unit,
        "target": target,
        "met": met if judging else None,
        "note": note,
    }
    document = _read()
    rows = {row["name"]: row for row in document["rows"]} | {name: row}
    document |= {"machine": machine(), "at": datetime.now(UTC).isoformat(timespec="seconds")}
    document["rows"] = [rows[key] for key in sorted(rows)]
    RESULTS.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(_line(row), flush=True)


def table() -> str:
    """All rows as a table for people."""
    return "\n".join(_line(row) for row in _read()["rows"])


def machine() -> str:
    """The machine that was measured."""
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}, "
        f"Python {platform.python_version()}"
    )


def _read() -> dict[str, Any]:
    if not RESULTS.is_file():
        return {"rows": []}
    document: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return document


def _line(row: dict[str, Any]) -> str:
    verdict = {True: "met", False: "MISSED", None: ""}[row["met"]]
    target = f"target {row['target']}" if row["target"] else ""
    figure = f"{row['name']:<44} {row['value']:>12,.2f} {row['unit']:<14}"
    return f"{figure} {target:<22} {verdict:<7} {row['note']}".rstrip()
