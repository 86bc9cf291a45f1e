"""Commands of table formats that hold their plans in fields of their own.

The registry of formats fills it.
"""

from __future__ import annotations

from strandline_spark.columns.rules import Rule

COMMANDS: dict[str, Rule] = {}
"""By the name of the command's node: how its columns are resolved."""
WITHOUT_COLUMNS: set[str] = set()
"""Commands that set no column."""
