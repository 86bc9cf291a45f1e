"""Rows that were read at a version and go back to their own table.

A statement reads the table that it changes as it is. A DataFrame was made before its writer names a
table, so that its version cannot be taken back: the write is refused, and no newer row is lost.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from strandline_spark.consistency.collector import UnknownTableError, UnreadableStatementError
from strandline_spark.consistency.reading.analysed_reads import analyse_plan
from strandline_spark.consistency.table_identity import Identities

_versioned: set[str] = set()


def note_versions(tables: frozenset[str]) -> None:
    """Remember tables that `spark.sql` read at a version of its own choice.

    Each is named catalog.database.table.
    """
    _versioned.update(tables)


def refuse_old_rows(frame: DataFrame, target: str) -> None:
    """Raise UnreadableStatementError where a DataFrame reads its target at a version."""
    if not _versioned:
        return
    spark = frame.sparkSession
    try:
        written = {dataset.table for dataset in Identities(spark).behind(target)}
    except UnknownTableError:  # the write creates it
        return
    if not written & _versioned:
        return
    reads = analyse_plan(frame._jdf.queryExecution().analyzed(), spark._jvm).reads
    old = sorted(read.table for read in reads if read.at_version and read.table in written)
    if old:
        raise UnreadableStatementError(
            f"{old[0]}: the rows were read at a version, and the write would put them over newer"
            f" ones; read it by spark.table, or write by a statement (INSERT, MERGE)"
        )
